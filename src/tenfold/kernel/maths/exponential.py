"""exp and what is made of it: exp2, expm1, sigmoid, tanh, sinh, cosh.

All rest on one reduction, x = n ln 2 + r with |r| ≤ ln(2)/2, and one polynomial for expm1(r).
"""

from __future__ import annotations

import math

from tenfold.frozen import frozen
from tenfold.kernel.maths.coefficients import TABLE
from tenfold.kernel.maths.values import (
    Value,
    Whole,
    poly,
    power_of_two,
    replaceable,
    rounded,
    scaled,
)

LN2 = math.log(2.0)


@frozen
class Limits:
    """Where results stop changing."""

    overflow: float  # exp is inf above
    underflow: float  # exp is 0 below
    minus_one: float  # expm1 is -1 below
    tanh: float  # tanh is 1 above


LIMITS = {
    "f32": Limits(89.0, -104.0, -18.0, 9.1),
    "f64": Limits(710.0, -746.0, -38.0, 19.1),
}
TINY = 2.0**-60  # below it odd functions return their argument, and keep its sign


def reduce(x: Value) -> tuple[Value, Whole]:
    """r and n of x = n ln 2 + r."""
    high, low = TABLE["ln2", x.dtype]
    whole = rounded(x, 1 / LN2)
    return whole.real.fma(-low, whole.real.fma(-high, x)), whole


def exp_part(r: Value) -> Value:
    """exp(r) for a reduced r."""
    return poly(r, TABLE["expm1", r.dtype]).fma(r, 1.0).fma(r, 1.0)


def expm1_part(r: Value) -> Value:
    """expm1(r) for a reduced r."""
    return poly(r, TABLE["expm1", r.dtype]).fma(r * r, r)


@replaceable
def exp(x: Value) -> Value:
    limits = LIMITS[x.dtype]
    r, whole = reduce(x.at_most(limits.overflow).at_least(limits.underflow))
    return scaled(exp_part(r), whole)


def exp2(x: Value) -> Value:
    bounds = (129.0, -151.0) if x.dtype == "f32" else (1025.0, -1076.0)
    inside = x.at_most(bounds[0]).at_least(bounds[1])
    whole = rounded(inside, 1.0)
    return scaled(exp_part((inside - whole.real) * LN2), whole)


def halves_of_expm1(x: Value, halvings: int) -> Value:
    """expm1(x) / 2**halvings, which does not overflow where expm1 would.

    The last bit of r counts where 2**n - 1 nearly cancels it, so what r lost is added again.
    """
    high, low = TABLE["ln2", x.dtype]
    whole = rounded(x, 1 / LN2)
    first = whole.real.fma(-high, x)
    r = whole.real.fma(-low, first)
    lost = whole.real.fma(-low, first - r)
    scale = power_of_two(whole.n - halvings, x.dtype)
    rest = poly(r, TABLE["expm1", r.dtype]).fma(r * r, lost)
    return rest.fma(scale, r.fma(scale, scale - 0.5**halvings))


def expm1(x: Value) -> Value:
    limits = LIMITS[x.dtype]
    half = halves_of_expm1(x.at_most(limits.overflow).at_least(limits.minus_one), 1)
    return abs(x).lt(TINY).where(x, half + half)


def sigmoid(x: Value) -> Value:
    """1 / (1 + exp(-x)), from exp(-|x|), which never overflows and fades to 0 gradually."""
    r, whole = reduce((-abs(x)).at_least(LIMITS[x.dtype].underflow))
    e = scaled(exp_part(r), whole)
    below = e + 1.0
    y = x.lt(0.0).where(e, 1.0) / below
    # What below has too much, relative to 1: without it the error could pass 2 ulp.
    return y.fma((below - 1.0) - e, y)


def tanh(x: Value) -> Value:
    """An odd polynomial up to 5/8, 1 - 2 / (exp(2|x|) + 1) beyond."""
    a = abs(x)
    inside = a.at_most(LIMITS[x.dtype].tanh)
    r, whole = reduce(inside + inside)
    far = 1.0 - 2.0 / exp_part(r).fma(power_of_two(whole.n, x.dtype), 1.0)
    z = x * x
    near = poly(z, TABLE["tanh", x.dtype]).fma(a * z, a)
    return a.lt(0.625).where(near, far).copysign(x)


def sinh(x: Value) -> Value:
    if x.dtype == "f32":
        return sinh(x.wide()).narrow()
    a, z = abs(x), x * x
    quarter = halves_of_expm1(a.at_most(710.6), 2)
    half = quarter + quarter / quarter.fma(4.0, 1.0)
    near = poly(z, TABLE["sinh", x.dtype]).fma(a * z, a)
    return a.lt(1.0).where(near, half + half).copysign(x)


def cosh(x: Value) -> Value:
    if x.dtype == "f32":
        return cosh(x.wide()).narrow()
    r, whole = reduce(abs(x).at_most(710.6))
    quarter = exp_part(r) * power_of_two(whole.n - 2, x.dtype)
    half = quarter + 0.0625 / quarter
    return half + half
