"""Products: which are kernels, being too small for a library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from tenfold.types import SHORT, Shape, TensorType

SMALL = 16384  # multiplications; more are the library's
LONG = 2048  # terms of a sum
LARGE = 1 << 19  # multiplications by a matrix that is read once
BLAS = ("f32", "f64", "c64", "c128")


def sides(rank: int, batch: Shape, contracted: Shape) -> list[int]:
    """The axes of an operand that are neither batched nor contracted."""
    return [a for a in range(rank) if a not in batch and a not in contracted]


def inline(types: Sequence[TensorType], result: TensorType, given: Mapping[str, Any]) -> bool:
    """Whether a product is better as a kernel than as a call of the library.

    Products of vectors are, and those of vectors and matrices where sums are long, the matrix is
    too large for the near caches, or there are several. As products of matrices with one row or
    column, the library adds their terms one after the other, at half the speed or less: the error
    grows with their number. Of several it does one after the other, and is no faster: so what a
    query makes of keys is the same kernels however many keys there are.
    """
    if SHORT[types[0].dtype] not in BLAS:
        return True
    over = prod(types[0].shape[a] for a in given["lhs_contract"])
    work = result.size * over
    if work <= SMALL:
        return True
    left, right = (
        prod(
            type.shape[a]
            for a in sides(type.rank, given[f"{side}_batch"], given[f"{side}_contract"])
        )
        for type, side in zip(types, ("lhs", "rhs"), strict=True)
    )
    several = left * right < result.size
    if min(left, right) != 1:
        return False
    return max(left, right) == 1 or several or over >= LONG or work >= LARGE
