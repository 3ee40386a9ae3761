"""Groups of nodes while they are being fused: union-find over groups and over axes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import inf, prod


class Group:
    """Nodes that will be one kernel.

    `time` orders groups: what a group reads from memory was made at an earlier time. `consumer`
    is the least time at which something outside reads from it, so how long it may be deferred.
    `reductions` has the axes that each reduction's result runs along.
    """

    __slots__ = (
        "consumer", "costly", "dead", "exits", "folds", "inner", "into", "length", "members",
        "number", "ordered", "over", "reductions", "space", "streams", "time", "transposed",
        "weight", "whole", "writes",
    )  # fmt: skip

    def __init__(self, number: int, time: float) -> None:
        self.number = number
        self.time: float = time
        self.consumer: float = inf
        self.weight = self.length = 0  # as those of an access
        self.costly = False
        self.exits = 0  # how many uses of its members are not by its members, so far
        self.folds = 0  # how many reductions
        self.inner: frozenset[tuple[bool, ...]] = frozenset()  # as that of an access
        self.reductions: list[tuple[int, ...]] = []
        self.streams: set[int] = set()  # values read from memory
        self.members: list[int] = []  # values
        self.writes: list[tuple[int, int]] = []  # nodes whose ranges it writes, which range
        self.space: tuple[int, ...] = ()  # axes of its largest member, reduced ones too
        self.whole = False  # reduces a large space to a scalar
        self.transposed = False  # holds a transpose that moves the last axis
        self.ordered = False  # writes at computed positions, in order
        self.over = False  # writes where it reads, element for element: none may join it
        self.into: Group | None = None
        self.dead = False  # merged in such a way that its members have no place of their own


def find(group: Group) -> tuple[Group, bool]:
    """The group that this one has become part of, and whether its members lost their places."""
    if group.into is None:
        return group, False
    path = []
    while group.into is not None:
        path.append(group)
        group = group.into
    dead = False
    for one in reversed(path):
        dead = dead or one.dead
        one.into, one.dead = group, dead
    return group, path[0].dead


class Axes:
    """Axes of groups, joined as groups turn out to run along the same ones."""

    def __init__(self) -> None:
        self._into: list[int] = []
        self.extents: list[int] = []

    def new(self, extent: int) -> int:
        self._into.append(len(self._into))
        self.extents.append(extent)
        return len(self._into) - 1

    def find(self, axis: int) -> int:
        into = self._into
        root = axis
        while into[root] != root:
            root = into[root]
        while into[axis] != root:
            into[axis], axis = root, into[axis]
        return root

    def join(self, a: int, b: int) -> None:
        """Make b the same axis as a."""
        self._into[self.find(b)] = self.find(a)

    def size(self, axes: Iterable[int]) -> int:
        extents = self.extents
        return prod([extents[a] for a in axes])


def comparable(sets: Iterable[Iterable[int]]) -> bool:
    """Whether of any two sets one holds the other."""
    ordered = sorted((frozenset(s) for s in sets), key=len)
    return all(a <= b for a, b in pairwise(ordered))
