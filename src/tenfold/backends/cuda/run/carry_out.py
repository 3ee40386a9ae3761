"""Carry out the steps of a plan on a device, one after another, loops and branches by the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.backends.cuda.driver.device import Device, FaultWord, Module
from tenfold.backends.cuda.library.routine import (
    FAULT,
    GpuRoutine,
    LibraryCall,
    RoutineLaunch,
    routine_of,
)
from tenfold.backends.cuda.run.alignment import ALIGNED
from tenfold.backends.cuda.run.dependences import Range
from tenfold.backends.cuda.run.kernels import BoundKernel
from tenfold.backends.cuda.run.memory import Address, DeviceFrame
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.host_step import HostCall
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.plan import BranchStep, CopyStep, HostStep, KernelStep, LoopStep, RoutineStep
from tenfold.reference import Callbacks

Array = np.ndarray[Any, Any]


class Execution:
    """What a run of a plan needs: a stream, the code, and memory for what functions of a kernel
    leave each other."""

    def __init__(
        self,
        device: Device,
        target: CudaTarget,
        stream: Any,
        kernels: Mapping[SizedKernel, BoundKernel],
        constants: Mapping[int, Sequence[Address]],
        partial: Address,
        fault: FaultWord,
        routines: Callable[[GpuRoutine], Module],
        workspace: Callable[[LibraryCall, bool], Sequence[Range]],
        callbacks: Callable[[], Callbacks],
    ) -> None:
        self.device, self.target, self.stream, self.kernels = device, target, stream, kernels
        self.routines, self.workspace = routines, workspace
        self.constants, self.partial, self.callbacks = constants, partial, callbacks
        self.fault = fault

    def run(self, frame: DeviceFrame) -> None:
        """All steps of a plan."""
        for number in range(len(frame.plan.steps)):
            self.step(frame, number)

    def step(self, frame: DeviceFrame, number: int) -> None:
        step = frame.plan.steps[number]
        match step:
            case KernelStep():
                self.kernel(frame, number, step)
            case CopyStep():
                size = frame.plan.slots[step.source].type.nbytes
                target, source = frame.address(step.target), frame.address(step.source)
                if target != source:
                    self.device.copy(target, source, size, self.stream)
            case RoutineStep():
                self.routine(frame, number, step)
            case HostStep():
                self.host(frame, number)
            case LoopStep():
                self.loop(frame, step)
            case BranchStep():
                self.branch(frame, step)

    def kernel(self, frame: DeviceFrame, number: int, step: KernelStep) -> None:
        found = self.kernels[frame.plan.call(step)]
        buffers = [frame.address(slot) for slot in step.slots]
        for launch in found.launches:
            words = found.words(launch, buffers, step.params, self.partial, self.fault.address)
            self.device.launch(launch.function, launch.blocks, launch.threads, words, self.stream)
        if frame.plan.own[step.kernel].checks:
            self.settle(frame, number)

    def routine(self, frame: DeviceFrame, number: int, step: RoutineStep) -> None:
        """A routine; what the device has none for, the evaluator does."""
        node = frame.plan.graph.nodes[step.node]
        types = [frame.plan.graph.types[v] for v in node.inputs]
        slots = (*step.inputs, *step.outputs, *step.scratch)
        places = [frame.address(slot) for slot in slots]
        aligned = not any(place % ALIGNED for place in places)
        given = dict(node.attributes)
        found = routine_of(step.name, types, node.types[0], given, self.target, aligned)
        if found is None:
            self.host(frame, number)
            return
        module, fault = self.routines(found) if found.key else None, self.fault
        careful = found.checks and not found.captured
        for one in found.launches:
            if not isinstance(one, RoutineLaunch):
                if careful and self.told():
                    break  # a library may not come to an end with such numbers
                careful = False
                own = [start for start, _ in self.workspace(one, aligned)]
                one.call(self.device, self.stream, [*places, *own])
                continue
            assert module is not None
            words: list[bytes | Address]
            words = [fault.address if n == FAULT else places[n] for n in one.arrays]
            words += [value.to_bytes(size, "little", signed=True) for value, size in one.words]
            function = module.function(one.function)
            self.device.launch(function, one.blocks, one.threads, words, self.stream)
        if found.checks:
            self.settle(frame, number)

    def settle(self, frame: DeviceFrame, number: int) -> None:
        """Have the evaluator do a step of which something was found wrong, or was left unsolved."""
        if self.told():
            self.fault.value = 0
            self.host(frame, number)

    def told(self) -> bool:
        """Whether something was found wrong, once all that was begun is done."""
        self.device.wait(self.stream)
        return bool(self.fault.value)

    def host(self, frame: DeviceFrame, number: int) -> None:
        """A step carried out by the evaluator, on copies of what it reads."""
        made: dict[int, Array] = {}

        def slot(at: int) -> Array:
            if at not in made:
                made[at] = self.read(frame, at)
            return made[at]

        self.device.wait(self.stream)
        step = frame.plan.steps[number]
        HostCall(frame.plan, number)(slot, self.callbacks())
        for at in step.outputs if isinstance(step, (HostStep, RoutineStep)) else ():
            self.device.upload(frame.address(at), np.ascontiguousarray(made[at]), self.stream)
        self.device.wait(self.stream)

    def read(self, frame: DeviceFrame, number: int) -> Array:
        """What lies in a slot."""
        type = frame.plan.slots[number].type
        made: Array = np.empty(type.shape, type.dtype)
        self.device.download(made, frame.address(number), self.stream)
        self.device.wait(self.stream)
        return made

    def branch(self, frame: DeviceFrame, step: BranchStep) -> None:
        index = int(self.read(frame, step.index))
        which = step.plans[min(max(index, 0), len(step.plans) - 1)]
        inputs = [frame.address(s) for s in step.inputs]
        outputs = [frame.address(s) for s in step.outputs]
        self.run(self.below(frame, which, inputs, outputs, step.arena))

    def below(
        self,
        frame: DeviceFrame,
        which: int,
        inputs: Sequence[Address],
        outputs: Sequence[Address],
        arena: int,
    ) -> DeviceFrame:
        """The frame of a plan below this one."""
        plan = frame.plan.plans[which]
        return DeviceFrame(plan, inputs, outputs, frame.address(arena), self.constants[id(plan)])

    def loop(self, frame: DeviceFrame, step: LoopStep) -> None:
        """Round by round; carries go to and fro between two places."""
        first = step.captures + step.carries
        captures = [frame.address(s) for s in step.inputs[: step.captures]]
        now = [frame.address(s) for s in step.inputs[step.captures : first]]
        final = [frame.address(s) for s in step.outputs[: step.carries]]
        second = [frame.address(s) for s in step.second]
        slices = [(frame.address(s), self._step_of(frame, s, step)) for s in step.inputs[first:]]
        stacks = [
            (frame.address(s), self._step_of(frame, s, step)) for s in step.outputs[step.carries :]
        ]
        body = step.plans[-1]
        sizes = [frame.plan.slots[s].type.nbytes for s in step.outputs[: step.carries]]
        rounds = 0
        while self._goes_on(frame, step, rounds, captures, now):
            turn = step.length - 1 - rounds if step.reverse else rounds
            made = [b if a == f else f for a, f, b in zip(now, final, second, strict=True)]
            given = [*captures, *now, *(at + turn * size for at, size in slices)]
            out = [*made, *(at + turn * size for at, size in stacks)]
            self.run(self.below(frame, body, given, out, step.arena))
            now = made
            rounds += 1
        for source, target, size in zip(now, final, sizes, strict=True):
            if source != target:
                self.device.copy(target, source, size, self.stream)

    def _step_of(self, frame: DeviceFrame, slot: int, step: LoopStep) -> int:
        return frame.plan.slots[slot].type.nbytes // max(step.length, 1)

    def _goes_on(
        self,
        frame: DeviceFrame,
        step: LoopStep,
        rounds: int,
        captures: Sequence[Address],
        now: Sequence[Address],
    ) -> bool:
        if step.counted:
            return rounds < step.length
        flag = frame.address(step.flag)
        inputs = [*captures, *now]
        self.run(self.below(frame, step.plans[0], inputs, [flag], step.arena))
        return bool(self.read(frame, step.flag))
