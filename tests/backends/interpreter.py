"""A second backend, for tests: kernels interpreted by NumPy, steps carried out by Python.

It is what a backend has to write at the least: a target, capabilities, programs, and a form in
which they are kept. It shares nothing with the CPU's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import msgpack
import numpy as np

from tenfold.backends.backend import Backend
from tenfold.backends.guard import Guard, holds
from tenfold.backends.host_step import HostCall
from tenfold.backends.program import (
    ARGUMENT,
    NOTHING,
    OUTPUT,
    OUTPUTS,
    Array,
    PlanMemory,
    Program,
    given_by,
)
from tenfold.frozen import frozen
from tenfold.kernel import Kernel
from tenfold.plan import CopyStep, HostStep, KernelStep, LoopStep, Plan
from tenfold.plan.capabilities import Capabilities
from tenfold.plan.file.sections import unpack
from tenfold.plan.steps.plan import ARENA, CONSTANT, INPUT
from tenfold.reference import Callbacks
from tenfold.types import DTYPES, TensorType, parse_type
from tests.kernel.interpret import UFUNCS, interpret

_KNOWN = {*UFUNCS, "cast", "select"}


@frozen
class Interpreter:
    """The target."""

    name: str = "numpy"
    rank: int = 0

    @property
    def digest(self) -> str:
        return f"interpreter of NumPy {np.__version__}"

    @property
    def versions(self) -> dict[str, str]:
        return {"interpreter": "1"}

    def __str__(self) -> str:
        return self.digest


def _supports(instruction: str, operands: tuple[str, ...], result: str) -> str | None:
    return None if instruction in _KNOWN else f"the interpreter has no {instruction}"


@frozen
class Listing:
    """What is kept of a program: how it is called. Its plan is read with it."""

    parameters: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    donated: tuple[int, ...]
    arena_bytes: int
    strict: bool
    target: Interpreter = Interpreter()

    def pack(self) -> bytes:
        types = [[repr(t) for t in some] for some in (self.parameters, self.outputs)]
        packed: bytes = msgpack.packb([*types, self.donated, self.arena_bytes, self.strict])
        return packed

    def unusable(self) -> str | None:
        return None

    def restore(
        self, read: Callable[[], Plan], callbacks: Callbacks | None = None
    ) -> InterpretedProgram:
        return InterpretedProgram(self, read, callbacks)


def read_listing(raw: bytes | memoryview) -> Listing:
    parameters, outputs, donated, arena, strict = unpack(raw)
    parts = [tuple(map(parse_type, some)) for some in (parameters, outputs)]
    return Listing(parts[0], parts[1], donated, arena, strict)


class _Room:
    """The memory of one run."""

    def __init__(self, inputs: Sequence[Array], outputs: Sequence[Array], arena: Array) -> None:
        self.inputs, self.outputs, self.arena = inputs, outputs, arena


class _Binding:
    """A binding in Python."""

    def __init__(self, types: Sequence[TensorType], writes: bool, updates: Sequence[int]) -> None:
        self.types, self.updates, self.answered, self.shut = types, updates, 0, False
        self.writes = writes or bool(updates)

    def close(self) -> None:
        self.shut = True

    def open(self) -> None:
        self.shut = False

    def lets_in(self, args: Sequence[Any]) -> bool:
        return (
            not self.shut
            and len(args) == len(self.types)
            and all(
                type(a) is np.ndarray
                and (a.dtype, a.shape) == (t.dtype, t.shape)
                and a.flags.c_contiguous
                and a.flags.aligned
                for a, t in zip(args, self.types, strict=True)
            )
            and all(args[n].flags.writeable for n in self.updates)
            and not any(
                np.may_share_memory(args[n], a)
                for n in self.updates
                for k, a in enumerate(args)
                if k != n
            )
        )


@frozen(eq=False)
class _Bound:
    call: Callable[..., Any]
    binding: _Binding


class InterpretedProgram(Program):
    """A plan whose steps Python carries out one after the other."""

    def __init__(
        self, listing: Listing, read: Callable[[], Plan], callbacks: Callbacks | None = None
    ) -> None:
        super().__init__(callbacks)
        self.listing, self._read = listing, read
        self.target, self.strict = listing.target, listing.strict
        self.parameters, self.outputs = listing.parameters, listing.outputs
        self.donated, self.arena_bytes = listing.donated, listing.arena_bytes
        self.judged = set()

    def __getattr__(self, name: str) -> Any:
        if name != "plan":
            raise AttributeError(name)
        self.plan = self._read()
        return self.plan

    @property
    def backend(self) -> Backend:
        return INTERPRETER

    def __call__(self, arrays: Sequence[Any], callbacks: Callbacks | None = None) -> list[Array]:
        given = [
            np.array(a, t.dtype, order="C").reshape(t.shape)
            for a, t in zip(arrays, self.parameters, strict=True)
        ]
        outputs = [np.empty(t.shape, t.dtype) for t in self.outputs]
        with self.running.using(callbacks or self.callbacks):
            self.whole(_Room(given, outputs, np.empty(self.arena_bytes, np.uint8)))
        return outputs

    def make_bound(
        self,
        slow: Callable[..., Any],
        captures: Sequence[Array],
        guards: Sequence[Guard],
        updates: Sequence[int],
        answer: int | None,
    ) -> _Bound:
        types = self.parameters[: len(self.parameters) - len(captures)]
        binding = _Binding(types, bool(self.donated), updates)

        def call(*args: Any, **names: Any) -> Any:
            if names or not binding.lets_in(args) or not all(map(holds, guards)):
                return slow(*args, **names)
            binding.answered += 1
            outputs = self([*args, *captures])
            own = len(outputs) - len(updates)
            for number, output in zip(updates, outputs[own:], strict=True):
                args[number][...] = output
            made = [o if o.ndim else o[()] for o in outputs[:own]]
            gives = given_by(answer, own)
            if gives >= ARGUMENT:
                return args[gives - ARGUMENT]
            return {OUTPUTS: tuple(made), OUTPUT: [*made, None][0], NOTHING: None}[gives]

        return _Bound(call, binding)

    def stepper(self) -> InterpretedProgram:
        return self

    def watch_for(self, plans: Collection[int]) -> None:
        raise NotImplementedError("the programs of these tests have no branches")

    def whole(self, memory: PlanMemory) -> None:
        for number in range(len(self.plan.steps)):
            self.step(self.plan, number, memory)

    def step(self, plan: Plan, number: int, memory: PlanMemory) -> None:
        step = plan.steps[number]

        def slot(at: int) -> Array:
            return _slot_array(plan, at, memory)

        match step:
            case KernelStep():
                interpret(_filled(plan.call(step).fixed, step.params), [*map(slot, step.slots)])
            case CopyStep():
                target = slot(step.target)
                target[...] = slot(step.source).reshape(target.shape)
            case HostStep():
                HostCall(plan, number)(slot, self.running.callbacks or self.callbacks)
            case LoopStep():
                self._loop(plan, step, slot)
            case _:
                raise NotImplementedError(f"the programs of these tests have no {step.kind}")

    def _loop(self, plan: Plan, step: LoopStep, slot: Callable[[int], Array]) -> None:
        """A scan, round by round, in memory of its own."""
        (body,) = (plan.plans[p] for p in step.plans)
        first = step.captures + step.carries
        captures = [slot(n) for n in step.inputs[: step.captures]]
        carries = [slot(n).copy() for n in step.inputs[step.captures : first]]
        slices = [slot(n) for n in step.inputs[first:]]
        stacks = [slot(n) for n in step.outputs[step.carries :]]
        rounds = range(step.length)
        for n in reversed(rounds) if step.reverse else rounds:
            made = [np.empty(t.shape, t.dtype) for t in body.graph.output_types]
            given = [*captures, *carries, *(np.ascontiguousarray(s[n]) for s in slices)]
            room = _Room(given, made, np.empty(body.arena_bytes, np.uint8))
            for number in range(len(body.steps)):
                self.step(body, number, room)
            carries = made[: step.carries]
            for stack, one in zip(stacks, made[step.carries :], strict=True):
                stack[n] = one
        for n, carry in zip(step.outputs, carries, strict=False):
            slot(n)[...] = carry


def _slot_array(plan: Plan, number: int, memory: PlanMemory) -> Array:
    slot = plan.slots[number]
    if slot.place == CONSTANT:
        return np.frombuffer(plan.constants[slot.number], slot.type.dtype).reshape(slot.type.shape)
    if slot.place == ARENA:
        room = memory.arena
    else:
        rows = memory.inputs if slot.place == INPUT else memory.outputs
        room = rows[slot.number].reshape(-1).view(np.uint8)
    raw = room[slot.offset : slot.offset + slot.type.nbytes]
    made: Array = raw.view(slot.type.dtype).reshape(slot.type.shape)
    return made


def _filled(kernel: Kernel, params: Sequence[bytes]) -> Kernel:
    """The kernel with constants in place of its parameters."""
    instructions = tuple(
        replace(i, op="const", attr=(params[i.attr[0]][: DTYPES[i.dtype].itemsize],))
        if i.op == "param"
        else i
        for i in kernel.instructions
    )
    return replace(kernel, instructions=instructions)


def _bind(
    plan: Plan, callbacks: Callbacks | None = None, *, strict: bool = False, request: Any = None
) -> InterpretedProgram:
    program = InterpretedProgram(_listed(plan, strict), lambda: plan, callbacks)
    program.graph = plan.graph
    return program


def _listed(plan: Plan, strict: bool) -> Listing:
    parameters = tuple(p.type for p in plan.graph.parameters)
    return Listing(parameters, plan.graph.output_types, plan.donated, plan.arena_bytes, strict)


INTERPRETER = Backend(
    name="interpreter",
    target=Interpreter,
    named=lambda name: Interpreter(name),
    capabilities=lambda target: Capabilities(supports=_supports),
    bind=_bind,
    code_of=lambda program, whole: program.listing,
    code_for=lambda plan, target, strict: replace(_listed(plan, strict), target=target),
    read_code=read_listing,
    describe=lambda: {"entry": "Python", "target": str(Interpreter())},
)
