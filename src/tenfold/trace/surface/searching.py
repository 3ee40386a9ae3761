"""Searching: searchsorted, digitize and the greatest k."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch, ValueProblem
from tenfold.trace.array import FUNCTIONS, Array
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
    static_int,
    traced,
)
from tenfold.trace.surface.promotion import common
from tenfold.types import KIND


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
    """Bins are taken to rise unless both ends are known to fall."""
    line = _line("digitize", bins)
    if isinstance(bins, np.ndarray) and bins.size > 1 and bins[0] > bins[-1]:
        found = searchsorted(emit("reverse", line, axes=(0,)), x, side="right" if right else "left")
        result: Array = line.size - found
        return result
    return searchsorted(line, x, side="left" if right else "right")


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


setattr(Array, "searchsorted", searchsorted)  # noqa: B010
