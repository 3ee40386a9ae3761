"""A kernel made anew, instruction by instruction: what the passes that make it legal share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tenfold.kernel.ir.build import Builder
from tenfold.kernel.ir.kernel import (
    SCRATCH,
    Check,
    Instruction,
    Kernel,
    Store,
    free_axes,
    moved,
    renumbered,
)
from tenfold.kernel.ir.legal import BOOL, ELEMENTWISE, SAME, kind
from tenfold.types import DTYPES

Values = tuple[int, ...]  # what stands for a value: one, or the parts of a complex number


class Rewriter(Builder):
    """Collects the new kernel. `at` says what stands for each old value."""

    def __init__(self, kernel: Kernel, brain: bool = False) -> None:
        super().__init__(kernel.fold)
        self.old = kernel
        self.brain = brain  # whether the target rounds to bf16 by an instruction
        self.axes, self.buffers = list(kernel.axes), list(kernel.buffers)
        self.params = list(kernel.params)
        self.at: list[Values] = []
        self.first: list[int] = []

    def put(self, instruction: Instruction) -> int:
        number = len(self.instructions)
        found = self._known.setdefault(instruction, number)
        if found == number:
            self.free.append(free_axes(instruction, self.free, self.axes, self.buffers))
            self.instructions.append(instruction)
        return found

    def same(self, i: Instruction) -> int:
        """An instruction as it was, of what stands for its operands."""
        return self.put(renumbered(i, self.first))

    def part(self, i: Instruction, dtype: str, number: int) -> int:
        """A part of what a load or a parameter gives, as it lies in memory."""
        i = renumbered(i, self.first)
        return self.put(Instruction(i.op, dtype, i.args, (i.attr[0], number), i.index))

    def do(self, op: str, *args: int) -> int:
        """A legal elementwise instruction; its dtype follows from those of its operands."""
        result = ELEMENTWISE[op].result
        if result == BOOL:
            return self.put(Instruction(op, "bool", args))
        if result == SAME or result.isdigit():
            dtype = self.dtype(args[0 if result == SAME else int(result)])
            if dtype == "bool" and op in ("and", "or"):
                return self.op(op, dtype, *args)
            return self.put(Instruction(op, dtype, args))
        return self.put(Instruction(op, result, args))

    def call(self, name: str, *args: int) -> int:
        """A function of what it is given, and of that dtype."""
        return self.put(Instruction("call", self.dtype(args[0]), args, (name,)))

    def like(self, value: int, number: float) -> int:
        """A constant of a value's dtype."""
        return self.const(self.dtype(value), number)

    def known(self, value: int) -> int | None:
        """The number that an integer constant is, else None."""
        i = self.instructions[value]
        if i.op != "const" or kind(i.dtype) not in "iu":
            return None
        return int(np.frombuffer(i.attr[0], DTYPES[i.dtype])[0])


Rule = Callable[[Rewriter, Instruction, list[Values]], Values]
Written = Callable[[Rewriter, str, Values], Values]


def rewrite(
    kernel: Kernel, rule: Rule, written: Written | None = None, brain: bool = False
) -> Kernel:
    """The kernel with each instruction replaced by what a rule makes of it; `written` says what is
    stored for a value in a buffer of a dtype."""
    b = Rewriter(kernel, brain)

    def stored(s: Store) -> Values:
        values = b.at[s.value] if s.second is None else b.at[s.value] + b.at[s.second]
        return values if written is None else written(b, kernel.buffers[s.buffer].dtype, values)

    # What is kept in scratch memory has to stand before the loads that read it.
    kept: dict[int, list[Store]] = {}
    for s in kernel.stores:
        if kernel.buffers[s.buffer].role == SCRATCH:
            kept.setdefault(max(s.value, s.second or 0), []).append(s)
    for n, i in enumerate(kernel.instructions):
        args = [b.at[a] for a in i.args]
        found = args[1] if _loaded_or_zero(kernel, i) else rule(b, i, args)
        b.at.append(found)
        b.first.append(found[0])
        for s in kept.get(n, ()):
            stored(s)
    for s in kernel.stores:
        values = stored(s)
        b.stores.append(
            replace(
                s,
                index=moved(s.index, b.first),
                value=values[0],
                condition=None if s.condition is None else b.first[s.condition],
                second=values[1] if len(values) > 1 else None,
            )
        )
    b.checks = [Check(b.first[c.condition], c.code) for c in kernel.checks]
    return b.finish()


def _loaded_or_zero(kernel: Kernel, i: Instruction) -> bool:
    """Whether this chooses between a load under a condition and the zero which that gives."""
    if i.op != "select":
        return False
    found, other = (kernel.instructions[a] for a in i.args[1:])
    if found.op != "load" or found.args != i.args[:1]:
        return False
    return other.op == "const" and not any(other.attr[0])


__all__ = ["Rewriter", "Rule", "Values", "rewrite"]
