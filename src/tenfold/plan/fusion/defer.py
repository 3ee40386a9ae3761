"""Defer groups: what is large is made just before it is first read, not as soon as it can be.

Parts of one array that are copied out for many products could all be made first, and would all live
at once. A group is deferred only where all that it reads lives on anyhow, so no more memory is
ever wanted for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

LARGE = 1 << 18  # bytes of a value; what is smaller may as well be made at once

T = TypeVar("T")


def defer(
    items: Sequence[T],
    reads: Sequence[Iterable[int]],
    made: Sequence[Iterable[int]],
    kept: Iterable[int],
) -> list[T]:
    """The items, each that makes something just before what reads it first; those that make
    nothing stay where they are. `reads` and `made` are values, by item, and `kept` those that
    live on to the end.

    >>> defer("abcd", [[0], [0], [1], [2, 0]], [[1], [2], [], []], [])
    ['a', 'c', 'b', 'd']
    """
    last = {value: at for at, values in enumerate(reads) for value in values}
    last.update(dict.fromkeys(kept, len(items)))
    first: dict[int, tuple[int, int]] = {}  # by value: where it is read first
    places: list[tuple[int, int]] = []  # before which item, how far before
    for at in range(len(items) - 1, -1, -1):
        place = at, 0
        due = min([first[value] for value in made[at] if value in first], default=place)
        if due > place and all(last[v] >= due[0] or v in made[at] for v in reads[at]):
            place = due[0], due[1] - 1
        places.append(place)
        for value in reads[at]:
            first[value] = min(place, first.get(value, place))
    places.reverse()
    return [items[at] for at in sorted(range(len(items)), key=places.__getitem__)]
