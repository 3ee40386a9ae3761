"""Solving: the functions of np.linalg that solve, invert and decompose square matrices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tenfold.errors import ShapeError
from tenfold.trace.array import Array
from tenfold.trace.surface.algebra.linalg import _matrix, norm, svd
from tenfold.trace.surface.anywhere import anywhere
from tenfold.trace.surface.emit import (
    ABSENT,
    cast,
    emit,
    emit_all,
    fail,
    on,
    static_int,
    traced,
)
from tenfold.trace.surface.indexing.diagonals import eye
from tenfold.trace.surface.into import write
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.trace.surface.ufuncs.promotion import common
from tenfold.trace.tables import UFUNCS
from tenfold.types import KIND

_ONE = np.ones((1, 1))
_EIG: Any = type(np.linalg.eig(_ONE))
_EIGH: Any = type(np.linalg.eigh(_ONE))
_SLOGDET: Any = type(np.linalg.slogdet(_ONE))


def adjoint(x: Array) -> Array:
    """The conjugate of the transposed matrices."""
    order = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    transposed = emit("transpose", x, axes=order)
    return emit("conj", transposed) if KIND[x.dtype] == "c" else transposed


def _multiply(a: Array, b: Array) -> Array:
    made: Array = UFUNCS[np.matmul](a, b)
    return made


def _pair(name: str, a: Any, b: Any) -> tuple[Array, Array]:
    """Two operands in the dtype they are solved in."""
    left, right = _matrix(name, a), _matrix(name, b)
    dtype = common((left.dtype, right.dtype))
    return cast(left, dtype), cast(right, dtype)


def _square(name: str, x: Array) -> Array:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        fail(ShapeError, f"{name}: {x.type} is no square matrix", "its last two axes must agree")
    return x


def _spread(x: Array, leading: tuple[int, ...]) -> Array:
    shape = (*leading, *x.shape[-2:])
    return x if x.shape == shape else emit("broadcast", x, shape=shape)


def _identity(x: Array) -> Array:
    n = x.shape[-1]
    return _spread(cast(eye(n, n, 0), x.dtype), x.shape[:-2])


@on(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Array:
    x = _matrix("cholesky", a)
    if upper:
        return adjoint(emit("cholesky", adjoint(x)))
    return emit("cholesky", x)


def _lower(uplo: Any) -> bool:
    side = str(uplo).upper()
    if side not in ("L", "U"):
        fail(ShapeError, f"eigh: UPLO={uplo!r}", "say 'L' or 'U'")
    return side == "L"


@on(np.linalg.eigh)
def eigh(a: Any, UPLO: Any = "L") -> Any:  # noqa: N803
    return _EIGH(*emit_all("eigh", _matrix("eigh", a), lower=_lower(UPLO), vectors=True))


@on(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: Any = "L") -> Array:  # noqa: N803
    return emit("eigh", _matrix("eigvalsh", a), lower=_lower(UPLO), vectors=False)


@on(np.linalg.eig)
def eig(a: Any) -> Any:
    """Always complex: whether all eigenvalues are real, only a running program knows."""
    return _EIG(*emit_all("eig", _matrix("eig", a), vectors=True))


@on(np.linalg.eigvals)
def eigvals(a: Any) -> Array:
    return emit("eig", _matrix("eigvals", a), vectors=False)


@on(np.linalg.solve)
def solve(a: Any, b: Any) -> Array:
    left, right = _pair("solve", a, b)
    _square("solve", left)
    if right.ndim == 1:
        column = emit("reshape", right, shape=(*right.shape, 1))
        made = solve(left, column)
        return emit("reshape", made, shape=made.shape[:-1])
    if right.ndim == 0 or right.shape[-2] != left.shape[-1]:
        fail(
            ShapeError,
            f"solve: {left.type} and {right.type} do not fit",
            "the right side needs as many rows as the matrix",
        )
    leading = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    return emit("solve", _spread(left, leading), _spread(right, leading))


@anywhere
def triangular_solve(
    a: Any, b: Any, *, lower: bool = True, unit: bool = False, transpose: bool = False
) -> Array:
    """The x with a @ x = b for a triangular a (or a.mT @ x = b), of which one triangle is read.

    >>> import numpy as np, tenfold as tn
    >>> tn.triangular_solve(np.array([[2.0, 0.0], [1.0, 4.0]]), np.array([2.0, 9.0]))
    array([1., 2.])
    """
    left, right = _pair("triangular_solve", a, b)
    _square("triangular_solve", left)
    if transpose:
        order = (*range(left.ndim - 2), left.ndim - 1, left.ndim - 2)
        left, lower = emit("transpose", left, axes=order), not lower
    flat = right.ndim == 1
    if flat:
        right = emit("reshape", right, shape=(*right.shape, 1))
    leading = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    made = emit(
        "triangular_solve",
        _spread(left, leading),
        _spread(right, leading),
        lower=bool(lower),
        unit=bool(unit),
    )
    return emit("reshape", made, shape=made.shape[:-1]) if flat else made


@on(np.linalg.inv)
def inv(a: Any) -> Array:
    return emit("inv", _square("inv", _matrix("inv", a)))


@on(np.linalg.det)
def det(a: Any) -> Array:
    return emit("det", _square("det", _matrix("det", a)))


@on(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    return _SLOGDET(*emit_all("slogdet", _square("slogdet", _matrix("slogdet", a))))


def _epsilon(x: Array) -> float:
    return float(np.finfo(x.dtype).eps)


def _factors(x: Array) -> tuple[Array, Array, Array]:
    u, s, vh = svd(x, full_matrices=False)
    return u, s, vh


def _inverted(s: Array, cutoff: Array) -> Array:
    """One over the singular values beyond the cutoff, 0 for the others."""
    large = emit("gt", s, cutoff)
    zero, one = number(0, s.dtype), number(1, s.dtype)
    safe = emit("select", large, s, one)
    return emit("select", large, emit("div", one, safe), zero)


@on(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = ABSENT) -> Array:
    x = _matrix("pinv", a)
    if rcond is None:
        rcond = 1e-15 if rtol is ABSENT else rtol
    if rcond is None:
        rcond = max(x.shape[-2:]) * _epsilon(x)
    if 0 in x.shape:
        shape = (*x.shape[:-2], x.shape[-1], x.shape[-2])
        return emit("broadcast", number(0, x.dtype), shape=shape)
    u, s, vh = _factors(x)
    most = emit("reduce_max", s, axes=(s.ndim - 1,))
    limit = emit("mul", cast(traced(rcond), s.dtype), most)
    s = _inverted(s, emit("reshape", limit, shape=(*limit.shape, 1)))
    scaled = emit("mul", adjoint(u), cast(emit("reshape", s, shape=(*s.shape, 1)), u.dtype))
    return _multiply(adjoint(vh), scaled)


@on(np.linalg.matrix_rank)
def matrix_rank(
    A: Any,  # noqa: N803
    tol: Any = None,
    hermitian: bool = False,
    *,
    rtol: Any = None,
) -> Array:
    x = traced(A)
    if x.ndim < 2:
        there = emit("reduce_any", cast(x, np.bool_), axes=tuple(range(x.ndim)))
        return cast(there, np.int64)
    x = _matrix("matrix_rank", x)
    s: Array = svd(x, compute_uv=False)
    if s.shape[-1] == 0:
        return emit("broadcast", number(0, np.dtype(np.int64)), shape=s.shape[:-1])
    if tol is None:
        relative = max(x.shape[-2:]) * _epsilon(x) if rtol is None else rtol
        most = emit("reduce_max", s, axes=(s.ndim - 1,))
        limit = emit("mul", most, cast(traced(relative), s.dtype))
    else:
        limit = cast(traced(tol), s.dtype)
    limit = emit("reshape", limit, shape=(*limit.shape, 1))
    return emit("reduce_sum", cast(emit("gt", s, limit), np.int64), axes=(s.ndim - 1,))


@on(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Array, Array, Array, Array]:
    """As NumPy's; the residuals are there whenever there are more rows than columns, for only
    a running program knows the rank."""
    left, right = _pair("lstsq", a, b)
    if left.ndim != 2 or right.ndim not in (1, 2) or right.shape[0] != left.shape[0]:
        fail(
            ShapeError,
            f"lstsq: {left.type} and {right.type} do not fit",
            "give a matrix and right sides with as many rows",
        )
    flat = right.ndim == 1
    if flat:
        right = emit("reshape", right, shape=(*right.shape, 1))
    m, n = left.shape
    u, s, vh = _factors(left)
    share = _epsilon(left) * (max(m, n) if rcond is None else 1)
    if rcond is not None and not (isinstance(rcond, (int, float)) and rcond < 0):
        share = rcond
    if 0 in left.shape:
        most = number(0, s.dtype)
    else:
        most = emit("reduce_max", s, axes=(0,))
    limit = emit("mul", most, cast(traced(share), s.dtype))
    inverse = emit("reshape", _inverted(s, limit), shape=(s.shape[0], 1))
    turned = emit("mul", _multiply(adjoint(u), right), cast(inverse, u.dtype))
    x = _multiply(adjoint(vh), turned)
    rank = emit("reduce_sum", cast(emit("gt", s, limit), np.int32), axes=(0,))
    if m > n:
        off = emit("sub", right, _multiply(left, x))
        size = emit("abs", off)
        rest = emit("reduce_sum", emit("mul", size, size), axes=(0,))
    else:
        rest = emit("broadcast", number(0, s.dtype), shape=(0,))
    return (emit("reshape", x, shape=(n,)) if flat else x), rest, rank, s


@on(np.linalg.matrix_power)
def matrix_power(a: Any, n: Any) -> Array:
    x, power = _square("matrix_power", traced(a)), static_int(n, "matrix_power: the power")
    if power == 0:
        return _identity(x)
    if power < 0:
        x, power = inv(x), -power
    made: Array | None = None
    while power:
        if power & 1:
            made = x if made is None else _multiply(made, x)
        power >>= 1
        if power:
            x = _multiply(x, x)
    assert made is not None
    return made


@on(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Array:
    """The product in the order that takes the fewest multiplications."""
    given = [traced(a) for a in arrays]
    if len(given) < 2:
        fail(ShapeError, f"multi_dot of {len(given)} arrays", "give at least two")
    first, last = given[0].ndim, given[-1].ndim
    if first == 1:
        given[0] = emit("reshape", given[0], shape=(1, given[0].size))
    if last == 1:
        given[-1] = emit("reshape", given[-1], shape=(given[-1].size, 1))
    for x in given:
        if x.ndim != 2:
            fail(ShapeError, f"multi_dot: {x.type} is no matrix", "only the ends may be vectors")
    extents = [given[0].shape[0], *(x.shape[1] for x in given)]
    made = _chained(given, _splits(extents))
    shape = made.shape[1:] if first == 1 else made.shape
    made = emit("reshape", made, shape=shape[:-1] if last == 1 else shape)
    return made if out is None else write(out, made)


def _splits(extents: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to cut each run of matrices first, by its ends."""
    count = len(extents) - 1
    cost = {(i, i): 0 for i in range(count)}
    cut: dict[tuple[int, int], int] = {}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length - 1
            ways = [
                (cost[i, k] + cost[k + 1, j] + extents[i] * extents[k + 1] * extents[j + 1], k)
                for k in range(i, j)
            ]
            cost[i, j], cut[i, j] = min(ways)
    return cut


def _chained(given: Sequence[Array], cut: dict[tuple[int, int], int]) -> Array:
    """Shorter runs come first, so that each product finds its factors."""
    made = {(i, i): x for i, x in enumerate(given)}
    wanted = [(0, len(given) - 1)]
    for i, j in wanted:
        if i < j:
            wanted += [(i, cut[i, j]), (cut[i, j] + 1, j)]
    for i, j in reversed(wanted):
        if i < j:
            k = cut[i, j]
            made[i, j] = _multiply(made[i, k], made[k + 1, j])
    return made[0, len(given) - 1]


@on(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Array:
    array = _matrix("cond", x)
    if 0 in array.shape:
        fail(ShapeError, f"cond of {array.type}", "an empty matrix has no condition")
    if p in (None, 2, -2):
        s: Array = svd(array, compute_uv=False)
        first, last = s[..., 0], s[..., -1]
        made = emit("div", last, first) if p == -2 else emit("div", first, last)
    else:
        _square("cond", array)
        made = emit("mul", norm(array, p, (-2, -1)), norm(inv(array), p, (-2, -1)))
    bad = emit("isnan", array)
    known = emit("not", emit("reduce_any", bad, axes=(array.ndim - 2, array.ndim - 1)))
    hidden = emit("and", emit("isnan", made), known)
    return emit("select", hidden, number(np.inf, made.dtype), made)


@on(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Array:
    x, split = traced(a), static_int(ind, "tensorinv: ind")
    if split <= 0:
        fail(ShapeError, f"tensorinv: ind={split}", "give a positive one")
    before, behind = x.shape[:split], x.shape[split:]
    flat = emit("reshape", x, shape=(prod(before), prod(behind)))
    return emit("reshape", inv(flat), shape=(*behind, *before))


@on(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Array:
    x, right = traced(a), traced(b)
    if axes is not None:
        order = [i for i in range(x.ndim) if i not in [k % x.ndim for k in axes]]
        order += [k % x.ndim for k in axes]
        x = emit("transpose", x, axes=tuple(order))
    shape = x.shape[right.ndim :]
    if prod(shape) != right.size:
        fail(
            ShapeError,
            f"tensorsolve: {x.type} and {right.type} do not fit",
            "as many elements in the right side as in the rest of the axes",
        )
    flat = emit("reshape", x, shape=(right.size, prod(shape)))
    made = solve(flat, emit("reshape", right, shape=(right.size,)))
    return emit("reshape", made, shape=shape)
