"""Text of a module to object code, after a few light passes."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from tenfold.backends.cpu.target import Target, target_machine

# Code generation is superlinear in the length of a block; beyond this it is done lightly.
LONG = 40_000

_lock = threading.Lock()


def assemble(text: str, target: Target) -> bytes:
    """Object code of a module's text.

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


@cache
def _machine(target: Target, level: int) -> Any:
    return target_machine(target, level)
