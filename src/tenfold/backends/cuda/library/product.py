"""Products of matrices: by cublasLt, or by functions of our own.

The rule is a function of shapes, dtypes and the target alone.

- A product of a real matrix and a vector is our own (`vectors`) where the matrix is long along the
  result: from `LONG` rows on, or where columns lie apart `APART`. So is a batch of `MANY` tiny
  products, of no more than `TINY` rows, columns and terms. The library takes longer for both.
- All others are the library's, if there is one and it has the dtype; of products of bytes those
  that it has, of arrays that begin at multiples of 16 bytes.
- Else a product with a vector is our own way for such, unless there are fewer than `WIDE` columns,
  apart, of more than `DEPTH` terms; and all others go by tiles (`product_tiles`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.cuda.library.cublas_product import CublasProduct, has_library
from tenfold.backends.cuda.library.product_tiles import tiles_routine
from tenfold.backends.cuda.library.routine import Given, GpuRoutine, of_library
from tenfold.backends.cuda.library.vectors import has_vector, vector_routine
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.matrices import MatrixProduct, matrices_of
from tenfold.types import TensorType

LONG, APART = 128, 1024  # elements of the result of a product with a vector
MANY, TINY = 128, 32
WIDE, DEPTH = 256, 2048


def product_routine(
    types: Sequence[TensorType],
    result: TensorType,
    given: Given,
    *,
    target: CudaTarget,
    aligned: bool = False,
) -> GpuRoutine | None:
    """The routine of a contraction that is laid out as libraries have it; `aligned` if its arrays
    begin at multiples of 16 bytes."""
    product = matrices_of(types, given)
    return None if product is None else _routine(product, target, aligned)


def product_scratch(types: Sequence[TensorType], given: Given, target: CudaTarget) -> int | None:
    """The bytes of its scratch memory, wherever its arrays begin; None where there is no
    routine."""
    product = matrices_of(types, given)
    if product is None:
        return None
    found = [_routine(product, target, aligned) for aligned in (False, True)]
    return max((one.scratch for one in found if one is not None), default=None)


def product_words(types: Sequence[TensorType], given: Given, target: CudaTarget) -> str:
    """What a plan says of a product: which library makes it, if one does."""
    product = matrices_of(types, given)
    found = None if product is None else _routine(product, target, True)
    if found is None or not found.made_by:
        return ""
    return f"{product}: by {found.made_by}, whose bits are its own"


def _routine(p: MatrixProduct, target: CudaTarget, aligned: bool) -> GpuRoutine | None:
    if not _is_ours(p) and target.cublas and has_library(p, aligned):
        call = CublasProduct(p, target.cublas)
        return of_library(call, call.scratch)
    if has_vector(p) and not (_lies_apart(p) and max(p.m, p.n) < WIDE and p.k > DEPTH):
        return vector_routine(p, aligned)
    return tiles_routine(p, aligned)


def _is_ours(p: MatrixProduct) -> bool:
    """Whether a product is our own even where there is a library."""
    if has_vector(p):
        return max(p.m, p.n) >= (APART if _lies_apart(p) else LONG)
    return p.batch >= MANY and max(p.m, p.n, p.k) <= TINY


def _lies_apart(p: MatrixProduct) -> bool:
    """Whether the matrix of a product with a vector has results side by side, and terms apart."""
    return p.left if p.n == 1 else not p.right
