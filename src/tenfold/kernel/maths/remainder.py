"""fmod, exactly: the remainder of a division rounded towards zero, which any float can hold.

Where the quotient is no larger than the format's integers, the nearest integer times the divisor
is subtracted without rounding. Beyond, which is rare, the dividend is m · 2**n last places of the
divisor: the remainder is found modulo the divisor's mantissa, as m · (2**n modulo it), the power by
squaring.
"""

from __future__ import annotations

from tenfold.frozen import frozen
from tenfold.kernel.maths.doubled import product
from tenfold.kernel.maths.values import FORMATS, Value, power_of_two


def fmod(x: Value, y: Value) -> Value:
    a, b = abs(x), abs(y)
    far, r = _near(a.wide(), b.wide(), 24) if _in_double(x) else _near(a, b, 0)
    r = r.narrow() if _in_double(x) else r
    r = a.lt(b).where(a, r)  # of an infinite y too
    return x.body.rarely("fmod_large", far, r.copysign(x), x, y)


def _in_double(x: Value) -> bool:
    return x.dtype == "f32" and not x.body.fma


def _near(a: Value, b: Value, bits: int) -> tuple[Value, Value]:
    """Whether a / b is too large, and else the remainder; b has so many bits, or as its format."""
    ratio = a / b
    q = ratio.round()
    limit: Value | float
    if a.body.fma:
        limit, r = 2.0 ** (FORMATS[a.dtype].mantissa + 1), q.fma(-b, a)
    elif bits:
        limit, r = 2.0 ** (53 - bits), a - q * b
    else:  # the divisor in halves of so few bits that their products are exact, unless too large
        high = (b.bits() & -(1 << 27)).floats()
        r = (a - q * high) - q * (b - high)
        limit = a.ge(2.0**1023).where(ratio.like(1.0), 2.0**25)
    return ratio.ge(limit), r.lt(0.0).where(r + b, r)


def fmod_large(x: Value, y: Value) -> Value:
    """fmod(x, y) where x is the larger in size, or they have one exponent."""
    if x.dtype == "f32":  # in float64, which has room for a product of two mantissas
        return _modulo(abs(x).wide(), abs(y).wide(), 24).narrow().copysign(x)
    return _modulo(abs(x), abs(y), 53).copysign(x)


def _modulo(a: Value, b: Value, bits: int) -> Value:
    """a modulo b, of float64 that have so many bits."""
    top, m = _parts(a, bits), _parts(b, bits).m
    n = top.n - _parts(b, bits).n

    def times(x: Value, y: Value) -> Value:
        return x.body.call("product_modulo", x, y, m) if bits == 53 else _short(x, y, m)

    low = 6 if bits == 53 else 4
    power = power_of_two(n >> low, "f64")  # less than m
    for bit in reversed(range(low)):
        power = times(power, power)
        twice = power + power
        twice = twice.ge(m).where(twice - m, twice)
        power = ((n >> bit) & 1).ne(0).where(twice, power)
    first = top.m.ge(m).where(top.m - m, top.m)
    r = times(first, power) * 2.0 ** (1 - bits) * _parts(b, bits).unit
    return r + ((a - a) + (b / b - 1.0))  # NaN of what is infinite, and by zero


@frozen
class Parts:
    """A positive float64 as m · 2**n, but for a constant in n; m is whole and has its top bit. As
    m is to its top bit, the float is to the unit."""

    m: Value
    n: Value
    unit: Value


def _parts(a: Value, bits: int) -> Parts:
    small = a.lt(2.0**-1022)  # no float32 is
    raw = (small.where(a * 2.0**54, a) if bits == 53 else a).bits()
    n, m = raw >> 52, ((raw & (2**52 - 1)) | 2**52) >> (53 - bits)
    m, unit = m.signed().cast("f64"), power_of_two(n - 1023, "f64")
    if bits == 53:
        n = n - small.where(n.like(54), 0)
        unit = unit * small.where(unit.like(2.0**-54), 1.0)
    return Parts(m, n, unit)


def _short(a: Value, b: Value, m: Value) -> Value:
    """a · b modulo m, whole numbers whose products are exact."""
    whole = a * b
    r = whole - (whole / m).trunc() * m
    return r.lt(0.0).where(r + m, r)


def product_modulo(a: Value, b: Value, m: Value) -> Value:
    """a · b modulo m, for whole a and b below m, and m below 2**53."""
    whole = product(a, b)
    q = (whole.high / m).round()
    if a.body.fma:
        r = q.fma(-m, whole.high)
    else:
        back = product(q, m)
        r = (whole.high - back.high) - back.low
    # r is between -m and m. With the other sign than what is still to be added, the sum is, too.
    r = r.lt(0.0).where(r + m, r)
    r = whole.low.gt(0.0).where(r - m, r) + whole.low
    return r.lt(0.0).where(r + m, r)
