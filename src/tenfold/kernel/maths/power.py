"""pow, and the roots: rsqrt, cbrt, hypot."""

from __future__ import annotations

import math

from tenfold.kernel.maths.coefficients import TABLE
from tenfold.kernel.maths.doubled import (
    Pair,
    constant,
    ordered_total,
    plus,
    product,
    scaled_by,
    times,
)
from tenfold.kernel.maths.exponential import exp_part
from tenfold.kernel.maths.logarithm import parts
from tenfold.kernel.maths.values import (
    FORMATS,
    Value,
    as_float,
    form,
    poly,
    power_of_two,
    rounded,
    scaled,
)

INF = float("inf")
NAN = float("nan")


def pow(x: Value, y: Value) -> Value:
    """|x|**y by 2**(y log2|x|), the logarithm to twice the precision; then the edges."""
    power = _narrow_power if x.dtype == "f32" else _power
    return _pow_edges(x, y, power(abs(x), y))


def _narrow_power(a: Value, y: Value) -> Value:
    """a**y of float32, in float64, which is wide enough for precision and range."""
    p = parts(a)
    f = p.f.wide()
    log2 = f.fma(poly(f, TABLE["pow_log2", "f32"]), p.e.wide())
    # Bounded so that an infinite y times a log of 0 is no NaN; such a product is past all range.
    w = y.at_most(1e38).at_least(-1e38).wide() * log2
    w = w.at_most(200.0).at_least(-200.0)
    whole = rounded(w, 1.0)
    root = poly(w - whole.real, TABLE["pow_exp2", "f32"])
    return (root * power_of_two(whole.n, "f64")).narrow()


def _log2(a: Value) -> Pair:
    """log2(a) with about 12 bits more than a float64 has."""
    p = parts(a)
    below = ordered_total(2.0, p.f)
    inverse = 1.0 / below.high
    s_high = p.f * inverse
    back = product(s_high, below.high)
    s = Pair(s_high, (((p.f - back.high) - back.low) - s_high * below.low) * inverse)
    z = times(s, s)
    third_high, third_low = TABLE["third", "f64"]
    slope = ordered_total(third_high, poly(z.high, TABLE["pow_log", "f64"]) * z.high)
    slope = Pair(slope.high, slope.low + third_low)
    atanh = plus(s, times(times(s, z), slope))
    high, low = TABLE["log2_e", "f64"]
    log = times(atanh, constant(a, 2 * high, 2 * low))
    near = ordered_total(p.e, log.high)
    return Pair(near.high, near.low + log.low)


def _power(a: Value, y: Value) -> Value:
    # An exponent beyond this gives 0, 1 or inf like this one does, and its product is finite.
    bounded = y.at_most(2.0**70).at_least(-(2.0**70))
    w = scaled_by(_log2(a), bounded)
    inside = abs(w.high).lt(1100.0)
    high = w.high.at_most(1100.0).at_least(-1100.0)
    whole = rounded(high, 1.0)
    ln2 = math.log(2.0)
    r = (high - whole.real).fma(ln2, inside.where(w.low, 0.0) * ln2)
    return scaled(exp_part(r), whole)


def _pow_edges(x: Value, y: Value, magnitude: Value) -> Value:
    """pow from |x|**y: the signs, and all else that C's annex F lists."""
    a, ay = abs(x), abs(y)
    zero, infinite = a.eq(0.0), a.eq(INF)
    end = (zero ^ y.lt(0.0)).where(magnitude.like(0.0), INF)
    magnitude = (zero | infinite).where(end, magnitude)
    # Adding 2**mantissa leaves the units bit of a smaller number in the lowest place.
    bound = 2.0 ** form(x).mantissa
    moved = ay + bound
    large = ay.ge(bound)
    whole = large | (moved - bound).eq(ay)
    units = large.where(ay, moved).bits() << (31 if x.dtype == "f32" else 63)
    odd = whole & ay.lt(2.0 * bound)
    result = magnitude.flip(odd.where(units, 0) & (x.bits() & form(x).sign))
    result = (x.lt(0.0) & ~whole & ~infinite).where(NAN, result)
    result = (x.is_nan() | y.is_nan()).where(x + y, result)
    return (x.eq(1.0) | y.eq(0.0)).where(1.0, result)


def rsqrt(x: Value) -> Value:
    return 1.0 / x.sqrt()


def cbrt(x: Value) -> Value:
    """A polynomial on [1, 2), a cubic step, and a last step on an exact remainder."""
    if x.dtype == "f32":
        return _cbrt(x.wide(), fine=False).narrow()
    return _cbrt(x, fine=True)


def _cbrt(x: Value, fine: bool) -> Value:
    f = FORMATS["f64"]
    a = abs(x)
    small = a.lt(2.0 ** (1 - f.bias))
    bits = small.where(a * 2.0**54, a).bits()
    n = (bits >> f.mantissa) - f.bias
    m = (bits - (n << f.mantissa)).floats()
    e = as_float(n)
    third = rounded(e, 1 / 3)
    left = third.real.fma(-3.0, e)  # -1, 0 or 1
    double, half = left.gt(0.5), left.lt(-0.5)
    start = poly(m, TABLE["cbrt", "f64"])
    start = start * double.where(2 ** (1 / 3), half.where(start.like(2 ** (-1 / 3)), 1.0))
    m = m * double.where(2.0, half.where(m.like(0.5), 1.0))
    cube = start * start * start
    y = start * ((cube + (m + m)) / (cube + cube + m))
    if fine:
        square = product(y, y)
        cubed = scaled_by(square, y)
        y = y - ((cubed.high - m) + cubed.low) / (square.high * 3.0)
    y = y * power_of_two(small.where(third.n - 18, third.n), "f64")
    kept = a.eq(0.0) | a.eq(INF) | a.is_nan()
    return kept.where(x, y.copysign(x))


def hypot(x: Value, y: Value) -> Value:
    """√(x² + y²), scaled away from overflow, with the squares' low parts."""
    if x.dtype == "f32":
        a, b = x.wide(), y.wide()
        result = a.fma(a, b * b).sqrt().narrow()
        return (abs(x).eq(INF) | abs(y).eq(INF)).where(INF, result)
    ax, ay = abs(x), abs(y)
    swap = ay.gt(ax)
    large, small = swap.where(ay, ax), swap.where(ax, ay)
    up, down = large.lt(2.0**-450), large.gt(2.0**450)
    scale = up.where(2.0**600, down.where(large.like(2.0**-600), 1.0))
    back = up.where(2.0**-600, down.where(large.like(2.0**600), 1.0))
    a, b = large * scale, small * scale
    first, second = product(a, a), product(b, b)
    main = ordered_total(first.high, second.high)
    low = main.low + (first.low + second.low)
    root = main.high.sqrt()
    square = product(root, root)
    rest = (((main.high - square.high) - square.low) + low) / (root + root)
    result = root.gt(0.0).where(root + rest, root + b) * back
    return (ax.eq(INF) | ay.eq(INF)).where(INF, result)
