"""The merging of groups that one new member makes: tried first, then carried out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import prod

from tenfold.frozen import mutable
from tenfold.plan.fusion.access import Access, Pattern
from tenfold.plan.fusion.groups import Axes, Group, comparable

LENGTH = 1600  # of a group's code; beyond this compiling it takes more than linear time
REPEATED = 2 * LENGTH  # each reduction on the way may compute again what comes before it
CHEAP = 16  # a value of this weight may be computed at several places instead of being stored
WHOLE = 32768  # elements; a scalar reduced from more is stored before all read it

Place = tuple[int | None, ...]


@mutable
class Edge:
    """How a new member reads the members of one group."""

    count: int = 0
    aligned: list[tuple[int, Pattern]] = field(default_factory=list)  # value, how it is read
    pulls: int = 0  # reads at other positions
    values: list[int] = field(default_factory=list)
    transposed: bool = False  # through a transpose that moves the last axis
    reason: str | None = None  # why the group is not joined: it is read from memory instead


def join(
    axes: Axes,
    places: Sequence[Place | None],
    group: Group,
    edge: Edge,
    access: Access,
    shape: Sequence[int],
    streams: set[int],
    most: int,
) -> Place | None:
    """The place of a new member in the one group that it reads, element by element, joined at
    once: what most members do. None, and nothing done, where it takes a `Union` to tell."""
    weight = group.weight + access.weight
    if (
        access.reduced
        or edge.pulls
        or not edge.aligned
        or edge.transposed
        or group.whole
        or group.length + access.length > LENGTH
        or weight * group.folds > REPEATED
        or len(streams) + len(group.streams) > most
    ):
        return None
    dims: list[int | None] = [None] * len(shape)
    for value, pattern in edge.aligned:
        for axis, target in zip(places[value] or (), pattern, strict=True):
            if target is None:
                continue
            assert axis is not None
            mine = axes.find(axis)
            other = dims[target]
            if other is None and mine not in dims:
                dims[target] = mine
            elif other != mine:
                return None
    for axis, extent in zip(dims, shape, strict=True):
        if axis is None and extent != 1:
            return None
    group.weight = weight
    group.length += access.length
    group.exits -= edge.count
    group.costly = group.costly or access.costly
    group.streams |= streams
    space = tuple([a for a in dims if a is not None])
    if space != group.space and axes.size(space) >= axes.size(group.space):
        group.space = space
    return tuple(dims)


class Union:
    """The groups that a member with this access and shape would bring together."""

    def __init__(
        self,
        axes: Axes,
        place: Sequence[Place | None],
        access: Access,
        shape: Sequence[int],
        streams: set[int],
        most: int,
    ) -> None:
        self.axes = axes
        self.place = place
        self.access = access
        self.shape = shape
        self.rank = len(shape)
        self.dims: list[int | None] = [None] * (self.rank + len(access.reduced))
        self.rename: dict[int, int] = {}
        self.owners: dict[int, set[Group]] = {}
        self.groups: list[tuple[Group, Edge]] = []
        self.weight, self.length = access.weight, access.length
        self.folds = int(bool(access.reduced))
        self.own = streams
        self.most = most  # that a kernel reads
        self.streams = len(streams)  # at most
        self.reductions: list[tuple[int, ...]] = []

    def add(self, group: Group, edge: Edge) -> str | None:
        """Take a group in; or the reason why not. After a reason the union is of no more use."""
        access = self.access
        self.weight += group.weight * max(1, edge.pulls)
        self.length += group.length * max(1, edge.pulls)
        if self.length > LENGTH:
            return "the kernel would grow too long to compile"
        self.streams += len(group.streams)
        if self.streams > self.most:
            every = self.own.union(group.streams, *(g.streams for g, _ in self.groups))
            if len(every) > self.most:
                return "the kernel would read too many arrays at once"
        if group.whole and prod(self.shape) > 1 and self.reads_scalar(edge):
            return "a scalar reduced from a large array is needed by a whole array"
        either = edge.transposed or group.transposed
        if (edge.transposed and group.reductions) or (access.reduced and either):
            return "a reduction would cross a transpose"
        heavy = group.reductions or group.weight > CHEAP
        if heavy and any(access.computed) and self.widened(edge):
            return "rows are read at positions that are worked out first"
        pulls = edge.pulls
        for value, pattern in edge.aligned:
            place = self.place[value]
            assert place is not None
            if not self.align(group, place, pattern):
                pulls += 1
        if pulls:
            if group.reductions:
                return "a reduction would be computed again for each element"
            single = edge.count == 1 and pulls == 1 and group.exits == 1
            if not single and (group.costly or group.weight * pulls > CHEAP):
                return "it would be computed at several places"
            if group.weight > CHEAP and self.times(group) > 1:
                return "it would be computed several times"
        elif group.weight > CHEAP and self.repeated(group, edge) > 1:
            return "it would be computed again for each row"
        for free in group.reductions:
            self.reductions.append(tuple(self.resolve(a) for a in free))
        self.folds += group.folds
        if self.weight * self.folds > REPEATED:
            return "its reductions would compute too much again"
        if access.reduced:
            mine = {-1 - i if a is None else a for i, a in enumerate(self.dims[: self.rank])}
            over = {a for a in self.dims[self.rank :] if a is not None}
            if any(over & set(free) for free in self.reductions):
                return "a reduction of a reduction"
            mine = {a for a, n in zip(sorted(mine), self.shape, strict=False) if n != 1 or a >= 0}
            sets = [*self.reductions, tuple(mine)]
        else:
            sets = self.reductions
        if len(sets) > 1 and not comparable(sets):
            return "two reductions run along different axes"
        self.groups.append((group, edge))
        return None

    def reads_scalar(self, edge: Edge) -> bool:
        """Whether the member reads what may follow from all of a group's elements."""
        places = (self.place[value] for value in edge.values)
        return any(place is None or all(axis is None for axis in place) for place in places)

    def widened(self, edge: Edge) -> bool:
        """Whether the member runs along axes that what it reads of a group does not."""
        along = {target for _, pattern in edge.aligned for target in pattern}
        return any(n > 1 and i not in along for i, n in enumerate(self.shape))

    def repeated(self, group: Group, edge: Edge) -> int:
        """How often a group would be computed that runs along inner axes alone: the loops over
        outer ones go around it. What runs along outer axes alone is computed outside the inner
        loops."""
        covered = {t for _, pattern in edge.aligned for t in pattern if t is not None}
        if not covered:
            return 1
        extents = (*self.shape, *self.access.reduced)
        if self.axes.size(group.space) > prod(extents[t] for t in covered):
            return 1  # it runs along more axes already
        return prod(n for t, n in enumerate(self.shape[: max(covered)]) if t not in covered)

    def times(self, group: Group) -> int:
        """How often each element of a group would be read, if all are read alike."""
        return prod((*self.shape, *self.access.reduced)) // max(1, self.axes.size(group.space))

    def resolve(self, axis: int) -> int:
        axis = self.axes.find(axis)
        return self.rename.get(axis, axis)

    def align(self, group: Group, place: Place, pattern: Pattern) -> bool:
        """Lay the axes of a member along those of the new one; False where they do not fit."""
        for axis, target in zip(place, pattern, strict=True):
            if target is None:
                continue
            assert axis is not None
            mine = self.resolve(axis)
            other = self.dims[target]
            if other is None:
                if mine in self.dims:
                    return False
                self.dims[target] = mine
                self.owners.setdefault(mine, set()).add(group)
            elif other != mine:
                if group in self.owners[other] or mine in self.owners:
                    return False
                self.rename[mine] = other
                self.owners[other].add(group)
        return True

    def commit(self, time: float, number: int, streams: set[int]) -> tuple[Group, Place, bool]:
        """Merge: the group, the place of the new member, and whether the group is a new one."""
        axes, access = self.axes, self.access
        for mine, other in self.rename.items():
            axes.join(other, mine)
        whole = [g for g, e in self.groups if e.aligned]
        fresh = not whole
        target = max(whole, key=lambda g: len(g.members)) if whole else Group(number, time)
        dims = self.named(target)
        for group, edge in self.groups:
            times = max(1, edge.pulls) - (group is target)
            target.weight += group.weight * times
            target.length += group.length * times
            target.folds += 0 if group is target else group.folds
            target.exits -= edge.count
            target.transposed = target.transposed or edge.transposed
            if group is target:
                continue
            group.into, group.dead = target, not edge.aligned
            target.members += group.members
            target.writes += group.writes
            target.streams |= group.streams
            target.inner |= group.inner
            target.reductions += group.reductions
            target.exits += group.exits
            target.costly = target.costly or group.costly
            target.whole = target.whole or group.whole
            target.consumer = min(target.consumer, group.consumer)
            target.number = min(target.number, group.number)
            if edge.aligned and axes.size(group.space) > axes.size(target.space):
                target.space = group.space
        target.time = time
        target.weight += access.weight
        target.length += access.length
        target.folds += bool(access.reduced)
        target.inner |= access.inner
        target.costly = target.costly or access.costly
        target.streams |= streams
        place = tuple(None if n == 1 else a for n, a in zip(self.shape, dims, strict=False))
        if access.reduced:
            free = tuple(a for a in place if a is not None)
            target.reductions.append(free)
            target.whole = target.whole or (not free and prod(access.reduced) > WHOLE)
        self.lessen(target)
        space = tuple(self.spaced(dims))
        if axes.size(space) >= axes.size(target.space):
            target.space = space
        return target, place, fresh

    def named(self, target: Group) -> list[int]:
        """An axis for each dimension: what runs along no member may as well run along an axis of
        the group that has the same extent, so that one nest of loops serves both."""
        axes = self.axes
        dims = [None if a is None else axes.find(a) for a in self.dims]
        idle = [a for a in map(axes.find, target.space) if a not in dims]
        extents = (*self.shape, *self.access.reduced)
        order = [t for t in self.ordered() if t is not None]
        order[:0] = [t for t in range(len(dims)) if t not in order]
        for at in reversed(order):  # from the innermost on: where extents are equal, rows stay rows
            if dims[at] is None:
                same = [a for a in idle if axes.extents[a] == extents[at]]
                dims[at] = same[-1] if same else axes.new(extents[at])
                idle = [a for a in idle if a != dims[at]]
        return [axis for axis in dims if axis is not None]

    def lessen(self, target: Group) -> None:
        """Keep each set of axes of the reductions once."""
        if len(target.reductions) > 1:
            found = {tuple(sorted(self.axes.find(a) for a in s)) for s in target.reductions}
            target.reductions = list(found)

    def ordered(self) -> Sequence[int | None]:
        """The dimensions that are computed along, in the order of the operand of a reduction."""
        if self.access.reduced and self.access.patterns[0]:
            return self.access.patterns[0][0]
        return range(self.rank)

    def spaced(self, dims: list[int]) -> list[int]:
        """Their axes."""
        extents = self.axes.extents
        return [dims[t] for t in self.ordered() if t is not None and extents[dims[t]] != 1]
