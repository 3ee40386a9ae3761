"""Complex numbers as pairs of real and imaginary parts."""

from __future__ import annotations

import math

from tenfold.errors import Unsupported
from tenfold.kernel.ir.kernel import Instruction, Kernel
from tenfold.kernel.passes.rewrite import Rewriter, Values, rewrite
from tenfold.types import DTYPES

PARTS = {"c64": "f32", "c128": "f64"}


def part_complex(kernel: Kernel) -> Kernel:
    """A kernel without complex values: a load takes a part, a store writes both."""
    touched = any(i.dtype in PARTS for i in kernel.instructions)
    return rewrite(kernel, _rule) if touched else kernel


def _rule(b: Rewriter, i: Instruction, args: list[Values]) -> Values:
    of = args[1] if i.op == "select" else args[0] if args else ()
    if i.dtype not in PARTS and (len(of) < 2 or i.op == "load"):
        return (b.same(i),)
    part = PARTS.get(i.dtype, "")
    if i.op in ("load", "param"):
        return b.part(i, part, 0), b.part(i, part, 1)
    if i.op == "const":
        raw, size = i.attr[0], DTYPES[part].itemsize
        return b.const(part, raw[:size]), b.const(part, raw[size:])
    if i.op == "select":
        (truth,), yes, no = args
        return tuple(b.select(truth, y, n) for y, n in zip(yes, no, strict=True))
    if i.op == "cast":
        return _cast(b, i.dtype, args[0])
    if i.op == "reduce":
        return _reduce(b, i, args[0])
    if i.op == "complex":
        return args[0][0], args[1][0]
    return elementwise(b, i.op, args)


def _cast(b: Rewriter, dtype: str, x: Values) -> Values:
    if dtype == "bool":
        a, c = (b.op("ne", "bool", p, b.like(p, 0)) for p in x)
        return (b.do("or", a, c),)
    if dtype not in PARTS:
        return (b.cast(x[0], dtype),)
    part = PARTS[dtype]
    return b.cast(x[0], part), b.cast(x[1], part) if len(x) > 1 else b.const(part, 0.0)


def _reduce(b: Rewriter, i: Instruction, x: Values) -> Values:
    which, axes = i.attr[0], i.attr[1:]
    if which == "sum":
        return tuple(b.reduce("sum", axes, p) for p in x)
    if which != "prod":
        raise Unsupported(f"a reduction by {which} of {i.dtype}")
    found = b.put(Instruction("reduce", b.dtype(x[0]), x, i.attr))
    return found, b.state(found, 1)


def elementwise(b: Rewriter, op: str, args: list[Values]) -> Values:
    """One instruction on complex operands."""
    (x, y), real = args[0], b.dtype(args[0][0])
    if op == "real":
        return (x,)
    if op == "imag":
        return (y,)
    if op == "conj":
        return x, b.op("neg", real, y)
    if op == "neg":
        return b.op("neg", real, x), b.op("neg", real, y)
    if op == "abs":
        return (_size(b, x, y),)
    if op in ("isnan", "isinf", "isfinite"):
        each = (b.op(op, "bool", p) for p in (x, y))
        return (b.do("and" if op == "isfinite" else "or", *each),)
    if len(args) > 1:
        (u, v) = args[1]
        if op in ("add", "sub"):
            return b.do(op, x, u), b.do(op, y, v)
        if op == "mul":
            left = b.do("sub", b.do("mul", x, u), b.do("mul", y, v))
            return left, b.do("add", b.do("mul", x, v), b.do("mul", y, u))
        if op == "div":
            return _divide(b, x, y, u, v)
        if op in ("eq", "ne"):
            both = b.do(op, x, u), b.do(op, y, v)
            return (b.do("and" if op == "eq" else "or", *both),)
        if op in ("lt", "le", "gt", "ge"):  # real parts first, as NumPy orders them
            first = b.do("lt" if op[0] == "l" else "gt", x, u)
            ordered = b.do("and", b.do("eq", y, y), b.do("eq", v, v))
            tie = b.do("and", b.do("eq", x, u), b.do(op, y, v))
            return (b.do("or", b.do("and", first, ordered), tie),)
    raise Unsupported(f"{op} of {'c64' if real == 'f32' else 'c128'} in a kernel")


def _size(b: Rewriter, x: int, y: int) -> int:
    """The absolute value; for f32 parts in f64, where squares cannot overflow."""
    if b.dtype(x) == "f64":
        return b.op("hypot", "f64", x, y)
    squares = [b.do("mul", p, p) for p in (b.cast(x, "f64"), b.cast(y, "f64"))]
    size = b.cast(b.do("sqrt", b.do("add", *squares)), "f32")
    infinite = b.const("f32", math.inf)
    for part in (x, y):  # an infinite part wins over a NaN
        size = b.select(b.do("eq", b.do("abs", part), infinite), infinite, size)
    return size


def _divide(b: Rewriter, x: int, y: int, u: int, v: int) -> Values:
    """Smith's division, as NumPy does it: scale by the greater part of the divisor."""
    zero, one = b.like(x, 0.0), b.like(x, 1.0)
    size_u, size_v = b.do("abs", u), b.do("abs", v)
    straight = b.do("ge", size_u, size_v)
    big, small = b.select(straight, u, v), b.select(straight, v, u)
    ratio = b.do("div", small, big)
    scale = b.do("div", one, b.do("add", big, b.do("mul", small, ratio)))
    # (x + y*r) or (x*r + y), and (y - x*r) or (y*r - x)
    xr, yr = b.do("mul", x, ratio), b.do("mul", y, ratio)
    real = b.select(straight, b.do("add", x, yr), b.do("add", xr, y))
    imag = b.select(straight, b.do("sub", y, xr), b.do("sub", yr, x))
    none = b.do("and", b.do("eq", u, zero), b.do("eq", v, zero))
    parts = ((x, real), (y, imag))
    return tuple(b.select(none, b.do("div", p, size_u), b.do("mul", q, scale)) for p, q in parts)
