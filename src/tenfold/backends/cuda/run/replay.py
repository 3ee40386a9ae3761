"""Replay a plan on a device: its graphs, one after another, and between them what the host does.

Graphs are recorded once for each room: whoever calls has one to himself. What kernels found wrong
shows when all is done: then the steps are carried out one by one, which says at which line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold.backends.cuda.driver.device import Launchable
from tenfold.backends.cuda.recording import Address, Recording, place_address
from tenfold.backends.cuda.run.carry_out import Execution
from tenfold.backends.cuda.run.memory import DeviceFrame
from tenfold.backends.cuda.run.record import (
    Recorder,
    Surroundings,
    on_device,
    recordable,
    routine_for,
)
from tenfold.backends.cuda.target import CudaTarget
from tenfold.plan import LoopStep, Plan, RoutineStep


def loops(plan: Plan) -> bool:
    """Whether there is something to be interrupted."""
    return any(isinstance(s, LoopStep) for p in plan.every for s in p.steps)


def whole(plan: Plan, target: CudaTarget) -> bool:
    """Whether a plan is one graph, and not to be interrupted."""
    return on_device(plan, target)[id(plan)] and not loops(plan)


class Replay:
    """A plan, or some steps of it, as graphs and steps of the host, with the memory of one
    caller."""

    def __init__(
        self,
        plan: Plan,
        around: Surroundings,
        arena: Address,
        places: Sequence[Address],
        execution: Callable[[], Execution],
        numbers: Sequence[int] | None = None,
    ) -> None:
        self.plan, self.around, self.arena = plan, around, arena
        self._numbers = range(len(plan.steps)) if numbers is None else numbers
        self._execution = execution
        self.items: list[Launchable | int] = []
        self.recordings: list[Recording] = []
        self.loops = loops(plan)
        self._record(places)

    def _record(self, places: Sequence[Address]) -> None:
        plan, below = self.plan, on_device(self.plan, self.around.target)
        count = len(plan.graph.parameters)
        virtual = [place_address(n) for n in range(len(places))]
        frame = self.frame(virtual[:count], virtual[count:])
        waiting: list[int] = []

        def finish() -> None:
            if waiting:
                recorder = Recorder(self.around)
                recorder.steps(frame, waiting)
                made = recorder.finish()
                self.recordings.append(made)
                self.items.append(self.around.device.instantiate(made, places))
                waiting.clear()

        alone = [
            n
            for n in self._numbers
            if not recordable(plan, plan.steps[n], below, self.around.target)
        ]
        if alone and _tells_late(plan, self.around.target):
            # A fault that shows in the end would have the host's steps, and what they call, done
            # twice: each step is waited for instead.
            self.items += self._numbers
            return
        for number in self._numbers:
            if number not in alone:
                waiting.append(number)
            else:
                finish()
                self.items.append(number)
        finish()

    def frame(self, inputs: Sequence[Address], outputs: Sequence[Address]) -> DeviceFrame:
        constants = self.around.constants[id(self.plan)]
        return DeviceFrame(self.plan, inputs, outputs, self.arena, constants)

    def run(self, places: Sequence[Address], stream: Any) -> None:
        """Begin all that the plan does; the host's steps are done before this returns."""
        count = len(self.plan.graph.parameters)
        execution = None
        for item in self.items:
            if isinstance(item, int):
                if execution is None:
                    execution = self._execution()
                execution.step(self.frame(places[:count], places[count:]), item)
            else:
                item.point(places)
                item.launch(stream)

    def step_by_step(self, places: Sequence[Address]) -> None:
        """All steps one after another, each waited for: an error names its line."""
        count = len(self.plan.graph.parameters)
        execution = self._execution()
        for number in self._numbers:
            execution.step(self.frame(places[:count], places[count:]), number)


def _tells_late(plan: Plan, target: CudaTarget) -> bool:
    """Whether what is wrong may show when a graph has ended."""
    if any(kernel.checks for kernel in plan.kernels):
        return True
    called = ((one, step) for one in plan.every for step in one.steps)
    found = (
        routine_for(one, step, target) for one, step in called if isinstance(step, RoutineStep)
    )
    return any(routine is not None and routine.checks and routine.captured for routine in found)
