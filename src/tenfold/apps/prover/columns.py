"""Columns: what traced programs do with sorted columns of a fixed capacity.

A column holds int64 keys, the unused rest of it END, which is above every key.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tenfold as tn

END = np.iinfo(np.int64).max
Traced = Any  # a traced array, or a NumPy array outside of a trace


def find(column: Traced, keys: Traced) -> Traced:
    """For each key the first place of a sorted column that is not below it.

    >>> f = tn.jit(find)
    >>> f(np.array([2, 4, 4, 9]), np.array([1, 4, 5, 10]))
    array([0, 1, 3, 4])
    """
    size = column.shape[0]

    def halve(step: Traced, at: Traced) -> Traced:
        # `at` places are known to lie below the key; try as many more as the bit says
        tried = at + (first >> step)
        below = column[np.minimum(tried, size) - 1] < keys
        return np.where((tried <= size) & below, tried, at)

    bits = size.bit_length()
    first = 1 << (bits - 1)
    return tn.fori_loop(0, bits, halve, np.zeros_like(keys, dtype=np.int64))


def running_sum(values: Traced) -> Traced:
    """The sums of the first 1, 2, 3, … values.

    >>> tn.jit(running_sum)(np.array([3, 0, 4, 1, 1]))
    array([3, 3, 7, 8, 9])
    """
    size = values.shape[0]
    width = 1
    while width < size:
        moved = np.concatenate([tn.zeros(width, values.dtype), values[: size - width]])
        values = values + moved
        width *= 2
    return values


def spread(ends: Traced, size: int) -> Traced:
    """For each of `size` slots the row it belongs to, where row i ends before slot ends[i].

    Slots after the last row get the last row's number or more: mask them.

    >>> tn.jit(spread, static="size")(np.array([2, 2, 5]), size=6)
    array([0, 0, 2, 2, 2, 3])
    """
    passed = tn.zeros(size + 1, np.int64)
    np.add.at(passed, np.minimum(ends, size), 1)
    return running_sum(passed[:size])


def compact(values: Traced, keep: Traced, size: int) -> tuple[Traced, Traced]:
    """The values to keep, in order, in a column of `size`; and how many there are, which may be
    more than fit.

    >>> tn.jit(compact, static="size")(np.array([5, 6, 7]), np.array([True, False, True]), size=2)
    (array([5, 7]), np.int64(2))
    """
    ends = running_sum(keep.astype(np.int64))
    column = tn.full(size + 1, END, np.int64)
    column[np.where(keep, np.minimum(ends - 1, size), size)] = values
    return column[:size], ends[-1]
