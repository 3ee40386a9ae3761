"""Programs on a device: plans bound to its kernels and memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tenfold.backends.device_memory import bytes_text, program_too_large
from tenfold.backends.device_program import Captures, DeviceProgram, Give
from tenfold.backends.program import Array, Dispatch, PlanMemory
from tenfold.backends.python_dispatch import PythonDispatch
from tenfold.backends.webgpu.array import DeviceArray
from tenfold.backends.webgpu.native.buffer import Range
from tenfold.backends.webgpu.native.device import LESS, release_spare
from tenfold.backends.webgpu.run.beside_cpu import quicker_on_cpu
from tenfold.backends.webgpu.run.execute import Execution, Faulted
from tenfold.backends.webgpu.run.kept import itself, run_kept
from tenfold.backends.webgpu.run.kernels import Code, FoundKernel, Kernels, odd_buffers
from tenfold.backends.webgpu.run.memory import NOTHING, SLACK, Frame, Lent, Room, uploaded
from tenfold.backends.webgpu.run.record import Item, Recorder
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.errors import DeviceMemoryProblem
from tenfold.frozen import frozen
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.ops import TABLE
from tenfold.plan import KernelStep, Plan
from tenfold.reference import Callbacks
from tenfold.types import TensorType

if TYPE_CHECKING:
    from tenfold.backends.backend import Backend
    from tenfold.backends.webgpu.run.request import Request
    from tenfold.graph import Source

_programs: weakref.WeakSet[WebGPUProgram] = weakref.WeakSet()
Made = TypeVar("Made")


KEPT = 1 << 30  # bytes that programs may keep while nobody calls them, when one asks for more


def release_rooms() -> int:
    """Give back the device memory that programs keep while nobody calls them, and that of arrays
    which are gone: how many bytes."""
    freed = 0
    for program in list(_programs):
        with suppress(IndexError):  # whoever calls meanwhile takes one, too
            while True:
                freed += program.rooms.pop().room.nbytes
    return freed + release_spare()


def kept_bytes() -> int:
    """How much that is."""
    return sum(one.room.nbytes for program in list(_programs) for one in list(program.rooms))


@frozen(eq=False)
class Recorded:
    """A room, and what was recorded of a plan for it. The room does not know it, so neither waits
    for the garbage collector."""

    room: Room
    items: Sequence[Item]


def _check_sizes(plan: Plan, target: WebGPUTarget) -> None:
    """Raise where a plan has an array, or needs as much between its steps, as no buffer holds."""
    types = (*(p.type for p in plan.graph.parameters), *plan.graph.output_types)
    largest = max((*(t.nbytes for t in types), plan.arena_bytes + SLACK))
    if largest > target.buffer_bytes:
        most = bytes_text(target.buffer_bytes)
        why = f"{target.adapter} has no memory of more than {most} in one piece"
        raise program_too_large(plan, why, fix=LESS)


class WebGPUProgram(DeviceProgram):
    """A plan and its kernels on one device."""

    target: WebGPUTarget

    def __init__(
        self,
        plan: Plan,
        kernels: Kernels,
        backend: Backend,
        callbacks: Callbacks | None = None,
        *,
        strict: bool = False,
        request: Request | None = None,
        code: dict[SizedKernel, FoundKernel] | None = None,
    ) -> None:
        super().__init__(callbacks)
        self.plan, self.graph, self.strict = plan, plan.graph, strict
        self.device, self.target, self._backend = kernels.device, kernels.target, backend
        self.kernels = kernels
        self.device.enter()
        _check_sizes(plan, kernels.target)
        self.code = kernels.find(plan, request) if code is None else code
        self.judged = kernels.judged
        self.parameters = tuple(p.type for p in plan.graph.parameters)
        self.outputs = plan.graph.output_types
        self.donated = plan.donated
        self.arena_bytes = plan.arena_bytes
        self.constants = uploaded(self.device, plan)
        self.rooms: list[Recorded] = []
        self.checks = any(k.checks for k in plan.kernels)
        # What calls Python must not be done twice, as a fault that shows in the end would have it.
        self.careful = self.checks and any(TABLE[s.op].effect for s in plan.host_steps)
        _programs.add(self)

    @property
    def backend(self) -> Backend:
        return self._backend

    def code_name(self, call: SizedKernel) -> str:
        code = self.code[call].code
        return super().code_name(call) if code is None else code.name

    def serves(self, call: SizedKernel, other: SizedKernel) -> bool:
        code = self.code[call].code
        if code is None or call.kernel != other.kernel:
            return call == other
        return code.text.facts.admit(code.text.shifted.call(other, {}).sizes)

    def remarks(self) -> list[str]:
        lines = [f"for {self.target}", *filter(None, [quicker_on_cpu(self.plan)])]
        for call, found in self.code.items():
            how = f"by the CPU: {found.beyond}"
            if found.code is not None:
                how = found.code.text.shader.schedule
            lines.append(f"  kernel {call.kernel.digest[:8]}: {how}")
        return lines

    def fallbacks(self) -> Iterator[tuple[str, str, Source | None]]:
        yield from super().fallbacks()
        for plan in self.plan.every:
            for step in plan.steps:
                if isinstance(step, KernelStep) and (found := self.code[plan.call(step)]).beyond:
                    node = plan.graph.nodes[step.nodes[0]]
                    yield node.op, found.beyond, node.source

    # Running.

    def new_room(self, inputs: Sequence[int], outputs: Sequence[int], arena: int) -> Room:
        """A room for so many bytes, whose inputs and outputs are yet to be laid."""
        return self._taking(arena, lambda: Room(self.device, self.target, inputs, outputs, arena))

    def lay(self, room: Room, inputs: Lent = NOTHING, outputs: Lent = NOTHING) -> None:
        """Have inputs and outputs of a room lie in what is lent, others in memory of its own."""
        self._taking(room.lacks(inputs, outputs), lambda: room.lay(inputs, outputs))

    def _taking(self, nbytes: int, make: Callable[[], Made]) -> Made:
        """What takes so much memory; what others keep is given back for it, where that is much."""
        if nbytes and kept_bytes() + nbytes > KEPT:
            release_rooms()
        with suppress(DeviceMemoryProblem):
            return make()
        release_rooms()
        try:
            return make()
        except DeviceMemoryProblem as error:
            fix = error.fix or LESS
            raise program_too_large(self.plan, error.message, fix=fix) from None

    def enter(self, inputs: Lent = NOTHING, outputs: Lent = NOTHING) -> Recorded:
        """A room that nobody else is in, with inputs and outputs that are lent for a call. It goes
        back to the others when all is done."""
        self.device.enter()
        try:
            found = self.rooms.pop()
        except IndexError:
            given, made = ([t.nbytes for t in types] for types in (self.parameters, self.outputs))
            room = self.new_room(given, made, self.arena_bytes)
            found = Recorded(room, self.record(room, self.plan, room.arena))
        if inputs or outputs or not found.room.whole:
            self.lay(found.room, inputs, outputs)
        return found

    def record(
        self,
        room: Room,
        plan: Plan,
        arena: Range,
        numbers: Sequence[int] | None = None,
        code: Code | None = None,
        constants: dict[int, list[Range]] | None = None,
    ) -> list[Item]:
        """What a plan, or some of its steps, does in a room."""
        recorder = Recorder(room, self.kernels, self.code if code is None else code)
        memory = self.constants if constants is None else constants
        return recorder.steps(Frame(plan, room.inputs, room.outputs, arena, memory), numbers)

    def execution(self, room: Room, careful: bool) -> Execution:
        return Execution(
            room, self.kernels.mover, lambda: self.running.callbacks or self.callbacks, careful
        )

    def __call__(self, arrays: Sequence[Any], callbacks: Callbacks | None = None) -> list[Array]:
        given = [
            np.ascontiguousarray(np.asarray(a).astype(t.dtype, copy=False)).reshape(t.shape)
            for a, t in zip(arrays, self.parameters, strict=True)
        ]
        return self.answer(given, callbacks)

    def answer(
        self,
        given: Sequence[Array],
        callbacks: Callbacks | None = None,
        captures: Captures | None = None,
    ) -> list[Array]:
        with self.running.using(callbacks or self.callbacks):
            found = self.enter()  # after an error it is left to whatever is still under way
            self.capture(found.room, captures)
            try:
                made = self._answered(found, given, self.careful)
            except Faulted:
                found.room.captured = None  # the plan may have written over what it was given
                self.capture(found.room, captures)
                made = self._answered(found, given, True)
            self.rooms.append(found)
            return made

    def _answered(self, found: Recorded, given: Sequence[Array], careful: bool) -> list[Array]:
        room = found.room
        self._fill(room, 0, given)
        run = self.execution(room, careful)
        run.run(found.items)
        return run.read(list(zip(room.outputs, self.outputs, strict=True)))

    def _fill(self, room: Room, first: int, arrays: Sequence[Array]) -> None:
        for where, array in zip(room.inputs[first:], arrays, strict=False):
            self.device.write(where, array)

    def capture(self, room: Room, captures: Captures | None) -> None:
        """Have captured arrays lie on the device; they are sent once for each room. A call that
        brings all parameters itself writes over them."""
        if room.captured is captures:
            return
        room.captured = None
        if captures is not None:
            self._fill(room, len(self.parameters) - len(captures.arrays), captures.arrays)
        room.captured = captures

    # Arrays that stay.

    def answer_kept(self, args: Sequence[Any], captures: Captures | None = None) -> list[Any]:
        return run_kept(self, args, captures)

    def holds(self, given: Any) -> bool:
        return given.__class__ is DeviceArray and given.device is self.device

    def giver(self, args: Sequence[Any], keep: bool) -> Give | None:
        return itself if keep or any(map(self.holds, args)) else None

    def dispatch(self, slow: Callable[..., Any]) -> tuple[Callable[..., Any], Dispatch]:
        made = PythonDispatch(slow, DeviceArray)
        return made, made

    # Checks.

    def stepper(self) -> WebGPUStepper:
        return WebGPUStepper(self)

    def watch_for(self, plans: Collection[int]) -> None:
        """Nothing is noticed here: what was not reached is said in the certificate."""

    def lend(self, call: SizedKernel, plan: Plan) -> WebGPUProgram:
        own, ((other, odd),), code = self.code[call], odd_buffers(plan, self.target).items(), None
        if own.code is not None and odd == own.odd:
            text = replace(own.code.text, facts=own.code.text.facts.required())
            code = {other: replace(own, code=replace(own.code, text=text))}
        return WebGPUProgram(plan, self.kernels, self._backend, strict=self.strict, code=code)


class WebGPUStepper:
    """A program's plan carried out in memory that a check lays out on the host: it is copied to the
    device and back."""

    def __init__(self, program: WebGPUProgram) -> None:
        self.program = program
        self._constants: dict[int, list[Range]] = dict(program.constants)
        self._kept: list[Plan] = []  # whose identities are keys

    def step(self, plan: Plan, number: int, memory: PlanMemory) -> None:
        self._carried_out(plan, memory, [number])

    def whole(self, memory: PlanMemory) -> None:
        self._carried_out(self.program.plan, memory)

    def _carried_out(
        self, plan: Plan, memory: PlanMemory, numbers: Sequence[int] | None = None
    ) -> None:
        program, device = self.program, self.program.device
        code: Code = program.code
        if plan not in program.plan.every:  # a part of it, with kernels of its own sizes
            code = program.kernels.find(plan)
        if any(id(one) not in self._constants for one in plan.every):
            self._constants |= uploaded(device, plan)
            self._kept.append(plan)
        arrays = [*memory.inputs, *memory.outputs, memory.arena]
        inputs, outputs = ([a.nbytes for a in some] for some in (memory.inputs, memory.outputs))
        room = program.new_room(inputs, outputs, memory.arena.nbytes)
        program.lay(room)
        ranges = [*room.inputs, *room.outputs, room.arena]

        def fill() -> None:
            for where, array in zip(ranges, arrays, strict=True):
                device.write(where, array)

        fill()
        items = program.record(room, plan, room.arena, numbers, code, self._constants)
        types = [TensorType(np.dtype(np.uint8), (a.nbytes,)) for a in arrays]
        wanted = [
            (where, type, array)
            for where, type, array in zip(ranges, types, arrays, strict=True)
            if array.flags.writeable and array.nbytes
        ]
        try:
            found = self._found(room, items, wanted, program.careful)
        except Faulted:
            fill()
            found = self._found(room, items, wanted, True)
        for (_, _, array), made in zip(wanted, found, strict=True):
            array.reshape(-1).view(np.uint8)[...] = made

    def _found(
        self,
        room: Room,
        items: Sequence[Item],
        wanted: Sequence[tuple[Range, TensorType, Array]],
        careful: bool,
    ) -> list[Array]:
        run = self.program.execution(room, careful)
        run.run(items)
        return run.read([(where, type) for where, type, _ in wanted])
