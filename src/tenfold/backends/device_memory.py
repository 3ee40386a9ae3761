"""What is said when a device's memory does not suffice: what a program takes, and where it goes."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.errors import DeviceMemoryProblem
from tenfold.plan import Plan
from tenfold.plan.steps.plan import ARENA, CONSTANT, INPUT, OUTPUT

_LISTED = 4  # slots that are named
FIX = "free arrays that lie on it, or give it less at a time"


def bytes_text(count: float) -> str:
    """A number of bytes, to be read.

    >>> bytes_text(12), bytes_text(3 << 20), bytes_text(5.5 * 2**30)
    ('12 bytes', '3.0 MiB', '5.5 GiB')
    """
    for unit, size in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << size:
            return f"{count / (1 << size):.1f} {unit}"
    return f"{count:.0f} bytes"


def program_too_large(
    plan: Plan, why: str, *, partial: int = 0, free: str = "", fix: str = FIX
) -> DeviceMemoryProblem:
    """The error of a program that has no room: how much it takes, and its largest slots."""
    parts = {
        "inputs": sum(p.type.nbytes for p in plan.graph.parameters),
        "outputs": sum(t.nbytes for t in plan.graph.output_types),
        "between them": plan.arena_bytes,
        "partial results": partial,
    }
    listed = ", ".join(f"{name} {bytes_text(size)}" for name, size in parts.items() if size)
    total = bytes_text(sum(parts.values()))
    return DeviceMemoryProblem(
        f"{why}: the program takes {total} ({listed}){free}; "
        f"its largest slots: {'; '.join(_largest(plan))}",
        fix=fix,
    )


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
