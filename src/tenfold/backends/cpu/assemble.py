"""Text of modules to object code, after a few light passes; several modules at once."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

from tenfold.backends.cpu.target import Target, target_machine

# Code generation is superlinear in the length of a block; beyond this it is done lightly.
LONG = 40_000


class _Tools:
    """A machine that emits code, what is said of it at the head of a module, and the passes. They
    serve one module at a time, and are used again: each call into LLVM gives the GIL up, and gets
    it back late where another thread is busy."""

    def __init__(self, target: Target, level: int) -> None:
        import llvmlite.binding as llvm

        self.machine = target_machine(target, level)
        layout = self.machine.target_data
        self.head = f'target triple = "{self.machine.triple}"\ntarget datalayout = "{layout}"\n'
        self.passes = llvm.create_new_module_pass_manager()
        self.passes.add_always_inliner_pass()
        self.passes.add_instruction_combine_pass()
        self.passes.add_dead_code_elimination_pass()
        self.tuning = llvm.create_pipeline_tuning_options(speed_level=1)


_resting: dict[tuple[Target, int], list[_Tools]] = {}  # tools that nobody is using


def assemble(text: str, target: Target) -> bytes:
    """Object code of a module's text. Any number of threads may do this at once.

    Always-inline, instruction combining and dead code elimination give code as fast as all of
    LLVM's passes, since a kernel has each value once already; loop and superword vectorisers are
    never run, for the text has its vectors already and they take more than linear time. LLVM's
    NewGVN is left out: on some kernels it stops the process with a failed assertion.
    """
    import llvmlite.binding as llvm

    level = 2 if text.count("\n") < LONG else 1
    resting = _resting.setdefault((target, level), [])
    try:
        tools = resting.pop()
    except IndexError:
        tools = _Tools(target, level)
    # A context of its own: what is shared within one may be used by one thread at a time.
    module = llvm.parse_assembly(tools.head + text, llvm.create_context())
    # Analyses are remembered in the builder by where functions lie: it serves one module.
    tools.passes.run(module, llvm.create_pass_builder(tools.machine, tools.tuning))
    data = _emit(tools.machine, module)
    resting.append(tools)
    return data


def assemble_all(texts: Sequence[str], target: Target) -> list[bytes]:
    """Object code of each of these, made by as many threads as there are processors for it."""
    made: list[bytes | BaseException | None] = [None] * len(texts)
    # The longest first: what is left at the end is short.
    left = sorted(range(len(texts)), key=lambda n: len(texts[n]))

    def work() -> None:
        while True:
            try:
                number = left.pop()
            except IndexError:
                return
            try:
                made[number] = assemble(texts[number], target)
            except BaseException as error:
                made[number] = error

    count = min(len(texts), _processors())
    others = [threading.Thread(target=work, name="tenfold-llvm") for _ in range(count - 1)]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()
    found = []
    for one in made:
        if not isinstance(one, bytes):
            assert one is not None
            raise one
        found.append(one)
    return found


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _emit(machine: Any, module: Any) -> bytes:
    """What `machine.emit_object(module)` gives, without holding the lock that llvmlite puts around
    each call into LLVM: this one call takes most of the time, and LLVM itself needs no lock
    between contexts."""
    unlocked = _unlocked()
    if unlocked is None:
        return bytes(machine.emit_object(module))
    import llvmlite.binding as llvm

    lib = llvm.ffi.lib
    with llvm.ffi.OutputString() as message:
        buffer = unlocked(machine, module, 1, message)
        if not buffer:
            raise RuntimeError(str(message))
    try:
        start, size = lib.LLVMPY_GetBufferStart(buffer), lib.LLVMPY_GetBufferSize(buffer)
        return ctypes.string_at(start, size)
    finally:
        lib.LLVMPY_DisposeMemoryBuffer(buffer)


@cache
def _unlocked() -> Any:
    """LLVM's function that emits objects, as llvmlite declared it; None where it is not found."""
    import llvmlite.binding as llvm

    try:
        llvm.ffi.lib.LLVMPY_GetBufferStart, llvm.ffi.lib.LLVMPY_DisposeMemoryBuffer  # noqa: B018
        return llvm.ffi.lib.LLVMPY_TargetMachineEmitToMemory._cfn
    except AttributeError:
        return None
