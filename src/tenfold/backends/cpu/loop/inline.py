"""A kernel as text that is put in place: what is done once, and what is done in each round.

By itself a kernel carries on where a check fails, with its indices clamped, and says so in the end.
In place a kernel of single numbers stops at the check, so an index that was found in range is not
clamped.
"""

from __future__ import annotations

import re

from tenfold.backends.cpu.emit.emit import Emitter
from tenfold.backends.cpu.emit.sizes import registers
from tenfold.backends.cpu.emit.state import Val
from tenfold.backends.cpu.schedule.fixed import choose_fixed
from tenfold.backends.llvm.functions import Name
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.writer import Writer
from tenfold.frozen import frozen
from tenfold.kernel.analyse.nest import nest
from tenfold.kernel.ir.kernel import Kernel
from tenfold.kernel.ir.number import Facts
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.kernel.passes.legalise import legalise

SELDOM_NOT = '!prof !{!"branch_weights", i32 2000, i32 1}'
_NAME = re.compile(r"%([A-Za-z_][\w.]*)")
_LABEL = re.compile(r"^([A-Za-z_][\w.]*):", re.MULTILINE)


@frozen
class InlineKernel:
    """A kernel's text: `head` before the loop, `body` in each round, `answer` the bits of failed
    checks. The addresses of its buffers are %b0, %b1, …; %params, %low and %high are as `emit`
    states. Where a check fails early the body goes to %bad, which is not in it."""

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
        self.early = set() if kernel.axes else {c.condition for c in kernel.checks}
        self.inside = clamped_in_range(kernel) if self.early else {}
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

    def compute(self, value: int) -> Val:
        if value in self.inside:
            found: Val = self.s.env[self.inside[value]]
            return found
        made = super().compute(value)
        if value in self.early:
            on = self.w.fresh("on")
            self.w.put(f"br i1 {made.at(0)}, label %{on}, label %bad, {SELDOM_NOT}")
            self.w.label(on)
        return made

    def guard(self, check: int) -> None:
        if self.kernel.checks[check].condition not in self.early:
            super().guard(check)

    def param(self, number: int, part: int) -> str:
        """Parameters are read once, before the loop."""
        lines, self.w.lines = self.w.lines, self.head
        found = super().param(number, part)
        self.w.lines = lines
        return found


def clamped_in_range(kernel: Kernel) -> dict[int, int]:
    """Values clamped to a range, where a check before them says that they lie in it; by these the
    values as they were: `min(max(x, low), high)` behind `low <= x and x <= high`."""
    instructions = kernel.instructions
    ranges: dict[tuple[int, int, int], int] = {}  # value, low, high: the check
    for check in kernel.checks:
        one = instructions[check.condition]
        parts = [instructions[a] for a in one.args] if one.op == "and" else []
        if [p.op for p in parts] == ["ge", "le"] and parts[0].args[0] == parts[1].args[0]:
            x, low, high = *parts[0].args, parts[1].args[1]
            ranges.setdefault((x, low, high), check.condition)
    found: dict[int, int] = {}
    for n, one in enumerate(instructions):
        inner = instructions[one.args[0]] if one.op == "min" else None
        if inner is not None and inner.op == "max":
            x, low, high = *inner.args, one.args[1]
            if ranges.get((x, low, high), n) < n:
                found[n] = x
    return found
