"""Editing: insert, delete and resize, at places known while tracing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ConcreteError, IndexProblem, ShapeError
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import axis_of, emit, fail, is_traced, on, shape_of, traced
from tenfold.trace.surface.indexing.key import has_traced
from tenfold.trace.surface.indexing.taking import take
from tenfold.trace.surface.ufuncs.composed import filled, number
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import I64


def _line(arr: Any, axis: Any) -> tuple[Array, int]:
    x = traced(arr)
    if axis is None:
        return emit("reshape", x, shape=(x.size,)), 0
    return x, axis_of(axis, x.ndim)


def _known(name: str, obj: Any) -> Any:
    if isinstance(obj, Array) and not is_traced(obj):
        return np.asarray(obj)
    if has_traced(obj):
        fail(
            ConcreteError,
            f"np.{name} at traced places, which only a running program knows",
            "give places that are known, or choose with np.where",
        )
    return obj


@on(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Array:
    x, at = _line(arr, axis)
    try:
        kept = np.delete(np.arange(x.shape[at]), _known("delete", obj))
    except (IndexError, ValueError) as error:
        fail(IndexProblem, f"delete from axis {at} of {x.type}: {error}", "name places it has")
    return take(x, kept, at)


@on(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Array:
    x, at = _line(arr, axis)
    n = x.shape[at]
    obj = _known("insert", obj)
    places = np.arange(*obj.indices(n)) if isinstance(obj, slice) else np.asarray(obj)
    if places.dtype == np.bool_:
        places = np.flatnonzero(places)
    elif not places.size:
        places = places.astype(np.int64)
    if places.ndim > 1 or places.dtype.kind not in "iu":
        fail(IndexProblem, f"insert at {obj}", "give integers along one axis")
    if places.size and (places.min() < -n or places.max() > n):
        fail(IndexProblem, f"insert at {obj} of axis {at} of {x.type}", f"it has {n} elements")
    places = np.where(places < 0, places + n, places)
    new = traced(values, x.dtype)
    if new.ndim < x.ndim:
        new = emit("reshape", new, shape=(*(1,) * (x.ndim - new.ndim), *new.shape))
    if places.ndim == 0:
        new = FUNCTIONS[np.moveaxis](new, 0, at)
    count = new.shape[at] if places.size == 1 else places.size
    shape = (*x.shape[:at], count, *x.shape[at + 1 :])
    try:
        np.broadcast_to(np.empty(new.shape, np.int8), shape)
    except ValueError:
        fail(ShapeError, f"insert: values {new.type} do not broadcast to {shape}", None)
    both = emit("concatenate", x, emit("broadcast", new, shape=shape), axis=at)
    # where each element of the result lies in the array with the new elements behind it
    order = np.insert(np.arange(n), np.resize(places, count), np.arange(n, n + count))
    return take(both, order, at)


@on(np.resize)
def resize(a: Any, new_shape: Any) -> Array:
    x = traced(a)
    shape = shape_of(new_shape)
    if any(n < 0 for n in shape):
        fail(ShapeError, f"resize to {shape}", "give extents of 0 or more")
    size = int(np.prod(shape))
    if not x.size or not size:
        return filled(0, x.dtype, shape)
    along = emit("iota", dtype=I64, shape=(size,), axis=0)
    index = emit("mod", along, number(x.size, I64))
    line = emit("reshape", x, shape=(x.size,))
    return emit("reshape", emit("gather", line, index, axes=(0,), at=0, mode="clip"), shape=shape)
