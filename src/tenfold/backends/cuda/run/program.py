"""Programs on a device: plans bound to its kernels and memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.backends.cuda.array import DeviceInput, device_input
from tenfold.backends.cuda.blocks import release_blocks
from tenfold.backends.cuda.driver.device import Device
from tenfold.backends.cuda.faults import program_too_large
from tenfold.backends.cuda.run.bound_plan import BoundPlan
from tenfold.backends.cuda.run.carry_out import Execution
from tenfold.backends.cuda.run.kept import DeviceDispatch, giver, run_kept
from tenfold.backends.cuda.run.kernels import BoundKernel, Kernels
from tenfold.backends.cuda.run.memory import Address
from tenfold.backends.cuda.run.record import Surroundings, partial_room
from tenfold.backends.cuda.run.replay import Replay
from tenfold.backends.cuda.run.staging import Staging, may_stage
from tenfold.backends.cuda.target import CudaTarget, target_remark
from tenfold.backends.device_program import Captures, DeviceProgram, Give
from tenfold.backends.program import Array, Dispatch, PlanMemory
from tenfold.errors import DeviceMemoryProblem, DeviceProblem
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.plan import Plan
from tenfold.reference import Callbacks
from tenfold.types import TensorType

if TYPE_CHECKING:
    from tenfold.backends.backend import Backend

_ALIGN = 256
PINNED = 1 << 17  # bytes of a result from which it pays to have it in pinned memory
_EAGER, _NAP = 2e-3, 50e-6  # seconds: a loop is asked all the time at first, then now and then


def _freed_with(owner: Any, device: Device, address: Address) -> None:
    """Have memory given back when its owner goes; not when the process ends, where a check may
    still be at work in it: the driver frees all."""
    weakref.finalize(owner, device.free, address).atexit = False


class Room:
    """What one caller at a time runs a program in: a stream, device memory for inputs, outputs and
    all that is between, and the word that faults are told by."""

    replay: Replay | None = None
    captured: Captures | None = None  # what lies in its last inputs

    def __init__(self, device: Device, sizes: Sequence[int], arena: int, partial: int) -> None:
        self.device = device
        self.stream = device.stream()
        starts, total = list[int](), 0
        for size in (*sizes, arena, partial):
            starts.append(total)
            total += -(-max(size, 1) // _ALIGN) * _ALIGN
        self.nbytes = total
        self.base = device.alloc(total)
        _freed_with(self, device, self.base)
        *places, self.arena, self.partial = (self.base + start for start in starts)
        self.partial_bytes = partial
        self.places = places
        self.fault = device.fault_word()
        self.staged: dict[int, Staging | None] = {}  # by the number of arguments

    def more(self, nbytes: int) -> Address:
        """Memory that lives as long as the room."""
        made = self.device.alloc(nbytes)
        _freed_with(self, self.device, made)
        return made

    def failed(self) -> bool:
        """Whether a kernel told of a fault; it is forgotten."""
        if not self.fault.value:
            return False
        self.fault.value = 0
        return True


_programs: weakref.WeakSet[CudaProgram] = weakref.WeakSet()


def release_rooms() -> int:
    """Give back the device memory that programs keep while nobody calls them: how many bytes."""
    freed = release_blocks()
    for program in list(_programs):
        with suppress(IndexError):  # whoever calls meanwhile takes one, too
            while True:
                freed += program._rooms.pop().nbytes
    return freed


class CudaProgram(DeviceProgram):
    """A plan and its kernels on one device."""

    target: CudaTarget
    binds = True

    def __init__(
        self,
        plan: Plan,
        device: Device,
        kernels: Kernels,
        backend: Backend,
        callbacks: Callbacks | None = None,
        *,
        strict: bool = False,
    ) -> None:
        super().__init__(callbacks)
        self.plan, self.graph, self.strict = plan, plan.graph, strict
        self.device, self.target, self._backend = device, kernels.target, backend
        self.code: dict[SizedKernel, BoundKernel] = kernels.find(plan)
        self._kernels = kernels
        self.judged = kernels.judged
        self.parameters = tuple(p.type for p in plan.graph.parameters)
        self.outputs = plan.graph.output_types
        self.donated = plan.donated
        self.arena_bytes = plan.arena_bytes
        self._partial = partial_room(self.code.values())
        self._rooms: list[Room] = []
        self.constants = self._uploaded()
        self.results = kernels.results
        _programs.add(self)

    def _uploaded(self) -> dict[int, list[Address]]:
        """The constants of all plans, on the device."""
        device, found = self.device, dict[int, list[Address]]()
        raw = [(id(p), c) for p in self.plan.every for c in p.constants]
        for plan in self.plan.every:
            found[id(plan)] = []
        if not raw:
            return found
        starts, total = list[int](), 0
        for _, data in raw:
            starts.append(total)
            total += -(-max(len(data), 1) // _ALIGN) * _ALIGN
        base = device.alloc(total)
        _freed_with(self, device, base)
        stream = device.stream()
        for (which, data), start in zip(raw, starts, strict=True):
            device.upload(base + start, np.frombuffer(data, np.uint8), stream)
            found[which].append(base + start)
        device.wait(stream)
        return found

    @property
    def backend(self) -> Backend:
        return self._backend

    def code_name(self, call: SizedKernel) -> str:
        return self.code[call].code.text.name

    def serves(self, call: SizedKernel, other: SizedKernel) -> bool:
        return call.kernel == other.kernel and self.code[call].code.facts.admit(other.sizes)

    def remarks(self) -> list[str]:
        lines = [target_remark(self.target)]
        for call, found in self.code.items():
            ways = [f"{one.blocks} × {one.threads}" for one in found.launches]
            lines.append(f"  kernel {call.kernel.digest[:8]}: {', '.join(ways)} threads")
        return lines

    # Running.

    def _enter(self) -> Room:
        """A room that nobody else is in. It goes back to the others when all is done."""
        try:
            return self._rooms.pop()
        except IndexError:
            return self.new_room((*self.parameters, *self.outputs))

    @contextmanager
    def room(self) -> Iterator[Room]:
        """Memory that nobody else uses meanwhile."""
        found = self._enter()
        try:
            yield found
        except BaseException:
            self._settle(found)
            raise
        finally:
            self._rooms.append(found)

    def _settle(self, room: Room) -> None:
        """After an error: what was begun ends before the caller's arrays go, and what it found is
        nobody's."""
        with suppress(DeviceProblem):
            self.device.wait(room.stream)
        room.fault.value = 0

    def new_room(self, held: Iterable[TensorType]) -> Room:
        """A room that has memory for arrays of these types, too."""
        given = (self.device, [t.nbytes for t in held], self.arena_bytes, self._partial)
        with suppress(DeviceMemoryProblem):
            return Room(*given)
        release_rooms()
        try:
            return Room(*given)
        except DeviceMemoryProblem:
            raise program_too_large(self, self._partial) from None

    def replay(self, room: Room) -> Replay:
        """The plan's graphs for a room."""
        if room.replay is None:
            room.replay = self.replay_on(room, room.places)
        return room.replay

    def replay_on(self, room: Room, places: Sequence[Address]) -> Replay:
        """The plan's graphs for arrays in these places."""
        return self._replay(self.plan, room, room.arena, places, self.constants)

    def _replay(
        self,
        plan: Plan,
        room: Room,
        arena: Address,
        places: Sequence[Address],
        constants: Mapping[int, Sequence[Address]],
        kernels: Mapping[SizedKernel, BoundKernel] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> Replay:
        code = self.code if kernels is None else kernels
        owner = weakref.ref(room)  # which has the replay

        def more(nbytes: int) -> Address:
            room = owner()
            assert room is not None
            return room.more(nbytes)

        around = Surroundings(
            self.device, self.target, code, constants, room.partial, room.partial_bytes,
            room.fault.address, self._kernels.routine, self._kernels.glue, more,
        )  # fmt: skip
        stream, fault, partial = room.stream, room.fault, room.partial

        def execution() -> Execution:
            return Execution(
                self.device, self.target, stream, code, constants, partial, fault,
                self._kernels.routine,
                lambda: self.running.callbacks or self.callbacks,
            )  # fmt: skip

        return Replay(plan, around, arena, places, execution, numbers)

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
        running, room = self.running, self._enter()
        before, running.callbacks = running.callbacks, callbacks or self.callbacks
        try:
            replay = room.replay or self.replay(room)
            self.capture(room, captures)
            count = len(given)
            staging = room.staged[count] if count in room.staged else self._stage(room, count)
            if staging is not None:
                staging.fill(given)
                staging.graph.launch(room.stream)
                self.wait(room)
                made = staging.taken()
            else:
                made = self._through(room, replay, given)
            if room.failed():
                arrays = given if captures is None else [*given, *captures.arrays]
                made = self._again(room, replay, arrays)
        except BaseException:
            self._settle(room)
            raise
        finally:
            running.callbacks = before
            self._rooms.append(room)
        return made

    def _through(self, room: Room, replay: Replay, given: Sequence[Array]) -> list[Array]:
        """One run on arrays that are copied as they are."""
        device, stream, first = self.device, room.stream, len(self.parameters)
        for place, array in zip(room.places, given, strict=False):
            device.upload(place, array, stream)
        replay.run(room.places, stream)
        made = [
            self.results.array(t) if t.nbytes >= PINNED else np.empty(t.shape, t.dtype)
            for t in self.outputs
        ]
        for array, place in zip(made, room.places[first:], strict=True):
            device.download(array, place, stream)
        self.wait(room)
        return made

    def _again(self, room: Room, replay: Replay, arrays: Sequence[Array]) -> list[Array]:
        """The same step by step, after a fault: that which failed says so."""
        device, stream = self.device, room.stream
        room.captured = None  # the plan may have written over all that it was given
        for place, array in zip(room.places, arrays, strict=False):
            device.upload(place, array, stream)
        replay.step_by_step(room.places)
        made: list[Array] = [np.empty(t.shape, t.dtype) for t in self.outputs]
        for array, place in zip(made, room.places[len(self.parameters) :], strict=True):
            device.download(array, place, stream)
        device.wait(stream)
        return made

    def _stage(self, room: Room, count: int) -> Staging | None:
        """How small arguments, so many, come and go."""
        arguments, replay, made = self.parameters[:count], self.replay(room), None
        if may_stage(replay, arguments, self.outputs):
            made = Staging(replay, arguments, self.outputs, room.places)
        room.staged[count] = made
        return made

    def capture(self, room: Room, captures: Captures | None) -> None:
        """Have captured arrays lie on the device; they are copied once for each room. A call that
        brings all parameters itself writes over them."""
        if room.captured is captures:
            return
        room.captured = None
        if captures is None:
            return
        first = len(self.parameters) - len(captures.arrays)
        for place, array in zip(room.places[first:], captures.arrays, strict=False):
            self.device.upload(place, array, room.stream)
        room.captured = captures

    def wait(self, room: Room, replay: Replay | None = None, stream: Any = None) -> None:
        """Wait for all that was begun. Loops can be interrupted: their conditions look at the fault
        word."""
        replay, stream = replay or room.replay, room.stream if stream is None else stream
        if replay is None or not replay.loops:
            self.device.wait(stream)
            return
        try:
            since = perf_counter()
            while not self.device.idle(stream):
                sleep(0 if perf_counter() - since < _EAGER else _NAP)
        except BaseException:
            room.fault.value = 1 << 31
            self.device.wait(stream)
            room.fault.value = 0
            raise

    def answer_kept(self, args: Sequence[Any], captures: Captures | None = None) -> list[Any]:
        return run_kept(self, args, captures)

    def holds(self, given: Any) -> bool:
        return given.__class__ is DeviceInput

    def giver(self, args: Sequence[Any], keep: bool) -> Give | None:
        return giver(args, keep)

    def memory_of(self, array: Any) -> DeviceInput | None:
        return device_input(array, self.device, copies=False)

    def bind_memory(
        self, names: Sequence[str], inputs: Sequence[Any], captures: Sequence[Array]
    ) -> BoundPlan:
        return BoundPlan(self, names, inputs, captures)

    def dispatch(self, slow: Callable[..., Any]) -> tuple[Callable[..., Any], Dispatch]:
        made = DeviceDispatch(slow, self.device)
        return made, made

    # Checks.

    def stepper(self) -> CudaStepper:
        return CudaStepper(self)

    def watch_for(self, plans: Collection[int]) -> None:
        """Nothing is noticed here: what was not reached is said in the certificate."""

    def lend(self, call: SizedKernel, plan: Plan) -> CudaProgram:
        return CudaProgram(plan, self.device, self._kernels, self._backend, strict=self.strict)


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
        partial = partial_room(kernels.values())
        room = Room(device, sizes, 0, partial)
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
        made = CudaProgram(plan, program.device, program._kernels, program.backend)
        self._kept = made
        return made.constants
