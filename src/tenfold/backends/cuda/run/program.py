"""Programs on a device: plans bound to its kernels and memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.backends.cuda.driver.device import Device
from tenfold.backends.cuda.faults import program_too_large
from tenfold.backends.cuda.run.binding import BoundCall, bind_call
from tenfold.backends.cuda.run.carry_out import Execution
from tenfold.backends.cuda.run.kept import DeviceDispatch
from tenfold.backends.cuda.run.kernels import BoundKernel, Kernels
from tenfold.backends.cuda.run.memory import Address, DeviceFrame
from tenfold.backends.cuda.target import CudaTarget, target_remark
from tenfold.backends.guard import Guard
from tenfold.backends.program import Array, Dispatch, PlanMemory, Program
from tenfold.errors import DeviceMemoryProblem, DeviceProblem
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.locks import Lock
from tenfold.plan import Plan
from tenfold.reference import Callbacks

if TYPE_CHECKING:
    from tenfold.backends.backend import Backend

_ALIGN = 256


class Room:
    """What one caller at a time runs a program in: a stream, device memory for inputs, outputs and
    all that is between, and the word that faults are told by."""

    def __init__(self, device: Device, sizes: Sequence[int], arena: int, partial: int) -> None:
        self.device = device
        self.stream = device.stream()
        starts, total = list[int](), 0
        for size in (*sizes, arena, partial):
            starts.append(total)
            total += -(-max(size, 1) // _ALIGN) * _ALIGN
        self.nbytes = total
        self.base = device.alloc(total)
        weakref.finalize(self, device.free, self.base)
        *places, self.arena, self.partial = (self.base + start for start in starts)
        self.places = places
        self.fault = device.pinned(4)


_programs: weakref.WeakSet[CudaProgram] = weakref.WeakSet()


def release_rooms() -> int:
    """Give back the device memory that programs keep while nobody calls them: how many bytes."""
    freed = 0
    for program in list(_programs):
        with program._lock:
            rooms, program._rooms = program._rooms, []
        freed += sum(room.nbytes for room in rooms)
    return freed


class CudaProgram(Program):
    """A plan and its kernels on one device."""

    target: CudaTarget

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
        self._partial = max((found.partial for found in self.code.values()), default=0)
        self._rooms: list[Room] = []
        self._lock = Lock()
        self.constants = self._uploaded()
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
        weakref.finalize(self, device.free, base)
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

    @contextmanager
    def room(self) -> Iterator[Room]:
        """Memory that nobody else uses meanwhile."""
        with self._lock:
            found = self._rooms.pop() if self._rooms else None
        if found is None:
            found = self._new_room()
        try:
            yield found
        except BaseException:
            # What was begun ends before the caller's arrays go, and what it found is no one's.
            with suppress(DeviceProblem):
                self.device.wait(found.stream)
            found.fault[0][...] = 0
            raise
        finally:
            with self._lock:
                self._rooms.append(found)

    def _new_room(self) -> Room:
        sizes = [t.nbytes for t in (*self.parameters, *self.outputs)]
        given = (self.device, sizes, self.arena_bytes, self._partial)
        with suppress(DeviceMemoryProblem):
            return Room(*given)
        release_rooms()
        try:
            return Room(*given)
        except DeviceMemoryProblem:
            raise program_too_large(self, self._partial) from None

    def execution(self, room: Room) -> Execution:
        return Execution(
            self.device,
            room.stream,
            self.code,
            self.constants,
            room.partial,
            room.fault,
            self._kernels.routine,
            lambda: self.running.callbacks or self.callbacks,
        )

    def __call__(self, arrays: Sequence[Any], callbacks: Callbacks | None = None) -> list[Array]:
        given = [
            np.ascontiguousarray(np.asarray(a).astype(t.dtype, copy=False)).reshape(t.shape)
            for a, t in zip(arrays, self.parameters, strict=True)
        ]
        made: list[Array] = [np.empty(t.shape, t.dtype) for t in self.outputs]
        count = len(given)
        with self.room() as room, self.running.using(callbacks or self.callbacks):
            for place, array in zip(room.places, given, strict=False):
                self.device.upload(place, array, room.stream)
            frame = DeviceFrame(
                self.plan, room.places[:count], room.places[count:], room.arena,
                self.constants[id(self.plan)],
            )  # fmt: skip
            self.execution(room).run(frame)
            for array, place in zip(made, room.places[count:], strict=True):
                self.device.download(array, place, room.stream)
            self.device.wait(room.stream)
        return made

    def make_bound(
        self,
        slow: Callable[..., Any],
        captures: Sequence[Array],
        guards: Sequence[Guard],
        updates: Sequence[int],
        answer: int | None,
    ) -> BoundCall:
        return bind_call(self, slow, captures, guards, updates, answer)

    def make_keeping(
        self,
        slow: Callable[..., Any],
        captures: Sequence[Array],
        guards: Sequence[Guard],
        updates: Sequence[int],
        answer: int | None,
    ) -> BoundCall:
        return bind_call(self, slow, captures, guards, updates, answer, keep=True)

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
        self._carried_out(plan, memory, lambda run, frame: run.step(frame, number))

    def whole(self, memory: PlanMemory) -> None:
        self._carried_out(self.program.plan, memory, lambda run, frame: run.run(frame))

    def _carried_out(
        self, plan: Plan, memory: PlanMemory, work: Callable[[Execution, DeviceFrame], None]
    ) -> None:
        program, device = self.program, self.program.device
        arrays = [*memory.inputs, *memory.outputs, memory.arena]
        sizes = [a.nbytes for a in arrays]
        kernels = program.code
        if plan not in program.plan.every:  # a part of it, with kernels of its own sizes
            kernels = program._kernels.find(plan)
        partial = max((found.partial for found in kernels.values()), default=0)
        room = Room(device, sizes, 0, partial)
        for place, array in zip(room.places, arrays, strict=True):
            device.upload(place, array.reshape(-1).view(np.uint8), room.stream)
        run = Execution(
            device, room.stream, kernels, self._constants(plan), room.partial, room.fault,
            program._kernels.routine, lambda: program.running.callbacks or program.callbacks,
        )  # fmt: skip
        count = len(memory.inputs)
        *places, arena = room.places
        constants = run.constants[id(plan)]
        work(run, DeviceFrame(plan, places[:count], places[count:], arena, constants))
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
