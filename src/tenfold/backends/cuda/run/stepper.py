"""Single steps of a program's plan, for checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tenfold.backends.cuda.run.memory import Address
from tenfold.backends.cuda.run.partials import Partials
from tenfold.backends.cuda.run.room import Room
from tenfold.backends.program import PlanMemory
from tenfold.plan import Plan

if TYPE_CHECKING:
    from tenfold.backends.cuda.run.program import CudaProgram


class CudaStepper:
    """A program's plan carried out in memory that a check lays out on the host: it is copied to the
    device and back."""

    def __init__(self, program: CudaProgram) -> None:
        self.program = program

    def step(self, plan: Plan, number: int, memory: PlanMemory) -> None:
        self._carried_out(plan, memory, [number])

    def whole(self, memory: PlanMemory) -> None:
        self._carried_out(self.program.plan, memory)

    def _carried_out(
        self, plan: Plan, memory: PlanMemory, numbers: Sequence[int] | None = None
    ) -> None:
        program, device = self.program, self.program.device
        arrays = [*memory.inputs, *memory.outputs, memory.arena]
        sizes = [a.nbytes for a in arrays]
        kernels = program.code
        if plan not in program.plan.every:  # a part of it, with kernels of its own sizes
            kernels = program._kernels.find(plan)
        room = Room(device, sizes, 0, Partials.of(kernels.values()))
        for place, array in zip(room.places, arrays, strict=True):
            device.upload(place, array.reshape(-1).view(np.uint8), room.stream)
        *places, arena = room.places
        constants = self._constants(plan)
        replay = program._replay(plan, room, arena, places, constants, kernels, numbers)
        replay.run(places, room.stream)
        device.wait(room.stream)
        if room.failed():
            replay.step_by_step(places)
        for place, array in zip(room.places, arrays, strict=True):
            if array.flags.writeable and array.nbytes:
                device.download(array.reshape(-1).view(np.uint8), place, room.stream)
        device.wait(room.stream)

    def _constants(self, plan: Plan) -> dict[int, list[Address]]:
        program = self.program
        if all(id(p) in program.constants for p in plan.every):
            return program.constants
        made = type(program)(plan, program.device, program._kernels, program.backend)
        self._kept = made
        return made.constants
