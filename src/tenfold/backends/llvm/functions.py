"""Mathematical functions: IR of our own where there is some, else libm lane by lane."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.llvm import maths
from tenfold.backends.llvm.target import Target
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import LANES, Writer, vector
from tenfold.errors import Unsupported

_LIBM = """
    exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh
    atanh erf erfc cbrt pow atan2 hypot
"""
LIBM = frozenset(_LIBM.split())


def function(w: Writer, name: str, element: str, args: list[str], wide: bool) -> str:
    """A function of f32 or f64 operands."""
    ty = vector(element, wide)
    dtype = "f32" if element == "float" else "f64"
    lanes = LANES if wide else 1
    if ours(name, dtype):
        w.maths.add((name, dtype, lanes))
        given = ", ".join(f"{ty} {a}" for a in args)
        return w.op(f"call {ty} {maths.symbol(name, dtype, lanes)}({given})")
    if name == "sigmoid":
        e = function(w, "exp", element, [w.op(f"fneg {ty} {args[0]}")], wide)
        one = w.const(element, 1.0, wide)
        return w.op(f"fdiv {ty} {one}, {w.op(f'fadd {ty} {one}, {e}')}")
    if name == "logaddexp":
        return _logaddexp(w, element, args[0], args[1], wide)
    if name not in LIBM:
        raise Unsupported(f"{name} of {dtype} on the CPU")
    return libm(w, name if element == "double" else name + "f", element, args, wide)


def ours(name: str, dtype: str) -> bool:
    """Whether our own IR has a function."""
    return name in maths.FUNCTIONS and dtype in maths.FUNCTIONS[name].ulp


def libm(w: Writer, symbol: str, element: str, args: list[str], wide: bool) -> str:
    """A call of libm for each lane."""
    w.outside.add(symbol)
    if not wide:
        return w.call(element, symbol, *((element, a) for a in args))
    ty, out = vector(element), "poison"
    for lane in range(LANES):
        given = [w.op(f"extractelement {ty} {a}, i64 {lane}") for a in args]
        r = w.call(element, symbol, *((element, a) for a in given))
        out = w.op(f"insertelement {ty} {out}, {element} {r}, i64 {lane}")
    return out


def _logaddexp(w: Writer, element: str, x: str, y: str, wide: bool) -> str:
    ty = vector(element, wide)
    above = w.op(f"fcmp ogt {ty} {x}, {y}")
    top = w.select(above, ty, x, y)
    gap = w.op(f"fneg {ty} {w.intrinsic('fabs', ty, w.op(f'fsub {ty} {x}, {y}'))}")
    tail = function(w, "log1p", element, [function(w, "exp", element, [gap], wide)], wide)
    total = w.op(f"fadd {ty} {top}, {tail}")
    same = w.op(f"fcmp oeq {ty} {x}, {y}")  # equal infinities have no gap
    ln2 = w.const(element, 0.6931471805599453, wide)
    total = w.select(same, ty, w.op(f"fadd {ty} {x}, {ln2}"), total)
    nan = w.op(f"fcmp uno {ty} {x}, {y}")
    return w.select(nan, ty, w.op(f"fadd {ty} {x}, {y}"), total)


def definitions(needed: Sequence[tuple[str, str, int]], target: Target) -> list[Fragment]:
    """The text of our own functions, and of what they call."""
    machine = maths.Target(fma=target.fma, avx512=target.vector_bytes == 64)
    texts: dict[str, None] = {}
    for name, dtype, lanes in needed:
        texts.update(dict.fromkeys(sorted(maths.requires(name, dtype, lanes, machine))))
        texts[maths.define(name, dtype, lanes, machine)] = None
    declared = tuple(t for t in texts if t.startswith("declare"))
    return [Fragment(declared, "\n".join(t for t in texts if not t.startswith("declare")))]
