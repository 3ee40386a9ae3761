"""Creation: new arrays, made where they are used rather than captured."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.operand import dtype_key
from tenfold.trace.surface.emit import (
    axis_of,
    cast,
    dtype_of,
    emit,
    fail,
    is_array,
    is_traced,
    on,
    shape_of,
    static_int,
    traced,
)
from tenfold.trace.surface.indexing.diagonals import eye as on_diagonal
from tenfold.trace.surface.shaping.shapes import moveaxis, together
from tenfold.trace.surface.ufuncs.composed import filled, number
from tenfold.trace.surface.ufuncs.promotion import common
from tenfold.types import I64, KIND, DType


def asarray(x: Any, dtype: Any = None) -> Array:
    """An array of what can be made one: inside a trace one that traced arrays index."""
    return traced(x) if dtype is None else traced(x, dtype_of(dtype))


def zeros(shape: Any, dtype: Any = np.float64) -> Array:
    """An array of zeros."""
    return filled(0, dtype_of(dtype), shape_of(shape))


def ones(shape: Any, dtype: Any = np.float64) -> Array:
    """An array of ones."""
    return filled(1, dtype_of(dtype), shape_of(shape))


def empty(shape: Any, dtype: Any = np.float64) -> Any:
    """An array to be written to; it is of zeros, so that no run differs from another."""
    return zeros(shape, dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Array:
    """An array of one value, or of an array's values broadcast."""
    value = traced(fill_value) if dtype is None else traced(fill_value, dtype_of(dtype))
    return emit("broadcast", value, shape=shape_of(shape))


def iota(shape: Any, dtype: Any = np.int64, axis: int = 0) -> Any:
    """An array that counts along one axis: 0, 1, 2, …

    >>> iota((2, 3), axis=1).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    extents = shape_of(shape)
    at = axis_of(axis, len(extents))
    return emit("iota", dtype=dtype_of(dtype), shape=extents, axis=at)


def _bound(bound: Any) -> Any:
    """A bound of a range: a lazy one is run, a traced one has no value yet."""
    if is_traced(bound):
        static_int(bound, "a bound of arange")
    return bound.item() if isinstance(bound, Array) else bound


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Array:
    """Evenly spaced values from start to stop, stop left out."""
    if stop is None:
        start, stop = 0, start
    start, stop, step = (_bound(bound) for bound in (start, stop, step))
    if step == 0:
        fail(ValueProblem, "arange with the step 0", "give a step other than 0")
    kind = common(tuple(dtype_key(b) for b in (start, stop, step))) if dtype is None else None
    made: DType = dtype_of(dtype) if kind is None else kind
    count = max(0, math.ceil((stop - start) / step))
    if count <= 2:
        return traced(np.arange(start, stop, step, dtype=made))
    # as NumPy: the step is the difference of the first two, in the array's dtype
    first, second = np.asarray(start).astype(made), np.asarray(start + step).astype(made)
    along = emit("iota", dtype=made, shape=(count,), axis=0)
    scaled = emit("mul", along, number((second - first).item(), made))
    return emit("add", scaled, number(first.item(), made))


@on(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: Any = 0,
) -> Any:
    """Evenly spaced values from start to stop, which may be traced, and arrays."""
    count = static_int(num, "num")
    if count < 0:
        fail(ShapeError, f"linspace with {count} values", "give 0 or more")
    start, stop = (x if is_array(x) else traced(x) for x in (start, stop))
    inner = common((dtype_key(start), dtype_key(stop), float))
    made = inner if dtype is None else dtype_of(dtype)
    low, high = traced(start, inner), traced(stop, inner)
    rest = together(low, high)
    places = emit("iota", dtype=I64, shape=(count, *(1,) * len(rest)), axis=0)
    along = cast(places, inner)
    width = emit("sub", high, low)
    gaps = count - 1 if endpoint else count
    step = emit("broadcast", number(math.nan, inner), shape=rest)
    if gaps > 0:
        step = emit("div", width, number(gaps, inner))
        flat = emit("eq", step, number(0, inner))
        plain = emit("mul", along, step)
        fine = emit("mul", emit("div", along, number(gaps, inner)), width)
        spaced = emit("select", flat, fine, plain)
    else:
        spaced = emit("mul", along, width)
    values = emit("add", spaced, low)
    if endpoint and count > 1:
        last = emit("eq", places, number(count - 1, I64))
        values = emit("select", last, high, values)
    if KIND[made] in "iu":
        values = emit("floor", values)
    values = cast(values, made)
    if axis != 0:
        values = moveaxis(values, 0, axis)
    return (values, step) if retstep else values


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = np.float64) -> Array:  # noqa: N803
    """A matrix with ones on a diagonal and zeros elsewhere."""
    rows = static_int(N, "an extent")
    columns = rows if M is None else static_int(M, "an extent")
    return cast(on_diagonal(rows, columns, static_int(k, "k")), dtype)


# Arrays like others.


def _like(x: Array, dtype: Any, shape: Any) -> tuple[DType, tuple[int, ...]]:
    return (
        x.dtype if dtype is None else dtype_of(dtype),
        x.shape if shape is None else shape_of(shape),
    )


@on(np.zeros_like)
def zeros_like(
    a: Any,
    /,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Array:
    return filled(0, *_like(traced(a), dtype, shape))


@on(np.empty_like)
def empty_like(
    prototype: Any,
    /,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Array:
    return filled(0, *_like(traced(prototype), dtype, shape))


@on(np.ones_like)
def ones_like(
    a: Any,
    /,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Array:
    return filled(1, *_like(traced(a), dtype, shape))


@on(np.full_like)
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Array:
    made, extents = _like(traced(a), dtype, shape)
    return emit("broadcast", traced(fill_value, made), shape=extents)
