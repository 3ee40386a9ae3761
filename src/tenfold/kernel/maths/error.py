"""The error function and its complement."""

from __future__ import annotations

from tenfold.kernel.maths.coefficients import TABLE
from tenfold.kernel.maths.doubled import ordered_total, product, total
from tenfold.kernel.maths.exponential import expm1_part, halves_of_expm1, reduce
from tenfold.kernel.maths.values import Value, form, horner, poly, scaled


def erf(x: Value) -> Value:
    """Of f64 -expm1(-q), q = -log(erfc(|x|)) being a polynomial: one path from 0 to where erf is 1.
    Of f32 two short paths side by side, which take less time than an exponential does: up to 1 an
    odd polynomial; beyond 1 - r⁴, which never exceeds 1, r being a polynomial. Where one counts
    the other is less, or as good."""
    if x.dtype == "f64":
        a = abs(x).at_most(6.0)
        q = poly(a, TABLE["erf", "f64"]).fma(-a, -a)
        return halves_of_expm1(q, 0).copysign(x)
    a = abs(x).at_most(4.0)
    near = horner(a * a, TABLE["erf_near", "f32"]).fma(a, a)
    r = horner(a, TABLE["erf_far", "f32"])
    square = r * r
    far = (-square).fma(square, 1.0)
    return near.lt(far).where(far, near).flip(x.bits() & form(x).sign)


def erfc(x: Value) -> Value:
    """exp(-x²) times a polynomial in (a - 4) / (a + 4), a = |x|; from 2 for negative x."""
    if x.dtype == "f32":
        return _erfc(x.wide(), "f32").narrow()
    return _erfc(x, "f64")


def _erfc(x: Value, precision: str) -> Value:
    a = abs(x).at_most(27.5)
    inverse = 1.0 / (a + 4.0)
    t = (a - 4.0) * inverse
    t = inverse.fma((t + 1.0).fma(-4.0, a) - t * a, t)  # with the division's remainder
    # What the sum of the polynomial and the divisor lose joins the exponent, as a relative error.
    first, *others = TABLE["erfc", precision]
    top = ordered_total(first, poly(t, tuple(others)) * t)
    below = total(a + a, a.like(1.0))
    shape = top.high / below.high
    square = product(a, a)
    r, whole = reduce(-square.high)
    rest = expm1_part(r - (square.low + (below.low * shape - top.low)))
    y = scaled(rest.fma(shape, shape), whole)
    return x.lt(0.0).where(2.0 - y, y)
