"""Products: which are kernels, being too small for a library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from tenfold.types import SHORT, Shape, TensorType

SMALL = 16384  # multiplications; more are the library's
READ = 8192  # elements of a matrix that is read once, to multiply a vector
TERMS = 32  # of a sum; with fewer the library is slow
SIDES = ("lhs", "rhs")
BLAS = ("f32", "f64", "c64", "c128")


def sides(rank: int, batch: Shape, contracted: Shape) -> list[int]:
    """The axes of an operand that are neither batched nor contracted."""
    return [a for a in range(rank) if a not in batch and a not in contracted]


def inline(types: Sequence[TensorType], result: TensorType, given: Mapping[str, Any]) -> bool:
    """Whether a product is better as a kernel than as a call of the library.

    Small ones are, and products of vectors. So are several products of vectors and matrices: the
    library would do one after the other, and is no faster: what a query makes of keys is the same
    kernels however many keys there are.
    """
    if SHORT[types[0].dtype] not in BLAS:
        return True
    over = prod(types[0].shape[a] for a in given["lhs_contract"])
    work = result.size * over
    left, right = (
        prod(
            type.shape[a]
            for a in sides(type.rank, given[f"{side}_batch"], given[f"{side}_contract"])
        )
        for type, side in zip(types, SIDES, strict=True)
    )
    if left != 1 and right != 1:
        return bool(work <= SMALL)
    several = left * right < result.size
    return bool((left == 1 and right == 1) or several or work <= READ or over < TERMS)
