"""What is said when a GPU's memory does not suffice: which program, and where it goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tenfold.errors import DeviceMemoryProblem
from tenfold.plan.steps.plan import ARENA, CONSTANT, INPUT, OUTPUT

if TYPE_CHECKING:
    from tenfold.backends.cuda.run.program import CudaProgram
    from tenfold.plan import Plan

_LISTED = 4  # slots that are named
_FIX = "free arrays that lie on it, or give it less at a time"


def bytes_text(count: float) -> str:
    """A number of bytes, to be read.

    >>> bytes_text(12), bytes_text(3 << 20), bytes_text(5.5 * 2**30)
    ('12 bytes', '3.0 MiB', '5.5 GiB')
    """
    for unit, size in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << size:
            return f"{count / (1 << size):.1f} {unit}"
    return f"{count:.0f} bytes"


def program_too_large(program: CudaProgram, partial: int) -> DeviceMemoryProblem:
    """The error of a program that has no room: how much it takes, and its largest slots."""
    inputs = sum(t.nbytes for t in program.parameters)
    outputs = sum(t.nbytes for t in program.outputs)
    parts = {
        "inputs": inputs,
        "outputs": outputs,
        "between them": program.arena_bytes,
        "partial results": partial,
    }
    listed = ", ".join(f"{name} {bytes_text(size)}" for name, size in parts.items() if size)
    total = bytes_text(sum(parts.values()))
    return DeviceMemoryProblem(
        f"the GPU's memory does not suffice: the program takes {total} ({listed}){_free(program)}; "
        f"its largest slots: {'; '.join(_largest(program.plan))}",
        fix=_FIX,
    )


def array_too_large(nbytes: int, what: str) -> DeviceMemoryProblem:
    """The error of an array that has no place."""
    return DeviceMemoryProblem(
        f"the GPU's memory does not suffice for {what} of {bytes_text(nbytes)}", fix=_FIX
    )


def _free(program: CudaProgram) -> str:
    memory = getattr(program.device, "memory", None)
    if not callable(memory):
        return ""
    free, every = memory()
    return f", and {bytes_text(free)} of {bytes_text(every)} are free"


def _largest(plan: Plan) -> Sequence[str]:
    """The largest slots, with what they are for."""
    places = {INPUT: "input", OUTPUT: "output", ARENA: "between steps", CONSTANT: CONSTANT}
    slots = {
        (slot.type, slot.place, slot.number, slot.offset): slot
        for one in plan.every
        for slot in one.slots
    }
    found = sorted(slots.values(), key=lambda slot: -slot.type.nbytes)[:_LISTED]
    return [
        f"{slot.type!r} {bytes_text(slot.type.nbytes)} ({places[slot.place]})" for slot in found
    ]
