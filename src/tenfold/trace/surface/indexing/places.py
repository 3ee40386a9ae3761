"""Places: functions that make indices out of indices and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ConcreteError, ShapeError, TypeMismatch, Unsupported, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import (
    cast,
    emit,
    fail,
    is_traced,
    on,
    shape_of,
    static_int,
    traced,
    update,
)
from tenfold.trace.surface.indexing.indexing import updatable
from tenfold.trace.surface.into import as_safe
from tenfold.trace.surface.ufuncs.composed import filled, number
from tenfold.types import BOOL, I64, KIND


def _index(name: str, given: Any) -> Array:
    x = traced(given)
    nothing = not x.size and not isinstance(given, (Array, np.ndarray))  # an empty list
    if KIND[x.dtype] not in "iu" and not nothing:
        fail(TypeMismatch, f"{name}: indices of dtype {x.dtype}", "give integers")
    return cast(x, I64)


def _within(index: Array, size: int) -> Array:
    """The index, with an error in the running program where it is none from 0 to size."""
    if not index.size:
        return index
    outside = emit("lt", index, number(0, I64))
    found = emit("select", outside, filled(size, I64, index.shape), index)
    along = emit("iota", dtype=I64, shape=(size,), axis=0)
    return emit("gather", along, found, axes=(0,), at=0, mode="raise")


def _row_order(name: str, order: str) -> None:
    if order not in ("C", "F"):
        fail(ValueProblem, f"{name}: order={order!r}", "say 'C' or 'F'")


@on(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Array, ...]:
    extents = shape_of(shape)
    _row_order("unravel_index", order)
    size = int(np.prod(extents))
    rest = _within(_index("unravel_index", indices), size)
    made = []
    inner = extents[::-1] if order == "C" else extents
    for n in inner:
        step = number(max(n, 1), I64)
        made.append(emit("mod", rest, step))
        rest = emit("floordiv", rest, step)
    return tuple(made[::-1] if order == "C" else made)


@on(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Array:
    extents = shape_of(dims)
    _row_order("ravel_multi_index", order)
    parts = [_index("ravel_multi_index", i) for i in multi_index]
    modes = (mode,) * len(extents) if isinstance(mode, str) else tuple(mode)
    if len(parts) != len(extents) or len(modes) != len(extents):
        fail(
            ShapeError,
            f"ravel_multi_index: {len(parts)} indices for {len(extents)} axes",
            "give one for each axis",
        )
    fixed = [_fixed(i, n, m) for i, n, m in zip(parts, extents, modes, strict=True)]
    pairs = list(zip(fixed, extents, strict=True))
    made: Array = number(0, I64)
    for index, n in pairs if order == "C" else reversed(pairs):
        made = emit("add", emit("mul", made, number(n, I64)), index)
    return made


def _fixed(index: Array, n: int, mode: str) -> Array:
    if mode == "clip":
        return emit("clip", index, number(0, I64), number(n - 1, I64))
    if mode == "wrap":
        return emit("mod", index, number(n, I64))
    if mode != "raise":
        fail(ValueProblem, f"ravel_multi_index: mode={mode!r}", "say 'raise', 'wrap' or 'clip'")
    return _within(index, n)


@on(np.ix_)
def ix_(*args: Any) -> tuple[Array, ...]:
    made = []
    for i, given in enumerate(args):
        x = traced(given)
        if x.ndim != 1:
            fail(ShapeError, f"ix_: argument {i} is {x.type}", "give vectors")
        if x.dtype == BOOL:
            if is_traced(given):
                fail(
                    ConcreteError,
                    "np.ix_ of a traced mask: how many it chooses, only a running program knows",
                    "give the places: tn.flatnonzero(mask, size=n)",
                )
            x = traced(np.flatnonzero(np.asarray(given)))
        if not x.size and not isinstance(given, (Array, np.ndarray)):  # an empty list
            x = cast(x, I64)
        shape = tuple(x.size if k == i else 1 for k in range(len(args)))
        made.append(emit("reshape", x, shape=shape))
    return tuple(made)


def _matrix(name: str, arr: Any) -> Array:
    x = traced(arr)
    if x.ndim != 2:
        fail(ShapeError, f"{name} of {x.type}", "give a matrix")
    return x


# The shape is known while tracing, and so are these: arrays that index without a gather's check.


@on(np.tril_indices_from)
def tril_indices_from(arr: Any, k: Any = 0) -> Any:
    rows, columns = _matrix("tril_indices_from", arr).shape
    return np.tril_indices(rows, static_int(k, "k"), columns)


@on(np.triu_indices_from)
def triu_indices_from(arr: Any, k: Any = 0) -> Any:
    rows, columns = _matrix("triu_indices_from", arr).shape
    return np.triu_indices(rows, static_int(k, "k"), columns)


@on(np.diag_indices_from)
def diag_indices_from(arr: Any) -> Any:
    x = traced(arr)
    if x.ndim < 2 or len(set(x.shape)) > 1:
        fail(ShapeError, f"diag_indices_from of {x.type}", "give axes of one length")
    return np.diag_indices(x.shape[0], x.ndim)


@on(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """The values one after the other, from the first again, where the mask holds."""
    x, chosen = updatable(arr), traced(mask, BOOL)
    values = as_safe("place", vals, x.dtype)
    if chosen.size != x.size:
        fail(ShapeError, f"place: a mask {chosen.type} for {x.type}", "give one of its size")
    if not values.size:
        fail(Unsupported, "np.place with no values", "give at least one")
    line = emit("reshape", values, shape=(values.size,))
    flat = emit("reshape", chosen, shape=(x.size,))
    seen = emit("cumsum", cast(flat, I64), axis=0, reverse=False)
    turn = emit("mod", emit("sub", seen, number(1, I64)), number(values.size, I64))
    new = emit("gather", line, turn, axes=(0,), at=0, mode="clip")
    made = emit("select", flat, new, emit("reshape", x, shape=(x.size,)))
    update(x, emit("reshape", made, shape=x.shape))
