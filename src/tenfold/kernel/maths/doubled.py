"""Arithmetic on pairs of floats whose unrounded sum carries twice the precision."""

from __future__ import annotations

from tenfold.frozen import frozen
from tenfold.kernel.maths.values import Value, form


@frozen
class Pair:
    """high + low, with |low| at most a few ulp of high."""

    high: Value
    low: Value


def split(a: Value) -> tuple[Value, Value]:
    """Two halves of few enough bits that products of halves are exact (Veltkamp)."""
    scaled = a * float(2 ** ((form(a).mantissa + 2) // 2) + 1)
    high = scaled - (scaled - a)
    return high, a - high


def product(a: Value, b: Value | float) -> Pair:
    """a · b exactly, unless it under- or overflows."""
    other = a.like(b)
    high = a * other
    if a.body.fma:
        return Pair(high, a.fma(other, -high))
    a1, a2 = split(a)
    b1, b2 = (a1, a2) if other is a else split(other)
    return Pair(high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2)


def total(a: Value, b: Value) -> Pair:
    """a + b exactly, in any order of size (Knuth)."""
    high = a + b
    part = high - a
    return Pair(high, (a - (high - part)) + (b - part))


def ordered_total(a: Value | float, b: Value) -> Pair:
    """a + b exactly, for |a| ≥ |b| or a = 0 (Dekker)."""
    first = b.like(a)
    high = first + b
    return Pair(high, b - (high - first))


def times(a: Pair, b: Pair) -> Pair:
    exact = product(a.high, b.high)
    return Pair(exact.high, a.high.fma(b.low, a.low.fma(b.high, exact.low)))


def scaled_by(a: Pair, b: Value | float) -> Pair:
    exact = product(a.high, b)
    return Pair(exact.high, a.low.fma(b, exact.low))


def plus(a: Pair, b: Pair) -> Pair:
    """a + b for |a| ≥ |b|."""
    exact = ordered_total(a.high, b.high)
    return Pair(exact.high, exact.low + (a.low + b.low))


def constant(x: Value, high: float, low: float) -> Pair:
    return Pair(x.like(high), x.like(low))
