"""Sixteen-bit floats computed in f32, and rounded after each instruction as NumPy does."""

from __future__ import annotations

import numpy as np

from tenfold.kernel.ir.kernel import Instruction, Kernel
from tenfold.kernel.ir.legal import kind
from tenfold.kernel.passes.floats import following
from tenfold.kernel.passes.rewrite import Rewriter, Values, rewrite
from tenfold.types import DTYPES

HALVES = ("f16", "bf16")

# What gives one of its operands, or is exact in any float dtype.
_EXACT_OPS = """
    floor ceil trunc round max min fmax fmin neg abs sign real conj imag select
"""
# What moves bits, those of a signalling NaN too: to convert one to f32 makes it quiet.
_MOVES = frozenset(("neg", "abs", "select"))
_EXACT = frozenset(_EXACT_OPS.split())
_ARITHMETIC = frozenset(("add", "sub", "mul", "div"))


def widen_halves(kernel: Kernel, brain: bool = False) -> Kernel:
    """A kernel without values of f16 and bf16: they are f32, and bits of u16 in memory. With
    `brain` the target rounds to bf16 by an instruction; else integers do it."""
    touched = any(i.dtype in HALVES for i in kernel.instructions)
    return rewrite(kernel, _rule, _bits, brain) if touched else kernel


def _rule(b: Rewriter, i: Instruction, args: list[Values]) -> Values:
    source = b.old.instructions[i.args[0]].dtype if i.args else ""
    if i.dtype not in HALVES:
        if i.op == "bitcast" and source in HALVES:
            return (b.bitcast(_bits(b, source, args[0])[0], i.dtype),)
        return (b.same(i),)
    if i.op in ("load", "param"):
        return (_value(b, i.dtype, b.part(i, "u16", 0)),)
    if i.op == "const":
        return (b.const("f32", float(np.frombuffer(i.attr[0], DTYPES[i.dtype])[0])),)
    x = args[0][0]
    if i.op == "cast":
        return (_cast(b, i.dtype, x),)
    if i.op == "bitcast":
        return (_value(b, i.dtype, b.bitcast(_bits(b, source, args[0])[0], "u16")),)
    if i.op == "nextafter":
        return (_following(b, i.dtype, x, args[1][0]),)
    if i.op == "state":
        return (b.same(i),)
    if i.op in _MOVES and i.dtype == "f16":
        return (_value(b, i.dtype, _moved(b, i, args)),)
    if i.op == "copysign":
        size, sign = (_bits(b, i.dtype, a)[0] for a in args)
        both = (b.do("and", v, b.const("u16", m)) for v, m in ((size, 0x7FFF), (sign, 0x8000)))
        return (_value(b, i.dtype, b.do("or", *both)),)
    found = b.put(Instruction(i.op, "f32", tuple(a for (a,) in args), i.attr))
    if i.op == "reduce":
        exact = i.attr[0] not in ("sum", "prod")
        return (found if exact else rounded(b, i.dtype, found),)
    if i.op in _EXACT:
        return (found,)
    # Arithmetic hands on the NaN of an operand, or makes one with nothing in its low bits.
    return (rounded(b, i.dtype, found, short=i.op in _ARITHMETIC),)


def _moved(b: Rewriter, i: Instruction, args: list[Values]) -> int:
    """The bits of what an instruction moves."""
    if i.op == "select":
        (condition,), *others = args
        return b.do("select", condition, *(_bits(b, i.dtype, a)[0] for a in others))
    (bits,) = _bits(b, i.dtype, args[0])
    op, mask = ("xor", 0x8000) if i.op == "neg" else ("and", 0x7FFF)
    return b.do(op, bits, b.const("u16", mask))


def _value(b: Rewriter, dtype: str, bits: int) -> int:
    """The f32 of what is held in sixteen bits."""
    if dtype == "f16":
        return b.do("from_half", bits)
    if b.brain:
        return b.do("from_bfloat", bits)
    high = b.do("shl", b.cast(bits, "u32"), b.const("u32", 16))
    return b.bitcast(high, "f32")


def _bits(b: Rewriter, dtype: str, values: Values) -> Values:
    """The sixteen bits of an f32 that is rounded already."""
    if dtype not in HALVES:
        return values
    (x,) = values
    i = b.instructions[x]
    if dtype == "f16":
        return i.args if i.op == "from_half" else (b.do("to_half", x),)
    if i.op == "from_bfloat":
        return i.args
    whole = b.instructions[i.args[0]] if i.op == "bitcast" else i
    if whole.op == "shl":  # it was loaded
        return b.instructions[whole.args[0]].args
    return (b.cast(b.do("shr", b.bitcast(x, "u32"), b.const("u32", 16)), "u16"),)


def rounded(b: Rewriter, dtype: str, x: int, short: bool = False, given: bool = False) -> int:
    """An f32 rounded to the nearest value of a sixteen-bit dtype, still as f32. `short` says that
    a NaN has no bits beyond those that are kept: then rounding leaves it as it is. A NaN that is
    `given`, not computed, keeps its sign and the bits that fit."""
    if dtype == "f16":
        return b.do("from_half", b.do("to_half", x))
    if b.brain and not given:
        return b.do("from_bfloat", b.do("to_bfloat", x))

    def const(value: int) -> int:
        return b.const("u32", value)

    bits = b.bitcast(x, "u32")
    odd = b.do("ne", b.do("and", bits, const(0x10000)), const(0))
    up = b.do("add", bits, b.select(odd, const(0x8000), const(0x7FFF)))
    if not short:
        quiet = b.do("or", bits, const(0x400000)) if given else const(0x7FC00000)
        up = b.select(b.do("ne", x, x), quiet, up)
    return b.bitcast(b.do("and", up, const(0xFFFF0000)), "f32")


def _cast(b: Rewriter, dtype: str, x: int) -> int:
    """A value of any other dtype."""
    source = b.dtype(x)
    if source == "f32":
        return rounded(b, dtype, x, given=True)
    if source == "f64" and dtype == "f16":
        return rounded(b, dtype, _to_odd(b, x))
    return rounded(b, dtype, b.cast(x, "f32"), given=kind(source) == "f")


def _to_odd(b: Rewriter, x: int) -> int:
    """An f64 as f32, cut towards zero with the last bit set where inexact, so that rounding
    once more to a shorter format gives what rounding once would have given. NaN stays one."""
    near = b.cast(x, "f32")
    back = b.cast(near, "f64")
    bits = b.bitcast(near, "u32")
    inexact = b.do("ne", back, x)
    over = b.do("gt", b.do("abs", back), b.do("abs", x))
    down = b.do("sub", bits, b.cast(over, "u32"))
    return b.bitcast(b.do("or", down, b.cast(inexact, "u32")), "f32")


def _following(b: Rewriter, dtype: str, x: int, y: int) -> int:
    bits = b.bitcast(_bits(b, dtype, (x,))[0], "i16")
    stepped = following(b, x, y, bits)
    stay = x if dtype == "f16" else y  # zeros of either sign are equal; NumPy's halves keep x
    found = b.select(b.do("eq", x, y), stay, _value(b, dtype, b.bitcast(stepped, "u16")))
    either = b.do("or", b.do("ne", x, x), b.do("ne", y, y))
    return b.select(either, b.do("add", x, y), found)
