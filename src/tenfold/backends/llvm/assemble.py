"""Text of modules to object code, after a few light passes; several modules at once."""

from __future__ import annotations

import ctypes
import os
import threading
from collections import deque
from functools import cache
from typing import Any

from tenfold.backends.llvm.library import LibraryTools, library
from tenfold.backends.llvm.masks import refuse
from tenfold.backends.llvm.target import LLVMTarget, target_machine
from tenfold.locks import start
from tenfold.switching import giving_way


class _Tools:
    """A machine that emits code, what is said of it at the head of a module, and the passes. They
    serve one module at a time, and are used again: each call into LLVM gives the GIL up, and gets
    it back late where another thread is busy."""

    def __init__(self, target: LLVMTarget, loops: bool = False) -> None:
        import llvmlite.binding as llvm

        self.machine = target_machine(target)
        layout = self.machine.target_data
        self.head = f'target triple = "{self.machine.triple}"\ntarget datalayout = "{layout}"\n'
        self.passes = llvm.create_new_module_pass_manager()
        self.passes.add_always_inliner_pass()
        if loops:
            self.passes.add_sroa_pass()
            self.passes.add_instruction_combine_pass()
            self.passes.add_simplify_cfg_pass()
        self.passes.add_instruction_combine_pass()
        self.passes.add_dead_code_elimination_pass()
        self.tuning = llvm.create_pipeline_tuning_options(speed_level=1)

    def assemble(self, text: str) -> bytes:
        import llvmlite.binding as llvm

        # A context of its own: what is shared within one may be used by one thread at a time.
        module = llvm.parse_assembly(self.head + text, llvm.create_context())
        # Analyses are remembered in the builder by where functions lie: it serves one module.
        self.passes.run(module, llvm.create_pass_builder(self.machine, self.tuning))
        return emit(self.machine, module)


_resting: dict[
    tuple[LLVMTarget, bool], list[_Tools | LibraryTools]
] = {}  # tools that nobody is using


def assemble(text: str, target: LLVMTarget, loops: bool = False) -> bytes:
    """Object code of a module's text. Any number of threads may do this at once. In the text of
    `loops` memory on the stack becomes registers.

    Always-inline, instruction combining and dead code elimination give code as fast as all of
    LLVM's passes, since a kernel has each value once already; loop and superword vectorisers are
    never run, for the text has its vectors already and they take more than linear time. LLVM's
    NewGVN is left out: on some kernels it stops the process with a failed assertion.
    """
    refuse(text, target)
    resting = _resting.setdefault((target, loops), [])
    try:
        tools = resting.pop()
    except IndexError:
        found = library(target.llvmlite)
        tools = _Tools(target, loops) if found is None else LibraryTools(found, target, loops)
    data = tools.assemble(text)
    resting.append(tools)
    return data


class Assembly:
    """Modules on their way to object code, in as many threads as there are processors: those that
    were added are compiled while a plan is still being made and the text of the next written.
    `loops`: as `assemble` has it."""

    def __init__(self, target: LLVMTarget, loops: bool = False) -> None:
        self._target, self._loops = target, loops
        self._made: list[bytes | BaseException | None] = []
        self._left: deque[tuple[int, str]] = deque()
        self._threads: list[threading.Thread] = []

    def add(self, text: str) -> None:
        """Have one more module compiled."""
        self._left.append((len(self._made), text))
        self._made.append(None)
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) < processors() - 1:
            self._threads.append(start(self._beside, "tenfold-llvm"))

    def drop(self) -> None:
        """Compile no more: what is under way ends."""
        self._left.clear()

    def finish(self) -> list[bytes]:
        """The object code of all, in the order in which they were added. The caller helps."""
        self._work()
        for thread in self._threads:
            thread.join()
        found = []
        for one in self._made:
            if not isinstance(one, bytes):
                assert one is not None
                raise one
            found.append(one)
        return found

    def _beside(self) -> None:
        # Between calls into LLVM it needs the GIL, which others keep for the interval.
        with giving_way():
            self._work()

    def _work(self) -> None:
        while True:
            try:
                number, text = self._left.popleft()
            except IndexError:
                return
            try:
                self._made[number] = assemble(text, self._target, self._loops)
            except BaseException as error:
                self._made[number] = error


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def emit(machine: Any, module: Any, assembly: bool = False) -> bytes:
    """What `machine.emit_object(module)` gives, or `emit_assembly`, without holding the lock that
    llvmlite puts around each call into LLVM: this one call takes most of the time, and LLVM itself
    needs no lock between contexts."""
    unlocked = _unlocked()
    if unlocked is None:
        if assembly:
            return str(machine.emit_assembly(module)).encode()
        return bytes(machine.emit_object(module))
    import llvmlite.binding as llvm

    lib = llvm.ffi.lib
    with llvm.ffi.OutputString() as message:
        buffer = unlocked(machine, module, 0 if assembly else 1, message)
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
