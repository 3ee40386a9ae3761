"""Linalg: factorisations and norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenfold.errors import TypeMismatch, Unsupported
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import axes_of, cast, emit, emit_all, fail, on, traced
from tenfold.trace.surface.reducing.reductions import largest, smallest, total
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.trace.tables import UFUNCS
from tenfold.types import BFLOAT16, DTYPES, F64, KIND

_QR: Any = type(np.linalg.qr(np.ones((1, 1))))
_SVD: Any = type(np.linalg.svd(np.ones((1, 1))))


def _matrix(name: str, a: Any) -> Array:
    """An operand in a dtype that can be factorised."""
    x = traced(a)
    if x.dtype in (DTYPES["f16"], BFLOAT16):
        fail(TypeMismatch, f"{name} of {x.type}", "cast to float32 first: x.astype(np.float32)")
    return cast(x, F64) if KIND[x.dtype] in "biu" else x


def lu(x: Any) -> tuple[Array, Array, Array]:
    """P, L and U with x = P @ L @ U: a permutation, a lower and an upper triangular matrix."""
    p, lower, upper = emit_all("lu", _matrix("lu", x))
    return p, lower, upper


@on(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    x = _matrix("qr", a)
    if mode not in ("reduced", "complete", "r"):
        fail(Unsupported, f"np.linalg.qr with mode={mode!r}", "say reduced, complete or r")
    made = emit_all("qr", x, mode=mode)
    return made[0] if mode == "r" else _QR(*made)


@on(np.linalg.svd)
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    x = _matrix("svd", a)
    full = bool(full_matrices) and bool(compute_uv)
    made = emit_all("svd", x, full_matrices=full, compute_uv=bool(compute_uv))
    return _SVD(*made) if compute_uv else made[0]


@on(np.linalg.svdvals)
def svdvals(x: Any, /) -> Array:
    made: Array = svd(x, compute_uv=False)
    return made


def _size(x: Array) -> Array:
    made: Array = UFUNCS[np.absolute](x)
    return made


def _squares(x: Array) -> Array:
    if KIND[x.dtype] == "c":
        real, imag = emit("real", x), emit("imag", x)
        return emit("add", emit("mul", real, real), emit("mul", imag, imag))
    return emit("mul", x, x)


@on(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    array = traced(x)
    if KIND[array.dtype] in "biu":
        array = cast(array, F64)
    axes = axes_of(axis, array.ndim)
    if ord is None or (ord == 2 and len(axes) == 1) or (ord == "fro" and len(axes) == 2):
        return emit("sqrt", total(_squares(array), axes, keepdims=keepdims))
    if len(axes) == 1:
        sizes = _size(array)
        if ord == np.inf:
            return largest(sizes, axes, keepdims=keepdims)
        if ord == -np.inf:
            return smallest(sizes, axes, keepdims=keepdims)
        if ord == 0:
            there = emit("ne", sizes, number(0, sizes.dtype))
            return total(cast(there, sizes.dtype), axes, keepdims=keepdims)
        if ord == 1:
            return total(sizes, axes, keepdims=keepdims)
        if isinstance(ord, (int, float)):
            power = emit("pow", sizes, number(ord, sizes.dtype))
            sums = total(power, axes, keepdims=keepdims)
            return emit("pow", sums, number(1.0 / ord, sizes.dtype))
    if len(axes) == 2 and ord in (1, -1, np.inf, -np.inf):
        first, second = axes if ord in (1, -1) else (axes[1], axes[0])
        sums = total(_size(array), first, keepdims=True)
        extreme = largest if ord in (1, np.inf) else smallest
        result = extreme(sums, second, keepdims=True)
        if keepdims:
            return result
        shape = tuple(n for i, n in enumerate(array.shape) if i not in axes)
        return emit("reshape", result, shape=shape)
    if len(axes) == 2 and ord in (2, -2, "nuc"):
        return _spectral(array, ord, axes, keepdims)
    return fail(
        Unsupported,
        f"np.linalg.norm of {array.type} with ord={ord!r} over {len(axes)} axes",
        "for matrices say None, 'fro', 'nuc', 1, -1, 2, -2, inf or -inf",
    )


def _spectral(x: Array, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    """A norm of the singular values."""
    rest = tuple(i for i in range(x.ndim) if i not in axes)
    s = svdvals(emit("transpose", x, axes=(*rest, *axes)))
    fold = total if ord == "nuc" else largest if ord == 2 else smallest
    result = fold(s, -1, **({"initial": 0} if ord == 2 else {}))
    if not keepdims:
        return result
    shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    return emit("reshape", result, shape=shape)


@on(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    array = traced(x)
    if axis is None:
        shape = array.shape
        flat = norm(emit("reshape", array, shape=(array.size,)), ord, 0)
        return emit("reshape", flat, shape=(1,) * len(shape)) if keepdims else flat
    axes = axes_of(axis, array.ndim)
    if len(axes) == 1:
        return norm(array, ord, axes, keepdims)
    rest = tuple(i for i in range(array.ndim) if i not in axes)
    kept = tuple(array.shape[i] for i in rest)
    transposed = emit("transpose", array, axes=(*rest, *axes))
    flat = norm(
        emit("reshape", transposed, shape=(*kept, math.prod(array.shape[a] for a in axes))), ord, -1
    )
    if not keepdims:
        return flat
    shape = tuple(1 if i in axes else n for i, n in enumerate(array.shape))
    return emit("reshape", flat, shape=shape)


@on(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    return norm(x, ord, (-2, -1), keepdims)
