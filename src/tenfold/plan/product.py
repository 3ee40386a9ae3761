"""Products as elements: sums of products over reduced axes, for those too small for a library."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from math import prod
from typing import Any

from tenfold.kernel import Index
from tenfold.ops.elements import Read, Site
from tenfold.plan.access import Access
from tenfold.types import SHORT, Shape, TensorType

SMALL = 16384  # multiplications; more are the library's
LONG = 2048  # terms of a sum
LARGE = 1 << 19  # multiplications by a matrix that is read once
BLAS = ("f32", "f64", "c64", "c128")


def sides(rank: int, batch: Shape, contracted: Shape) -> list[int]:
    """The axes of an operand that are neither batched nor contracted."""
    return [a for a in range(rank) if a not in batch and a not in contracted]


def contract(site: Site) -> Generator[Read, Any, int]:
    """One element of a contraction."""
    kernel, given = site.kernel, site.attributes
    lhs, rhs = site.types
    over = [
        kernel.reduced(lhs.shape[a], site.stage, turn)
        for turn, a in enumerate(given["lhs_contract"])
    ]
    left, right = positions(site.position, [i for _, i in over], (lhs, rhs), given)
    a = yield Read(0, left)
    b = yield Read(1, right)
    short = SHORT[lhs.dtype]
    if not over:
        return kernel.op("and" if short == "bool" else "mul", short, a, b)
    numbers = [n for n, _ in over]
    if short == "bool":
        return kernel.reduce("any", numbers, kernel.op("and", short, a, b))
    if short in ("f16", "bf16"):
        wide = kernel.op("mul", "f32", kernel.cast(a, "f32"), kernel.cast(b, "f32"))
        return kernel.cast(kernel.reduce("sum", numbers, wide), short)
    return kernel.reduce("sum", numbers, kernel.op("mul", short, a, b))


def positions(
    position: tuple[Any, ...],
    over: list[Any],
    types: tuple[TensorType, TensorType],
    given: Mapping[str, Any],
) -> tuple[tuple[Index, ...], tuple[Index, ...]]:
    """Where the two operands are read."""
    count = len(given["lhs_batch"])
    batch, rest = position[:count], iter(position[count:])
    made = []
    for type, side in zip(types, ("lhs", "rhs"), strict=True):
        at: dict[int, Any] = dict(zip(given[f"{side}_batch"], batch, strict=True))
        at.update(zip(given[f"{side}_contract"], over, strict=True))
        for axis in range(type.rank):
            if axis not in at:
                at[axis] = next(rest)
        made.append(tuple(at[a] for a in range(type.rank)))
    return made[0], made[1]


def inline(types: Sequence[TensorType], result: TensorType, given: Mapping[str, Any]) -> bool:
    """Whether a product is better as a kernel than as a call of the library.

    Products of vectors are, and those of vectors and matrices where sums are long or the matrix is
    too large for the near caches. As products of matrices with one row or column, the library adds
    their terms one after the other, at half the speed or less: the error grows with their number.
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
    return min(left, right) == 1 and (max(left, right) == 1 or over >= LONG or work >= LARGE)


def product_access(
    types: Sequence[TensorType], result: TensorType, given: Mapping[str, Any]
) -> Access:
    """How an inline product reads: always from memory, since each element is read many times."""
    reduced = tuple(types[0].shape[a] for a in given["lhs_contract"])
    return Access(((), ()), (0, 0), (1, 1), reduced, weight=2)
