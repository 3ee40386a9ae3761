"""What is said when a GPU's memory does not suffice: which program, and where it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.backends.device_memory import FIX, bytes_text
from tenfold.backends.device_memory import program_too_large as too_large
from tenfold.errors import DeviceMemoryProblem

if TYPE_CHECKING:
    from tenfold.backends.cuda.run.program import CudaProgram


def program_too_large(program: CudaProgram, partial: int) -> DeviceMemoryProblem:
    """The error of a program that has no room: how much it takes, and its largest slots."""
    why = "the GPU's memory does not suffice"
    return too_large(program.plan, why, partial=partial, free=_free(program))


def array_too_large(nbytes: int, what: str) -> DeviceMemoryProblem:
    """The error of an array that has no place."""
    return DeviceMemoryProblem(
        f"the GPU's memory does not suffice for {what} of {bytes_text(nbytes)}", fix=FIX
    )


def _free(program: CudaProgram) -> str:
    memory = getattr(program.device, "memory", None)
    if not callable(memory):
        return ""
    free, every = memory()
    return f", and {bytes_text(free)} of {bytes_text(every)} are free"
