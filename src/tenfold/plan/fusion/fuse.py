"""Fuse: which nodes become one kernel.

One walk over the nodes, each of which joins the groups of its inputs where the rules allow. A
group has a time; it may be deferred until something reads from it, and whatever it reads from
memory was made before its time, so the groups in the order of their times are a schedule. A node
whose inputs stand in groups of one time, or in groups that can be deferred, merges them all.

Views (reads without arithmetic) belong to no group: whoever reads one reads what it is a view of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tenfold.frozen import frozen, mutable
from tenfold.graph import Graph, Node
from tenfold.graph.op import Ranges, Scatter, Table
from tenfold.ops.ranges import Start, WrittenRange, updates
from tenfold.plan.capabilities import Capabilities
from tenfold.plan.fusion.access import Access
from tenfold.plan.fusion.attach import OVER, Grouping, Refuse
from tenfold.plan.fusion.defer import LARGE, defer
from tenfold.plan.fusion.groups import Axes, Group
from tenfold.plan.fusion.siblings import merge_siblings
from tenfold.plan.fusion.union import Edge, Place
from tenfold.plan.fusion.values import NOTHING, FusionValues
from tenfold.types import TensorType


@frozen
class Item:
    """A group or another step, with the time at which it runs."""

    time: float
    number: int
    group: Group | None = None
    node: int = -1
    copied: int = -1  # the value that the node's result begins as a copy of
    over: bool = False  # and that is read from there


@mutable
class Fusion:
    """Items in order, and where each value is."""

    graph: Graph
    items: list[Item]
    accesses: list[Access | None]
    home: list[Group | None]  # by value
    place: list[Place | None]  # by value: the axes of its group that it runs along
    view: list[bool]  # by value: it is read through, not stored
    alias: list[int]  # by value: the value whose memory it shares
    stored: bytearray  # by value: read from memory, or an output
    kinds: list[int]  # by value: the number of its type
    distinct: list[TensorType]  # the types, by number
    axes: Axes
    write_places: dict[tuple[int, int], Place]
    notes: dict[str, tuple[int, int]]  # reason: count, first node
    reasons: dict[str, str]  # op: why it is no kernel


def fuse(graph: Graph, table: Table, capabilities: Capabilities) -> Fusion:
    """Group the nodes of a graph without compositions."""
    return _Fuser(graph, table, capabilities).run()


class _Fuser:
    def __init__(self, graph: Graph, table: Table, capabilities: Capabilities) -> None:
        self.graph = graph
        self.table = table
        self.types = graph.types
        self.values = FusionValues(graph, table, capabilities)
        self.grouping = Grouping(self.values)
        self.items: list[Item] = []
        self.write_places: dict[tuple[int, int], Place] = {}
        self.effect = -1.0  # the time of the last step with an effect

    def run(self) -> Fusion:
        graph, values, grouping = self.graph, self.values, self.grouping
        effects = set(graph.effects)
        for position, (node, start) in enumerate(zip(graph.nodes, graph.starts, strict=True)):
            access = values.accesses[position]
            if access is None:
                self.step(position, position in effects)
            elif access is not NOTHING and not values.view[start]:
                shape = node.types[0].shape
                group, place = grouping.attach(position, node.inputs, access, shape)
                grouping.take(start, group, place)
        for value in graph.outputs:
            grouping.demand(value)
        merge_siblings(grouping.groups, grouping.axes, grouping.streams)
        written: dict[int, float] = {}  # by position: when it is first written into
        over: set[int] = set()  # by position: what is read where it is written
        for group in grouping.groups:
            if group.into is None:
                self.items.append(Item(group.time, group.number, group))
                for position, _ in group.writes:
                    written[position] = min(group.time, written.get(position, group.time))
                    if group.over:
                        over.add(position)
        # A value that others read before it is written over need not be copied until then.
        self.items = [
            replace(
                item,
                time=max(item.time, written.get(item.node, 0.0) - 0.5),
                over=item.node in over,
            )
            if item.copied >= 0
            else item
            for item in self.items
        ]
        self.items.sort(key=lambda item: (item.time, item.number))
        reads = [self.reads(item) for item in self.items]
        stored = self.stored(reads)
        made = [self.deferrable(item.group, stored) for item in self.items]
        if any(made):
            kept = [values.alias[value] for value in graph.outputs]
            self.items = defer(self.items, reads, made, kept)
        return Fusion(
            graph, self.items, values.accesses, grouping.home, grouping.place, values.view,
            values.alias, stored, values.kinds, values.distinct, grouping.axes,
            self.write_places, grouping.notes, values.reasons,
        )  # fmt: skip

    def step(self, position: int, effect: bool) -> None:
        """A step that is no kernel: it reads from memory and writes to memory."""
        node, start = self.graph.nodes[position], self.graph.starts[position]
        lowering = self.table[node.op].lowering
        if isinstance(lowering, Ranges):
            self.ranges(position, lowering)
            return
        if isinstance(lowering, Scatter) and node.types[0].size:
            access = self.values.scatter(node, lowering)
            if access is not None:
                self.scatter(position, access)
                return
        time = max((self.grouping.demand(value) for value in node.inputs), default=0.0)
        if effect:
            time = max(time, self.effect + 1)
            self.effect = time
        for value in node.inputs:
            self.grouping.needed(value, time)
        self.items.append(Item(time, self.grouping.number(), None, position))
        self.grouping.ready[start : start + len(node.types)] = [time + 1] * len(node.types)

    def ranges(self, position: int, lowering: Ranges) -> None:
        """Many inputs written into ranges of one value, each by the group that makes it."""
        node, start = self.graph.nodes[position], self.graph.starts[position]
        types = [self.types[v] for v in node.inputs]
        parts = lowering.ranges(types, dict(node.attributes))
        last: float = 0
        first = 0.0
        whole = -1
        if updates(parts):
            whole = node.inputs[parts[0].input]
            first = self.grouping.demand(whole)
            self.grouping.needed(whole, first)
        for number, one in enumerate(parts):
            shape = types[one.input].shape
            if 0 in shape or (whole >= 0 and not number):
                continue
            value = node.inputs[one.input]
            moving = [node.inputs[s.input] for s in one.starts if isinstance(s, Start)]
            apart = whole >= 0 and self.grouping.reads(value, whole)
            over = apart and (
                self.grouping.reads_first(value, whole, moving)
                or self.writes_where_it_reads(value, whole, node, one)
            )
            # Where others read the whole later, it is copied anyway, and may be read meanwhile. So
            # it is where most of it is written: the rest is copied, sooner than that twice.
            apart = apart and not over and self.values.last[whole] <= position
            apart = apart and not self.is_most(whole, one, node)
            if apart:
                if self.values.view[value]:  # of the whole: it is small, or as large as a copy
                    self.grouping.materialise(value)
                first = max(first, self.grouping.demand(value))
            pattern = tuple(None if n == 1 else i for i, n in enumerate(shape))
            scalars = ((((),),) * len(moving)) if moving else ()
            zeros = (0,) * (1 + len(moving))
            access = Access(((pattern,), *scalars), zeros, zeros)
            after = first + 1 if whole >= 0 else 0.0
            refuse: Refuse | None = (lambda group, edge: OVER) if apart else None
            inputs = [value, *moving]
            group, place = self.grouping.attach(position, inputs, access, shape, after, refuse)
            group.writes.append((position, number))
            group.over = group.over or over
            self.write_places[position, number] = place
            group.consumer = min(group.consumer, group.time + 1)
            last = max(last, group.time)
        if whole >= 0:
            self.items.append(Item(first, self.grouping.number(), None, position, whole))
            last = max(last, first)
        self.grouping.ready[start] = last + 1

    def is_most(self, whole: int, written: WrittenRange, node: Node) -> bool:
        """Whether a range, which begins where literals say, is more than half of what it is
        written to."""
        if 2 * self.types[node.inputs[written.input]].size <= self.types[whole].size:
            return False
        moving = [node.inputs[s.input] for s in written.starts if isinstance(s, Start)]
        return all(self.values.is_literal(value) for value in moving)

    def writes_where_it_reads(
        self, value: int, whole: int, node: Node, written: WrittenRange
    ) -> bool:
        """Whether a value that is written into a range of another is computed from that range
        alone, element for element: then it is written without a copy of its own."""
        starts = []
        for start in written.starts:
            if isinstance(start, Start):
                known = self.values.known(node.inputs[start.input])
                if known is None:
                    return False
                start = min(max(known, 0), start.limit)
            starts.append(start)
        return self.grouping.reads_own_place(value, whole, starts)

    def scatter(self, position: int, access: Access) -> None:
        """A value that begins as a copy of another, and the group that writes into it. That has
        loops of its own, so it takes in only what is computed for it alone."""
        node, start = self.graph.nodes[position], self.graph.starts[position]
        whole, *others = node.inputs
        first = self.grouping.demand(whole)
        root = self.values.root[whole]
        for value in others:
            home = self.grouping.home[self.values.root[value]]
            if home is not None and self.grouping.reads(value, whole):
                first = max(first, self.grouping.demand(value))
                self.grouping.needed(value, first)
        self.grouping.needed(whole, first)

        def refuse(group: Group, edge: Edge) -> str | None:
            if root in group.streams:
                return OVER
            alone = group.exits <= edge.count and not group.writes and not group.reductions
            return None if alone else "what is written in order is computed apart"

        last = first
        shape = self.types[others[0]].shape
        if 0 not in shape:
            group, place = self.grouping.attach(position, others, access, shape, first + 1, refuse)
            group.ordered = True
            group.writes.append((position, 1))
            self.write_places[position, 1] = place
            group.consumer = min(group.consumer, group.time + 1)
            last = group.time
        self.items.append(Item(first, self.grouping.number(), None, position, whole))
        self.grouping.ready[start] = last + 1

    def reads(self, item: Item) -> Sequence[int]:
        """What a group or a step reads from memory."""
        if item.group is not None:
            return sorted(item.group.streams)
        alias = self.values.alias
        if item.copied >= 0:
            return [alias[item.copied]]
        return [alias[value] for value in self.graph.nodes[item.node].inputs]

    def stored(self, reads: Sequence[Sequence[int]]) -> bytearray:
        """Which values are read from memory, or handed out."""
        stored = bytearray(len(self.types))
        for values in reads:
            for value in values:
                stored[value] = 1
        for value in self.graph.outputs:
            stored[self.values.alias[value]] = 1
        return stored

    def deferrable(self, group: Group | None, stored: Sequence[int]) -> Sequence[int]:
        """What a group stores, if some of it is large and nothing else happens there."""
        if group is None or group.writes:
            return ()
        made = [value for value in group.members if stored[value]]
        if all(self.types[value].nbytes < LARGE for value in made):
            return ()
        accesses = [self.values.accesses[self.values.maker[value]] for value in group.members]
        return () if any(access and access.checks for access in accesses) else made
