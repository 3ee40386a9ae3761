"""Kernels to the text of modules, and that to PTX by LLVM."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from tenfold.backends.cuda.emit.emit import emit
from tenfold.backends.cuda.emit.function import KernelText
from tenfold.backends.cuda.emit.overlap import overlapped
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm import assemble as llvm_assemble
from tenfold.backends.llvm.functions import definitions
from tenfold.backends.llvm.text import join
from tenfold.kernel.ir.number import Facts
from tenfold.kernel.ir.sized import SizedKernel

_own = threading.local()  # LLVM's machines serve one thread at a time


def prepare(
    call: SizedKernel,
    target: CudaTarget,
    strict: bool = False,
    odd: frozenset[int] = frozenset(),
) -> tuple[KernelText, Facts]:
    """A kernel as text, for some sizes and all that are like them; `odd` are the buffers that may
    begin at no multiple of 16 bytes."""
    facts = Facts(call.sizes)
    return emit(call.numbered(facts), target, facts, strict, odd), facts


def module_text(codes: Sequence[KernelText], target: CudaTarget) -> str:
    """The text of a module: kernels and the functions they call."""
    needed = sorted(frozenset().union(*(code.maths for code in codes)))
    parts = [code.fragment for code in codes]
    parts += dict.fromkeys(one for code in codes for one in code.common)
    return join([*parts, *definitions(needed, target.llvm)])


def to_ptx(text: str, target: CudaTarget) -> str:
    """The PTX of a module; where the chip can, its kernels overlap. The code generator's lowest
    level will do: the assembler optimises again, and higher ones take more than linear time in
    straight code."""
    import llvmlite.binding as llvm

    machine, head = _machine(target)
    if target.overlap:
        text = overlapped(text)
    module = llvm.parse_assembly(head + text, llvm.create_context())
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_instruction_combine_pass()
    passes.add_dead_code_elimination_pass()
    tuning = llvm.create_pipeline_tuning_options(speed_level=1)
    passes.run(module, llvm.create_pass_builder(machine, tuning))
    return llvm_assemble.emit(machine, module, assembly=True).decode()


def _machine(target: CudaTarget) -> tuple[Any, str]:
    kept: dict[CudaTarget, tuple[Any, str]] = _own.__dict__.setdefault("machines", {})
    if target not in kept:
        import llvmlite.binding as llvm

        _begin()
        like = target.llvm
        machine = llvm.Target.from_triple(like.triple).create_target_machine(
            cpu=like.cpu, features=like.features, opt=0
        )
        head = f'target triple = "{like.triple}"\ntarget datalayout = "{machine.target_data}"\n'
        kept[target] = machine, head
    return kept[target]


@cache
def _begin() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def compile_kernels(calls: Iterable[SizedKernel], target: CudaTarget) -> str:
    """The PTX of some kernels, each once."""
    codes = {code.name: code for code, _ in (prepare(call, target) for call in calls)}
    return to_ptx(module_text(list(codes.values()), target), target)
