"""Taking: the functions that read and write by index: take, put and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import axis_of, cast, emit, fail, on, traced, update
from tenfold.trace.surface.indexing.indexing import updatable
from tenfold.trace.surface.indexing.key import has_traced, read_key
from tenfold.trace.surface.indexing.parts import gather
from tenfold.trace.surface.into import as_safe, write
from tenfold.trace.surface.shaping.shapes import fit, together
from tenfold.types import BOOL, I64, KIND, TensorType


def _index_array(indices: Any) -> Array:
    index = traced(indices)
    if KIND[index.dtype] not in "biu":
        fail(
            TypeMismatch,
            f"indices of dtype {index.dtype}",
            "index with integers: indices.astype(int)",
        )
    return cast(index, I64) if index.dtype == BOOL else index


@on(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Array:
    x, index = traced(a), _index_array(indices)
    if axis is None:
        x, axis = emit("reshape", x, shape=(x.size,)), 0
    number_ = axis_of(axis, x.ndim)
    _check_static(indices, x.type, number_, mode)
    result = gather(x, (number_,), number_, [index], mode)
    return result if out is None else write(out, result)


def _check_static(indices: Any, type: TensorType, axis: int, mode: str) -> None:
    """Indices known while tracing are checked while tracing."""
    if mode == "raise" and not has_traced(indices):
        key: list[Any] = [slice(None)] * type.rank
        key[axis] = np.asarray(indices, np.int64)
        read_key(type, tuple(key))


def _along(x: Array, index: Array, axis: int) -> list[Array]:
    """The index arrays that take_along_axis means."""
    if index.ndim != x.ndim:
        fail(
            ShapeError,
            f"indices of type {index.type} along an axis of {x.type}",
            "give indices with as many axes as the array",
        )
    made = []
    for a in range(x.ndim):
        if a == axis:
            made.append(index)
        else:
            shape = tuple(x.shape[a] if i == a else 1 for i in range(x.ndim))
            made.append(emit("iota", dtype="i64", shape=shape, axis=a))
    return made


@on(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Array:
    x, index = traced(arr), _index_array(indices)
    if axis is None:
        x, axis = emit("reshape", x, shape=(x.size,)), 0
    number_ = axis_of(axis, x.ndim)
    return gather(x, tuple(range(x.ndim)), 0, _along(x, index, number_))


@on(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    x = updatable(arr)
    index = _index_array(indices)
    flat = emit("reshape", x, shape=(x.size,)) if axis is None else x
    number_ = axis_of(0 if axis is None else axis, flat.ndim)
    places = _along(flat, index, number_)
    value = fit(traced(values, x.dtype), together(*places))
    done = emit(
        "scatter",
        flat,
        value,
        *places,
        axes=tuple(range(flat.ndim)),
        at=0,
        mode="raise",
        kind="set",
    )
    update(x, emit("reshape", done, shape=x.shape) if axis is None else done)


@on(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    x = updatable(a)
    index = _index_array(ind)
    index = emit("reshape", index, shape=(index.size,))
    value = traced(v, x.dtype)
    if value.size != 1 and value.size != index.size:
        fail(
            ShapeError,
            f"put: {value.size} values for {index.size} indices",
            "give one value, or one an index",
        )
    value = emit("reshape", value, shape=(value.size,))
    value = emit("broadcast", value, shape=(index.size,))
    flat = emit("reshape", x, shape=(x.size,))
    done = emit("scatter", flat, value, index, axes=(0,), at=0, mode=mode, kind="set")
    update(x, emit("reshape", done, shape=x.shape))


@on(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    x = updatable(a)
    value = as_safe("putmask", values, x.dtype)
    if value.size != 1 and value.shape != x.shape:
        fail(
            ShapeError,
            f"putmask: values of type {value.type} for an array of type {x.type}",
            "give one value, or values of the array's shape",
        )
    if value.size == 1:
        value = emit("reshape", value, shape=())
    update(x, emit("select", traced(mask, BOOL), value, x))
