"""Products that go unrounded into sums: contraction, decided in the kernel."""

from __future__ import annotations

from tenfold.kernel.ir.kernel import Instruction, Kernel
from tenfold.kernel.passes.rewrite import Rewriter, Values, rewrite

_FLOATS = ("f32", "f64")


def contract(kernel: Kernel) -> Kernel:
    """A kernel in which a product that only a sum or difference reads is part of it, as `fma`; of
    a sum over axes it becomes a `dot`. A product that stands outside the sum's loop stays there."""
    products = _products(kernel)
    paired = any(i.op == "reduce" and _paired(i) for i in kernel.instructions)
    if not (products or paired):
        return kernel

    def rule(b: Rewriter, i: Instruction, args: list[Values]) -> Values:
        number = len(b.at)
        if i.op == "reduce" and _paired(i):
            pair = tuple(b.first[a] for a in i.args)
            return (b.put(Instruction("reduce", i.dtype, pair, ("fused prod", *i.attr[1:]))),)
        for place, a in enumerate(i.args):
            if a not in products:
                continue
            if i.op == "reduce" and i.attr[0] == "sum":
                factors = tuple(b.first[f] for f in kernel.instructions[a].args)
                return (b.put(Instruction("reduce", i.dtype, factors, ("dot", *i.attr[1:]))),)
            if i.op in ("add", "sub") and kernel.free[a] == kernel.free[number]:
                return (_fused(b, i, kernel.instructions[a], place),)
        return (b.same(i),)

    return rewrite(kernel, rule)


def _paired(i: Instruction) -> bool:
    """Whether a reduction multiplies complex numbers."""
    return i.attr[0] == "prod" and len(i.args) == 2


def _fused(b: Rewriter, i: Instruction, product: Instruction, place: int) -> int:
    x, y = (b.first[f] for f in product.args)
    other = b.first[i.args[1 - place]]
    if i.op == "sub":
        x, other = (x, b.do("neg", other)) if place == 0 else (b.do("neg", x), other)
    return b.put(Instruction("fma", i.dtype, (x, y, other)))


def _products(kernel: Kernel) -> set[int]:
    """The float products that one instruction alone reads, once."""
    uses = [0] * len(kernel.instructions)
    for i in kernel.instructions:
        for v in i.uses():
            uses[v] += 1
    for s in kernel.stores:
        for v in s.uses():
            uses[v] += 2
    return {
        n
        for n, i in enumerate(kernel.instructions)
        if i.op == "mul" and i.dtype in _FLOATS and uses[n] == 1
    }
