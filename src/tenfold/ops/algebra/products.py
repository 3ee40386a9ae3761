"""Products: which are kernels, being too small for a library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from tenfold.types import DTYPES, KIND, SHORT, DType, Shape, TensorType

SMALL = 16384  # multiplications; more are the library's
READ = 8192  # elements of a matrix that is read once, to multiply a vector
TERMS = 32  # of a sum; with fewer the library is slow
SERIAL = 512  # terms of a product with a vector that are added one after the other, at most
SIDES = ("lhs", "rhs")
BLAS = ("f32", "f64", "c64", "c128")
WHOLE = ("i32", "u32", "i64", "u64")  # dtypes of integers that large products are computed in
# What large products of other dtypes are computed in: sixteen-bit floats add up in f32 anyway, and
# of bools it is asked whether any term is 1.
WIDER = {"f16": "f32", "bf16": "f32", "bool": "f32"}
NARROW = ("i8", "u8", "i16")  # dtypes of integers of which products are added up in 32 bits
REUSED = 32  # times that each element is multiplied at least: it is cast first


def sides(rank: int, batch: Shape, contracted: Shape) -> list[int]:
    """The axes of an operand that are neither batched nor contracted."""
    return [a for a in range(rank) if a not in batch and a not in contracted]


def wider(
    types: Sequence[TensorType], result: TensorType, given: Mapping[str, Any]
) -> DType | None:
    """The dtype that a product is cast to for the library, None for one that is not."""
    dtype = WIDER.get(SHORT[result.dtype])
    if dtype is None or any(n < REUSED for n in _extents(types, given)):
        return None
    return None if inline(*_cast(types, result), given) else DTYPES[dtype]


def narrow(
    types: Sequence[TensorType], result: TensorType, given: Mapping[str, Any]
) -> tuple[DType, list[DType]] | None:
    """The integers of 32 bits that a product of narrow ones is added up in, and what its operands
    are then; None for one that is better as it is. `types` are those that the operands have, or had
    before they were cast to the result's."""
    size = result.dtype.itemsize
    if KIND[result.dtype] not in "iu":
        return None
    read = [t.dtype for t in types]
    if size <= 2:  # no other bits are asked for: signs are all one
        read = [DTYPES["i16"] if SHORT[d] == "u16" else d for d in read]
    if any(SHORT[d] not in NARROW for d in read):
        return None
    dtype = result.dtype if size == 4 else DTYPES["i32"]
    if size == 8:  # what 32 bits hold is exact
        most, signed = _most(types, given), any(KIND[d] == "i" for d in read)
        dtype = DTYPES["i32" if signed else "u32"]
        if most >= 1 << (31 if signed else 32):
            return None
    return None if inline_narrow(types, result, given) else (dtype, read)


def exact(
    types: Sequence[TensorType], result: TensorType, given: Mapping[str, Any]
) -> DType | None:
    """The float dtype in which a product of integers is exact, None where it is better as it is.
    `types` are those that the operands have, or had before they were cast to the result's."""
    if KIND[result.dtype] not in "iu" or any(n < REUSED for n in _extents(types, given)):
        return None
    if any(KIND[t.dtype] not in "iu" or t.dtype.itemsize > 2 for t in types):
        return None
    size, added = result.dtype.itemsize, all(SHORT[t.dtype] in NARROW for t in types)
    if size <= 2 or (size == 4 and added) or _most(types, given) > 1 << 53:
        return None
    wide, *operands = (TensorType(DTYPES["f64"], t.shape) for t in (result, *types))
    return None if inline(operands, wide, given) else DTYPES["f64"]


def _most(types: Sequence[TensorType], given: Mapping[str, Any]) -> int:
    """No sum of products of such integers is farther from 0."""
    greatest = [1 << 8 * t.dtype.itemsize - (KIND[t.dtype] == "i") for t in types]
    terms: int = prod(types[0].shape[a] for a in given["lhs_contract"])
    return prod(greatest) * terms


def serial(types: Sequence[TensorType], result: TensorType, given: Mapping[str, Any]) -> float:
    """How many terms of a product are added one after the other at most, before what comes of them
    is: by the library all, but of products with vectors. 1 for a kernel. Sixteen-bit floats may be
    multiplied by a library that adds them up in f32."""
    if SHORT[result.dtype] in ("f16", "bf16"):
        types, result = _cast(types, result)
    if inline(types, result, given):
        return 1
    left, right = _extents(types, given)
    return SERIAL if left == 1 or right == 1 else math.inf


def by_library(
    types: Sequence[TensorType],
    result: TensorType,
    given: Mapping[str, Any],
    multiplied: frozenset[str] = frozenset(),
) -> bool:
    """Whether a product is the library's as it is. `multiplied` are the dtypes, of those that
    others cast first, that it multiplies as they are: for their products the same holds as for
    those of what they would be cast to, but that nothing need be read often to be worth a cast."""
    if SHORT[result.dtype] not in multiplied:
        return not inline(types, result, given)
    return not inline(*_cast(types, result), given)


def _cast(types: Sequence[TensorType], result: TensorType) -> tuple[list[TensorType], TensorType]:
    """The types of a product in the wider dtype that it is added up in."""
    dtype = DTYPES[WIDER[SHORT[result.dtype]]]
    return [TensorType(dtype, t.shape) for t in types], TensorType(dtype, result.shape)


def _extents(types: Sequence[TensorType], given: Mapping[str, Any]) -> Iterator[int]:
    """The rows of the left operand of a product, and the columns of the right one."""
    for type, side in zip(types, SIDES, strict=True):
        free = sides(type.rank, given[f"{side}_batch"], given[f"{side}_contract"])
        yield prod(type.shape[a] for a in free)


def inline(types: Sequence[TensorType], result: TensorType, given: Mapping[str, Any]) -> bool:
    """Whether a product is better as a kernel than as a call of the library.

    Small ones are, and products of vectors. So are several products of vectors and matrices: the
    library would do one after the other, and is no faster: what a query makes of keys is the same
    kernels however many keys there are. Of integers, which the library does not multiply, all with
    vectors are.
    """
    short = SHORT[types[0].dtype]
    if short not in BLAS and short not in WHOLE:
        return True
    over = prod(types[0].shape[a] for a in given["lhs_contract"])
    work = result.size * over
    left, right = _extents(types, given)
    if short in WHOLE:
        return bool(left == 1 or right == 1 or left * right * over <= 16 * SMALL)
    if left != 1 and right != 1:
        return bool(work <= SMALL)
    several = left * right < result.size
    return bool((left == 1 and right == 1) or several or work <= READ or over < TERMS)


def inline_narrow(
    types: Sequence[TensorType], result: TensorType, given: Mapping[str, Any]
) -> bool:
    """The same of a product of narrow integers that is added up in 32 bits: with a vector each
    element is read once, and little is done before operands are packed."""
    over = prod(types[0].shape[a] for a in given["lhs_contract"])
    left, right = _extents(types, given)
    return bool(left == 1 or right == 1 or left * right * over <= SMALL)


def turned(rank: int, batch: Sequence[int], over: Sequence[int], *, last: bool) -> bool:
    """Whether an operand lies transposed: its contracted axes are not where BLAS has them, last
    on the left and first on the right."""
    free = [a for a in range(rank) if a not in batch and a not in over]
    if not free or not over:
        return False
    return (min(over) < min(free)) == last
