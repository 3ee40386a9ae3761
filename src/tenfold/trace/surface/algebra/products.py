"""Products: dot, matmul and their kin, all as one contraction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.errors import ShapeError
from tenfold.trace.array import Array
from tenfold.trace.operand import dtype_key
from tenfold.trace.surface.emit import (
    axes_of,
    axis_of,
    cast,
    emit,
    emit_normal,
    fail,
    is_array,
    on,
    traced,
)
from tenfold.trace.surface.into import write
from tenfold.trace.surface.shaping.joining import stack
from tenfold.trace.surface.shaping.shapes import moveaxis, ravel
from tenfold.trace.surface.ufuncs.promotion import common, dtypes_for
from tenfold.trace.tables import UFUNCS
from tenfold.types import KIND

_CONTRACT = ("lhs_contract", "rhs_contract", "lhs_batch", "rhs_batch")


def contract(
    x: Array,
    y: Array,
    left: Sequence[int],
    right: Sequence[int],
    left_batch: Sequence[int] = (),
    right_batch: Sequence[int] = (),
) -> Array:
    """Sum over pairs of axes: the result has the batch axes, then x's others, then y's."""
    axes = tuple(left), tuple(right), tuple(left_batch), tuple(right_batch)
    return emit_normal("contract", tuple(zip(_CONTRACT, axes, strict=True)), x, y)


def _pair(a: Any, b: Any) -> tuple[Array, Array]:
    """Two operands in their common dtype."""
    x, y = traced(a), traced(b)
    dtype = common((x.dtype, y.dtype))
    return cast(x, dtype), cast(y, dtype)


def _meet(name: str, x: Array, y: Array, i: int, j: int) -> None:
    if x.shape[i] != y.shape[j]:
        fail(
            ShapeError,
            f"{name}: {x.type} and {y.type} do not meet ({x.shape[i]} against {y.shape[j]})",
            "transpose or reshape one of them so that the extents agree",
        )


def _multiply(x: Array, y: Array) -> Array:
    made: Array = UFUNCS[np.multiply](x, y)
    return made


def _conjugate(x: Array) -> Array:
    return emit("conj", x) if KIND[x.dtype] == "c" else x


@on(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Array:
    x, y = _pair(a, b)
    if x.ndim == 0 or y.ndim == 0:
        result = UFUNCS[np.multiply](x, y)
    else:
        row = max(y.ndim - 2, 0)
        _meet("dot", x, y, x.ndim - 1, row)
        result = contract(x, y, [x.ndim - 1], [row])
    return result if out is None else write(out, result)


@on(np.vdot)
def vdot(a: Any, b: Any, /) -> Array:
    x, y = _pair(a, b)
    x, y = ravel(_conjugate(x)), ravel(y)
    _meet("vdot", x, y, 0, 0)
    return contract(x, y, [0], [0])


@on(np.inner)
def inner(a: Any, b: Any, /) -> Array:
    x, y = _pair(a, b)
    if x.ndim == 0 or y.ndim == 0:
        return _multiply(x, y)
    _meet("inner", x, y, x.ndim - 1, y.ndim - 1)
    return contract(x, y, [x.ndim - 1], [y.ndim - 1])


@on(np.outer, np.linalg.outer)
def outer(a: Any, b: Any, out: Any = None) -> Array:
    x, y = ravel(a), ravel(b)
    tall = emit("reshape", x, shape=(x.size, 1))
    result = UFUNCS[np.multiply](tall, emit("reshape", y, shape=(1, y.size)))
    return result if out is None else write(out, result)


@on(np.tensordot, np.linalg.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Array:
    x, y = _pair(a, b)
    if isinstance(axes, (int, np.integer)):
        count = int(axes)
        left: Any = tuple(range(x.ndim - count, x.ndim))
        right: Any = tuple(range(count))
    else:
        left, right = axes
        left = (left,) if isinstance(left, (int, np.integer)) else tuple(left)
        right = (right,) if isinstance(right, (int, np.integer)) else tuple(right)
    left, right = axes_of(left, x.ndim), axes_of(right, y.ndim)
    if len(left) != len(right):
        fail(
            ShapeError,
            f"tensordot: {len(left)} axes of one against {len(right)} of the other",
            "name them in pairs",
        )
    for i, j in zip(left, right, strict=True):
        _meet("tensordot", x, y, i, j)
    return contract(x, y, left, right)


def _batched(name: str, x: Array, y: Array, core: tuple[int, int]) -> tuple[Array, Array, int]:
    """Operands whose leading axes agree, and how many of these there are."""
    lead_x, lead_y = x.shape[: x.ndim - core[0]], y.shape[: y.ndim - core[1]]
    try:
        lead = lead_x if lead_x == lead_y else np.broadcast_shapes(lead_x, lead_y)
    except ValueError:
        fail(
            ShapeError,
            f"{name}: the leading axes of {x.type} and {y.type} do not broadcast",
            "reshape one of them",
        )
    if lead_x != lead:
        x = emit("broadcast", x, shape=(*lead, *x.shape[x.ndim - core[0] :]))
    if lead_y != lead:
        y = emit("broadcast", y, shape=(*lead, *y.shape[y.ndim - core[1] :]))
    return x, y, len(lead)


def _matrices(x: Array, y: Array) -> Array:
    left, right = x.ndim, y.ndim
    if not left or not right:
        fail(
            ShapeError,
            f"matmul: {x.type} and {y.type}: an operand is 0-d",
            "multiply by numbers with *",
        )
    row = max(right - 2, 0)
    _meet("matmul", x, y, left - 1, row)
    if right <= 2 or left == 1:
        return contract(x, y, [left - 1], [row])
    if left == 2:  # (m, batch…, n)
        return moveaxis(contract(x, y, [1], [row]), 0, -2)
    x, y, count = _batched("matmul", x, y, (2, 2))
    lead = range(count)
    return contract(x, y, [x.ndim - 1], [y.ndim - 2], lead, lead)


def _vectors(x: Array, y: Array) -> Array:
    _meet("vecdot", x, y, x.ndim - 1, y.ndim - 1)
    x, y, count = _batched("vecdot", _conjugate(x), y, (1, 1))
    return contract(x, y, [count], [count], range(count), range(count))


def _matrix_vector(x: Array, y: Array) -> Array:
    _meet("matvec", x, y, x.ndim - 1, y.ndim - 1)
    x, y, count = _batched("matvec", x, y, (2, 1))
    return contract(x, y, [count + 1], [count], range(count), range(count))


def _vector_matrix(x: Array, y: Array) -> Array:
    _meet("vecmat", x, y, x.ndim - 1, y.ndim - 2)
    x, y, count = _batched("vecmat", _conjugate(x), y, (1, 2))
    return contract(x, y, [count], [count], range(count), range(count))


def _file(ufunc: np.ufunc, ranks: tuple[int, int], build: Callable[[Array, Array], Array]) -> None:
    def apply(x: Any, y: Any) -> Array:
        if type(x) is not Array and not is_array(x):
            x = traced(x)
        if type(y) is not Array and not is_array(y):
            y = traced(y)
        left, right, _ = dtypes_for(ufunc, (dtype_key(x), dtype_key(y)))
        one, other = traced(x, left), traced(y, right)
        if one.ndim < ranks[0] or other.ndim < ranks[1]:
            fail(
                ShapeError,
                f"{ufunc.__name__}: {one.type} and {other.type}",
                f"give arrays with at least {ranks[0]} and {ranks[1]} axes",
            )
        return build(one, other)

    UFUNCS[ufunc] = apply


_file(np.matmul, (0, 0), _matrices)
_file(np.vecdot, (1, 1), _vectors)
_file(np.matvec, (2, 1), _matrix_vector)
_file(np.vecmat, (1, 2), _vector_matrix)


@on(np.linalg.matmul)
def linalg_matmul(x1: Any, x2: Any, /) -> Array:
    made: Array = UFUNCS[np.matmul](x1, x2)
    return made


@on(np.linalg.vecdot)
def linalg_vecdot(x1: Any, x2: Any, /, *, axis: Any = -1) -> Array:
    x, y = traced(x1), traced(x2)
    made: Array = UFUNCS[np.vecdot](moveaxis(x, axis, -1), moveaxis(y, axis, -1))
    return made


@on(np.kron)
def kron(a: Any, b: Any) -> Array:
    x, y = traced(a), traced(b)
    rank = max(x.ndim, y.ndim)
    left = (1,) * (rank - x.ndim) + x.shape
    right = (1,) * (rank - y.ndim) + y.shape
    tall = emit("reshape", x, shape=tuple(n for m in left for n in (m, 1)))
    wide = emit("reshape", y, shape=tuple(n for m in right for n in (1, m)))
    product = UFUNCS[np.multiply](tall, wide)
    return emit("reshape", product, shape=tuple(m * n for m, n in zip(left, right, strict=True)))


@on(np.cross, np.linalg.cross)
def cross(
    a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None
) -> Array:
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = _pair(a, b)
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        fail(ShapeError, f"cross of {x.type} and {y.type}", "give vectors of 3 elements")
    parts = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts.append(x[..., j] * y[..., k] - x[..., k] * y[..., j])
    result = stack(parts, -1)
    return moveaxis(result, -1, axis_of(axisc, result.ndim))
