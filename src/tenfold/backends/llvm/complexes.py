"""Elementwise instructions on complex numbers, held as pairs of real and imaginary parts."""

from __future__ import annotations

import math

from tenfold.backends.llvm.floats import floating
from tenfold.backends.llvm.functions import called
from tenfold.backends.llvm.writer import COMPUTE, Writer, vector
from tenfold.errors import Unsupported

Parts = tuple[str, ...]


def complex_op(w: Writer, name: str, source: str, args: list[Parts], wide: bool) -> Parts:
    """One instruction on complex operands."""
    element = COMPUTE[source]
    real = "f32" if element == "float" else "f64"
    ty, i1 = vector(element, wide), vector("i1", wide)
    (a, b) = args[0]

    def op(which: str, *given: str) -> str:
        return floating(w, which, real, list(given), wide)

    def either(x: str, y: str) -> str:
        return w.op(f"or {i1} {x}, {y}")

    def also(x: str, y: str) -> str:
        return w.op(f"and {i1} {x}, {y}")

    if name == "real":
        return (a,)
    if name == "imag":
        return (b,)
    if name == "conj":
        return a, op("neg", b)
    if name == "neg":
        return op("neg", a), op("neg", b)
    if name == "abs":
        return (_size(w, element, a, b, wide),)
    if name in ("isnan", "isinf"):
        return (either(op(name, a), op(name, b)),)
    if name == "isfinite":
        return (also(op(name, a), op(name, b)),)
    if len(args) < 2:
        raise Unsupported(f"{name} of {source} on the CPU")
    c, d = args[1]
    if name in ("add", "sub"):
        return op(name, a, c), op(name, b, d)
    if name == "mul":
        left = op("sub", op("mul", a, c), op("mul", b, d))
        return left, op("add", op("mul", a, d), op("mul", b, c))
    if name == "div":
        return _divide(w, element, a, b, c, d, wide)
    if name == "eq":
        return (also(op("eq", a, c), op("eq", b, d)),)
    if name == "ne":
        return (either(op("ne", a, c), op("ne", b, d)),)
    if name in ("lt", "le", "gt", "ge"):  # real parts first, as NumPy orders them
        first = op("lt" if name[0] == "l" else "gt", a, c)
        ordered = w.op(f"fcmp ord {ty} {b}, {d}")
        tie = also(op("eq", a, c), op(name, b, d))
        return (either(also(first, ordered), tie),)
    raise Unsupported(f"{name} of {source} on the CPU")


def _size(w: Writer, element: str, a: str, b: str, wide: bool) -> str:
    """The absolute value; for f32 parts in f64, where squares cannot overflow."""
    if element == "double":
        return called(w, "hypot", "f64", [a, b], wide)
    f32, f64 = vector("float", wide), vector("double", wide)
    x, y = (w.op(f"fpext {f32} {p} to {f64}") for p in (a, b))
    squares = [w.op(f"fmul {f64} {p}, {p}") for p in (x, y)]
    root = w.intrinsic("sqrt", f64, w.op(f"fadd {f64} {squares[0]}, {squares[1]}"))
    size = w.op(f"fptrunc {f64} {root} to {f32}")
    infinite = w.const("float", math.inf, wide)
    for part in (a, b):  # an infinite part wins over a NaN
        is_infinite = w.op(f"fcmp oeq {f32} {w.intrinsic('fabs', f32, part)}, {infinite}")
        size = w.select(is_infinite, f32, infinite, size)
    return size


def _divide(w: Writer, element: str, a: str, b: str, c: str, d: str, wide: bool) -> Parts:
    """Smith's division, as NumPy does it: scale by the greater part of the divisor."""
    ty, i1 = vector(element, wide), vector("i1", wide)
    zero = w.const(element, 0.0, wide)
    size_c, size_d = w.intrinsic("fabs", ty, c), w.intrinsic("fabs", ty, d)
    straight = w.op(f"fcmp oge {ty} {size_c}, {size_d}")
    big, small = w.select(straight, ty, c, d), w.select(straight, ty, d, c)
    ratio = w.op(f"fdiv {ty} {small}, {big}")
    product = w.op(f"fmul {ty} {small}, {ratio}")
    one = w.const(element, 1.0, wide)
    scale = w.op(f"fdiv {ty} {one}, {w.op(f'fadd {ty} {big}, {product}')}")
    # (a + b*r) or (a*r + b), and (b - a*r) or (b*r - a)
    ar, br = w.op(f"fmul {ty} {a}, {ratio}"), w.op(f"fmul {ty} {b}, {ratio}")
    real = w.select(straight, ty, w.op(f"fadd {ty} {a}, {br}"), w.op(f"fadd {ty} {ar}, {b}"))
    imag = w.select(straight, ty, w.op(f"fsub {ty} {b}, {ar}"), w.op(f"fsub {ty} {br}, {a}"))
    real, imag = w.op(f"fmul {ty} {real}, {scale}"), w.op(f"fmul {ty} {imag}, {scale}")
    none = w.op(
        f"and {i1} {w.op(f'fcmp oeq {ty} {c}, {zero}')}, {w.op(f'fcmp oeq {ty} {d}, {zero}')}"
    )
    real = w.select(none, ty, w.op(f"fdiv {ty} {a}, {size_c}"), real)
    imag = w.select(none, ty, w.op(f"fdiv {ty} {b}, {size_c}"), imag)
    return real, imag
