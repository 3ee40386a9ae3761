"""Kernels to object code: many in one module, light passes, equal ones once in a process."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tenfold.backends.cpu.emit import Code, emit, outer_extent
from tenfold.backends.cpu.functions import definitions
from tenfold.backends.cpu.schedule import Schedule, choose
from tenfold.backends.cpu.target import Target, target_machine
from tenfold.backends.cpu.text import Fragment, join
from tenfold.kernel.kernel import Kernel

# Code generation is superlinear in the length of a block; beyond this it is done lightly.
LONG = 40_000


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a caller of a compiled kernel has to know."""

    name: str
    schedule: Schedule
    extent: int  # of the outer axis: the whole kernel is [0, extent)
    outside: tuple[str, ...]  # functions of libm called lane by lane


@dataclass(frozen=True, slots=True)
class Module:
    """Object code of some kernels: position-independent, free of addresses."""

    data: bytes
    kernels: tuple[Compiled, ...]


def prepare(
    kernel: Kernel, target: Target, strict: bool = False, schedule: Schedule | None = None
) -> tuple[Code, Compiled]:
    """A kernel as text, named by its digest."""
    schedule = schedule or choose(kernel, target)
    code = emit(kernel, schedule, target, symbol(kernel, strict), strict)
    return code, Compiled(code.name, schedule, outer_extent(kernel, schedule), code.outside)


def symbol(kernel: Kernel, strict: bool = False) -> str:
    """The name of a kernel's function."""
    return f"tn_{'s' if strict else 'k'}{kernel.digest[:32]}"


def compile_kernels(
    kernels: Iterable[Kernel],
    target: Target,
    strict: bool = False,
    fragments: Sequence[Fragment] = (),
) -> Module:
    """One object of these kernels, equal ones once, and of further text beside them."""
    distinct = {symbol(kernel, strict): kernel for kernel in kernels}
    made = [prepare(kernel, target, strict) for kernel in distinct.values()]
    text = module_text([code for code, _ in made], target, fragments)
    return Module(assemble(text, target), tuple(compiled for _, compiled in made))


_made: dict[tuple[Target, str], tuple[Module, Compiled]] = {}


def compiled_once(
    kernels: Sequence[Kernel], target: Target, strict: bool = False
) -> list[tuple[Module, Compiled]]:
    """For each kernel the module that has it; what this process has not yet compiled goes into
    one new module."""
    names = [symbol(kernel, strict) for kernel in kernels]
    missing = {
        name: kernel
        for name, kernel in zip(names, kernels, strict=True)
        if (target, name) not in _made
    }
    if missing:
        module = compile_kernels(missing.values(), target, strict)
        for compiled in module.kernels:
            _made.setdefault((target, compiled.name), (module, compiled))
    return [_made[target, name] for name in names]


def module_text(codes: Sequence[Code], target: Target, fragments: Sequence[Fragment] = ()) -> str:
    """The text of a module: kernels, the functions they call, and what is given beside."""
    needed = sorted(frozenset().union(*(code.maths for code in codes)))
    parts = [code.fragment for code in codes]
    return join([*parts, *definitions(needed, target), *fragments])


@cache
def _machine(target: Target, level: int) -> Any:
    return target_machine(target, level)


_lock = threading.Lock()


def assemble(text: str, target: Target) -> bytes:
    """Object code of a module's text, after a few light passes.

    Always-inline, instruction combining and dead code elimination give code as fast as all of
    LLVM's passes, since a kernel has each value once already; loop and superword vectorisers are
    never run, for the text has its vectors already and they take more than linear time. LLVM's
    NewGVN is left out: on some kernels it stops the process with a failed assertion.
    """
    import llvmlite.binding as llvm

    level = 2 if text.count("\n") < LONG else 1
    with _lock:
        machine = _machine(target, level)
        head = f'target triple = "{machine.triple}"\ntarget datalayout = "{machine.target_data}"\n'
        module = llvm.parse_assembly(head + text)
        builder = llvm.create_pass_builder(
            machine, llvm.create_pipeline_tuning_options(speed_level=1)
        )
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_instruction_combine_pass()
        passes.add_dead_code_elimination_pass()
        passes.run(module, builder)
        return bytes(machine.emit_object(module))
