"""Kernels as they are lowered to legal ones (`kernel/ir/legal`): the passes in their order."""

from __future__ import annotations

from functools import cache

from tenfold.kernel.ir.build import Builder
from tenfold.kernel.ir.index import Index
from tenfold.kernel.ir.kernel import OTHERS, Instruction, Kernel
from tenfold.kernel.ir.legal import kind
from tenfold.kernel.passes.casts import bitcast, cast
from tenfold.kernel.passes.complexes import part_complex
from tenfold.kernel.passes.contract import contract
from tenfold.kernel.passes.floats import floating
from tenfold.kernel.passes.halves import widen_halves
from tenfold.kernel.passes.integers import integer
from tenfold.kernel.passes.rewrite import Rewriter, Values, rewrite


def legalise(kernel: Kernel, fused: bool, brain: bool = False) -> Kernel:
    """The legal kernel that computes what a kernel means; `fused` where products may go unrounded
    into sums, `brain` where the target rounds to bf16 by an instruction."""
    kernel = spell_out(widen_halves(part_complex(kernel), brain))
    return contract(kernel) if fused else kernel


_CONVERSIONS = ("from_half", "to_half", "from_bfloat", "to_bfloat")


def spell_out(kernel: Kernel) -> Kernel:
    """A kernel of real numbers whose instructions are all legal."""
    return rewrite(kernel, _rule)


@cache
def update(name: str, dtype: str, brain: bool = False) -> Kernel:
    """What a store with an update makes of what is there (the parts of parameter 0) and what is
    given (of parameter 1), all as they lie in memory: what this kernel stores."""
    b = Builder()
    out = b.buffer(dtype, 1, "write")
    b.store(out, Index(), b.op(name, dtype, b.param(dtype), b.param(dtype)))
    return legalise(b.finish(), False, brain)


def _rule(b: Rewriter, i: Instruction, args: list[Values]) -> Values:
    if i.op in ("load", "param") and len(i.attr) == 1:
        return (b.part(i, i.dtype, 0),)
    if i.op == "reduce":
        return (_reduce(b, i),)
    if i.op == "state":
        found = b.first[i.args[0]]
        made = b.instructions[found]  # a reduction, or a truth made of one of bytes
        return (b.state(found if made.op == "reduce" else made.args[0], *i.attr),)
    given = [a for (a,) in args]
    if i.op == "select":
        return (b.select(*given),)
    if i.op == "cast":
        return (cast(b, given[0], i.dtype),)
    if i.op == "bitcast":
        return (bitcast(b, given[0], i.dtype),)
    if i.op in OTHERS or i.op in _CONVERSIONS:
        return (b.same(i),)
    if kind(b.dtype(given[0])) == "f":
        return (floating(b, i.op, given),)
    return (integer(b, i.op, i.dtype, given),)


def _reduce(b: Rewriter, i: Instruction) -> int:
    """Of bools the greatest is whether any holds, and the least whether all do; which is first is
    asked of bytes."""
    if i.dtype != "bool":
        return b.same(i)
    which = {"max": "any", "sum": "any", "min": "all", "prod": "all"}.get(i.attr[0], i.attr[0])
    value, *place = (b.first[a] for a in i.args)
    if not place:
        return b.put(Instruction("reduce", "bool", (value,), (which, *i.attr[1:])))
    found = b.put(Instruction("reduce", "u8", (b.cast(value, "u8"), *place), i.attr))
    return b.do("ne", found, b.like(found, 0))
