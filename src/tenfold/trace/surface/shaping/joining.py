"""Joining: arrays put together, taken apart, repeated and padded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tenfold.errors import ConcreteError, ShapeError, TypeMismatch
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import (
    axis_of,
    cast,
    emit,
    fail,
    is_traced,
    on,
    shape_of,
    static_int,
    traced,
)
from tenfold.trace.surface.indexing.indexing import getitem
from tenfold.trace.surface.indexing.taking import take
from tenfold.trace.surface.into import as_kind, write
from tenfold.trace.surface.shaping.shapes import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast,
    cut,
    ravel,
    reshape,
)
from tenfold.trace.surface.ufuncs.composed import same
from tenfold.trace.surface.ufuncs.promotion import common_dtype
from tenfold.trace.tables import UFUNCS


def _several(arrays: Any, what: str) -> list[Array]:
    """The arrays of a sequence, in their common dtype."""
    if isinstance(arrays, Array):
        arrays = [arrays[i] for i in range(len(arrays))]
    if not isinstance(arrays, Sequence):
        fail(TypeMismatch, f"{what} of a {type(arrays).__name__}", "give a list or tuple of arrays")
    if not arrays:
        fail(ShapeError, f"{what} of no arrays", "give at least one")
    made = [traced(a) for a in arrays]
    dtype = common_dtype(*(_unweak(x) for x in made))
    return [cast(x, dtype) for x in made]


def _unweak(x: Array) -> Any:
    return x.dtype.type(0)


def _joined(arrays: list[Array], axis: int) -> Array:
    return same(arrays[0]) if len(arrays) == 1 else emit("concatenate", *arrays, axis=axis)


def _finish(result: Array, out: Any, dtype: Any, casting: str) -> Array:
    if dtype is not None:
        result = as_kind(result, dtype, casting)
    return result if out is None else write(out, result, unsafe=casting == "unsafe")


@on(np.concatenate)
def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Array:
    parts = _several(arrays, "concatenate")
    if axis is None:
        parts = [ravel(x) for x in parts]
        axis = 0
    if any(x.ndim == 0 for x in parts):
        fail(ShapeError, "concatenate of a 0-d array", "use np.stack, or np.atleast_1d first")
    if any(x.ndim != parts[0].ndim for x in parts):
        shown = ", ".join(str(x.type) for x in parts)
        fail(ShapeError, f"concatenate: {shown} differ in rank", "give arrays of one rank")
    return _finish(_joined(parts, axis_of(axis, parts[0].ndim)), out, dtype, casting)


@on(np.stack)
def stack(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Array:
    parts = _several(arrays, "stack")
    if any(x.shape != parts[0].shape for x in parts):
        shown = ", ".join(str(x.type) for x in parts)
        fail(ShapeError, f"stack: {shown} differ in shape", "give arrays of one shape")
    at = axis_of(axis, parts[0].ndim + 1)
    shape = (*parts[0].shape[:at], 1, *parts[0].shape[at:])
    return _finish(
        _joined([emit("reshape", x, shape=shape) for x in parts], at), out, dtype, casting
    )


def _lifted(lift: Callable[..., Any], axis: int, flat: bool = False) -> Callable[..., Array]:
    def apply(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Array:
        parts = [lift(x) for x in _several(tup, "stack")]
        at = 0 if flat and parts[0].ndim == 1 else axis
        return concatenate(parts, at, dtype=dtype, casting=casting)

    return apply


vstack = on(np.vstack)(_lifted(atleast_2d, 0))
hstack = on(np.hstack)(_lifted(atleast_1d, 1, flat=True))
dstack = on(np.dstack)(_lifted(atleast_3d, 2))


@on(np.column_stack)
def column_stack(tup: Any) -> Array:
    parts = [
        emit("reshape", x, shape=(x.size, 1)) if x.ndim < 2 else x
        for x in _several(tup, "column_stack")
    ]
    return concatenate(parts, 1)


@on(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Array:
    return concatenate((arr, values), axis)


@on(np.block)
def block(arrays: Any) -> Array:
    depth, level = 0, arrays
    while isinstance(level, list):
        depth, level = depth + 1, level[0] if level else None

    def join(level: Any, axis: int) -> Array:
        if not isinstance(level, list):
            x = traced(level)
            return emit("reshape", x, shape=(1,) * (depth - x.ndim) + x.shape)
        return concatenate([join(part, axis + 1) for part in level], axis)

    return join(arrays, -depth) if depth else same(traced(arrays))


# Taking apart.


@on(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Array]:
    x = traced(ary)
    at = axis_of(axis, x.ndim)
    extent = x.shape[at]
    if is_traced(indices_or_sections):
        fail(
            ConcreteError,
            "split at traced places gives shapes that only a running program knows",
            "split at integers known while tracing, or use tn.dynamic_slice",
        )
    if isinstance(indices_or_sections, Array) and indices_or_sections.ndim:
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, (list, tuple, np.ndarray)):
        places = [0, *(int(i) for i in indices_or_sections), extent]
    else:
        count = static_int(indices_or_sections, "the number of parts")
        if count <= 0:
            fail(ShapeError, f"a split into {count} parts", "give 1 or more")
        each, more = divmod(extent, count)
        places = [0]
        for i in range(count):
            places.append(places[-1] + each + (1 if i < more else 0))
    parts = []
    for start, stop in pairwise(places):
        key: list[Any] = [slice(None)] * x.ndim
        key[at] = slice(start, stop)
        parts.append(getitem(x, tuple(key)))
    return parts


@on(np.split)
def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Array]:
    x = traced(ary)
    if isinstance(indices_or_sections, (int, np.integer)):
        extent = x.shape[axis_of(axis, x.ndim)]
        if indices_or_sections > 0 and extent % indices_or_sections:
            fail(
                ShapeError,
                f"split: axis {axis} of {x.type} does not divide into {indices_or_sections} "
                "equal parts",
                "use np.array_split for unequal parts",
            )
    return array_split(x, indices_or_sections, axis)


def _split_along(axis: int, rank: int) -> Callable[..., list[Array]]:
    def apply(ary: Any, indices_or_sections: Any) -> list[Array]:
        x = traced(ary)
        if x.ndim < rank:
            fail(ShapeError, f"a split of {x.type} along axis {axis}", f"give {rank} or more axes")
        return split(x, indices_or_sections, 0 if axis == 1 and x.ndim == 1 else axis)

    return apply


vsplit = on(np.vsplit)(_split_along(0, 2))
hsplit = on(np.hsplit)(_split_along(1, 1))
dsplit = on(np.dsplit)(_split_along(2, 3))


@on(np.unstack)
def unstack(x: Any, /, *, axis: Any = 0) -> tuple[Array, ...]:
    array = traced(x)
    at = axis_of(axis, array.ndim)
    lead = (slice(None),) * at
    return tuple(getitem(array, (*lead, i)) for i in range(array.shape[at]))


# Repeating.


@on(np.tile)
def tile(A: Any, reps: Any) -> Array:  # noqa: N803  NumPy's name
    x, times = traced(A), shape_of(reps, "a number of repetitions")
    rank = max(x.ndim, len(times))
    shape = (1,) * (rank - x.ndim) + x.shape
    times = (1,) * (rank - len(times)) + times
    split_shape = tuple(n for pair in zip((1,) * rank, shape, strict=True) for n in pair)
    wide = tuple(n for pair in zip(times, shape, strict=True) for n in pair)
    x = emit("broadcast", emit("reshape", x, shape=split_shape), shape=wide)
    return emit("reshape", x, shape=tuple(t * n for t, n in zip(times, shape, strict=True)))


@on(np.repeat)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Array:
    x = traced(a)
    if axis is None:
        x, axis = emit("reshape", x, shape=(x.size,)), 0
    at = axis_of(axis, x.ndim)
    if is_traced(repeats):
        fail(
            ConcreteError,
            "repeat with traced counts gives a shape that only a running program knows",
            "give counts known while tracing",
        )
    counts = np.asarray(repeats)
    if counts.size != 1:
        return take(x, np.repeat(np.arange(x.shape[at]), counts), at)
    times = static_int(counts.reshape(()).item(), "a number of repetitions")
    if times < 0:
        fail(ShapeError, f"repeat {times} times", "give 0 or more")
    before, after = x.shape[:at], x.shape[at + 1 :]
    tall = emit("reshape", x, shape=(*before, x.shape[at], 1, *after))
    tall = emit("broadcast", tall, shape=(*before, x.shape[at], times, *after))
    return emit("reshape", tall, shape=(*before, x.shape[at] * times, *after))


# Rolling.


@on(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Array:
    x = traced(a)
    if axis is None:
        flat = _rolled(emit("reshape", x, shape=(x.size,)), shift, 0)
        return emit("reshape", flat, shape=x.shape)
    if isinstance(shift, Array) and not is_traced(shift):
        shift = shift.tolist()
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    count = max(len(shifts), len(axes))
    if len(shifts) not in (1, count) or len(axes) not in (1, count):
        fail(ShapeError, "roll: shift and axis do not go together", "give one shift an axis")
    for i in range(count):
        x = _rolled(x, shifts[i % len(shifts)], axis_of(axes[i % len(axes)], x.ndim))
    return same(x)


def _rolled(x: Array, shift: Any, axis: int) -> Array:
    extent = x.shape[axis] if x.ndim else 0
    if not x.size:
        return x
    if isinstance(shift, Array):
        places = emit("iota", dtype="i64", shape=(extent,), axis=0)
        return take(x, UFUNCS[np.subtract](places, shift), axis, mode="wrap")
    by = static_int(shift, "a shift") % extent
    if by == 0:
        return x
    return emit(
        "concatenate", cut(x, axis, extent - by, extent), cut(x, axis, 0, extent - by), axis=axis
    )


@on(np.meshgrid)
def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Array, ...]:
    arrays = [ravel(x) for x in map(traced, xi)]
    rank = len(arrays)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[0], order[1] = 1, 0
    shape = [1] * rank
    for i, x in enumerate(arrays):
        shape[order[i]] = x.size
    made = []
    for i, x in enumerate(arrays):
        lone = tuple(x.size if a == order[i] else 1 for a in range(rank))
        wide = reshape(x, lone)
        if not sparse and lone != tuple(shape):
            wide = broadcast(wide, tuple(shape))
        made.append(same(wide) if copy else wide)
    return tuple(made)
