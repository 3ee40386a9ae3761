"""Calls whose arrays lie on the device: nothing is copied to the host and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.backends.device_program import Captures
from tenfold.backends.webgpu.array import DeviceArray
from tenfold.backends.webgpu.run.execute import Execution, Faulted
from tenfold.backends.webgpu.run.memory import Room

if TYPE_CHECKING:
    from tenfold.backends.webgpu.run.program import WebGPUProgram


def run_kept(
    program: WebGPUProgram, args: Sequence[Any], captures: Captures | None = None
) -> list[DeviceArray]:
    """The outputs of a program, left on its device. Arguments are NumPy's, or lie there. They are
    under way when this returns, unless a kernel checks: then the fault word is waited for."""
    device = program.device
    with program.running.using(program.callbacks):
        made = [DeviceArray(device, t.shape, t.dtype) for t in program.outputs]
        # What lies on the device is read there, but for what the plan may write into.
        held = {n: given for n, given in enumerate(args) if program.holds(given)}
        copied = {n for n in program.donated if n in held}
        lent = {n: given.buffer for n, given in held.items() if n not in copied}
        # After an error the room is left to whatever is still under way.
        found = program.enter(lent, {n: one.buffer for n, one in enumerate(made)})
        room = found.room
        program.capture(room, captures)

        def run(careful: bool) -> None:
            execution = program.execution(room, careful)
            _bring(program, room, execution, args, copied)
            execution.run(found.items)
            if program.checks:
                execution.read([])  # the fault word alone
            execution.submit()

        try:
            run(program.careful)
        except Faulted:
            room.captured = None  # the plan may have written over what it was given
            program.capture(room, captures)
            run(True)
        room.give_back()
        program.rooms.append(found)
    return made


def _bring(
    program: WebGPUProgram, room: Room, run: Execution, args: Sequence[Any], copied: set[int]
) -> None:
    """Have what does not lie on the device sent there, and what is to be copied there be so."""
    for n, where in zip(range(len(args)), room.inputs, strict=False):
        if n in copied:
            run.commands.copy(args[n].range, where.buffer, where.offset)
        elif not program.holds(args[n]):
            program.device.write(where, np.asarray(args[n]))


def itself(made: DeviceArray) -> DeviceArray:
    """A result as it stays."""
    return made
