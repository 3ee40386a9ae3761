"""Diagonals: diagonal, trace, diag, tril, triu."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ShapeError
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import axis_of, emit, fail, on, static_int, traced, update
from tenfold.trace.surface.indexing.indexing import updatable
from tenfold.trace.surface.into import write
from tenfold.trace.surface.reducing.reductions import total
from tenfold.trace.surface.steps import Strided, view
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.types import BOOL, I64


def take_diagonal(x: Array, axis1: int, axis2: int, offset: int = 0) -> Array:
    """The diagonal of two axes, as the last axis."""
    rows, columns = x.shape[axis1], x.shape[axis2]
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    if count == 0:
        rest = tuple(n for i, n in enumerate(x.shape) if i not in (axis1, axis2))
        return emit("broadcast", number(0, x.dtype), shape=(*rest, 0))
    along = emit("iota", dtype="i64", shape=(count,), axis=0)
    row = emit("add", along, number(-offset, I64)) if offset < 0 else along
    column = emit("add", along, number(offset, I64)) if offset > 0 else along
    return emit("gather", x, row, column, axes=(axis1, axis2), at=x.ndim - 2, mode="clip")


@on(np.diagonal)
def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Array:
    x = traced(a)
    if x.ndim < 2:
        fail(ShapeError, f"diagonal of {x.type}", "give an array with two or more axes")
    first, second = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    if first == second:
        fail(ShapeError, f"diagonal of axis {first} with itself", "name two axes")
    by = static_int(offset, "the offset")
    step = Strided(
        lambda base: take_diagonal(base, first, second, by),
        lambda base: base.diagonal(by, first, second),
    )
    return view(x, step, readonly=True)


@on(np.linalg.diagonal)
def linalg_diagonal(x: Any, /, *, offset: Any = 0) -> Array:
    return diagonal(x, offset, -2, -1)


@on(np.trace)
def trace(
    a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None
) -> Array:
    result = total(diagonal(a, offset, axis1, axis2), -1, dtype)
    return result if out is None else write(out, result)


@on(np.linalg.trace)
def linalg_trace(x: Any, /, *, offset: Any = 0, dtype: Any = None) -> Array:
    return trace(x, offset, -2, -1, dtype)


@on(np.diag)
def diag(v: Any, k: Any = 0) -> Array:
    x, offset = traced(v), static_int(k, "k")
    if x.ndim == 2:
        return diagonal(x, offset)
    if x.ndim != 1:
        fail(ShapeError, f"diag of {x.type}", "give an array with one or two axes")
    n = x.size + abs(offset)
    wide = emit("broadcast", emit("reshape", x, shape=(1, x.size)), shape=(x.size, x.size))
    zero = number(0, x.dtype)
    square = emit("select", _band(x.size, x.size, 0, "eq"), wide, zero)
    low = (max(-offset, 0), max(offset, 0))
    high = (n - x.size - low[0], n - x.size - low[1])
    return emit("pad", square, zero, low=low, high=high, interior=(0, 0))


@on(np.diagflat)
def diagflat(v: Any, k: Any = 0) -> Array:
    x = traced(v)
    return diag(emit("reshape", x, shape=(x.size,)), k)


def _band(rows: int, columns: int, offset: int, op: str) -> Array:
    """Whether column - row compares so with the offset, for each place of a matrix."""
    if not rows or not columns:
        return emit("broadcast", number(False, BOOL), shape=(rows, columns))
    row = emit("iota", dtype="i64", shape=(rows, 1), axis=0)
    column = emit("iota", dtype="i64", shape=(1, columns), axis=1)
    return emit(op, column, emit("add", row, number(offset, I64)))


def _triangle(name: str, m: Any, k: Any, op: str) -> Array:
    x = traced(m)
    if x.ndim == 1:  # NumPy broadcasts a vector to a square
        x = emit("broadcast", x, shape=(x.size, x.size))
    if x.ndim == 0:
        fail(ShapeError, f"{name} of {x.type}", "give an array with one or more axes")
    inside = _band(x.shape[-2], x.shape[-1], static_int(k, "k"), op)
    return emit("select", inside, x, number(0, x.dtype))


@on(np.tril)
def tril(m: Any, k: Any = 0) -> Array:
    return _triangle("tril", m, k, "le")


@on(np.triu)
def triu(m: Any, k: Any = 0) -> Array:
    return _triangle("triu", m, k, "ge")


@on(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    x = updatable(a)
    if x.ndim != 2 or wrap:
        fail(ShapeError, f"fill_diagonal of {x.type}", "give a matrix, and no wrap")
    value = traced(val, x.dtype)
    if value.ndim:
        count = min(x.shape)
        if value.shape != (count,):
            fail(ShapeError, f"fill_diagonal with {value.type}", f"give {count} values, or one")
        tall = emit("reshape", value, shape=(count, 1))
        zero = number(0, x.dtype)
        grow = (x.shape[0] - count, 0)
        value = emit("pad", tall, zero, low=(0, 0), high=grow, interior=(0, 0))
    update(x, emit("select", _band(x.shape[0], x.shape[1], 0, "eq"), value, x))


def eye(rows: int, columns: int, offset: int) -> Array:
    """Which places of a matrix lie on a diagonal."""
    return _band(rows, columns, offset, "eq")
