"""Stepper: a program's plan carried out natively in memory that a check lays out."""

from __future__ import annotations

import ctypes
from typing import Any
from weakref import WeakKeyDictionary

from tenfold.backends.cpu.entry.abi import DONE
from tenfold.backends.cpu.link.loader import Image
from tenfold.backends.cpu.loop.walk import Walk
from tenfold.backends.cpu.run.bytecode import Bytecode
from tenfold.backends.cpu.run.kernels import steps_image
from tenfold.backends.cpu.run.native import RELEASED, NativeProgram, asking
from tenfold.backends.cpu.run.poll import STATE_WORDS
from tenfold.backends.program import Array, PlanMemory
from tenfold.plan import LoopStep, Plan
from tenfold.plan.steps.loops import Which


class NativeStepper:
    """Runs single steps of a program's plan, or of the plans below it; or all of it."""

    def __init__(self, program: NativeProgram) -> None:
        pointer = ctypes.c_void_p
        kind = ctypes.PYFUNCTYPE(
            ctypes.c_int32, pointer, ctypes.c_int64, pointer, pointer, pointer, pointer
        )
        self._run = kind(program.image.address("tn_run"))
        self._program = program
        self._laid: tuple[PlanMemory, Any, int] | None = None  # the memory last used, its table
        self._made: WeakKeyDictionary[Plan, tuple[Bytecode, object]] = WeakKeyDictionary()

    def step(self, plan: Plan, number: int, memory: PlanMemory) -> None:
        bytecode = self._bytecode(plan)
        words, weight = bytecode.alone(plan, number), bytecode.weights[id(plan)]
        self._call(steps_image(self._program.target), _address(words), weight, memory)

    def _bytecode(self, plan: Plan) -> Bytecode:
        """Bytecode that a plan is part of: the whole program's, unless the plan is another."""
        own = self._program.bytecode
        if own is not None and id(plan) in own.rows:
            return own
        found = self._made.get(plan)
        if found is None:
            program = self._program
            part = plan in program.plan.every
            whole = program.plan if part else plan
            loops = program.loops if part else _fitting(plan, program)
            ask, callables = asking(whole, program.running, program.callbacks)
            places, routines = program.places(), program.routines()
            # Another plan has smaller sizes, and stands for those of the program.
            found = (
                Bytecode(whole, program.target, places, ask, routines, loops, fine=not part),
                callables,
            )
            self._made.update(dict.fromkeys(whole.every, found))
        return found[0]

    def whole(self, memory: PlanMemory) -> None:
        program = self._program
        self._call(program.image, program.given, program.weight, memory)

    def _call(self, image: Image, bytecode: int, weight: int, memory: PlanMemory) -> None:
        """Run this bytecode; what it raises is raised. Other threads go on meanwhile if it takes
        long."""
        poll = (ctypes.c_int64 * STATE_WORDS)()
        if self._laid is None or self._laid[0] is not memory:
            rows = [*map(_address, memory.inputs), *map(_address, memory.outputs)]
            found = (ctypes.c_void_p * max(len(rows), 1))(*rows)
            self._laid = memory, found, _address(memory.arena)
        _, table, arena = self._laid
        release, steps = int(weight > RELEASED), image.address("tn_steps")
        done = self._run(
            steps, release, ctypes.addressof(table), arena, ctypes.addressof(poll), bytecode
        )
        if done != DONE:
            raise SystemError(f"the plan answered {done} and left no exception")


def _fitting(plan: Plan, program: NativeProgram) -> dict[Which, str]:
    """The functions of a program's loops that serve loops of another plan: of the same body, and
    written down in the same words. So is a loop of fewer rounds."""
    found: dict[Which, str] = {}
    numbers, every = _numbers(plan), program.plan.every
    for at, step in enumerate(plan.steps):
        for (number, own), name in program.loops.items() if isinstance(step, LoopStep) else ():
            other, one = every[number], every[number].steps[own]
            assert isinstance(step, LoopStep)
            assert isinstance(one, LoopStep)
            bodies = [plan.plans[p] for p in step.plans], [other.plans[p] for p in one.plans]
            if bodies[0] == bodies[1] and (
                Walk(plan, step, numbers).lines == Walk(other, one, _numbers(program.plan)).lines
            ):
                found[numbers[id(plan)], at] = name
    return found


def _numbers(plan: Plan) -> dict[int, int]:
    return {id(one): n for n, one in enumerate(plan.every)}


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
