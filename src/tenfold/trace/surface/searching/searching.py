"""Searching: searchsorted, digitize and the greatest k."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.operand import dtype_key
from tenfold.trace.surface.anywhere import anywhere
from tenfold.trace.surface.emit import (
    axis_of,
    cast,
    emit,
    emit_all,
    fail,
    is_array,
    on,
    plain,
    static_int,
    traced,
)
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.trace.surface.ufuncs.promotion import common
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import I64, KIND


def _line(name: str, a: Any) -> Array:
    x = traced(a)
    if x.ndim != 1:
        fail(ShapeError, f"{name}: the sorted array is {x.type}", "give one axis")
    return x


@on(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Array:
    if side not in ("left", "right"):
        fail(ValueProblem, f"searchsorted: side={side!r}", "say 'left' or 'right'")
    a, v = (x if is_array(x) else traced(x) for x in (a, v))
    dtype = common((dtype_key(a), dtype_key(v)))
    if KIND[dtype] == "c":
        fail(TypeMismatch, "searchsorted of complex numbers", "search real numbers")
    line = cast(_line("searchsorted", a), dtype)
    if sorter is not None:
        line = FUNCTIONS[np.take](line, traced(sorter))
    values = traced(v, dtype)
    flat = emit("reshape", values, shape=(values.size,))
    found = emit("searchsorted", line, flat, side=side)
    return emit("reshape", found, shape=values.shape)


@on(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Array:
    """Bins that fall are turned around; which way they go, the program finds by their ends."""
    bins = plain(bins)
    line = _line("digitize", bins)
    if not isinstance(bins, Array):
        gaps = np.diff(np.asarray(bins))
        if np.any(gaps < 0) and np.any(gaps > 0):
            fail(ValueProblem, "digitize: bins that neither rise nor fall", "sort them")
    side = "left" if right else "right"
    if line.size < 2:
        return searchsorted(line, x, side)
    falls = emit("gt", line[0], line[-1])
    rising = emit("select", falls, emit("reverse", line, axes=(0,)), line)
    found = searchsorted(rising, x, side)
    return emit("select", falls, emit("sub", number(line.size, I64), found), found)


@anywhere
def top_k(x: Any, k: int, axis: int = -1) -> tuple[Array, Array]:
    """The k greatest along an axis, greatest first, and their positions; of equals the first
    comes first.

    >>> import numpy as np, tenfold as tn
    >>> tn.top_k(np.array([3, 9, 4, 9]), 3)
    (array([9, 9, 4]), array([1, 3, 2]))
    """
    array = traced(x)
    if KIND[array.dtype] == "c":
        fail(TypeMismatch, f"top_k of {array.type}", "complex numbers have no greatest")
    at = axis_of(axis, array.ndim)
    moved = FUNCTIONS[np.moveaxis](array, at, -1)
    values, places = emit_all("top_k", moved, k=static_int(k, "top_k: k"))
    back = FUNCTIONS[np.moveaxis]
    return back(values, -1, at), back(places, -1, at)
