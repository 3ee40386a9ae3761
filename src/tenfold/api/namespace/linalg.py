"""tn.linalg: the standard's linear algebra, over the last two axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.api.namespace.dispatch import apply
from tenfold.api.namespace.elementwise import matmul
from tenfold.api.namespace.manipulation import matrix_transpose, tensordot, vecdot

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    """The triangle whose product with its transpose gives the matrix."""
    return apply(np.linalg.cholesky, x, upper=upper)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Cross products of vectors with three elements."""
    return apply(np.linalg.cross, x1, x2, axis=axis)


def det(x: Any, /) -> Any:
    """The determinant."""
    return apply(np.linalg.det, x)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """A diagonal of each matrix."""
    return apply(np.diagonal, x, offset, -2, -1)


def eigh(x: Any, /) -> Any:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices."""
    return apply(np.linalg.eigh, x)


def eigvalsh(x: Any, /) -> Any:
    """Eigenvalues of symmetric or Hermitian matrices."""
    return apply(np.linalg.eigvalsh, x)


def inv(x: Any, /) -> Any:
    """The inverse."""
    return apply(np.linalg.inv, x)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of each matrix."""
    return apply(np.linalg.matrix_norm, x, keepdims=keepdims, ord=ord)


def matrix_power(x: Any, n: int, /) -> Any:
    """The n-th power of each matrix."""
    return apply(np.linalg.matrix_power, x, n)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """How many singular values are not tiny beside the largest."""
    return apply(np.linalg.matrix_rank, x, rtol=rtol)


def outer(x1: Any, x2: Any, /) -> Any:
    """The products of each element of one vector with each of another."""
    return apply(np.linalg.outer, x1, x2)


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """The Moore-Penrose inverse."""
    return apply(np.linalg.pinv, x) if rtol is None else apply(np.linalg.pinv, x, rtol=rtol)


def qr(x: Any, /, *, mode: str = "reduced") -> Any:
    """An orthogonal matrix and a triangle whose product is the matrix."""
    return apply(np.linalg.qr, x, mode)


def slogdet(x: Any, /) -> Any:
    """The sign of the determinant, and the logarithm of its size."""
    return apply(np.linalg.slogdet, x)


def solve(x1: Any, x2: Any, /) -> Any:
    """The x with x1 @ x equal to x2."""
    return apply(np.linalg.solve, x1, x2)


def svd(x: Any, /, *, full_matrices: bool = True) -> Any:
    """Singular vectors and values."""
    return apply(np.linalg.svd, x, full_matrices)


def svdvals(x: Any, /) -> Any:
    """Singular values."""
    return apply(np.linalg.svdvals, x)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sum of a diagonal of each matrix."""
    return apply(np.trace, x, offset, -2, -1, dtype)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of each vector."""
    return apply(np.linalg.vector_norm, x, axis=axis, keepdims=keepdims, ord=ord)
