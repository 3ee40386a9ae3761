"""Lookup: interp and isin, by searching what is sorted; partition and lexsort, by sorting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch, Unsupported, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.operand import dtype_key
from tenfold.trace.surface.emit import axis_of, cast, emit, fail, is_array, on, traced
from tenfold.trace.surface.searching.searching import searchsorted
from tenfold.trace.surface.ufuncs.composed import filled, number
from tenfold.trace.surface.ufuncs.promotion import common
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import BOOL, C64, C128, F64, I64, KIND


@on(np.interp)
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Array:
    places, values, at = _real("xp", xp), traced(fp), _real("x", x)
    values = cast(values, C128 if KIND[values.dtype] == "c" else F64)
    if places.ndim != 1 or places.shape != values.shape or not places.size:
        fail(
            ShapeError,
            f"interp: points {places.type} and values {values.type}",
            "give as many of both along one axis, at least one",
        )
    if period is not None:
        return _around(at, places, values, period)
    n = places.size
    found = searchsorted(places, at, side="right") - 1
    low = _clipped(found, n - 2)
    x0, x1 = _taken(places, low), _taken(places, _clipped(low + 1, n - 1))
    y0, y1 = _taken(values, low), _taken(values, _clipped(low + 1, n - 1))
    made = _line(at, x0, x1, y0, y1)
    made = emit("select", emit("eq", at, x0), y0, made)
    first, last = values[0], values[n - 1]
    made = emit("select", emit("ge", at, places[n - 1]), last, made)
    end = last if right is None else _end("right", right, values)
    start = first if left is None else _end("left", left, values)
    made = emit("select", emit("gt", at, places[n - 1]), end, made)
    made = emit("select", emit("lt", at, places[0]), start, made)
    if n == 1:  # as NumPy has it, NaN is then as good as that point
        return made
    return emit("select", emit("isnan", at), cast(at, made.dtype), made)


def _real(name: str, given: Any) -> Array:
    x = traced(given)
    if KIND[x.dtype] == "c":
        fail(TypeMismatch, f"interp: {name} is {x.type}", "give real numbers: z.real")
    return cast(x, F64)


def _end(name: str, given: Any, values: Array) -> Array:
    """What lies beyond an end: one number, which is no complex one among real values."""
    x = traced(given)
    if x.ndim or (KIND[x.dtype] == "c" and KIND[values.dtype] != "c"):
        fail(TypeMismatch, f"interp: {name}= is {x.type}", f"give one number for {values.type}")
    return cast(x, values.dtype)


def _clipped(index: Array, most: int) -> Array:
    zero, last = number(0, I64), number(max(most, 0), I64)
    return emit("min", emit("max", index, zero), last)


def _taken(line: Array, index: Array) -> Array:
    return emit("gather", line, index, axes=(0,), at=0, mode="clip")


def _line(at: Array, x0: Array, x1: Array, y0: Array, y1: Array) -> Array:
    """The line through two points; from the other one where the first gives NaN."""
    if KIND[y0.dtype] == "c":
        parts = (_line(at, x0, x1, emit(part, y0), emit(part, y1)) for part in ("real", "imag"))
        return emit("complex", *parts)
    slope = emit("div", emit("sub", y1, y0), emit("sub", x1, x0))
    made = emit("add", emit("mul", slope, emit("sub", at, x0)), y0)
    other = emit("add", emit("mul", slope, emit("sub", at, x1)), y1)
    made = emit("select", emit("isnan", made), other, made)
    flat = emit("and", emit("isnan", made), emit("eq", y0, y1))
    return emit("select", flat, y0, made)


def _around(at: Array, places: Array, values: Array, period: Any) -> Array:
    if isinstance(period, (int, float)) and period == 0:
        fail(ValueProblem, "interp with a period of 0", "give another one, or none")
    turn = emit("abs", traced(period, F64))
    at, places = emit("mod", at, turn), emit("mod", places, turn)
    order = emit("argsort", places, axis=0)
    places, values = _taken(places, order), _taken(values, order)
    n = places.size
    before = emit("sub", places[n - 1 :], turn)
    behind = emit("add", places[:1], turn)
    places = emit("concatenate", before, places, behind, axis=0)
    values = emit("concatenate", values[n - 1 :], values, values[:1], axis=0)
    return interp(at, places, values)


@on(np.isin)
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Array:
    a, b = (x if is_array(x) else traced(x) for x in (element, test_elements))
    dtype = common((dtype_key(a), dtype_key(b)))
    x, tests = traced(a, dtype), traced(b, dtype)
    if KIND[dtype] == "c":
        fail(Unsupported, f"np.isin of {dtype}", "look the real and imaginary parts up")
    if not tests.size:
        return filled(bool(invert), BOOL, x.shape)
    line = emit("sort", emit("reshape", tests, shape=(tests.size,)), axis=0)
    found = _clipped(searchsorted(line, x), tests.size - 1)
    made = emit("eq", _taken(line, found), x)
    return emit("not", made) if invert else made


def _flat(a: Any, axis: Any) -> tuple[Array, int]:
    x = traced(a)
    if axis is None:
        return emit("reshape", x, shape=(x.size,)), 0
    return x, axis_of(axis, x.ndim)


@on(np.partition)
def partition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Array:
    """Sorted altogether, which is one of the ways to be partitioned."""
    x, at = _flat(a, axis)
    return emit("sort", x, axis=at)


@on(np.argpartition)
def argpartition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Array:
    x, at = _flat(a, axis)
    return emit("argsort", x, axis=at)


@on(np.lexsort)
def lexsort(keys: Any, axis: Any = -1) -> Array:
    """By the last key, among equals by the one before it, and so on."""
    rows: Sequence[Array] = [traced(k) for k in keys]
    if not rows:
        fail(ValueProblem, "lexsort without keys", "give at least one")
    if rows[0].ndim == 0:
        return filled(0, I64, ())
    at = axis_of(axis, rows[0].ndim)
    made = emit("argsort", rows[0], axis=at)
    for row in rows[1:]:
        reordered = FUNCTIONS[np.take_along_axis](row, made, at)
        made = FUNCTIONS[np.take_along_axis](made, emit("argsort", reordered, axis=at), at)
    return made


@on(np.sort_complex)
def sort_complex(a: Any) -> Array:
    x = traced(a)
    made = emit("sort", x, axis=x.ndim - 1)
    if KIND[made.dtype] == "c":
        return made
    small = x.dtype.itemsize <= 2 and KIND[x.dtype] in "iu"
    return cast(made, C64 if small else C128)
