"""Fuse: which nodes become one kernel.

One walk over the nodes, each of which joins the groups of its inputs where the rules allow. A
group has a time; it may be put off until something reads from it, and whatever it reads from
memory was made before its time, so the groups in the order of their times are a schedule. A node
whose inputs stand in groups of one time, or in groups that can be put off, merges them all.

Views (reads without arithmetic) belong to no group: whoever reads one reads what it is a view of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tenfold.frozen import frozen
from tenfold.graph import Graph, Node
from tenfold.graph.op import Element, Pointwise, Ranges, Routine, Scatter, Table
from tenfold.ops.ranges import Range, Start
from tenfold.plan.capabilities import Capabilities
from tenfold.plan.fusion.access import Access, Pattern, access_of, scatter_access
from tenfold.plan.fusion.groups import Axes, Group, comparable, find
from tenfold.plan.fusion.union import STREAMS, WEIGHT, Edge, Place, Union, join
from tenfold.plan.lowering.product import product_access
from tenfold.types import TensorType

# Why a member may not join a group that it reads from, or None.
Refuse = Callable[[Group, Edge], str | None]

UPDATED = 4096  # elements; larger values are updated in place, or copied and updated
JOINED = 8  # inputs of a concatenation that are chosen from element by element


@frozen
class Item:
    """A group or another step, with the time at which it runs."""

    time: float
    number: int
    group: Group | None = None
    node: int = -1
    copied: int = -1  # the value that the node's result begins as a copy of


@dataclass(slots=True)
class Fused:
    """What fusing found: items in order, and where each value is."""

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
    notes: dict[str, tuple[int, int]] = field(default_factory=dict)  # reason: count, first node
    reasons: dict[str, str] = field(default_factory=dict)  # op: why it is no kernel


def fuse(graph: Graph, table: Table, capabilities: Capabilities) -> Fused:
    """Group the nodes of a graph without compositions."""
    return _Fuser(graph, table, capabilities).run()


class _Fuser:
    def __init__(self, graph: Graph, table: Table, capabilities: Capabilities) -> None:
        self.graph = graph
        self.table = table
        self.capabilities = capabilities
        self.reasons: dict[str, str] = {}
        self.types = graph.types
        count = len(self.types)
        self.axes = Axes()
        self.accesses: list[Access | None] = [None] * len(graph.nodes)
        self.home: list[Group | None] = [None] * count
        self.place: list[Place | None] = [None] * count
        self.ready: list[float] = [0] * count  # when it may be read from memory
        self.inline = bytearray(count)  # reads nothing: computed wherever it is needed
        self.view = [False] * count
        self.root = list(range(count))  # what a view is a view of
        self.pattern: list[Pattern | None] = [None] * count  # how a view reads its root
        self.alias = list(range(count))
        self.maker = [-1] * count
        self.uses = [0] * count  # reads by nodes, through views too
        self.kinds: list[int] = []
        self.distinct: list[TensorType] = []
        self.groups: list[Group] = []
        self.items: list[Item] = []
        self.notes: dict[str, tuple[int, int]] = {}
        self.write_places: dict[tuple[int, int], Place] = {}
        self.scatters: dict[Any, Access | None] = {}
        self.numbers = 0
        self.effect = -1.0  # the time of the last step with an effect

    def run(self) -> Fused:
        graph = self.graph
        self.classify()
        effects = set(graph.effects)
        for position, node in enumerate(graph.nodes):
            access = self.accesses[position]
            if access is None:
                self.step(position, position in effects)
            elif access is not _NOTHING and not self.view[graph.starts[position]]:
                start = graph.starts[position]
                group, place = self.attach(position, node.inputs, access, node.types[0].shape)
                self.settle_in(start, group, place)
        for value in graph.outputs:
            self.demand(value)
        self.siblings()
        for group in self.groups:
            if group.into is None:
                self.items.append(Item(group.time, group.number, group))
        self.items.sort(key=lambda item: (item.time, item.number))
        return Fused(
            graph, self.items, self.accesses, self.home, self.place, self.view, self.alias,
            self.stored(), self.kinds, self.distinct, self.axes, self.write_places, self.notes,
            self.reasons,
        )  # fmt: skip

    def classify(self) -> None:
        """How each node reads, which are views, and how often each value is used."""
        graph, types = self.graph, self.types
        forms: dict[Any, Access | None] = {}
        numbers: dict[TensorType, int] = {}
        same: dict[int, int] = {}  # by id: most types are the same object as another's
        for type in types:
            if id(type) not in same:
                same[id(type)] = numbers.setdefault(type, len(numbers))
        numbered = self.kinds = [same[id(type)] for type in types]
        self.distinct = list(numbers)
        for position, (node, start) in enumerate(zip(graph.nodes, graph.starts, strict=True)):
            self.maker[start : start + len(node.types)] = [position] * len(node.types)
            if self.table[node.op].literal:
                scalar = node.types[0].size == 1
                self.accesses[position] = _CONSTANT if scalar else _NOTHING
                self.view[start] = scalar
                self.inline[start] = scalar
                continue
            form = (node.op, node.attributes, tuple([numbered[v] for v in node.inputs]))
            try:
                access = forms[form]
            except KeyError:
                access = forms[form] = self.form(node, [types[v] for v in node.inputs])
            self.accesses[position] = access
            if access is not None and access.view:
                self.see(node, start, access)
        for value in graph.outputs:
            self.uses[value] += 1
        for position in range(len(graph.nodes) - 1, -1, -1):
            node, start = graph.nodes[position], graph.starts[position]
            if len(node.types) == 1 and self.view[start]:
                for value in node.inputs:
                    self.uses[value] += self.uses[start]
            else:
                for value in set(node.inputs):
                    self.uses[value] += 1

    def form(self, node: Node, types: Sequence[TensorType]) -> Access | None:
        op = self.table[node.op]
        lowering = op.lowering
        if len(node.types) == 1 and not node.types[0].size and not (op.effect or op.scopes != 0):
            if any(t.size for t in types) and op.heeds(tuple(types), dict(node.attributes)):
                self.reasons[node.op] = "it gives nothing, but an index may be out of range"
                return None
            return _NOTHING
        if isinstance(lowering, Routine) and lowering.inline is not None:
            given = dict(node.attributes)
            if lowering.inline(types, node.types[0], given):
                return product_access(types, given)
        if len(node.types) != 1 or not isinstance(lowering, Pointwise | Element | Ranges):
            return None
        if isinstance(lowering, Ranges) and (
            len(types) > JOINED
            or (
                node.types[0].size > UPDATED
                and _updates(lowering.ranges(types, dict(node.attributes)))
            )
        ):
            return None
        return self.supported(node, access_of(op, types, node.attributes, node.types[0]))

    def supported(self, node: Node, access: Access) -> Access | None:
        """The access, if there is code for all that it computes."""
        for named in sorted(access.instructions):
            reason = self.capabilities.supports(*named)
            if reason is not None:
                self.reasons[node.op] = reason
                return None
        return access

    def see(self, node: Node, start: int, access: Access) -> None:
        """Take note of a view."""
        self.view[start] = True
        if not node.inputs:
            self.inline[start] = 1
            return
        (source,) = node.inputs
        self.root[start] = self.root[source]
        self.inline[start] = self.inline[source]
        if access.patterns[0]:
            (pattern,) = access.patterns[0]
            through = self.pattern[source] if self.view[source] else _IDENTITY
            self.pattern[start] = _composed(pattern, through)
        if access.same:
            self.alias[start] = self.alias[source]

    # Joining groups.

    def attach(
        self,
        position: int,
        inputs: Sequence[int],
        access: Access,
        shape: Sequence[int],
        after: float = 0,
        refuse: Refuse | None = None,
    ) -> tuple[Group, Place]:
        """The group that a new member with this access belongs to, and its place there. It is not
        before the time `after`, and joins no group that it has to `refuse`."""
        if access.reduced:
            self.store_turned(inputs)
        streams: set[int] = set()
        edges, earliest = self.edges(inputs, access, streams)
        earliest = max(earliest, after)
        if refuse is not None:
            for group, edge in edges.items():
                edge.reason = edge.reason or refuse(group, edge)
        if len(edges) == 1:
            ((group, edge),) = edges.items()
            if edge.reason is None and (earliest <= group.time or group.consumer > earliest):
                found = join(self.axes, self.place, group, edge, access, shape, streams)
                if found is not None:
                    group.time = max(group.time, earliest)
                    return group, found
        while True:
            time = self.settle(edges, earliest)
            union = Union(self.axes, self.place, access, shape, streams)
            order = edges.items()
            if len(edges) > 1:
                order = sorted(  # type: ignore[assignment]
                    order, key=lambda e: (not e[1].aligned, -e[0].time, e[0].number)
                )
            for group, edge in order:
                if edge.reason is None:
                    edge.reason = union.add(group, edge)
                    if edge.reason is not None:
                        break
            else:
                break
        for group, edge in edges.items():
            if edge.reason is not None:
                group.consumer = min(group.consumer, time)
                streams.update(edge.values)
                count, first = self.notes.get(edge.reason, (0, position))
                self.notes[edge.reason] = count + 1, first
        target, place, fresh = union.commit(time, self.number(), streams)
        if fresh:
            self.groups.append(target)
        return target, place

    def edges(
        self, inputs: Sequence[int], access: Access, streams: set[int]
    ) -> tuple[dict[Group, Edge], float]:
        """The groups that inputs stand in, and the earliest time by the inputs in memory."""
        earliest: float = 0
        edges: dict[Group, Edge] = {}
        for i, value in enumerate(inputs):
            root = self.root[value]
            home = self.home[root]
            if home is None:
                if not self.inline[root]:
                    streams.add(root)
                    if self.ready[root] > earliest:
                        earliest = self.ready[root]
                continue
            through = self.pattern[value] if root != value else _IDENTITY
            group, dead = find(home)
            edge = edges.get(group)
            if edge is None:
                edge = edges[group] = Edge()
            edge.count += value not in inputs[:i]  # as uses are counted
            edge.values.append(root)
            edge.pulls += access.moved[i]
            edge.turned = edge.turned or _turns(through)
            if access.computed[i]:
                edge.reason = "it is read at computed positions"
            for pattern in access.patterns[i]:
                whole = _composed(pattern, through)
                if not access.reduced:
                    edge.turned = edge.turned or _turns(pattern)
                if dead or whole is None:
                    edge.pulls += 1
                else:
                    edge.aligned.append((root, whole))
        return edges, earliest

    def settle(self, edges: dict[Group, Edge], earliest: float) -> float:
        """The time of the merged group; groups that can't be put off until then are kept out."""
        while True:
            time = earliest
            for group, edge in edges.items():
                time = max(time, group.time if edge.reason is None else group.time + 1)
            late = False
            for group, edge in edges.items():
                if edge.reason is None and group.time < time and group.consumer <= time:
                    edge.reason = "something between the two needs it first"
                    late = True
            if not late:
                return time

    def settle_in(self, value: int, group: Group, place: Place) -> None:
        group.members.append(value)
        group.exits += self.uses[value]
        self.home[value] = group
        self.place[value] = place

    def store_turned(self, inputs: Sequence[int]) -> None:
        """Store a transpose that moves the last axis and is read twice, once by a reduction."""
        for value in inputs:
            if (
                self.view[value]
                and self.uses[value] > 1
                and _turns(self.pattern[value])
                and not self.inline[value]
            ):
                self.materialise(value)

    def materialise(self, value: int) -> None:
        """Make of a view a value of its own, for all who read it later."""
        position = self.maker[value]
        access, node = self.accesses[position], self.graph.nodes[position]
        assert access is not None
        if access is _CONSTANT:
            access = Access((), (), ())
        group, place = self.attach(position, node.inputs, access, self.types[value].shape)
        group.turned = group.turned or _turns(self.pattern[value])
        self.settle_in(value, group, place)
        self.root[value] = self.alias[value] = value
        self.pattern[value] = None
        self.view[value] = False
        self.inline[value] = 0

    # Other steps.

    def step(self, position: int, effect: bool) -> None:
        """A step that is no kernel: it reads from memory and writes to memory."""
        node, start = self.graph.nodes[position], self.graph.starts[position]
        lowering = self.table[node.op].lowering
        if isinstance(lowering, Ranges):
            self.ranges(position, lowering)
            return
        if isinstance(lowering, Scatter) and node.types[0].size:
            access = self.scatter_form(node, lowering)
            if access is not None:
                self.scatter(position, access)
                return
        time = max((self.demand(value) for value in node.inputs), default=0.0)
        if effect:
            time = max(time, self.effect + 1)
            self.effect = time
        for value in node.inputs:
            self.needed(value, time)
        self.items.append(Item(time, self.number(), None, position))
        self.ready[start : start + len(node.types)] = [time + 1] * len(node.types)

    def ranges(self, position: int, lowering: Ranges) -> None:
        """Many inputs written into ranges of one value, each by the group that makes it."""
        node, start = self.graph.nodes[position], self.graph.starts[position]
        types = [self.types[v] for v in node.inputs]
        parts = lowering.ranges(types, dict(node.attributes))
        last: float = 0
        first = 0.0
        whole = -1
        if _updates(parts):
            whole = node.inputs[parts[0].input]
            first = self.demand(whole)
            self.needed(whole, first)
        for number, one in enumerate(parts):
            shape = types[one.input].shape
            if 0 in shape or (whole >= 0 and not number):
                continue
            value = node.inputs[one.input]
            moving = [node.inputs[s.input] for s in one.starts if isinstance(s, Start)]
            apart = whole >= 0 and self.reads(value, whole)
            if apart:
                first = max(first, self.demand(value))
            pattern = tuple(None if n == 1 else i for i, n in enumerate(shape))
            scalars = ((((),),) * len(moving)) if moving else ()
            zeros = (0,) * (1 + len(moving))
            access = Access(((pattern,), *scalars), zeros, zeros)
            after = first + 1 if whole >= 0 else 0.0
            refuse: Refuse | None = (lambda group, edge: _OVER) if apart else None
            group, place = self.attach(position, [value, *moving], access, shape, after, refuse)
            group.writes.append((position, number))
            self.write_places[position, number] = place
            group.consumer = min(group.consumer, group.time + 1)
            last = max(last, group.time)
        if whole >= 0:
            self.items.append(Item(first, self.number(), None, position, whole))
            last = max(last, first)
        self.ready[start] = last + 1

    def scatter_form(self, node: Node, lowering: Scatter) -> Access | None:
        """How a scatter reads what it writes, and where; None where there is no code for it."""
        types = tuple(self.types[v] for v in node.inputs)
        form = (node.op, node.attributes, types)
        if form not in self.scatters:
            access = scatter_access(lowering, types, node.attributes)
            self.scatters[form] = self.supported(node, access)
        return self.scatters[form]

    def scatter(self, position: int, access: Access) -> None:
        """A value that begins as a copy of another, and the group that writes into it. That has
        loops of its own, so it takes in only what is computed for it alone."""
        node, start = self.graph.nodes[position], self.graph.starts[position]
        whole, *others = node.inputs
        first = self.demand(whole)
        root = self.root[whole]
        for value in others:
            home = self.home[self.root[value]]
            if home is not None and self.reads(value, whole):
                first = max(first, self.demand(value))
                self.needed(value, first)
        self.needed(whole, first)

        def refuse(group: Group, edge: Edge) -> str | None:
            if root in group.streams:
                return _OVER
            alone = group.exits <= edge.count and not group.writes and not group.reductions
            return None if alone else "what is written in order is computed apart"

        last = first
        shape = self.types[others[0]].shape
        if 0 not in shape:
            group, place = self.attach(position, others, access, shape, first + 1, refuse)
            group.ordered = True
            group.writes.append((position, 1))
            self.write_places[position, 1] = place
            group.consumer = min(group.consumer, group.time + 1)
            last = group.time
        self.items.append(Item(first, self.number(), None, position, whole))
        self.ready[start] = last + 1

    def reads(self, value: int, other: int) -> bool:
        """Whether a value is computed from another that lies in memory, or is a view of it."""
        root, other = self.root[value], self.root[other]
        home = self.home[root]
        return root == other or (home is not None and other in find(home)[0].streams)

    def demand(self, value: int) -> float:
        """Have a value in memory; when it can be read from there."""
        if self.view[value]:
            if self.alias[value] == value or self.inline[value]:
                self.materialise(value)
            value = self.alias[value]
            if self.view[value]:
                self.materialise(value)
        home = self.home[value]
        return self.ready[value] if home is None else find(home)[0].time + 1

    def needed(self, value: int, time: float) -> None:
        """A step at this time reads a value from memory: its group can't be put off until then."""
        home = self.home[self.alias[value]]
        if home is not None:
            group = find(home)[0]
            group.consumer = min(group.consumer, time)

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    # Groups that read the same.

    def siblings(self) -> None:
        """Merge groups of one time and one space that read a value in common."""
        seen: dict[Any, Group] = {}
        extents = self.axes.extents
        for group in self.groups:
            if group.into is not None:
                continue
            space = tuple(extents[a] for a in group.space)
            for value in sorted(group.streams):
                key = (group.time, value, space)
                other = seen.get(key)
                if other is not None:
                    other = find(other)[0]
                if other is None:
                    seen[key] = group
                elif other is not group and self.merge(other, group):
                    break

    def merge(self, one: Group, two: Group) -> bool:
        """Make one group of two whose spaces run along the same axes, if that is wise."""
        if one.weight + two.weight > WEIGHT or len(one.streams | two.streams) > STREAMS:
            return False
        if one.turned != two.turned or one.whole != two.whole or one.ordered or two.ordered:
            return False
        a, b = ([self.axes.find(x) for x in g.space] for g in (one, two))
        rename = dict(zip(b, a, strict=True))
        sets = [tuple(self.axes.find(x) for x in s) for s in one.reductions]
        more = [tuple(rename.get(self.axes.find(x), x) for x in s) for s in two.reductions]
        prefixes = [set(a[:n]) for n in range(len(a) + 1)]
        if any(set(s) not in prefixes for s in (*sets, *more)) and set(sets) != set(more):
            return False
        if not comparable([*sets, *more]):
            return False
        for mine, other in rename.items():
            self.axes.join(other, mine)
        two.into = one
        one.members += two.members
        one.writes += two.writes
        one.streams |= two.streams
        one.reductions = list({*sets, *more})
        one.weight += two.weight
        one.folds += two.folds
        one.exits += two.exits
        one.costly = one.costly or two.costly
        one.consumer = min(one.consumer, two.consumer)
        return True

    def stored(self) -> bytearray:
        """Which values are read from memory, by a group or a step, or handed out."""
        stored = bytearray(len(self.types))
        for item in self.items:
            if item.group is not None:
                for value in item.group.streams:
                    stored[value] = 1
            elif item.copied >= 0:
                stored[self.alias[item.copied]] = 1
            else:
                for value in self.graph.nodes[item.node].inputs:
                    stored[self.alias[value]] = 1
        for value in self.graph.outputs:
            stored[self.alias[value]] = 1
        return stored


_OVER = "it is written over what it is computed from"
_CONSTANT = Access((), (), (), view=True)
_NOTHING = Access((), (), ())  # of values without elements, or already in memory
_IDENTITY: Pattern = (-1,)  # the pattern that composes to the other


def _updates(parts: Sequence[Range]) -> bool:
    """Whether the result begins as a copy of the first input, and others are written over it."""
    return len(parts) == 2 and any(isinstance(s, Start) for s in parts[1].starts)


def _composed(pattern: Pattern, through: Pattern | None) -> Pattern | None:
    """How a root is read by who reads a view of it in this pattern."""
    if through is _IDENTITY:
        return pattern
    if through is None:
        return None
    return tuple(None if t is None else pattern[t] for t in through)


@cache
def _turns(pattern: Pattern | None) -> bool:
    """Whether the last axis is moved from its place."""
    axes = [a for a in pattern or () if a is not None]
    return bool(axes) and axes[-1] != max(axes)
