"""Stepper: a program's plan carried out natively in memory that a check lays out."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import replace
from weakref import WeakKeyDictionary

from tenfold.backends.cpu.entry.abi import DONE
from tenfold.backends.cpu.entry.bind import gate
from tenfold.backends.cpu.link.loader import Image
from tenfold.backends.cpu.run.bytecode import Bytecode
from tenfold.backends.cpu.run.fixed import GATE, fixed
from tenfold.backends.cpu.run.kernels import steps_image
from tenfold.backends.cpu.run.native import RELEASED, NativeProgram, asking
from tenfold.backends.cpu.run.poll import STATE_WORDS
from tenfold.backends.program import Array, PlanMemory
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.locks import cached_property
from tenfold.plan import Plan


class NativeStepper:
    """Runs single steps of a program's plan, or of the plans below it; or all of it."""

    def __init__(self, program: NativeProgram) -> None:
        pointer = ctypes.c_void_p
        kind = ctypes.PYFUNCTYPE(
            ctypes.c_int32, pointer, ctypes.c_int64, pointer, pointer, pointer, pointer
        )
        self._gate = gate(lambda text: fixed(GATE, program.target))
        self._run = kind(self._gate.address("tn_run"))
        self._program = program
        self._steps: WeakKeyDictionary[Plan, dict[int, tuple[Bytecode, int, object]]]
        self._steps = WeakKeyDictionary()

    @cached_property
    def _places(self) -> Mapping[SizedKernel, tuple[int, int]]:
        return self._program.places()

    def step(self, plan: Plan, number: int, memory: PlanMemory) -> None:
        program, known = self._program, self._steps.setdefault(plan, {})
        found = known.get(number)
        if found is None:
            alone = replace(plan, steps=(plan.steps[number],))
            ask, callables = asking(alone, program.running, program.callbacks)
            bytecode = Bytecode(alone, self._places, ask, program.routines())
            found = known[number] = (bytecode, bytecode.weights[id(alone)], callables)
        bytecode, weight, _ = found
        self._call(steps_image(program.target, True), bytecode.address, weight, memory)

    def whole(self, memory: PlanMemory) -> None:
        program = self._program
        self._call(program.image, program.given, program.weight, memory)

    def _call(self, image: Image, bytecode: int, weight: int, memory: PlanMemory) -> None:
        """Run this bytecode; what it raises is raised. Other threads go on meanwhile if it takes
        long."""
        poll = (ctypes.c_int64 * STATE_WORDS)()
        rows = [*map(_address, memory.inputs), *map(_address, memory.outputs)]
        table = (ctypes.c_void_p * max(len(rows), 1))(*rows)
        release, steps = int(weight > RELEASED), image.address("tn_steps")
        arena = _address(memory.arena)
        done = self._run(
            steps, release, ctypes.addressof(table), arena, ctypes.addressof(poll), bytecode
        )
        if done != DONE:
            raise SystemError(f"the plan answered {done} and left no exception")


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
