"""Types of LLVM IR: their sizes, and the NumPy dtypes that hold their values.

Integers are held unsigned, i1 as bool, pointers as uint64. A value of a scalar type is an array
with one element a thread, or a NumPy scalar where all threads have the same; a vector has its lanes
on one more axis; a struct is a tuple.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from .errors import IRProblem

Value: TypeAlias = Any  # np.generic, np.ndarray, or a tuple of these
Rank: TypeAlias = "int | tuple[Rank, ...]"  # axes of a value that is the same for all threads

WIDTHS = (1, 8, 16, 32, 64)
FLOATS: dict[str, np.dtype[Any]] = {
    "half": np.dtype(np.float16),
    "bfloat": np.dtype(ml_dtypes.bfloat16),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}
UNSIGNED: dict[int, np.dtype[Any]] = {n: np.dtype(f"u{n}") for n in (1, 2, 4, 8)}  # by bytes
SIGNED: dict[int, np.dtype[Any]] = {n: np.dtype(f"i{n}") for n in (1, 2, 4, 8)}
_BOOL: np.dtype[Any] = np.dtype(np.bool_)


@dataclass(frozen=True)
class Type:
    """Any type; this class itself is void."""

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True)
class Int(Type):
    bits: int

    def __str__(self) -> str:
        return f"i{self.bits}"


@dataclass(frozen=True)
class Float(Type):
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Pointer(Type):
    space: int

    def __str__(self) -> str:
        return f"ptr addrspace({self.space})" if self.space else "ptr"


@dataclass(frozen=True)
class Vector(Type):
    count: int
    element: Type

    def __str__(self) -> str:
        return f"<{self.count} x {self.element}>"


@dataclass(frozen=True)
class Array(Type):
    count: int
    element: Type

    def __str__(self) -> str:
        return f"[{self.count} x {self.element}]"


@dataclass(frozen=True)
class Struct(Type):
    elements: tuple[Type, ...]

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self.elements)) + "}"


VOID = Type()
BOOL = Int(1)


def element(ty: Type) -> Type:
    """The element of a vector; a scalar type itself."""
    return ty.element if isinstance(ty, Vector) else ty


def lanes(ty: Type) -> int:
    return ty.count if isinstance(ty, Vector) else 1


def with_element(ty: Type, new: Type) -> Type:
    return Vector(ty.count, new) if isinstance(ty, Vector) else new


def bits(ty: Type) -> int:
    """Of an element."""
    ty = element(ty)
    if isinstance(ty, Int):
        return ty.bits
    return 8 * dtype(ty).itemsize


def dtype(ty: Type) -> np.dtype[Any]:
    """What holds an element."""
    ty = element(ty)
    if isinstance(ty, Int):
        return _BOOL if ty.bits == 1 else UNSIGNED[ty.bits // 8]
    if isinstance(ty, Float):
        return FLOATS[ty.name]
    if isinstance(ty, Pointer):
        return UNSIGNED[8]
    raise IRProblem(f"{ty} is no type of a value")


def rank(ty: Type) -> Rank:
    if isinstance(ty, Struct):
        return tuple(rank(one) for one in ty.elements)
    return int(isinstance(ty, Vector))


def stored(ty: Type) -> int:
    """Bytes that a load or store touches."""
    if isinstance(ty, Vector):
        if ty.element == BOOL:
            raise IRProblem(f"{ty} in memory is not supported")
        return ty.count * stored(ty.element)
    if isinstance(ty, Int):
        return max(1, ty.bits // 8)
    return dtype(ty).itemsize


def alignment(ty: Type) -> int:
    """As the ABI has it."""
    if isinstance(ty, Array):
        return alignment(ty.element)
    if isinstance(ty, Struct):
        return max((alignment(one) for one in ty.elements), default=1)
    return 1 << (stored(ty) - 1).bit_length()


def allocated(ty: Type) -> int:
    """Bytes from one element of an array to the next."""
    if isinstance(ty, Array):
        return ty.count * allocated(ty.element)
    if isinstance(ty, Struct):
        return field_offset(ty, len(ty.elements))
    return rounded_up(stored(ty), alignment(ty))


def field_offset(ty: Struct, number: int) -> int:
    """Where a field begins; of one past the last, the size of the whole."""
    at = 0
    for one in ty.elements[:number]:
        at = rounded_up(at, alignment(one)) + allocated(one)
    after = ty.elements[number] if number < len(ty.elements) else ty
    return rounded_up(at, alignment(after))


def rounded_up(size: int, step: int) -> int:
    return -(-size // step) * step


def chunk(size: int, align: int) -> int:
    """Bytes that an access moves at once: a whole number of them makes it, each is aligned."""
    return min(16, gcd(size, align))
