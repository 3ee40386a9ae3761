"""Which group a new member joins: that of its inputs, merged where there are several.

A group has a time; it may be deferred until something reads from it, and whatever it reads from
memory was made before its time. A member whose inputs stand in groups of one time, or in groups
that can be deferred, merges them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenfold.plan.fusion.access import IDENTITY, Access, composed, transposes
from tenfold.plan.fusion.groups import Axes, Group, find
from tenfold.plan.fusion.union import Edge, Place, Union, join
from tenfold.plan.fusion.values import CONSTANT, FusionValues

OVER = "it is written over what it is computed from"

ROW = 512  # elements; of rows that are longer a function of what they come to costs little
ROWS = 64  # so few are no kernel's worth

# Why a member may not join a group that it reads from, or None.
Refuse = Callable[[Group, Edge], str | None]


class Grouping:
    """The groups so far, and which of them each value stands in."""

    def __init__(self, values: FusionValues) -> None:
        self.values = values
        self.streams = values.capabilities.streams
        count = len(values.types)
        self.axes = Axes()
        self.groups: list[Group] = []
        self.home: list[Group | None] = [None] * count  # by value
        self.place: list[Place | None] = [None] * count  # by value: its axes of the group
        self.ready: list[float] = [0] * count  # by value: when it may be read from memory
        self.notes: dict[str, tuple[int, int]] = {}  # why groups stay apart: count, first node
        self.numbers = 0

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
            self.store_transposed(inputs)
        streams: set[int] = set()
        most = self.streams
        edges, earliest = self.edges(inputs, access, streams)
        earliest = max(earliest, after)
        if refuse is not None:
            for group, edge in edges.items():
                edge.reason = edge.reason or refuse(group, edge)
        if access.costly and not access.reduced:
            for group, edge in edges.items():
                if edge.reason is None and group.reductions and self.of_rows(group, edge, position):
                    edge.reason = "a function of what rows come to is computed for many at once"
        if self.values.capabilities.one_row and not access.reduced:
            for group, edge in edges.items():
                if edge.reason is None and group.reductions and self.spread(edge, group, position):
                    edge.reason = "rows of another length are reduced then"
        if len(edges) == 1:
            ((group, edge),) = edges.items()
            if edge.reason is None and (earliest <= group.time or group.consumer > earliest):
                found = join(self.axes, self.place, group, edge, access, shape, streams, most)
                if found is not None:
                    group.time = max(group.time, earliest)
                    return group, found
        while True:
            time = self.settle(edges, earliest)
            union = Union(self.axes, self.place, access, shape, streams, most)
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

    def of_rows(self, group: Group, edge: Edge, position: int) -> bool:
        """Whether a member is computed from what many short rows come to, and no row needs it: in
        the rows' kernel it would be computed for one at a time."""
        axes = self.axes
        along = {axis for value in edge.values for axis in self.placed(value)}
        if not group.space or axes.find(group.space[-1]) in along:
            return False
        rows = self.values.types[self.values.graph.starts[position]].size
        many = rows >= ROWS and axes.size(group.space) <= ROW * rows
        return many and not self.values.is_widened(position)

    def spread(self, edge: Edge, group: Group, position: int) -> bool:
        """Whether a member spreads what rows come to over rows of another length, which are
        reduced in turn."""
        along = {target for _, pattern in edge.aligned for target in pattern}
        shape = self.values.types[self.values.graph.starts[position]].shape
        known = {self.axes.extents[axis] for axis in group.space}
        other = any(n > 1 and t not in along and n not in known for t, n in enumerate(shape))
        return other and self.values.is_folded(position)

    def edges(
        self, inputs: Sequence[int], access: Access, streams: set[int]
    ) -> tuple[dict[Group, Edge], float]:
        """The groups that inputs stand in, and the earliest time by the inputs in memory."""
        earliest: float = 0
        edges: dict[Group, Edge] = {}
        for i, value in enumerate(inputs):
            root = self.values.root[value]
            home = self.home[root]
            if home is None:
                if not self.values.inline[root]:
                    streams.add(root)
                    if self.ready[root] > earliest:
                        earliest = self.ready[root]
                continue
            through = self.values.pattern[value] if root != value else IDENTITY
            group, dead = find(home)
            edge = edges.get(group)
            if edge is None:
                edge = edges[group] = Edge(reason=OVER if group.over else None)
            edge.count += value not in inputs[:i]  # as uses are counted
            edge.values.append(root)
            edge.pulls += access.moved[i]
            edge.transposed = edge.transposed or transposes(through)
            if access.computed[i]:
                edge.reason = "it is read at computed positions"
            for pattern in access.patterns[i]:
                whole = composed(pattern, through)
                if not access.reduced:
                    edge.transposed = edge.transposed or transposes(pattern)
                if dead or whole is None:
                    edge.pulls += 1
                else:
                    edge.aligned.append((root, whole))
        return edges, earliest

    def settle(self, edges: dict[Group, Edge], earliest: float) -> float:
        """The time of the merged group; groups that can't be deferred until then are kept out."""
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

    def take(self, value: int, group: Group, place: Place) -> None:
        group.members.append(value)
        group.exits += self.values.uses[value]
        self.home[value] = group
        self.place[value] = place

    def store_transposed(self, inputs: Sequence[int]) -> None:
        """Store a transpose that moves the last axis and is read twice, once by a reduction."""
        for value in inputs:
            if (
                self.values.view[value]
                and self.values.uses[value] > 1
                and transposes(self.values.pattern[value])
                and not self.values.inline[value]
            ):
                self.materialise(value)

    def materialise(self, value: int) -> None:
        """Make of a view a value of its own, for all who read it later."""
        position = self.values.maker[value]
        access, node = self.values.accesses[position], self.values.graph.nodes[position]
        assert access is not None
        if access is CONSTANT:
            access = Access((), (), ())
        group, place = self.attach(position, node.inputs, access, self.values.types[value].shape)
        group.transposed = group.transposed or transposes(self.values.pattern[value])
        self.take(value, group, place)
        self.values.own(value)

    def reads(self, value: int, other: int) -> bool:
        """Whether a value is computed from another that lies in memory, or is a view of it."""
        root, other = self.values.root[value], self.values.root[other]
        home = self.home[root]
        return root == other or (home is not None and other in find(home)[0].streams)

    def reads_own_place(self, value: int, other: int, starts: Sequence[int]) -> bool:
        """Whether the group of a value reads another, from memory, only where the value's elements
        are to be written: in the range of its shape from these starts on."""
        values, home = self.values, self.home[value]
        group, dead = find(home) if home is not None else (None, True)
        if group is None or dead or group.over or values.root[other] != other:
            return False
        place = self.placed(value)
        shape = values.types[value].shape
        aligned = (tuple([None if n == 1 else axis for axis, n in enumerate(shape)]),)
        for member in group.members:
            access = values.accesses[values.maker[member]]
            if access is None or access.checks:
                return False
            for n, source in enumerate(values.graph.nodes[values.maker[member]].inputs):
                if values.root[source] != other:
                    continue
                if access.patterns[n] != aligned or access.moved[n] or access.computed[n]:
                    return False
                if self.placed(member) != place or values.types[source].shape != shape:
                    return False
                if values.range_of(source, other) != tuple(starts):
                    return False
        return True

    def reads_first(self, value: int, other: int, moving: Sequence[int]) -> bool:
        """Whether a value is one element, all that its group computes, and written where values
        say that no group computes: then the group has read whatever it reads of another, wherever
        that is, before it writes."""
        values, root = self.values, self.values.root[value]
        home = self.home[root]
        if home is None or values.types[root].size != 1 or values.root[other] != other:
            return False
        group, dead = find(home)
        if dead or group.over or group.ordered or group.writes or group.exits > 1:
            return False
        if any(self.home[values.root[start]] is not None for start in moving):
            return False
        accesses = [values.accesses[values.maker[member]] for member in group.members]
        return not any(access is None or access.checks for access in accesses)

    def placed(self, value: int) -> list[int | None]:
        """The axes of a value, by the names that they have by now."""
        place = self.place[value] or ()
        return [None if axis is None else self.axes.find(axis) for axis in place]

    def demand(self, value: int) -> float:
        """Have a value in memory; when it can be read from there."""
        if self.values.view[value]:
            if self.values.alias[value] == value or self.values.inline[value]:
                self.materialise(value)
            value = self.values.alias[value]
            if self.values.view[value]:
                self.materialise(value)
        home = self.home[value]
        return self.ready[value] if home is None else find(home)[0].time + 1

    def needed(self, value: int, time: float) -> None:
        """A step at this time reads a value from memory: its group can't be deferred until then."""
        home = self.home[self.values.alias[value]]
        if home is not None:
            group = find(home)[0]
            group.consumer = min(group.consumer, time)

    def number(self) -> int:
        self.numbers += 1
        return self.numbers
