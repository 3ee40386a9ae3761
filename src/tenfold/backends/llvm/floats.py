"""Elementwise instructions on floats: f32 and f64, and sixteen-bit floats held as f32."""

from __future__ import annotations

import math

from tenfold.backends.llvm.casts import narrow, rounded, widen
from tenfold.backends.llvm.functions import called
from tenfold.backends.llvm.instructions import whole
from tenfold.backends.llvm.writer import BITS, COMPUTE, Writer, vector
from tenfold.errors import Unsupported

_ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_COMPARE = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_REMAINDERS = ("fmod", "mod", "floordiv")
_ROUND = ("floor", "ceil", "trunc", "round")


def floating(w: Writer, name: str, source: str, args: list[str], wide: bool) -> str:
    """One instruction on operands of a float dtype, rounded to it."""
    result = _exact(w, name, source, args, wide)
    if source in ("f16", "bf16") and name not in _UNROUNDED:
        # Arithmetic hands on the NaN of an operand, or makes one with nothing in its low bits.
        return rounded(w, source, result, wide, short=name in _ARITHMETIC)
    return result


# What gives a boolean, or one of its operands, or is exact in any float dtype.
_UNROUNDED = frozenset(
    (*_COMPARE, *_ROUND, "isnan", "isinf", "isfinite", "signbit", "max", "min", "fmax")
) | {"fmin", "neg", "abs", "sign", "copysign", "nextafter", "real", "conj", "imag"}


def _exact(w: Writer, name: str, source: str, args: list[str], wide: bool) -> str:
    element = COMPUTE[source]
    ty, x = vector(element, wide), args[0]

    def const(value: float) -> str:
        return w.const(element, value, wide)

    if name in _ARITHMETIC:
        fast = " contract" if w.contract and source in ("f32", "f64") else ""
        return w.op(f"{_ARITHMETIC[name]}{fast} {ty} {x}, {args[1]}")
    if name in _COMPARE:
        return w.op(f"fcmp {_COMPARE[name]} {ty} {x}, {args[1]}")
    if name in ("max", "min", "fmax", "fmin"):
        return extreme(w, name, ty, x, args[1])
    if name == "neg":
        return w.op(f"fneg {ty} {x}")
    if name == "abs":
        return w.intrinsic("fabs", ty, x)
    if name == "sqrt":
        return w.intrinsic("sqrt", ty, x)
    if name == "rsqrt":
        return w.op(f"fdiv {ty} {const(1.0)}, {w.intrinsic('sqrt', ty, x)}")
    if name in _ROUND:
        return whole(w, name, element, x, wide)
    if name == "sign":
        zero = w.select(w.op(f"fcmp oeq {ty} {x}, {const(0.0)}"), ty, const(0.0), x)
        low = w.select(w.op(f"fcmp olt {ty} {x}, {const(0.0)}"), ty, const(-1.0), zero)
        return w.select(w.op(f"fcmp ogt {ty} {x}, {const(0.0)}"), ty, const(1.0), low)
    if name == "isnan":
        return w.op(f"fcmp uno {ty} {x}, {x}")
    if name in ("isinf", "isfinite"):
        test = "oeq" if name == "isinf" else "olt"
        return w.op(f"fcmp {test} {ty} {w.intrinsic('fabs', ty, x)}, {const(math.inf)}")
    if name == "signbit":
        integer = vector(f"i{BITS[element]}", wide)
        bits = w.op(f"bitcast {ty} {x} to {integer}")
        return w.op(f"icmp slt {integer} {bits}, {w.const(integer_of(element), 0, wide)}")
    if name == "copysign":
        return w.intrinsic("copysign", ty, x, args[1])
    if name in ("real", "conj"):
        return x
    if name == "imag":
        return const(0.0)
    if name in _REMAINDERS:
        return _remainder(w, name, element, x, args[1], wide)
    if name == "nextafter":
        return _next(w, source, x, args[1], wide)
    if name in ("and", "or", "xor", "not", "shl", "shr", "popcount", "complex"):
        raise Unsupported(f"{name} of {source} on the CPU; it is for integers")
    return called(w, name, "f64" if source == "f64" else "f32", args, wide)


def integer_of(element: str) -> str:
    return f"i{BITS[element]}"


def extreme(w: Writer, name: str, ty: str, x: str, y: str) -> str:
    """max and min keep a NaN of either side, fmax and fmin drop it."""
    test = "ogt" if name.endswith("max") else "olt"
    # Unordered picks y, which is right for max when y is the NaN, for fmax when x is.
    best = w.select(w.op(f"fcmp {test} {ty} {x}, {y}"), ty, x, y)
    other = y if name[0] == "f" else x
    return w.select(w.op(f"fcmp uno {ty} {other}, {other}"), ty, x, best)


def _remainder(w: Writer, name: str, element: str, a: str, b: str, wide: bool) -> str:
    """fmod, and NumPy's mod and floor division made from it."""
    ty, i1 = vector(element, wide), vector("i1", wide)
    zero = w.const(element, 0.0, wide)
    rest = called(w, "fmod", "f64" if element == "double" else "f32", [a, b], wide)
    if name == "fmod":
        return rest
    below = w.op(f"fcmp olt {ty} {b}, {zero}")
    negative = w.op(f"fcmp olt {ty} {rest}, {zero}")
    exact = w.op(f"fcmp oeq {ty} {rest}, {zero}")
    differ = w.op(f"xor {i1} {below}, {negative}")
    inexact = w.op(f"xor {i1} {exact}, {w.const('i1', True, wide)}")
    fix = w.op(f"and {i1} {differ}, {inexact}")
    moved = w.op(f"fadd {ty} {rest}, {b}")
    by_zero = w.op(f"fcmp oeq {ty} {b}, {zero}")
    if name == "mod":
        signed_zero = w.intrinsic("copysign", ty, zero, b)
        result = w.select(exact, ty, signed_zero, w.select(fix, ty, moved, rest))
        return w.select(by_zero, ty, rest, result)
    one = w.const(element, 1.0, wide)
    ratio = w.op(f"fdiv {ty} {w.op(f'fsub {ty} {a}, {rest}')}, {b}")
    ratio = w.select(fix, ty, w.op(f"fsub {ty} {ratio}, {one}"), ratio)
    down = whole(w, "floor", element, ratio, wide)
    far = w.op(f"fcmp ogt {ty} {w.op(f'fsub {ty} {ratio}, {down}')}, {w.const(element, 0.5, wide)}")
    down = w.select(far, ty, w.op(f"fadd {ty} {down}, {one}"), down)
    plain = w.op(f"fdiv {ty} {a}, {b}")
    none = w.op(f"fcmp oeq {ty} {ratio}, {zero}")
    down = w.select(none, ty, w.intrinsic("copysign", ty, zero, plain), down)
    return w.select(by_zero, ty, plain, down)


def _next(w: Writer, source: str, x: str, y: str, wide: bool) -> str:
    """The next float after x towards y, by stepping its bits."""
    element = COMPUTE[source]
    ty = vector(element, wide)
    narrow_type = source in ("f16", "bf16")
    base = "i16" if narrow_type else integer_of(element)
    integer = vector(base, wide)
    top = 1 << (BITS[base] - 1)

    def const(value: int) -> str:
        return w.const(base, value - 2 * top if value >= top else value, wide)

    if narrow_type:
        bits = narrow(w, source, x, wide)
    else:
        bits = w.op(f"bitcast {ty} {x} to {integer}")
    body = w.op(f"and {integer} {bits}, {const(top - 1)}")
    up = w.op(f"fcmp olt {ty} {x}, {y}")
    negative = w.op(f"icmp slt {integer} {bits}, {const(0)}")
    away = w.op(f"xor {vector('i1', wide)} {up}, {negative}")
    step = w.select(away, integer, const(1), const(-1))
    moved = w.op(f"add {integer} {bits}, {step}")
    zero = w.op(f"icmp eq {integer} {body}, {const(0)}")
    least = w.select(up, integer, const(1), const(top + 1))
    moved = w.select(zero, integer, least, moved)
    if narrow_type:
        result = widen(w, source, moved, wide)
    else:
        result = w.op(f"bitcast {integer} {moved} to {ty}")
    stay = x if source == "f16" else y  # zeros of either sign are equal; NumPy's halves keep x
    result = w.select(w.op(f"fcmp oeq {ty} {x}, {y}"), ty, stay, result)
    nan = w.op(f"fcmp uno {ty} {x}, {y}")
    return w.select(nan, ty, w.op(f"fadd {ty} {x}, {y}"), result)
