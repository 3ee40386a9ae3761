"""Contractions as products of matrices: how many, their extents, and how each operand lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from tenfold.frozen import frozen
from tenfold.ops.algebra.products import turned
from tenfold.types import SHORT, TensorType


@frozen
class MatrixProduct:
    """So many products of an m by k and a k by n matrix, row after row in memory. `left` and
    `right`: that operand lies transposed. `dtypes` are those of both operands and of the result.

    >>> from tenfold.types import parse_type
    >>> types = parse_type("f32[7,2,3]"), parse_type("f32[7,5,3]")
    >>> given = {"lhs_batch": (0,), "rhs_batch": (0,), "lhs_contract": (2,), "rhs_contract": (2,)}
    >>> print(matrices_of(types, given))
    7 products of f32: 2×3 by 3×5 transposed
    """

    dtypes: tuple[str, str, str]
    batch: int
    m: int
    n: int
    k: int
    left: bool
    right: bool

    @property
    def dtype(self) -> str:
        """Of the result."""
        return self.dtypes[2]

    def __str__(self) -> str:
        many = f"{self.batch} products" if self.batch > 1 else "a product"
        turns = [" transposed" if turn else "" for turn in (self.left, self.right)]
        a, b, made = self.dtypes
        of = made if a == b == made else f"{a} and {b} in {made}"
        return f"{many} of {of}: {self.m}×{self.k}{turns[0]} by {self.k}×{self.n}{turns[1]}"


def matrices_of(types: Sequence[TensorType], given: Mapping[str, Any]) -> MatrixProduct | None:
    """A contraction that is laid out as libraries have it; None for one of nothing."""
    lhs, rhs = types
    batch = prod(lhs.shape[a] for a in given["lhs_batch"])
    k = prod(lhs.shape[a] for a in given["lhs_contract"])
    if not lhs.size or not rhs.size:
        return None
    left = turned(lhs.rank, given["lhs_batch"], given["lhs_contract"], last=True)
    right = turned(rhs.rank, given["rhs_batch"], given["rhs_contract"], last=False)
    made = given.get("dtype", SHORT[lhs.dtype])
    dtypes = SHORT[lhs.dtype], SHORT[rhs.dtype], made
    return MatrixProduct(
        dtypes, batch, lhs.size // (batch * k), rhs.size // (batch * k), k, left, right
    )
