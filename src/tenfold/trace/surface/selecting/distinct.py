"""Distinct: np.unique and the operations on sets. What they give is chosen from a sorted line by
a mask that only a running program knows."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from tenfold.trace.array import Array
from tenfold.trace.lazy.host import on_host
from tenfold.trace.operand import dtype_key
from tenfold.trace.scope import current
from tenfold.trace.surface.emit import axis_of, cast, emit, on, traced
from tenfold.trace.surface.indexing.sized import firsts
from tenfold.trace.surface.searching.lookup import isin, lexsort
from tenfold.trace.surface.searching.searching import searchsorted
from tenfold.trace.surface.selecting.selection import Selection, choose
from tenfold.trace.surface.ufuncs.composed import filled
from tenfold.trace.surface.ufuncs.promotion import common
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import BOOL, I64

F = TypeVar("F", bound=Callable[..., Any])


def _chosen(function: Any) -> Callable[[F], F]:
    """File what a function of NumPy's does in a traced function; a lazy array is run."""

    def file(implementation: F) -> F:
        @wraps(implementation)
        def apply(*args: Any, **kwargs: Any) -> Any:
            if current() is None:
                return on_host(function, args, kwargs)
            return implementation(*args, **kwargs)

        on(function)(apply)
        return implementation

    return file


def _choose(line: Array, mask: Array, at: int = 0) -> Selection:
    found = choose(line, mask, at)
    found._remedy = "tn.unique(x, size=n)"
    return found


def _taken(x: Array, places: Array) -> Array:
    return emit("gather", x, places, axes=(0,), at=0, mode="clip")


def _flat(x: Any, dtype: Any = None) -> Array:
    array = traced(x, dtype)
    return emit("reshape", array, shape=(array.size,))


def _sorted(x: Array) -> tuple[Array, Array]:
    """An array sorted along its first axis, rows by their first elements; and where each was."""
    if x.ndim == 1:
        order = emit("argsort", x, axis=0)
    else:
        rows = emit("reshape", x, shape=(x.shape[0], x.size // max(x.shape[0], 1)))
        columns = [rows[:, i] for i in range(rows.shape[1])]
        order = lexsort(columns[::-1]) if columns else _places(x.shape[0])
    return _taken(x, order), order


def _places(count: int) -> Array:
    """The places of so many rows, as they are."""
    return emit("iota", dtype=I64, shape=(count,), axis=0)


@_chosen(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    x = traced(ar)
    at = 0 if axis is None else axis_of(axis, x.ndim)
    lines = _flat(x) if axis is None else FUNCTIONS[np.moveaxis](x, at, 0)
    if not lines.shape[0]:
        line, order, first = lines, _places(lines.shape[0]), filled(True, BOOL, lines.shape[:1])
    else:
        line, order = _sorted(lines)
        first = firsts(line, equal_nan and axis is None)
    made: list[Any] = [_choose(FUNCTIONS[np.moveaxis](line, 0, at), first, at)]
    group = emit("cumsum", cast(first, I64), axis=0, reverse=False) - 1
    if return_index:
        made.append(_choose(order, first))
    if return_inverse:
        room = filled(0, I64, order.shape)
        inverse = emit("scatter", room, group, order, axes=(0,), at=0, mode="clip", kind="set")
        made.append(emit("reshape", inverse, shape=x.shape) if axis is None else inverse)
    if return_counts:
        room, ones = filled(0, I64, order.shape), filled(1, I64, order.shape)
        counts = emit("scatter", room, ones, group, axes=(0,), at=0, mode="clip", kind="add")
        made.append(_choose(_taken(counts, group), first))
    return made[0] if len(made) == 1 else tuple(made)


def _parts(function: Any, *parts: str) -> None:
    """Functions of the array API's, which give parts of what np.unique gives."""

    @_chosen(function)
    def apply(x: Any) -> Any:
        asked = {f"return_{part}": True for part in parts}
        made = unique(x, **asked, equal_nan=False)
        return type(function(np.zeros(0)))(*made) if parts else made


_parts(np.unique_values)
_parts(np.unique_counts, "counts")
_parts(np.unique_inverse, "inverse")
_parts(np.unique_all, "index", "inverse", "counts")


def _both(ar1: Any, ar2: Any) -> tuple[Array, Array]:
    """Two flat arrays of one dtype."""
    dtype = common((dtype_key(ar1), dtype_key(ar2)))
    return _flat(ar1, dtype), _flat(ar2, dtype)


def _line(x: Array) -> tuple[Array, Array, Array]:
    """An array in order, where each element was, and which are there for the first time."""
    line, order = _sorted(x)
    return line, order, firsts(line) if x.size else filled(True, BOOL, x.shape)


@_chosen(np.intersect1d)
def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    a, b = _both(ar1, ar2)
    line, order, first = _line(a)
    mask = emit("and", first, isin(line, b))
    if not return_indices:
        return _choose(line, mask)
    other, places, _ = _line(b)
    spot = searchsorted(other, line) if b.size else filled(0, I64, line.shape)
    second = _taken(places, spot) if b.size else spot
    return _choose(line, mask), _choose(order, mask), _choose(second, mask)


@_chosen(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Any:
    return unique(emit("concatenate", *_both(ar1, ar2), axis=0))


@_chosen(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Selection:
    a = _flat(ar1)
    if assume_unique:
        return _choose(a, isin(a, ar2, invert=True))
    line, _, first = _line(a)
    return _choose(line, emit("and", first, isin(line, ar2, invert=True)))


@_chosen(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Selection:
    a, b = _both(ar1, ar2)
    values, masks = [], []
    for one, other in ((a, b), (b, a)):
        line, _, first = _line(one)
        values.append(line)
        masks.append(emit("and", first, isin(line, other, invert=True)))
    line, order = _sorted(emit("concatenate", *values, axis=0))
    return _choose(line, _taken(emit("concatenate", *masks, axis=0), order))
