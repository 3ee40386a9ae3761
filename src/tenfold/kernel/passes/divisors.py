"""Integers divided by what many elements share: what is found out of the divisor once makes a
product of each division.

Up to 32 bits it is a float's reciprocal r. The floor of x·r + r/2 is that of x / y, for x / y lies
on an integer or at least 1/y away from it, and the float is wide enough. Of 64 bits it is a
multiplier of 65 bits, as Granlund and Montgomery have it: of a product by it the upper half is the
quotient, after a shift.
"""

from __future__ import annotations

from tenfold.kernel.ir.legal import kind
from tenfold.kernel.passes.rewrite import Rewriter

_HALF = 32
_DIGIT = (1 << _HALF) - 1


def floor_by_reciprocal(b: Rewriter, x: int, y: int) -> int:
    """x / y rounded down, of integers up to 32 bits; y is not 0, nor -1 for the least x."""
    dtype = b.dtype(x)
    real = "f64" if int(dtype[1:]) == 32 else "f32"
    r = b.do("div", b.const(real, 1), b.cast(y, real))
    half = b.do("mul", b.do("abs", r), b.const(real, 0.5))
    ratio = b.do("floor", b.do("add", b.do("mul", b.cast(x, real), r), half))
    return b.cast(b.cast(ratio, "u32" if dtype == "u32" else "i32"), dtype)


def quotient_by_multiplier(b: Rewriter, x: int, y: int) -> int:
    """x / y rounded towards zero, of integers of 64 bits; y is not 0. The least by -1 wraps."""
    if kind(b.dtype(x)) == "u":
        return _unsigned(b, x, y)
    sign = [b.do("shr", v, b.like(v, 63)) for v in (x, y)]
    sizes = [b.do("sub", b.do("xor", v, s), s) for v, s in zip((x, y), sign, strict=True)]
    found = b.bitcast(_unsigned(b, *(b.bitcast(v, "u64") for v in sizes)), "i64")
    turned = b.do("xor", *sign)
    return b.do("sub", b.do("xor", found, turned), turned)


def _unsigned(b: Rewriter, x: int, y: int) -> int:
    one = b.like(y, 1)
    bits = _length(b, b.do("sub", y, one))
    first = b.do("min", bits, one)
    rest = b.do("sub", bits, first)
    # 2**bits in two shifts, for it may be 2**64; 1 for no bits.
    power = b.do("shl", b.do("shl", one, rest), first)
    multiplier = b.do("add", _ratio(b, b.do("sub", power, y), y), one)
    t = _upper(b, x, multiplier)
    return b.do("shr", b.do("add", t, b.do("shr", b.do("sub", x, t), first)), rest)


def _length(b: Rewriter, x: int) -> int:
    """How many bits a number has."""
    for shift in (1, 2, 4, 8, 16, 32):
        x = b.do("or", x, b.do("shr", x, b.like(x, shift)))
    return b.do("popcount", x)


def _ratio(b: Rewriter, x: int, y: int) -> int:
    """x · 2**64 / y rounded down, for x < y: by two digits of 32 bits (Knuth's algorithm D)."""
    up = b.do("sub", b.like(y, 64), _length(b, y))
    y, rest = b.do("shl", y, up), b.do("shl", x, up)
    high, low = _digits(b, y)
    whole = b.like(y, 0)
    for _ in range(2):
        digit = b.do("div", rest, high)
        left = b.do("sub", rest, b.do("mul", digit, high))
        for _ in range(2):  # it is too large by two at most
            over = b.do("gt", b.do("mul", digit, low), b.do("shl", left, b.like(y, _HALF)))
            over = b.do("or", over, b.do("gt", digit, b.like(y, _DIGIT)))
            over = b.do("and", over, b.do("le", left, b.like(y, _DIGIT)))
            digit = b.do("sub", digit, b.cast(over, "u64"))
            left = b.do("add", left, b.select(over, high, b.like(y, 0)))
        rest = b.do("sub", b.do("shl", rest, b.like(y, _HALF)), b.do("mul", digit, y))
        whole = b.do("add", b.do("shl", whole, b.like(y, _HALF)), digit)
    return whole


def _upper(b: Rewriter, x: int, y: int) -> int:
    """The upper 64 bits of a product of 64 by 64."""
    (x1, x0), (y1, y0) = _digits(b, x), _digits(b, y)
    low = b.do("shr", b.do("mul", x0, y0), b.like(x, _HALF))
    high, middle = _digits(b, b.do("add", b.do("mul", x1, y0), low))
    middle = b.do("shr", b.do("add", b.do("mul", x0, y1), middle), b.like(x, _HALF))
    return b.do("add", b.do("add", b.do("mul", x1, y1), high), middle)


def _digits(b: Rewriter, x: int) -> tuple[int, int]:
    return b.do("shr", x, b.like(x, _HALF)), b.do("and", x, b.like(x, _DIGIT))
