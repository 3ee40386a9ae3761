"""sin, cos and tan."""

from __future__ import annotations

from tenfold.kernel.maths.coefficients import TABLE
from tenfold.kernel.maths.doubled import ordered_total, product
from tenfold.kernel.maths.reduction import (
    ReducedArgument,
    large,
    reduce,
    reduce_large,
    reduce_large_narrow,
)
from tenfold.kernel.maths.values import Value, form, poly

_QUARTERS = {"f32": "u32", "f64": "u64"}


def sine(reduced: ReducedArgument) -> tuple[Value, Value]:
    """sin(r + low) for |r| ≤ π/4, as two terms still to be added."""
    r = reduced.r
    z = r * r
    return r, poly(z, TABLE["sin", r.dtype]).fma(r * z, reduced.low)


def cosine(reduced: ReducedArgument) -> tuple[Value, Value]:
    """cos(r + low) for |r| ≤ π/4, as two terms still to be added."""
    r = reduced.r
    z = r * r
    near = z.fma(-0.5, 1.0)
    lost = z.fma(-0.5, 1.0 - near)
    rest = (-r).fma(reduced.low, lost)
    return near, poly(z, TABLE["cos", r.dtype]).fma(z * z, rest)


def top_bit(n: Value, bit: int, like: Value) -> Value:
    """One bit of n where the sign of a float stands."""
    sign = form(like).sign
    return (n << (sign.bit_length() - 1 - bit)) & sign


def in_double(x: Value) -> bool:
    """Whether a float32 is better reduced in float64: without fused multiply-add."""
    return x.dtype == "f32" and not x.body.fma


def sin(x: Value) -> Value:
    if in_double(x):
        return sin(x.wide()).narrow()
    y = x.eq(0.0).where(x, _sine(reduce(x)))
    return x.body.rarely("sine_large", large(x), y, x, x.body.constant(_QUARTERS[x.dtype], 0))


def cos(x: Value) -> Value:
    if in_double(x):
        return cos(x.wide()).narrow()
    y = _sine(reduce(x), quarter=True)
    return x.body.rarely("sine_large", large(x), y, x, x.body.constant(_QUARTERS[x.dtype], 1))


def sine_large(x: Value, quarters: Value) -> Value:
    """sin(x + quarters · π/2), for x from 1 to infinity."""
    if x.dtype == "f32":
        return _sine(_later(reduce_large_narrow(x), quarters.cast("u64"))).narrow()
    return _sine(_later(reduce_large(x), quarters))


def _later(reduced: ReducedArgument, quarters: Value) -> ReducedArgument:
    return ReducedArgument(reduced.r, reduced.low, reduced.n + quarters)


def _sine(reduced: ReducedArgument, quarter: bool = False) -> Value:
    """sin of what was reduced, or of a quarter turn more."""
    odd = (reduced.n & 1).ne(0)
    (a, a_rest), (b, b_rest) = sine(reduced), cosine(reduced)
    n = reduced.n
    if quarter:
        a, a_rest, b, b_rest, n = b, b_rest, a, a_rest, n + 1
    return (odd.where(b, a) + odd.where(b_rest, a_rest)).flip(top_bit(n, 1, a))


def tan(x: Value) -> Value:
    if in_double(x):
        return tan(x.wide()).narrow()
    y = x.body.rarely("tan_large", large(x), _tangent(reduce(x)), x)
    return x.eq(0.0).where(x, y)


def tan_large(x: Value) -> Value:
    """tan(x), for x from 1 to infinity."""
    if x.dtype == "f32":
        return _tangent(reduce_large_narrow(x)).narrow()
    return _tangent(reduce_large(x))


def _tangent(reduced: ReducedArgument) -> Value:
    """sin(r) / cos(r), or -cos(r) / sin(r) in odd quarters."""
    s, c = ordered_total(*sine(reduced)), ordered_total(*cosine(reduced))
    odd = (reduced.n & 1).ne(0)
    above, below = odd.where(c.high, s.high), odd.where(s.high, c.high)
    above_low, below_low = odd.where(c.low, s.low), odd.where(s.low, c.low)
    # The quotient, then what its own rounding and both low parts add to it.
    inverse = 1.0 / below
    y = above * inverse
    back = product(y, below)
    rest = ((above - back.high) - back.low) + (above_low - y * below_low)
    return rest.fma(inverse, y).flip(top_bit(reduced.n, 0, y))
