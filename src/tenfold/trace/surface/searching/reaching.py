"""Reaching: which columns rows come to by chains of boolean matrices."""

from __future__ import annotations

from typing import Any

from tenfold.trace.array import Array
from tenfold.trace.surface.anywhere import anywhere
from tenfold.trace.surface.emit import emit_all, static_int, traced


@anywhere
def reach(
    chains: Any, heads: Any, ranges: Any, bits: Any, *tables: Any, rows: int, room: int
) -> tuple[Array, Array]:
    """The columns that rows come to by chains of boolean matrices, less those that are known.

    All matrices have one extent. `bits`, uint64[matrices, extent, words], has matrices as bits, the
    first column the lowest. `tables` are four times four arrays, for matrices of which most lines
    are empty: `lines`, uint64[matrices, words], has a bit for each line, set if it has columns;
    `ranks`, int32[matrices, words], says how many such lines come before those of each word, in all
    matrices; `starts`, int32, where each of them begins in `items`, and where the last one ends;
    `items`, int32, has the columns. A step (g, low, high) is matrix g of the tables from `low` up
    to `high`, taken together, or where `low` is -1 the matrix g of the bits.

    `chains`, int32[chains, longest, 3], are steps to be multiplied; one with g = -1 ends its chain.
    `heads`, int32[heads, 5], has a first chain and one past the last, whose union is taken, and a
    step whose entries are left out (g = -1: none). `ranges`, int32[ranges, 3], has a head and a
    first row and one past the last, at most `rows` of them.

    The results are, for each range, how many columns each row comes to, and these columns, rising
    within a row. A row for which the `room` of its range is too small, and those after it, have a
    count of -1. Nothing grows with the number of ways in which a column is reached.

    >>> import numpy as np, tenfold as tn
    >>> lines, ranks = np.array([[0b0111]], np.uint64), np.zeros((1, 1), np.int32)
    >>> starts = np.arange(4, dtype=np.int32)  # one matrix: from 0 to 1, to 2, to 3
    >>> items = np.array([1, 2, 3], np.int32)
    >>> none = np.zeros((1, 1), np.uint64), ranks, starts, items
    >>> twice = np.array([[[0, 0, 1], [0, 0, 1]]], np.int32)
    >>> counts, columns = tn.reach(
    ...     twice, np.array([[0, 1, -1, 0, 0]], np.int32), np.array([[0, 0, 4]], np.int32),
    ...     np.zeros((1, 4, 1), np.uint64), lines, ranks, starts, items, *none, *none, *none,
    ...     rows=4, room=8)
    >>> counts, columns
    (array([[1, 1, 0, 0]], dtype=int32), array([[2, 3, 0, 0, 0, 0, 0, 0]], dtype=int32))
    """
    given = [traced(x) for x in (chains, heads, ranges, bits, *tables)]
    counts, columns = emit_all(
        "reach", *given, rows=static_int(rows, "reach: rows"), room=static_int(room, "reach: room")
    )
    return counts, columns
