"""Draws: bits, and the numbers that come from them at once: uniform, integers, normal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenfold.api.random.keys import MORE, U32, U64, block
from tenfold.errors import ShapeError, TypeMismatch, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.surface.anywhere import anywhere
from tenfold.trace.surface.emit import cast, dtype_of, emit, fail, shape_of, traced
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.types import BFLOAT16, DTYPES, F32, F64, KIND, DType, Shape

# How many random bits a number from 0 to 1 has: those of its fraction and one.
_DIGITS = {DTYPES["f16"]: 11, BFLOAT16: 8, F32: 24, F64: 53}


def shape_from(shape: Any) -> Shape:
    made = shape_of(shape)
    if any(n < 0 for n in made):
        fail(ShapeError, f"random: the shape {made} has a negative extent", "give 0 or more")
    return made


def pairs(name: str, key: Any, shape: Shape, more: int = 0) -> tuple[Array, Array]:
    """Two random words for each element: the blocks 0, 1, 2, … of the key."""
    size = math.prod(shape)
    if size <= 2**32:
        low, high = emit("iota", dtype=U32, shape=(size,), axis=0), number(more, U32)
    else:
        count = emit("iota", dtype=U64, shape=(size,), axis=0)
        low = cast(emit("and", count, number(2**32 - 1, U64)), U32)
        high = cast(emit("shr", count, number(32, U64)), U32)
        high = emit("or", high, number(more, U32))
    x, y = block(name, key, low, high)
    return emit("reshape", x, shape=shape), emit("reshape", y, shape=shape)


def _joined(x: Array, y: Array) -> Array:
    return emit("or", emit("shl", cast(x, U64), number(32, U64)), cast(y, U64))


@anywhere
def bits(key: Any, shape: Any = (), dtype: Any = np.uint32) -> Array:
    """Random bits as unsigned integers, every value as likely as any other.

    The first elements do not depend on how many there are.

    >>> import numpy as np, tenfold as tn
    >>> tn.random.bits(tn.random.key(0), (2,))
    array([1797259609, 1351547692], dtype=uint32)
    """
    wanted = dtype_of(dtype)
    if KIND[wanted] != "u":
        fail(TypeMismatch, f"random.bits of dtype {wanted}", "give an unsigned integer dtype")
    x, y = pairs("bits", key, shape_from(shape))
    if wanted == U64:
        return _joined(x, y)
    spare = 32 - wanted.itemsize * 8
    return cast(emit("shr", x, number(spare, U32)) if spare else x, wanted)


def fraction(name: str, key: Any, shape: Shape, dtype: DType, digits: int) -> Array:
    """Random integers of so many bits, as floats, which hold them exactly."""
    x, y = pairs(name, key, shape)
    if digits <= 32:
        return cast(emit("shr", x, number(32 - digits, U32)), dtype)
    return cast(emit("shr", _joined(x, y), number(64 - digits, U64)), dtype)


def float_dtype(name: str, dtype: Any) -> DType:
    wanted = dtype_of(dtype)
    if KIND[wanted] != "f":
        fail(TypeMismatch, f"random.{name} of dtype {wanted}", "give a float dtype")
    return wanted


def unit(name: str, key: Any, shape: Shape, dtype: DType) -> Array:
    """Numbers from 0 to 1, 1 left out, evenly spaced."""
    digits = _DIGITS[dtype]
    made = fraction(name, key, shape, dtype, digits)
    return emit("mul", made, number(2.0**-digits, dtype))


def middle(name: str, key: Any, shape: Shape, dtype: DType) -> Array:
    """Numbers between 0 and 1, both left out, evenly spaced around 1/2."""
    digits = _DIGITS[dtype] - 1
    made = fraction(name, key, shape, dtype, digits)
    half = emit("add", emit("add", made, made), number(1, dtype))
    return emit("mul", half, number(2.0 ** -(digits + 1), dtype))


def wide(dtype: DType) -> DType:
    """The dtype that sixteen-bit floats are computed in."""
    return F32 if dtype.itemsize == 2 else dtype


@anywhere
def uniform(
    key: Any, shape: Any = (), dtype: Any = np.float64, low: Any = 0.0, high: Any = 1.0
) -> Array:
    """Numbers from low to high, high left out.

    >>> import tenfold as tn
    >>> tn.random.uniform(tn.random.key(1), (3,)).round(3)
    array([0.118, 0.259, 0.456])
    """
    wanted = float_dtype("uniform", dtype)
    made = unit("uniform", key, shape_from(shape), wanted)
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        if not low <= high:
            fail(ValueProblem, f"random.uniform from {low} to {high}", "put the lesser end first")
        if (low, high) == (0, 1):
            return made
    first, last = traced(low, wanted), traced(high, wanted)
    scaled = emit("add", emit("mul", made, emit("sub", last, first)), first)
    # Rounding may reach the upper end, which is left out.
    return emit("min", scaled, emit("nextafter", last, first))


@anywhere
def integers(
    key: Any,
    low: Any,
    high: Any = None,
    shape: Any = (),
    dtype: Any = np.int64,
    endpoint: bool = False,
) -> Array:
    """Integers from low to high, high left out unless `endpoint`; from 0 to low if high is not
    given. Each is as likely as any other but for one part in 2**32 at most.

    >>> import tenfold as tn
    >>> tn.random.integers(tn.random.key(1), 1, 7, (4,))
    array([1, 2, 3, 6])
    """
    wanted, extents = dtype_of(dtype), shape_from(shape)
    if KIND[wanted] not in "iu":
        fail(TypeMismatch, f"random.integers of dtype {wanted}", "give an integer dtype")
    if high is None:
        low, high = 0, low
    if isinstance(low, int) and isinstance(high, int):
        limits, last = np.iinfo(wanted), high if endpoint else high - 1
        if last < low:
            fail(ValueProblem, f"random.integers from {low} to {high}", "there are none between")
        if low < limits.min or last > limits.max:
            fail(ValueProblem, f"random.integers from {low} to {high} of {wanted}", "widen dtype")
        span = last - low + 1
        first: Array = number(low % 2**64, U64)
        count = number(span % 2**64, U64)
        narrow, whole = span <= 2**32, span == 2**64
    else:
        first = cast(traced(low, wanted), U64)
        count = emit("sub", cast(traced(high, wanted), U64), first)
        if endpoint:
            count = emit("add", count, number(1, U64))
        narrow, whole = wanted.itemsize < 8, False
    x, y = (cast(word, U64) for word in pairs("integers", key, extents))
    if whole:
        offset = _joined(x, y)
    elif narrow:
        offset = _share(x, y, count)
    else:
        more = pairs("integers", key, extents, MORE)
        offset = _wide_share(_joined(x, y), _joined(*more), count)
        if not isinstance(low, int):  # a count of 0 stands for all 2**64
            every = emit("eq", count, number(0, U64))
            offset = emit("select", every, _joined(x, y), offset)
    return cast(emit("add", offset, first), wanted)


def _share(x: Array, y: Array, count: Array) -> Array:
    """The words x and y as a fraction of 64 binary digits, times a count up to 2**32."""
    by = number(32, U64)
    rest = emit("shr", emit("mul", y, count), by)
    return emit("shr", emit("add", emit("mul", x, count), rest), by)


def _wide_share(x: Array, y: Array, count: Array) -> Array:
    """The same of 128 digits, times a count up to 2**64."""
    high, low = _product(x, count), emit("mul", x, count)
    carry = _product(y, count)
    total = emit("add", low, carry)
    return emit("add", high, cast(emit("lt", total, low), U64))


def _product(a: Array, b: Array) -> Array:
    """The upper 64 bits of a product."""
    by, mask = number(32, U64), number(2**32 - 1, U64)
    a1, a0 = emit("shr", a, by), emit("and", a, mask)
    b1, b0 = emit("shr", b, by), emit("and", b, mask)
    low = emit("shr", emit("mul", a0, b0), by)
    one = emit("add", emit("mul", a1, b0), low)
    two = emit("add", emit("mul", a0, b1), emit("and", one, mask))
    top = emit("add", emit("mul", a1, b1), emit("shr", one, by))
    return emit("add", top, emit("shr", two, by))


@anywhere
def normal(
    key: Any, shape: Any = (), dtype: Any = np.float64, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Numbers of the normal distribution.

    >>> import tenfold as tn
    >>> tn.random.normal(tn.random.key(0), (2,)).round(3)
    array([-0.206, -0.483])
    """
    wanted = float_dtype("normal", dtype)
    made = standard_normal("normal", key, shape_from(shape), wide(wanted))
    return cast(scaled(made, loc, scale), wanted)


def standard_normal(name: str, key: Any, shape: Shape, dtype: DType) -> Array:
    half = middle(name, key, shape, dtype)
    even = emit("sub", emit("add", half, half), number(1, dtype))
    return emit("mul", emit("erf_inv", even), number(math.sqrt(2), dtype))


def scaled(made: Array, loc: Any, scale: Any) -> Array:
    """The numbers times a scale, and moved."""
    if not (isinstance(scale, (int, float)) and scale == 1):
        made = emit("mul", made, traced(scale, made.dtype))
    if not (isinstance(loc, (int, float)) and loc == 0):
        made = emit("add", made, traced(loc, made.dtype))
    return made
