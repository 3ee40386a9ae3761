"""Instructions on f32 and f64 as plain arithmetic, comparisons and bits."""

from __future__ import annotations

import math

from tenfold.errors import Unsupported
from tenfold.kernel.ir.kernel import TRANSCENDENTAL
from tenfold.kernel.passes.rewrite import Rewriter

_LEGAL_OPS = "add sub mul div neg abs sqrt floor ceil trunc round eq ne lt le gt ge"
_LEGAL = frozenset(_LEGAL_OPS.split())


def floating(b: Rewriter, op: str, args: list[int]) -> int:
    """One instruction on operands of a float dtype."""
    if op in _LEGAL:
        return b.do(op, *args)
    if op in TRANSCENDENTAL:
        return b.call(op, *args)
    x = args[0]
    if op in ("max", "min", "fmax", "fmin"):
        return extreme(b, op, x, args[1])
    if op == "rsqrt":
        return b.do("div", b.like(x, 1.0), b.do("sqrt", x))
    if op == "sign":
        return _sign(b, x)
    if op == "isnan":
        return b.do("ne", x, x)
    if op in ("isinf", "isfinite"):
        return b.do("eq" if op == "isinf" else "lt", b.do("abs", x), b.like(x, math.inf))
    if op == "signbit":
        bits = _bits(b, x)
        return b.do("lt", bits, b.like(bits, 0))
    if op == "copysign":
        return _copysign(b, x, args[1])
    if op in ("real", "conj"):
        return x
    if op == "imag":
        return b.like(x, 0.0)
    if op in ("fmod", "mod", "floordiv"):
        return _remainder(b, op, x, args[1])
    if op == "nextafter":
        return _nextafter(b, x, args[1])
    raise Unsupported(f"{op} of {b.dtype(x)} in a kernel; it is for integers")


def extreme(b: Rewriter, op: str, x: int, y: int) -> int:
    """max and min keep a NaN of either side, fmax and fmin drop it."""
    # A NaN picks y, which is right for max when y is the NaN, for fmax when x is.
    best = b.select(b.do("gt" if op.endswith("max") else "lt", x, y), x, y)
    other = y if op[0] == "f" else x
    return b.select(b.do("ne", other, other), x, best)


def _bits(b: Rewriter, x: int) -> int:
    return b.bitcast(x, "i32" if b.dtype(x) == "f32" else "i64")


def _sign(b: Rewriter, x: int) -> int:
    zero = b.like(x, 0.0)
    found = b.select(b.do("eq", x, zero), zero, x)
    found = b.select(b.do("lt", x, zero), b.like(x, -1.0), found)
    return b.select(b.do("gt", x, zero), b.like(x, 1.0), found)


def _copysign(b: Rewriter, x: int, y: int) -> int:
    size, sign = _bits(b, x), _bits(b, y)
    top = 1 << (31 if b.dtype(x) == "f32" else 63)
    size, sign = b.do("and", size, b.like(size, top - 1)), b.do("and", sign, b.like(sign, -top))
    return b.bitcast(b.do("or", size, sign), b.dtype(x))


def _remainder(b: Rewriter, op: str, x: int, y: int) -> int:
    """fmod, and NumPy's mod and floor division made from it."""
    rest = b.call("fmod", x, y)
    if op == "fmod":
        return rest
    zero, one = b.like(x, 0.0), b.like(x, 1.0)
    exact = b.do("eq", rest, zero)
    differ = b.do("xor", b.do("lt", y, zero), b.do("lt", rest, zero))
    fix = b.do("and", differ, b.do("ne", rest, zero))
    by_zero = b.do("eq", y, zero)
    if op == "mod":
        moved = b.select(fix, b.do("add", rest, y), rest)
        return b.select(by_zero, rest, b.select(exact, _copysign(b, zero, y), moved))
    ratio = b.do("div", b.do("sub", x, rest), y)
    ratio = b.select(fix, b.do("sub", ratio, one), ratio)
    down = b.do("floor", ratio)
    far = b.do("gt", b.do("sub", ratio, down), b.like(x, 0.5))
    down = b.select(far, b.do("add", down, one), down)
    quotient = b.do("div", x, y)
    down = b.select(b.do("eq", ratio, zero), _copysign(b, zero, quotient), down)
    return b.select(by_zero, quotient, down)


def _nextafter(b: Rewriter, x: int, y: int) -> int:
    stepped = b.bitcast(following(b, x, y, _bits(b, x)), b.dtype(x))
    found = b.select(b.do("eq", x, y), y, stepped)  # zeros of either sign are equal
    either = b.do("or", b.do("ne", x, x), b.do("ne", y, y))
    return b.select(either, b.do("add", x, y), found)


def following(b: Rewriter, x: int, y: int, bits: int) -> int:
    """The bits of the next float after x towards y, which is another number; `bits` are x's."""
    top = 1 << (int(b.dtype(bits)[1:]) - 1)
    zero, up = b.like(bits, 0), b.do("lt", x, y)
    away = b.do("xor", up, b.do("lt", bits, zero))
    moved = b.do("add", bits, b.select(away, b.like(bits, 1), b.like(bits, -1)))
    none = b.do("eq", b.do("and", bits, b.like(bits, top - 1)), zero)
    return b.select(none, b.select(up, b.like(bits, 1), b.like(bits, 1 - top)), moved)
