"""sin, cos and tan."""

from __future__ import annotations

from tenfold.backends.llvm.maths.coefficients import TABLE
from tenfold.backends.llvm.maths.doubled import ordered_total, product
from tenfold.backends.llvm.maths.emit import Value, poly
from tenfold.backends.llvm.maths.reduction import Reduced, reduce


def sine(reduced: Reduced) -> tuple[Value, Value]:
    """sin(r + low) for |r| ≤ π/4, as two terms still to be added."""
    r = reduced.r
    z = r * r
    return r, poly(z, TABLE["sin", r.dtype]).fma(r * z, reduced.low)


def cosine(reduced: Reduced) -> tuple[Value, Value]:
    """cos(r + low) for |r| ≤ π/4, as two terms still to be added."""
    r = reduced.r
    z = r * r
    near = z.fma(-0.5, 1.0)
    lost = z.fma(-0.5, 1.0 - near)
    rest = (-r).fma(reduced.low, lost)
    return near, poly(z, TABLE["cos", r.dtype]).fma(z * z, rest)


def top_bit(n: Value, bit: int) -> Value:
    """One bit of n where the sign of a float stands."""
    place = 31 if n.kind == "i32" else 63
    return (n << (place - bit)) & -(1 << place)


def in_double(x: Value) -> bool:
    """Whether a float32 is better reduced in float64: without fused multiply-add."""
    return x.kind == "float" and not x.fma_exists


def sin(x: Value) -> Value:
    if in_double(x):
        return sin(x.wide()).narrow()
    reduced = reduce(x)
    odd = (reduced.n & 1).ne(0)
    (s, s_rest), (c, c_rest) = sine(reduced), cosine(reduced)
    y = (odd.where(c, s) + odd.where(c_rest, s_rest)).flip(top_bit(reduced.n, 1))
    return x.eq(0.0).where(x, y)


def cos(x: Value) -> Value:
    if in_double(x):
        return cos(x.wide()).narrow()
    reduced = reduce(x)
    odd = (reduced.n & 1).ne(0)
    (s, s_rest), (c, c_rest) = sine(reduced), cosine(reduced)
    y = odd.where(s, c) + odd.where(s_rest, c_rest)
    return y.flip(top_bit(reduced.n + 1, 1))


def tan(x: Value) -> Value:
    """sin(r) / cos(r), or -cos(r) / sin(r) in odd quarters."""
    if in_double(x):
        return tan(x.wide()).narrow()
    reduced = reduce(x)
    s, c = ordered_total(*sine(reduced)), ordered_total(*cosine(reduced))
    odd = (reduced.n & 1).ne(0)
    above, below = odd.where(c.high, s.high), odd.where(s.high, c.high)
    above_low, below_low = odd.where(c.low, s.low), odd.where(s.low, c.low)
    # The quotient, then what its own rounding and both low parts add to it.
    inverse = 1.0 / below
    y = above * inverse
    back = product(y, below)
    rest = ((above - back.high) - back.low) + (above_low - y * below_low)
    y = rest.fma(inverse, y).flip(top_bit(reduced.n, 0))
    return x.eq(0.0).where(x, y)
