"""Programs on a device: plans bound to its kernels and memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.backends.cuda.array import DeviceInput, device_input
from tenfold.backends.cuda.blocks import release_blocks
from tenfold.backends.cuda.driver.device import Device
from tenfold.backends.cuda.entry.code import begin, unsupported
from tenfold.backends.cuda.faults import program_too_large
from tenfold.backends.cuda.library.routine import LibraryCall
from tenfold.backends.cuda.run.bound_plan import BoundPlan
from tenfold.backends.cuda.run.carry_out import Execution
from tenfold.backends.cuda.run.dependences import Range
from tenfold.backends.cuda.run.kept import DeviceDispatch, giver, run_kept
from tenfold.backends.cuda.run.kernels import BoundKernel, Kernels, bound, odd_buffers
from tenfold.backends.cuda.run.memory import Address
from tenfold.backends.cuda.run.partials import Partials
from tenfold.backends.cuda.run.record import Surroundings
from tenfold.backends.cuda.run.replay import Replay, whole
from tenfold.backends.cuda.run.room import Room, freed_with, starts_of
from tenfold.backends.cuda.run.sending import Sender
from tenfold.backends.cuda.run.staging import Staging, may_stage
from tenfold.backends.cuda.run.stepper import CudaStepper
from tenfold.backends.cuda.target import CudaTarget, target_remark
from tenfold.backends.device_program import (
    Captures,
    DeviceProgram,
    Give,
    bind_call,
    captures_of,
)
from tenfold.backends.guard import Guard
from tenfold.backends.program import Array, BoundProgram, Dispatch
from tenfold.errors import DeviceMemoryProblem, DeviceProblem
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.plan import Plan
from tenfold.reference import Callbacks
from tenfold.types import TensorType

if TYPE_CHECKING:
    from tenfold.backends.backend import Backend

PINNED = 1 << 17  # bytes of a result from which it pays to have it in pinned memory
_EAGER, _NAP = 2e-3, 50e-6  # seconds: a loop is asked all the time at first, then now and then


_programs: weakref.WeakSet[CudaProgram] = weakref.WeakSet()


def release_rooms() -> int:
    """Give back the device memory that programs keep while nobody calls them: how many bytes."""
    freed = release_blocks()
    for device in {program.device for program in list(_programs)}:
        with suppress(DeviceProblem):  # of a GPU that gave up, which calls have told
            device.wait(device.main)
    for program in list(_programs):
        with suppress(IndexError):  # whoever calls meanwhile takes one, too
            while True:
                freed += program._rooms.pop().nbytes
        freed += sum(one.release() for one in list(program.native))
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
        code: dict[SizedKernel, BoundKernel] | None = None,
    ) -> None:
        super().__init__(callbacks)
        self.plan, self.graph, self.strict = plan, plan.graph, strict
        self.device, self.target, self._backend = device, kernels.target, backend
        self.code = kernels.find(plan) if code is None else code
        self._kernels = kernels
        self.judged = kernels.judged
        self.parameters = tuple(p.type for p in plan.graph.parameters)
        self.outputs = plan.graph.output_types
        self.donated = plan.donated
        self.arena_bytes = plan.arena_bytes
        self._partials = Partials.of(self.code.values())
        self.whole = whole(plan, self.target)
        # Nobody has to wait for what can't fail.
        self.single = self.whole and not any(k.checks for k in plan.kernels)
        self._rooms: list[Room] = []
        self.native: weakref.WeakSet[Any] = weakref.WeakSet()  # rooms that native entries have
        self.constants = self._uploaded()
        self.results = kernels.results
        _programs.add(self)
        begin()

    def _uploaded(self) -> dict[int, list[Address]]:
        """The constants of all plans, on the device."""
        device, found = self.device, dict[int, list[Address]]()
        raw = [(id(p), c) for p in self.plan.every for c in p.constants]
        for plan in self.plan.every:
            found[id(plan)] = []
        if not raw:
            return found
        starts, total = starts_of([len(data) for _, data in raw])
        base = device.alloc(total)
        freed_with(self, device, base)
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

    def enter(self) -> Room:
        """A room that nobody else is in. It goes back to the others when all is begun in the main
        stream, or done."""
        try:
            return self._rooms.pop()
        except IndexError:
            return self.new_room((*self.parameters, *self.outputs))

    def leave(self, room: Room) -> None:
        self._rooms.append(room)

    @contextmanager
    def room(self) -> Iterator[Room]:
        """Memory that nobody else uses meanwhile."""
        found = self.enter()
        try:
            yield found
        except BaseException:
            self._settle(found)
            raise
        finally:
            self.leave(found)

    def _settle(self, room: Room) -> None:
        """After an error: what was begun ends before the caller's arrays go, and what it found is
        nobody's."""
        with suppress(DeviceProblem):
            self.device.wait(self.device.main)
            self.device.wait(room.stream)
        room.fault.value = 0

    def new_room(self, held: Iterable[TensorType]) -> Room:
        """A room that has memory for arrays of these types, too."""
        given = (self.device, [t.nbytes for t in held], self.arena_bytes, self._partials)
        with suppress(DeviceMemoryProblem):
            return Room(*given)
        release_rooms()
        try:
            return Room(*given)
        except DeviceMemoryProblem:
            raise program_too_large(self, self._partials.nbytes) from None

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

        spaces = dict[int, Range]()

        def workspace(call: LibraryCall, aligned: bool) -> Sequence[Range]:
            """Calls that ask for as much have the same memory, one after the other."""
            nbytes = call.prepare(self.device, aligned)
            if nbytes and nbytes not in spaces:
                start = more(nbytes)
                spaces[nbytes] = start, start + nbytes
            return (spaces[nbytes],) if nbytes else ()

        around = Surroundings(
            self.device, self.target, code, constants, room.partials,
            room.fault.address, self._kernels.routine, workspace, self._kernels.glue, more,
        )  # fmt: skip
        stream, fault, partial = room.stream, room.fault, room.partials[0]

        def execution() -> Execution:
            return Execution(
                self.device, self.target, stream, code, constants, partial, fault,
                self._kernels.routine, workspace,
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
        running, room = self.running, self.enter()
        before, running.callbacks = running.callbacks, callbacks or self.callbacks
        try:
            replay = room.replay or self.replay(room)
            if room.under_way:
                room.follow()
            self.capture(room, captures)
            count = len(given)
            staging = room.staged[count] if count in room.staged else self.stage(room, count)
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
            self.leave(room)
        return made

    def _through(self, room: Room, replay: Replay, given: Sequence[Array]) -> list[Array]:
        """One run on arrays that are copied as they are."""
        device, stream, first = self.device, room.stream, len(self.parameters)
        if room.sender is None:
            room.sender = Sender(device, self.results, self.parameters)
        for n, array in enumerate(given):
            room.sender.send(n, room.places[n], array, stream)
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

    def stage(self, room: Room, count: int) -> Staging | None:
        """How small arguments, so many, come and go."""
        arguments, replay, made = self.parameters[:count], self.replay(room), None
        if may_stage(self.plan, self.target, arguments, self.outputs):
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
        if room.under_way:
            room.follow()
        first = len(self.parameters) - len(captures.arrays)
        for place, array in zip(room.places[first:], captures.arrays, strict=False):
            self.device.upload(place, array, room.stream)
        self.device.wait(room.stream)
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

    def make_bound(
        self,
        slow: Callable[..., Any],
        captures: Sequence[Array],
        guards: Sequence[Guard],
        updates: Sequence[int],
        answer: int | None,
    ) -> BoundProgram:
        return self._bound(slow, captures, guards, updates, answer, False)

    def make_keeping(
        self,
        slow: Callable[..., Any],
        captures: Sequence[Array],
        guards: Sequence[Guard],
        updates: Sequence[int],
        answer: int | None,
    ) -> BoundProgram:
        return self._bound(slow, captures, guards, updates, answer, True)

    def _bound(
        self,
        slow: Callable[..., Any],
        captures: Sequence[Array],
        guards: Sequence[Guard],
        updates: Sequence[int],
        answer: int | None,
        keep: bool,
    ) -> BoundProgram:
        """A callable that native code answers, where that is supported."""
        captured = captures_of(captures)
        made = bind_call(self, slow, captured, guards, updates, answer, keep)
        if unsupported() is not None:
            return made
        from tenfold.backends.cuda.entry.bind import NativeCall

        return NativeCall(self, made, captured, guards, updates, answer, keep)

    def dispatch(self, slow: Callable[..., Any]) -> tuple[Callable[..., Any], Dispatch]:
        made = DeviceDispatch(slow, self.device)
        if unsupported() is not None:
            return made, made
        from tenfold.backends.cuda.entry.dispatch import CudaDispatch

        native = CudaDispatch(made)
        return native.call, native

    # Checks.

    def stepper(self) -> CudaStepper:
        return CudaStepper(self)

    def watch_for(self, plans: Collection[int]) -> None:
        """Nothing is noticed here: what was not reached is said in the certificate."""

    def lend(self, call: SizedKernel, plan: Plan) -> CudaProgram:
        ((other, odd),), code = odd_buffers(plan).items(), None
        if odd <= odd_buffers(self.plan)[call]:
            own = self.code[call].code
            code = {other: bound(replace(own, facts=own.facts.required()), other)}
        return CudaProgram(
            plan, self.device, self._kernels, self._backend, strict=self.strict, code=code
        )
