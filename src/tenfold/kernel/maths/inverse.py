"""The inverse functions: asin, acos, atan, atan2, asinh, acosh, atanh."""

from __future__ import annotations

import math

from tenfold.kernel.maths.coefficients import TABLE
from tenfold.kernel.maths.doubled import ordered_total, product, total
from tenfold.kernel.maths.exponential import TINY
from tenfold.kernel.maths.logarithm import log_of_sum
from tenfold.kernel.maths.values import Value, form, horner, poly

INF = float("inf")


def _half_pi(x: Value, factor: float) -> tuple[float, float]:
    """A multiple of π/2 by a power of two, in two parts."""
    high, low, _ = TABLE["half_pi", x.dtype]
    return high * factor, low * factor


def _root(z: Value, low: Value | float = 0.0) -> tuple[Value, Value]:
    """√(z + low), and what is missing of it."""
    s = z.sqrt()
    square = product(s, s)
    missing = ((z - square.high) - (square.low - low)) / (s + s)
    return s, z.gt(0.0).where(missing, 0.0)


def asin(x: Value) -> Value:
    """Odd polynomial up to ½; beyond, π/2 - 2 asin(√((1-|x|)/2))."""
    a = abs(x)
    outer = a.gt(0.5)
    z = outer.where(0.5 - a * 0.5, x * x)
    s, missing = _root(z)
    rest = poly(z, TABLE["asin", x.dtype]) * z
    high, low = _half_pi(x, 1.0)
    # π/2 - 2 (s + missing + s rest), the large terms first.
    main = ordered_total(high, s * -2.0)
    far = main.high + (main.low + s.fma(rest * -2.0, low - (missing + missing)))
    return outer.where(far, a.fma(rest, a)).copysign(x)


def acos(x: Value) -> Value:
    """2 asin(√((1-|x|)/2)) beyond ½, from π for negative x; π/2 - asin(x) up to there."""
    a = abs(x)
    outer = a.gt(0.5)
    z = outer.where(0.5 - a * 0.5, x * x)
    s, missing = _root(z)
    rest = poly(z, TABLE["asin", x.dtype]) * z
    half = s + s.fma(rest, missing)
    high, low = _half_pi(x, 2.0)
    beyond = x.lt(0.0).where(high - (half + half - low), half + half)
    high, low = _half_pi(x, 1.0)
    main = ordered_total(high, -x)
    inner = main.high + (main.low + (low - x * rest))
    return outer.where(beyond, inner)


def _atan_ratio(small: Value, large: Value) -> tuple[Value, Value]:
    """t = small / large ≤ 1 and atan(t) - t, with the division's remainder in the latter.

    The remainder counts 1 / (1 + t²) fold; 1 - t²/2 is near enough.
    """
    t = small / large
    z = t * t
    back = product(t, large)
    missing = ((small - back.high) - back.low) / large * z.fma(-0.5, 1.0)
    # No remainder where the division is of zeros or infinities, or its check would leave
    # the range of normal numbers.
    lowest = 2.0 ** (2 - form(t).bias + form(t).mantissa)
    missing = (small.gt(lowest) & large.lt(2.0 ** (form(t).bias - form(t).mantissa))).where(
        missing, 0.0
    )
    return t, horner(z, TABLE["atan", t.dtype]).fma(t * z, missing)


def atan(x: Value) -> Value:
    """atan of |x| or of 1/|x|, then from π/2."""
    a = abs(x)
    outer = a.gt(1.0)
    t = outer.where(1.0 / a, a)
    z = t * t
    rest = horner(z, TABLE["atan", x.dtype]) * (t * z)
    high, low = _half_pi(x, 1.0)
    main = ordered_total(high, -t)
    far = main.high + (main.low + (low - rest))
    return outer.where(far, t + rest).copysign(x)


def atan2(y: Value, x: Value) -> Value:
    """The angle of the smaller over the larger, then unfolded over the eight octants."""
    ay, ax = abs(y), abs(x)
    steep = ay.gt(ax)
    small, large = steep.where(ax, ay), steep.where(ay, ax)
    # Both zero is 0/1; both infinite is 1/1.
    both = ax.eq(ay) & (ax.eq(0.0) | ax.eq(INF))
    ratio = ax.eq(INF).where(1.0, small)
    small = both.where(ratio, small)
    large = both.where(1.0, large)
    t, rest = _atan_ratio(small, large)
    left = x.bits() & form(x).sign
    behind = left.ne(0)
    # base + sign · (t + rest): 0 or π when flat, π/2 when steep.
    half_high, half_low = _half_pi(x, 1.0)
    whole_high, whole_low = _half_pi(x, 2.0)
    base = steep.where(half_high, behind.where(x.like(whole_high), 0.0))
    base_low = steep.where(half_low, behind.where(x.like(whole_low), 0.0))
    turn = (steep ^ behind).where(left.like(form(x).sign), 0)
    main = ordered_total(base, t.flip(turn))
    angle = main.high + (main.low + (base_low + rest.flip(turn)))
    return (y.is_nan() | x.is_nan()).where(x + y, angle.copysign(y))


def _log1p_of(y_high: Value, y_low: Value) -> Value:
    one = total(y_high.like(1.0), y_high)
    return log_of_sum(one.high, one.low + y_low)


def asinh(x: Value) -> Value:
    """log1p(a + a² / (1 + √(1 + a²))); log(2a) where a² would drown the 1."""
    if x.dtype == "f32":
        return asinh(x.wide()).narrow()
    a = abs(x)
    huge = a.gt(2.0**30)
    b = huge.where(1.0, a)
    square = b * b
    y = ordered_total(b, square / ((square + 1.0).sqrt() + 1.0))
    near = _log1p_of(y.high, y.low)
    far = log_of_sum(huge.where(a, 1.0), a.like(0.0)) + math.log(2.0)
    result = huge.where(far, near).copysign(x)
    unchanged = a.lt(TINY) | a.eq(INF) | a.is_nan()
    return unchanged.where(x, result)


def acosh(x: Value) -> Value:
    """log1p(t + √(t (t + 2))), t = x - 1; log(2x) for huge x."""
    if x.dtype == "f32":
        return acosh(x.wide()).narrow()
    huge = x.gt(2.0**30)
    t = huge.where(1.0, x - 1.0)
    square = product(t, t)
    inside = total(t + t, square.high)
    root, missing = _root(inside.high, inside.low + square.low)
    y = total(t, root)
    near = _log1p_of(y.high, y.low + missing)
    far = log_of_sum(huge.where(x, 1.0), x.like(0.0)) + math.log(2.0)
    result = x.eq(INF).where(x, huge.where(far, near))
    result = x.eq(1.0).where(0.0, result)
    return x.ge(1.0).where(result, float("nan"))


def atanh(x: Value) -> Value:
    """½ log1p(2a / (1 - a))."""
    if x.dtype == "f32":
        return atanh(x.wide()).narrow()
    a = abs(x)
    below = 1.0 - a
    y = (a + a) / below
    result = (_log1p_of(y, y.like(0.0)) * 0.5).copysign(x)
    result = a.lt(TINY).where(x, result)
    result = a.eq(1.0).where(x.like(INF).copysign(x), result)
    return (a.gt(1.0) | a.is_nan()).where(float("nan"), result)
