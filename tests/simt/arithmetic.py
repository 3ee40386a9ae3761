"""Intrinsics that compute: one value or vector from others, lane by lane or over all lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import fma as exact
from .types import SIGNED, UNSIGNED, Value
from .values import saturated, short_fma

_NAN = {4: np.uint32(0x7FFFFFFF), 2: np.uint16(0x7FFF)}  # by the bytes of a float


def computed(x: Value) -> Value:
    """A float as the chip computes it: of up to 32 bits there is one NaN, whatever made it, and
    whichever bits and sign NaN among the operands had."""
    raw = _NAN.get(x.dtype.itemsize)
    if raw is None:
        return x
    nan = x != x
    return np.where(nan, raw.view(x.dtype), x)[()] if np.any(nan) else x


def computing(function: Callable[..., Value]) -> Callable[..., Value]:
    return lambda *args: computed(function(*args))


def beside(function: Callable[..., Value]) -> Callable[..., Value]:
    """The float next to what a function gives, farther from zero; of subnormal numbers itself."""

    def made(*args: Value) -> Value:
        x = function(*args)
        plain = np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny)
        farther = np.nextafter(x, np.copysign(x.dtype.type(np.inf), x))
        return np.where(plain & np.isfinite(farther), farther, x)[()]

    return made


def flipped(x: Value, mask: int) -> Value:
    return x ^ x.dtype.type(mask)


def masked(x: Value, mask: int) -> Value:
    return x & x.dtype.type(mask)


def fma(a: Value, b: Value, c: Value) -> Value:
    return exact.fma(a, b, c) if a.dtype.itemsize > 2 else short_fma(a, b, c)


def same(x: Value) -> Value:
    return x


def copysign(x: Value, sign: Value) -> Value:
    kind = UNSIGNED[x.dtype.itemsize]
    top = kind.type(1 << (8 * kind.itemsize - 1))
    return ((x.view(kind) & ~top) | (sign.view(kind) & top)).view(x.dtype)


def fabs(x: Value) -> Value:
    kind = UNSIGNED[x.dtype.itemsize]
    return (x.view(kind) & kind.type((1 << (8 * kind.itemsize - 1)) - 1)).view(x.dtype)


def fneg(x: Value) -> Value:
    kind = UNSIGNED[x.dtype.itemsize]
    return (x.view(kind) ^ kind.type(1 << (8 * kind.itemsize - 1))).view(x.dtype)


def minimum(a: Value, b: Value) -> Value:
    """NaN if any is, and -0 is less than +0."""
    return _least(np.minimum(a, b), a, b)


def maximum(a: Value, b: Value) -> Value:
    return _greatest(np.maximum(a, b), a, b)


def minnum(a: Value, b: Value) -> Value:
    """Of a number and NaN, the number."""
    return _least(np.fmin(a, b), a, b)


def maxnum(a: Value, b: Value) -> Value:
    return _greatest(np.fmax(a, b), a, b)


def _least(found: Value, a: Value, b: Value) -> Value:
    """With the sign of zeros: equal numbers differ in nothing else."""
    kind = UNSIGNED[a.dtype.itemsize]
    return np.where(a == b, (a.view(kind) | b.view(kind)).view(a.dtype), found)[()]


def _greatest(found: Value, a: Value, b: Value) -> Value:
    kind = UNSIGNED[a.dtype.itemsize]
    return np.where(a == b, (a.view(kind) & b.view(kind)).view(a.dtype), found)[()]


def signed(operation: np.ufunc) -> Callable[[Value, Value], Value]:
    def made(a: Value, b: Value) -> Value:
        kind = SIGNED[a.dtype.itemsize]
        return operation(a.view(kind), b.view(kind)).view(a.dtype)

    return made


def count_ones(x: Value) -> Value:
    return np.bitwise_count(x).astype(x.dtype)


def leading_zeros(x: Value) -> Value:
    kind, width = x.dtype, 8 * x.dtype.itemsize
    by = 1
    while by < width:  # copy the highest bit into all below it
        x = x | x >> kind.type(by)
        by *= 2
    return (width - np.bitwise_count(x)).astype(kind)


def trailing_zeros(x: Value) -> Value:
    one = x.dtype.type(1)
    return np.bitwise_count(~x & (x - one)).astype(x.dtype)


def magnitude(x: Value) -> Value:
    kind = SIGNED[x.dtype.itemsize]
    return np.abs(x.view(kind)).view(x.dtype)


def byte_swap(x: Value) -> Value:
    return np.asarray(x).byteswap()[()]


def reverse_bits(x: Value) -> Value:
    raw = np.ascontiguousarray(x)[..., None].view(np.uint8)
    turned = np.unpackbits(raw, axis=-1, bitorder="little")[..., ::-1]
    made = np.packbits(turned, axis=-1, bitorder="little")
    return made.view(x.dtype).reshape(np.shape(x))[()]


def funnel_left(a: Value, b: Value, by: Value) -> Value:
    width = 8 * a.dtype.itemsize
    by = by % a.dtype.type(width)
    one = a.dtype.type(1)
    return (a << by) | (b >> one >> (a.dtype.type(width - 1) - by))


def funnel_right(a: Value, b: Value, by: Value) -> Value:
    width = 8 * a.dtype.itemsize
    by = by % a.dtype.type(width)
    one = a.dtype.type(1)
    return (b >> by) | (a << one << (a.dtype.type(width - 1) - by))


def high_product(a: Value, b: Value) -> Value:
    """The upper half of a product of unsigned integers."""
    width = 8 * a.dtype.itemsize
    if width < 64:
        wide = a.astype(np.uint64) * b.astype(np.uint64)
        return (wide >> np.uint64(width)).astype(a.dtype)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = a >> half, a & low, b >> half, b & low
    first = a1 * b0 + (a0 * b0 >> half)
    second = a0 * b1 + (first & low)
    return a1 * b1 + (first >> half) + (second >> half)


def signed_high_product(a: Value, b: Value) -> Value:
    zero = a.dtype.type(0)
    top = a.dtype.type(8 * a.dtype.itemsize - 1)
    made = high_product(a, b) - np.where(a >> top, b, zero) - np.where(b >> top, a, zero)
    return made[()]


def with_overflow(what: str) -> Callable[[Value, Value], Value]:
    """A sum, difference or product, and whether it was cut."""
    sign, operation = what[0], what[1:]

    def made(a: Value, b: Value) -> Value:
        result = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[operation](a, b)
        if operation == "mul":
            if sign == "u":
                return result, high_product(a, b) != 0
            # All bits of the upper half must be copies of the sign.
            top = result.dtype.type(8 * result.dtype.itemsize - 1)
            copies = np.negative(result >> top)
            return result, signed_high_product(a, b) != copies
        if sign == "u":
            return result, (result < a if operation == "add" else a < b)
        kind = SIGNED[result.dtype.itemsize]
        other = ~(a ^ b) if operation == "add" else a ^ b
        return result, (other & (a ^ result)).view(kind) < 0

    return made


def saturating(what: str) -> Callable[[Value, Value], Value]:
    """uadd.sat and the like."""
    plain = with_overflow(what)

    def made(a: Value, b: Value) -> Value:
        result, over = plain(a, b)
        kind = a.dtype
        if what[0] == "u":
            limit = np.iinfo(kind).max if what == "uadd" else 0
            return np.where(over, kind.type(limit), result)[()]
        least = kind.type(1 << (8 * kind.itemsize - 1))
        limit = np.where(a.view(SIGNED[kind.itemsize]) < 0, least, ~least)
        return np.where(over, limit, result)[()]

    return made


def to_integer_saturated(width: int, sign: bool) -> Callable[[Value], Value]:
    return lambda x: saturated(x, width, sign)


def reduced(operation: np.ufunc, sign: bool = False) -> Callable[[Value], Value]:
    """Over the lanes of integers."""

    def made(x: Value) -> Value:
        given = x.view(SIGNED[x.dtype.itemsize]) if sign else x
        return operation.reduce(given, axis=-1, dtype=given.dtype).view(x.dtype)

    return made


def folded(operation: Callable[[Value, Value], Value]) -> Callable[[Value], Value]:
    """Over the lanes, one after the other."""

    def made(x: Value) -> Value:
        held, *rest = x.T
        for one in rest:
            held = operation(held, one)
        return held

    return made


def folded_from(operation: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """Over the lanes, in order, beginning with another value."""

    def made(held: Value, x: Value) -> Value:
        for one in x.T:
            held = operation(held, one)
        return held

    return made


def approximate(what: str, flush: bool) -> Callable[..., Value]:
    """What the hardware computes by tables, here rounded from doubles."""
    functions: dict[str, Callable[..., Any]] = {
        "ex2": np.exp2,
        "lg2": np.log2,
        "rcp": np.reciprocal,
        "sqrt": np.sqrt,
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "sin": np.sin,
        "cos": np.cos,
        "tanh": np.tanh,
        "div": np.divide,
    }

    def flushed(x: Value) -> Value:
        tiny = np.finfo(x.dtype).tiny
        return np.where(np.abs(x) < tiny, np.copysign(x.dtype.type(0), x), x)[()] if flush else x

    def made(*args: Value) -> Value:
        kind = args[0].dtype
        result = functions[what](*(flushed(x).astype(np.float64) for x in args))
        return flushed(result.astype(kind))

    return made
