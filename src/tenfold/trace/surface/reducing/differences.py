"""Differences: gradient, ediff1d and unwrap."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.operand import dtype_key
from tenfold.trace.surface.emit import axes_of, axis_of, cast, emit, fail, on, plain, traced
from tenfold.trace.surface.numbers.numeric import diff
from tenfold.trace.surface.reducing.cumulative import cumsum
from tenfold.trace.surface.shaping.shapes import cut
from tenfold.trace.surface.ufuncs.composed import number, same
from tenfold.trace.surface.ufuncs.promotion import common, same_kind
from tenfold.trace.tables import FUNCTIONS, UFUNCS
from tenfold.types import BOOL, F64, KIND


@on(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    x = traced(f)
    axes = axes_of(axis, x.ndim)
    if edge_order not in (1, 2):
        fail(ValueProblem, f"gradient: edge_order={edge_order}", "give 1 or 2")
    if KIND[x.dtype] in "iu":
        x = cast(x, F64)
    made = []
    for at, width in zip(axes, _widths(x, axes, varargs), strict=True):
        if x.shape[at] < edge_order + 1:
            fail(
                ShapeError,
                f"gradient along axis {at} of {x.type}",
                f"it needs {edge_order + 1} elements at least",
            )
        slopes = _slopes(x, at, width, edge_order)
        made.append(cast(slopes, F64 if x.dtype == BOOL else x.dtype))
    return made[0] if len(made) == 1 else tuple(made)


def _widths(x: Array, axes: tuple[int, ...], given: tuple[Any, ...]) -> list[Any]:
    """For each axis the distance of its elements: one, or an array of those between them."""
    if not given:
        return [1.0] * len(axes)
    if len(given) == 1 and _rank(given[0]) == 0:
        return list(given) * len(axes)
    if len(given) != len(axes):
        fail(
            TypeMismatch,
            f"gradient: {len(given)} distances for {len(axes)} axes",
            "give one, or one for each axis",
        )
    made: list[Any] = []
    for at, places in zip(axes, map(plain, given), strict=True):
        if _rank(places) == 0:
            made.append(places)
            continue
        if np.shape(places) != (x.shape[at],):
            fail(
                ShapeError,
                f"gradient: the places along axis {at} of {x.type} have shape {np.shape(places)}",
                f"give {x.shape[at]} of them, along one axis",
            )
        if isinstance(places, Array):
            made.append(diff(cast(places, F64) if KIND[places.dtype] in "iu" else places))
            continue
        known = np.asarray(places)
        between = np.diff(known.astype(np.float64) if known.dtype.kind in "iu" else known)
        made.append(between[0] if np.all(between == between[0]) else between)
    return made


def _rank(value: Any) -> int:
    return value.ndim if isinstance(value, Array) else np.ndim(value)


def _slopes(x: Array, at: int, width: Any, order: int) -> Array:
    n = x.shape[at]
    even = _rank(width) == 0

    def part(start: int, stop: int) -> Array:
        return cut(x, at, start, stop)

    def edge(i: int, j: int) -> Array:
        gap = UFUNCS[np.subtract](part(j, j + 1), part(i, i + 1))
        made: Array = UFUNCS[np.true_divide](gap, width if even else width[i])
        return made

    def curve(i: int, weights: tuple[Any, Any, Any]) -> Array:
        made: Array = weights[0] * part(i, i + 1)
        for k in (1, 2):
            made = made + weights[k] * part(i + k, i + k + 1)
        return made

    parts = []
    if n > 2:
        if even:
            gap = UFUNCS[np.subtract](part(2, n), part(0, n - 2))
            parts.append(UFUNCS[np.true_divide](gap, 2.0 * width))
        else:
            parts.append(_uneven(x, at, width))
    if order == 1:
        ends = edge(0, 1), edge(n - 2, n - 1)
    else:
        ends = curve(0, _first(width, even)), curve(n - 3, _last(width, even))
    joined: Array = FUNCTIONS[np.concatenate]([ends[0], *parts, ends[1]], at)
    return joined


def _uneven(x: Array, at: int, width: Any) -> Array:
    """The slopes inside, where distances differ."""
    n = x.shape[at]
    shape = tuple(n - 2 if i == at else 1 for i in range(x.ndim))
    before, after = width[:-1], width[1:]
    both = before + after
    weights = (
        -after / (before * both),
        (after - before) / (before * after),
        before / (after * both),
    )
    terms = [w.reshape(shape) * cut(x, at, k, n - 2 + k) for k, w in enumerate(weights)]
    made: Array = terms[0] + terms[1] + terms[2]
    return made


def _first(width: Any, even: bool) -> tuple[Any, Any, Any]:
    if even:
        return -1.5 / width, 2.0 / width, -0.5 / width
    a, b = width[0], width[1]
    return -(2.0 * a + b) / (a * (a + b)), (a + b) / (a * b), -a / (b * (a + b))


def _last(width: Any, even: bool) -> tuple[Any, Any, Any]:
    if even:
        return 0.5 / width, -2.0 / width, 1.5 / width
    a, b = width[-2], width[-1]
    return b / (a * (a + b)), -(b + a) / (a * b), (2.0 * b + a) / (b * (a + b))


@on(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Array:
    x = traced(ary)
    line = emit("reshape", x, shape=(x.size,))
    n = line.size
    if n:
        made: Array = UFUNCS[np.subtract](cut(line, 0, 1, n), cut(line, 0, 0, n - 1))
    else:
        made = line
    parts = [_end(to_begin, x), made, _end(to_end, x)]
    kept = [p for p in parts if p is not None]
    return emit("concatenate", *kept, axis=0) if len(kept) > 1 else made


def _end(given: Any, x: Array) -> Array | None:
    if given is None:
        return None
    end = traced(given)
    if not same_kind(end.dtype, x.dtype):
        fail(TypeMismatch, f"ediff1d: {end.type} at an end of {x.type}", "cast it with .astype")
    return emit("reshape", cast(end, x.dtype), shape=(end.size,))


@on(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 2 * math.pi) -> Array:
    x = traced(p)
    at = axis_of(axis, x.ndim)
    n = x.shape[at]
    steps = diff(x, axis=at)
    dtype = common((dtype_key(steps), dtype_key(period)))
    if n == 0:
        return same(cast(x, dtype))
    if KIND[dtype] in "biu":
        high, odd = divmod(period, 2)
        ambiguous = odd == 0
    else:
        high, ambiguous = period / 2, True
    low = -high
    wrapped = UFUNCS[np.add](UFUNCS[np.remainder](steps - low, period), low)
    if ambiguous:
        at_low = emit("and", wrapped == low, steps > 0)
        wrapped = emit("select", at_low, traced(high, wrapped.dtype), wrapped)
    correction = UFUNCS[np.subtract](wrapped, steps)
    small = UFUNCS[np.less](UFUNCS[np.absolute](steps), period / 2 if discont is None else discont)
    correction = emit("select", small, number(0, correction.dtype), correction)
    rest = UFUNCS[np.add](cut(x, at, 1, n), cumsum(correction, at))
    return emit("concatenate", cast(cut(x, at, 0, 1), dtype), cast(rest, dtype), axis=at)
