"""A kernel as text that is put in place: what is done once, and what is done in each round."""

from __future__ import annotations

import re

from tenfold.backends.cpu.emit.emit import Emitter
from tenfold.backends.cpu.emit.sizes import registers
from tenfold.backends.cpu.schedule.fixed import choose_fixed
from tenfold.backends.llvm.functions import Name
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.writer import Writer
from tenfold.frozen import frozen
from tenfold.kernel.analyse.nest import nest
from tenfold.kernel.ir.number import Facts
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.kernel.passes.legalise import legalise

_NAME = re.compile(r"%([A-Za-z_][\w.]*)")
_LABEL = re.compile(r"^([A-Za-z_][\w.]*):", re.MULTILINE)


@frozen
class InlineKernel:
    """A kernel's text: `head` before the loop, `body` in each round, `answer` the bits of failed
    checks. The addresses of its buffers are %b0, %b1, …; %params, %low and %high are as `emit`
    states."""

    head: str
    body: str
    answer: str
    declared: frozenset[str]
    maths: frozenset[Name]
    routines: bool  # whether it calls routines beside it, or polls: then it can't be put in place
    outer: int | None  # the axis that %low and %high are of

    def named(self, prefix: str) -> InlineKernel:
        """The text with every name of its own behind a prefix."""

        def changed(text: str) -> str:
            return _LABEL.sub(rf"{prefix}.\1:", _NAME.sub(rf"%{prefix}.\1", text))

        return InlineKernel(
            changed(self.head), changed(self.body), changed(self.answer), self.declared,
            self.maths, self.routines, self.outer,
        )  # fmt: skip


def inline(call: SizedKernel, target: LLVMTarget, strict: bool) -> InlineKernel:
    """A kernel as text to be put in place, by the schedule that it has by itself."""
    facts = Facts(call.sizes)
    kernel, schedule = choose_fixed(call.numbered(facts), target)
    legal = legalise(kernel, fused=target.fma and not strict)
    w = Writer(target)
    emitter = _InlineEmitter(legal, schedule, w, facts)
    answer = emitter.write()
    return InlineKernel(
        "\n".join(emitter.head) + "\n",
        "\n".join(w.lines) + "\n",
        answer,
        frozenset(w.declared),
        frozenset(w.maths),
        bool(w.routines) or "%buffers" in "\n".join(w.lines),
        schedule.outer,
    )


class _InlineEmitter(Emitter):
    """Writes a kernel without a function around it."""

    def write(self) -> str:
        """Write head and body; the text of the answer."""
        w, kernel = self.w, self.kernel
        self.head: list[str] = []
        w.label("entry")
        if kernel.checks:
            w.put("store i32 0, ptr %fault, align 4")
        if all(kernel.axes[a].extent for a in self.schedule.order):
            self.block(nest(kernel, self.schedule.order, self.schedule.reduced))
        if self.fenced:
            w.put("call void @llvm.x86.sse.sfence()")
        answer = w.op("load i32, ptr %fault, align 4") if kernel.checks else "0"
        memory = [f"  {m} = alloca [{size} x i8], align 64" for m, size in self.memory]
        if kernel.checks:
            memory.append("  %fault = alloca i32, align 4")
        assert self.facts is not None
        numbers = registers(self.facts, len(kernel.params), [*self.head, *w.lines])
        self.head = [*memory, *numbers, *self.head]
        return answer

    def param(self, number: int, part: int) -> str:
        """Parameters are read once, before the loop."""
        lines, self.w.lines = self.w.lines, self.head
        found = super().param(number, part)
        self.w.lines = lines
        return found
