"""The shape of a reduction: which values are added to which, whatever runs it.

Sums of floats have the tree of the kernel's `Fold`, products of floats the same. Whether rounds lie
along an axis is the kernel's too (`kernel/analyse/lanes`). A balanced tree joins neighbours by
position: of more than 2**k of them the first 2**k stand left of the last addition, for the largest
such k. So it is the same however many take part, if each has stretches that begin at multiples of
a power of two and are as long: partial sums are joined by position, and one without a neighbour
goes up as it is. One adder alone joins them as a binary counter carries, and in the end adds what
still waits, the smallest to the next.

Over several axes each position of the outer ones is a round of one element: what the last axis
gives, by lanes where it has one chunk at most. Lanes are then folded in the end.

All other reductions come out the same in any order: integers wrap, `any`, `all`, `min` and `max`
choose, and a NaN wins. `argmin` and `argmax` have the first NaN, else the least position among
equals. Complex products alone are joined as a backend likes, and judged by agreement. Stores that
update an element do so in the order of the sequential axes.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.kernel.ir.kernel import Fold

Tree = int | tuple["Tree", "Tree"]  # a position, or a sum of two


def along(extent: int, fold: Fold) -> Tree:
    """The sum of so many elements where rounds lie along their axis."""
    starts = range(0, extent, fold.stretch)
    return balanced([_chunk(n, min(n + fold.stretch, extent), fold) for n in starts])


def elsewhere(extent: int, fold: Fold) -> Tree:
    """The same where a round is one element."""
    starts = range(0, extent, fold.run)
    return balanced([serial(range(n, min(n + fold.run, extent))) for n in starts])


def serial(parts: Sequence[Tree]) -> Tree:
    """One after the other."""
    whole = parts[0]
    for part in parts[1:]:
        whole = whole, part
    return whole


def balanced(parts: Sequence[Tree]) -> Tree:
    """Neighbours joined, then neighbouring pairs, and so on."""
    while len(parts) > 1:
        parts = [serial(parts[n : n + 2]) for n in range(0, len(parts), 2)]
    return parts[0]


def _chunk(start: int, stop: int, fold: Fold) -> Tree:
    lanes = [_lane(first, stop, fold) for first in range(start, min(start + fold.lanes, stop))]
    half = fold.lanes // 2
    while half:
        lanes = [serial(lanes[n : n + half + 1 : half]) for n in range(min(half, len(lanes)))]
        half //= 2
    return lanes[0]


def _lane(first: int, stop: int, fold: Fold) -> Tree:
    """What one lane has of a chunk."""
    size = fold.round * fold.run
    runs = []
    for start in range(first, stop, size):
        copies = range(start, min(start + fold.round, stop), fold.lanes)
        ends = min(start + size, stop)
        runs.append(balanced([serial(range(c, ends, fold.round)) for c in copies]))
    return balanced(runs)
