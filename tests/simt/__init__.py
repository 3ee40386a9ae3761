"""An interpreter of LLVM IR for NVIDIA GPUs: every thread of a launch at once, on NumPy arrays.

    module = parse(text)
    memory = Memory()
    address = memory.alloc(1024)
    launch(module, "kernel", grid=(1, 1, 1), block=(256, 1, 1), args=[address], memory=memory)

It is exact, and strict: what is unknown, undefined or a race is an error that names the line and
the thread. `parse` reads text, `lower` makes one graph of blocks of a kernel and what it calls,
`emit` writes each block as a Python function on arrays, `execute` runs them for the threads that
are there.
"""

from .errors import (
    Deadlock,
    Divergence,
    Fault,
    Inexact,
    IRProblem,
    LaunchProblem,
    Misaligned,
    OutOfBounds,
    Race,
    SimtError,
    StepLimit,
    Undefined,
)
from .execute import launch
from .memory import Memory
from .parse import Module, parse

__all__ = [
    "Deadlock",
    "Divergence",
    "Fault",
    "IRProblem",
    "Inexact",
    "LaunchProblem",
    "Memory",
    "Misaligned",
    "Module",
    "OutOfBounds",
    "Race",
    "SimtError",
    "StepLimit",
    "Undefined",
    "launch",
    "parse",
]
