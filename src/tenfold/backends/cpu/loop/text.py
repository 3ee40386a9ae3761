"""The text of a loop's function: what it is given, what is done once, and the loop."""

from __future__ import annotations

from collections.abc import Mapping

from tenfold.backends.cpu.emit.sizes import SIZE_BYTES
from tenfold.backends.cpu.loop.inline import InlineKernel, inline
from tenfold.backends.cpu.loop.walk import POLLED, STOP, Walk
from tenfold.backends.cpu.loop.writer import OpenKernel
from tenfold.backends.llvm.functions import Name, definitions, inlined, shared, widest
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.text import Fragment, join
from tenfold.digest import sha256
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.plan import LoopStep, Plan

LINES = 1600  # of a function, with maths: a longer one is left to the interpreter


class LoopTexts:
    """The texts of a plan's loops; a kernel that several have is written once."""

    def __init__(self, plan: Plan, target: LLVMTarget, strict: bool) -> None:
        self._plan, self._target, self._strict = plan, target, strict
        self._numbers = {id(one): n for n, one in enumerate(plan.every)}
        self._kernels: dict[SizedKernel, InlineKernel] = {}

    def text(self, number: int, at: int) -> tuple[str, str] | None:
        """The name of a loop's function and the module that defines it; None if it is too long, or
        a kernel can't be put in place."""
        plan = self._plan.every[number]
        step = plan.steps[at]
        assert isinstance(step, LoopStep)
        walk = Walk(plan, step, self._numbers)
        for line in walk.lines:
            if isinstance(line, OpenKernel) and line.call not in self._kernels:
                self._kernels[line.call] = inline(line.call, self._target, self._strict)
                if self._kernels[line.call].routines:
                    return None
        return _text(walk, self._target, self._kernels)


def _text(
    walk: Walk, target: LLVMTarget, kernels: Mapping[SizedKernel, InlineKernel]
) -> tuple[str, str] | None:
    head: list[str] = []
    body: list[str] = []
    declared: set[str] = {
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        "declare i64 @llvm.smax.i64(i64, i64)",
    }
    maths: set[Name] = set()
    for line in walk.lines:
        if not isinstance(line, OpenKernel):
            body.append(line)
            continue
        own = kernels[line.call].named(line.name)
        head += (_bound(line), own.head)
        body += (f"  br label %{line.name}.entry", own.body)
        if line.fault:
            body += (
                f"  %{line.fault} = icmp ne i32 {own.answer}, 0",
                f"  br label %{line.name}.done\n{line.name}.bad:",
                f"  br label %{line.fault}.look\n{line.name}.done:",
            )
        declared |= own.declared
        maths |= own.maths
    lines = [*walk.memory, *_given(walk), *head, *body, "  ret i32 0", STOP]
    text = "\n".join(("entry:", *lines))
    if text.count("\n") + inlined(text, maths, target) > LINES:
        return None
    text, needed = shared(text, frozenset(maths), target)
    name = f"tn_loop_{sha256(text.encode()).hexdigest()[:32]}"
    given = "ptr %buffers, ptr %params, i64 %low, i64 %high"
    text = f"define i32 @{name}({given}) nounwind{widest(target)} {{\n{text}}}\n"
    return name, join(
        [Fragment(tuple(sorted(declared)), text), *definitions(sorted(needed), target)]
    )


def _bound(kernel: OpenKernel) -> str:
    """Where a kernel's parameters lie; it runs over the whole of its outer axis."""
    return (
        f"  %{kernel.name}.params = getelementptr i8, ptr %params, i64 {kernel.params}\n"
        f"  %{kernel.name}.low = add i64 0, 0\n"
        f"  %{kernel.name}.high = add i64 {kernel.extent}, 0"
    )


def _given(walk: Walk) -> list[str]:
    """The lines that read what the function is given."""
    lines = []
    rows = len(walk.operands)
    for n, name in [*((n, f"%o{n}") for n in range(rows)),
                    (rows, "%poll"), (rows + 1, "%state"), (rows + 2, "%host")]:  # fmt: skip
        lines.append(f"  {name}.at = getelementptr ptr, ptr %buffers, i64 {n}")
        lines.append(f"  {name} = load ptr, ptr {name}.at, align 8")
    for n in range(len(walk.numbers)):
        at = walk.size + n * SIZE_BYTES
        lines.append(f"  %q{n}.at = getelementptr i8, ptr %params, i64 {at}")
        lines.append(f"  %q{n} = load i64, ptr %q{n}.at, align 8")
    lines += ("  %left = alloca i64, align 8", f"  store i64 {POLLED}, ptr %left, align 8")
    return lines
