"""Columns: what traced programs do with sorted columns of a fixed capacity.

A column holds int64 keys, the unused rest of it END, which is above every key.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tenfold as tn

END = np.iinfo(np.int64).max
Traced = Any  # a traced array, or a NumPy array outside of a trace


def spread(ends: Traced, size: int) -> Traced:
    """For each of `size` slots the row it belongs to, where row i ends before slot ends[i].

    Slots after the last row get some row: mask them.

    >>> tn.jit(spread, static="size")(np.array([2, 2, 5]), size=6)
    array([0, 0, 2, 2, 2, 2])
    """
    starts = np.concatenate([np.zeros_like(ends[:1]), ends[:-1]])
    marks = tn.zeros(size + 1, ends.dtype)
    begins = (starts < ends) & (starts < size)
    # of those that are put in one place, which is behind the last, any will do
    np.maximum.at(marks, np.where(begins, starts, size), tn.arange(ends.shape[0], dtype=ends.dtype))
    return np.maximum.accumulate(marks[:size])


def compact(keep: Traced, size: int) -> tuple[Traced, Traced]:
    """The places to keep, in order, in a column of `size`; and how many there are, which may be
    more than fit. What follows the last of them is some place: mask it.

    >>> tn.jit(compact, static="size")(np.array([False, True, False, True]), size=3)
    (array([1, 3, 3]), np.int64(2))
    """
    ends = np.cumsum(keep.astype(np.int64))
    places = np.searchsorted(ends, tn.arange(1, size + 1))
    return np.minimum(places, keep.shape[0] - 1), ends[-1]
