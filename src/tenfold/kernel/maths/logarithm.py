"""log, log2, log10, log1p and logaddexp.

All rest on one reduction, x = 2**e (1 + f) with 1 + f between √½ and √2, and log(1+f) = f + tail.
"""

from __future__ import annotations

import math

from tenfold.frozen import frozen
from tenfold.kernel.maths.coefficients import TABLE
from tenfold.kernel.maths.doubled import ordered_total, product, total
from tenfold.kernel.maths.exponential import TINY, exp
from tenfold.kernel.maths.values import (
    Value,
    as_float,
    form,
    poly,
    power_of_two,
    replaceable,
)

ROOT_HALF = {"f32": 0x3F3504F3, "f64": 0x3FE6A09E667F3BCD}  # the bits of √½
INF = float("inf")


@frozen
class Parts:
    """x = 2**e (1 + f), e as a float."""

    e: Value
    f: Value


@replaceable
def parts(x: Value) -> Parts:
    """The exponent and fraction of a positive finite x; anything for other x."""
    shift = form(x).mantissa + 1
    small = x.lt(2.0 ** (1 - form(x).bias))
    # The sum with 0 has -0 lose its sign.
    n, f = normal_parts(small.where(x.fma(2.0**shift, 0.0), x))
    e = as_float(n)
    return Parts(e - small.where(e.like(float(shift)), 0.0), f)


def normal_parts(x: Value) -> tuple[Value, Value]:
    """The exponent, as bits, and the fraction of a positive normal x."""
    f = form(x)
    bits = x.bits()
    if x.dtype == "f32":
        apart = bits - ROOT_HALF["f32"]
        n = (apart.signed() >> f.mantissa).unsigned()
        return n, (bits - (apart & -(1 << f.mantissa))).floats() - 1.0
    # The exponent with a bias that keeps it positive, as there is no arithmetic shift for i64.
    high_bias = (f.bias + 1) << f.mantissa
    biased = (bits + (high_bias - ROOT_HALF[x.dtype])) >> f.mantissa
    n = biased - (f.bias + 1)
    return n, (bits - (n << f.mantissa)).floats() - 1.0


def tail(f: Value) -> Value:
    """log(1 + f) - f."""
    z = f * f
    if f.dtype == "f32":
        return z.fma(-0.5, poly(f, TABLE["log", "f32"]) * (f * z))
    s = f / (f + 2.0)
    half, square = z * 0.5, s * s
    rest = poly(square, TABLE["log", "f64"]) * (square + square)
    return s.fma(half + rest, -half)


def with_edges(x: Value, y: Value) -> Value:
    """log's result y, put right where x is not positive and finite."""
    y = x.eq(INF).where(x, y)
    y = x.eq(0.0).where(-INF, y)
    return x.ge(0.0).where(y, float("nan"))


@replaceable
def beyond(x: Value, factor: float) -> Value:
    """A factor of e: infinite where x is 0 or inf."""
    return (x + x).eq(x).where(x.like(INF), 0.0).at_least(factor)


def log(x: Value) -> Value:
    high, low = TABLE["ln2", x.dtype]
    p = parts(x)
    rest = p.f + p.e.fma(low, tail(p.f))
    if x.dtype == "f64":
        return with_edges(x, p.e.fma(high, rest))
    bits = p.e.fma(beyond(x, high), rest).bits()  # all set they are a NaN, and cost no selection
    return (bits | x.ge(0.0).where(bits.like(0), -1)).floats()


def log2(x: Value) -> Value:
    high, low = TABLE["log2_e", x.dtype]
    p = parts(x)
    main = product(p.f, high)
    fine = main.low + p.f.fma(low, tail(p.f) * high)
    near = ordered_total(p.e, main.high)
    return with_edges(x, near.high + (near.low + fine))


def log10(x: Value) -> Value:
    high, low = TABLE["log10_e", x.dtype]
    two_high, two_low = TABLE["log10_2", x.dtype]
    p = parts(x)
    main = product(p.f, high)
    fine = main.low + p.e.fma(two_low, p.f.fma(low, tail(p.f) * high))
    near = ordered_total(p.e * two_high, main.high)
    return with_edges(x, near.high + (near.low + fine))


def log_of_sum(u: Value, c: Value) -> Value:
    """log(u + c) for a normal u and a c within its last bit, without log's edges."""
    high, low = TABLE["ln2", u.dtype]
    n, f = normal_parts(u)
    e = as_float(n)
    # 2**(1-n) comes out as 0 for the largest exponent, where c does not count.
    f = (c * 0.5).fma(power_of_two(1 - n, u.dtype), f)
    return e.fma(high, f + e.fma(low, tail(f)))


def log1p(x: Value) -> Value:
    one = total(x.like(1.0), x)
    y = with_edges(one.high, log_of_sum(one.high, one.low))
    return abs(x).lt(TINY).where(x, y)


def logaddexp(a: Value, b: Value) -> Value:
    if a.dtype == "f32":
        return logaddexp(a.wide(), b.wide()).narrow()
    larger = a.gt(b).where(a, b)
    e = exp(-abs(a - b))
    y = larger + log1p(e)
    # Equal infinities differ by NaN; a NaN in either makes the difference NaN and so the sum.
    return a.eq(b).where(a + math.log(2.0), y)
