"""Record the steps of a plan as a graph: kernels and copies with what each has to wait for, loops
and branches as graphs inside of it.

A counted loop of few nodes is unrolled. Another repeats a graph in which all addresses are fixed:
what a round is given is moved to a place of its own before it, and what it gives away after it. A
loop ends early where the fault word is set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd
from typing import Any

from tenfold.backends.cuda.driver.device import Device, Module
from tenfold.backends.cuda.emit import glue
from tenfold.backends.cuda.emit.function import ARRIVED
from tenfold.backends.cuda.library.routine import (
    FAULT,
    GpuRoutine,
    LibraryCall,
    RoutineLaunch,
    routine_of,
)
from tenfold.backends.cuda.recording import (
    CHOSEN,
    REPEATED,
    ConditionalNode,
    CopyNode,
    Handle,
    KernelNode,
    LibraryNode,
    Node,
    Recording,
    Word,
)
from tenfold.backends.cuda.run.alignment import ALIGNED
from tenfold.backends.cuda.run.block_loops import recorded_by_block
from tenfold.backends.cuda.run.dependences import Dependences, Range
from tenfold.backends.cuda.run.kernels import BoundKernel
from tenfold.backends.cuda.run.memory import Address, DeviceFrame
from tenfold.backends.cuda.run.thread_loops import recorded_by_threads
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import join
from tenfold.frozen import frozen
from tenfold.kernel.ir.kernel import READ
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.plan import BranchStep, CopyStep, HostStep, KernelStep, LoopStep, Plan, RoutineStep
from tenfold.types import SHORT

FEW, UNROLLED = 32, 1024  # nodes of a counted loop
_MOVES = 16  # pieces that one function moves
_MOVE_BLOCKS = 528


@frozen(eq=False)
class Surroundings:
    """What steps of plans need besides their slots. `fault` is where kernels tell of faults,
    `partials` the memory in which functions of a kernel leave each other something, of so many
    kernels in turn."""

    device: Device
    target: CudaTarget
    kernels: Mapping[SizedKernel, BoundKernel]
    constants: Mapping[int, Sequence[Address]]
    partials: Sequence[Address]
    fault: Address
    routines: Callable[[GpuRoutine], Module]
    workspace: Callable[[LibraryCall, bool], Sequence[Range]]  # what a call asks for besides
    glue: Callable[[str, Callable[[Any], str]], Module]  # by a key, and the text for a target
    room: Callable[[int], Address]  # more memory, that lives as long as the recording


def on_device(plan: Plan, target: CudaTarget) -> dict[int, bool]:
    """For each plan, by identity, whether all of its steps and of those below can be recorded."""
    found: dict[int, bool] = {}
    for one in plan.every:  # inner ones first
        found[id(one)] = all(recordable(one, step, found, target) for step in one.steps)
    return found


def recordable(plan: Plan, step: Any, below: Mapping[int, bool], target: CudaTarget) -> bool:
    """Whether a step can be a part of a graph; the host does all others."""
    if isinstance(step, HostStep):
        return False
    if isinstance(step, RoutineStep):
        found = routine_for(plan, step, target)
        return found is not None and found.captured
    if isinstance(step, (LoopStep, BranchStep)):
        return all(below[id(plan.plans[p])] for p in step.plans)
    return True


def routine_for(
    plan: Plan, step: RoutineStep, target: CudaTarget, aligned: bool = False
) -> GpuRoutine | None:
    """How a routine is carried out here; None where the evaluator does it."""
    node = plan.graph.nodes[step.node]
    types = [plan.graph.types[v] for v in node.inputs]
    return routine_of(step.name, types, node.types[0], dict(node.attributes), target, aligned)


class Recorder:
    """A graph on its way. Graphs inside of it have recorders of their own, which count conditions
    together."""

    def __init__(self, around: Surroundings, handles: list[int] | None = None) -> None:
        self.around = around
        self.nodes: list[Node] = []
        self.waits = Dependences()
        self.handles = [0] if handles is None else handles
        self.reads: list[Range] = []
        self.writes: list[Range] = []
        self.turn = 0  # whose partial results come next

    def finish(self) -> Recording:
        return Recording(tuple(self.nodes), self.handles[0], self.around.target.overlap)

    def _after(self, reads: Sequence[Range], writes: Sequence[Range]) -> tuple[int, ...]:
        self.reads += reads
        self.writes += writes
        return self.waits.add(len(self.nodes), reads, writes)

    # Steps.

    def steps(self, frame: DeviceFrame, numbers: Sequence[int] | None = None) -> None:
        """Some steps of a plan, or all."""
        chosen = range(len(frame.plan.steps)) if numbers is None else numbers
        for number in chosen:
            step = frame.plan.steps[number]
            match step:
                case KernelStep():
                    self.kernel(frame, step)
                case CopyStep():
                    size = frame.plan.slots[step.source].type.nbytes
                    self.copy(frame.address(step.target), frame.address(step.source), size)
                case RoutineStep():
                    self.routine(frame, step)
                case LoopStep():
                    self.loop(frame, step)
                case BranchStep():
                    self.branch(frame, step)
                case HostStep():
                    raise AssertionError("the host's steps are in no graph")

    def _range(self, frame: DeviceFrame, slot: int) -> Range:
        start = frame.address(slot)
        return start, start + frame.plan.slots[slot].type.nbytes

    def kernel(self, frame: DeviceFrame, step: KernelStep) -> None:
        found, around = self.around.kernels[frame.plan.call(step)], self.around
        buffers = [frame.address(slot) for slot in step.slots]
        roles = [b.role for b in frame.plan.own[step.kernel].buffers]
        ranges = [self._range(frame, slot) for slot in step.slots]
        reads = [r for r, role in zip(ranges, roles, strict=True) if role == READ]
        writes = [r for r, role in zip(ranges, roles, strict=True) if role != READ]
        partial = around.partials[self.turn % len(around.partials)]
        if found.partial:
            self.turn += 1
            writes.append((partial - ARRIVED, partial + found.partial))
        for launch in found.launches:
            words = found.words(launch, buffers, step.params, partial, around.fault)
            self.launch(launch.function, launch.blocks, launch.threads, words, reads, writes)

    def launch(
        self,
        function: Any,
        blocks: int,
        threads: int,
        words: Sequence[Word],
        reads: Sequence[Range],
        writes: Sequence[Range],
    ) -> None:
        if blocks:
            after = self._after(reads, writes)
            self.nodes.append(KernelNode(function, blocks, threads, tuple(words), after))

    def copy(self, target: Address, source: Address, nbytes: int) -> None:
        if nbytes and target != source:
            after = self._after([(source, source + nbytes)], [(target, target + nbytes)])
            self.nodes.append(CopyNode(target, source, nbytes, after))

    def routine(self, frame: DeviceFrame, step: RoutineStep) -> None:
        places = [frame.address(slot) for slot in (*step.inputs, *step.outputs, *step.scratch)]
        aligned = not any(place % ALIGNED for place in places)
        found = routine_for(frame.plan, step, self.around.target, aligned)
        assert found is not None
        reads = [self._range(frame, slot) for slot in step.inputs]
        writes = [self._range(frame, slot) for slot in (*step.outputs, *step.scratch)]
        module = self.around.routines(found) if found.key else None
        for one in found.launches:
            if not isinstance(one, RoutineLaunch):
                own = self.around.workspace(one, aligned)
                given = (*places, *(start for start, _ in own))
                after = self._after(reads, [*writes, *own])
                self.nodes.append(LibraryNode(one.call, given, after))
                continue
            assert module is not None
            words: list[Word] = [self.around.fault if n == FAULT else places[n] for n in one.arrays]
            words += [value.to_bytes(size, "little", signed=True) for value, size in one.words]
            function = module.function(one.function)
            self.launch(function, one.blocks, one.threads, words, reads, writes)

    # Branches and loops.

    def _inner(self) -> Recorder:
        return Recorder(self.around, self.handles)

    def _handle(self) -> int:
        self.handles[0] += 1
        return self.handles[0] - 1

    def _control(self, name: str, words: Sequence[Word], reads: Sequence[Range]) -> None:
        """One of the functions that set conditions."""
        module = self.around.glue("control", lambda t: join([glue.control_text(t)]))
        # The condition is read by the node that follows; its handle stands for it here.
        self.launch(module.function(name), 1, 1, words, reads, ())

    def _conditional(self, kind: str, handle: int, bodies: Sequence[Recorder]) -> None:
        """A node for graphs inside of this one, after the function that sets its condition."""
        reads = [r for body in bodies for r in body.reads]
        writes = [r for body in bodies for r in body.writes]
        setter = len(self.nodes) - 1
        after = tuple(sorted({*self._after(reads, writes), setter}))
        overlap = self.around.target.overlap
        made = tuple(Recording(tuple(body.nodes), 0, overlap) for body in bodies)
        self.nodes.append(ConditionalNode(kind, handle, made, after))

    def _below(
        self, frame: DeviceFrame, which: int, inputs: Sequence[int], outputs: Sequence[int],
        arena: int,
    ) -> DeviceFrame:  # fmt: skip
        plan = frame.plan.plans[which]
        constants = self.around.constants[id(plan)]
        return DeviceFrame(plan, inputs, outputs, frame.address(arena), constants)

    def branch(self, frame: DeviceFrame, step: BranchStep) -> None:
        handle = self._handle()
        inputs = [frame.address(s) for s in step.inputs]
        outputs = [frame.address(s) for s in step.outputs]
        bodies = []
        for which in step.plans:
            body = self._inner()
            body.steps(self._below(frame, which, inputs, outputs, step.arena))
            bodies.append(body)
        dtype = SHORT[frame.plan.slots[step.index].type.dtype]
        module = self.around.glue(
            glue.choose_name(dtype), lambda target: join([glue.choose_text(dtype, target)])
        )
        last = (len(bodies) - 1).to_bytes(8, "little")
        words: list[Word] = [Handle(handle), frame.address(step.index), last]
        reads = [self._range(frame, step.index)]
        self.launch(module.function(glue.choose_name(dtype)), 1, 1, words, reads, ())
        self._conditional(CHOSEN, handle, bodies)

    def loop(self, frame: DeviceFrame, step: LoopStep) -> None:
        """A loop: by threads that go through it by themselves where they can, unrolled where it is
        counted and very short, else by a single block where its rounds are small, else unrolled or
        repeated."""
        nodes = step.length * _size(frame.plan.plans[step.plans[-1]])
        if recorded_by_threads(self, frame, step):
            return
        if step.counted and nodes <= FEW:
            self._unrolled(frame, step)
        elif not recorded_by_block(self, frame, step):
            if step.counted and nodes <= UNROLLED:
                self._unrolled(frame, step)
            else:
                _Rounds(self, frame, step).record()

    def _unrolled(self, frame: DeviceFrame, step: LoopStep) -> None:
        """Round by round; carries go to and fro between two places."""
        first = step.captures + step.carries
        given = [frame.address(s) for s in step.inputs]
        made = [frame.address(s) for s in step.outputs]
        second = [frame.address(s) for s in step.second]
        now = given[step.captures : first]
        for n in range(step.length):
            turn = step.length - 1 - n if step.reverse else n
            following = [
                b if a == f else f
                for a, f, b in zip(now, made[: step.carries], second, strict=True)
            ]
            slices = [
                at + turn * _each(frame, s, step)
                for at, s in zip(given[first:], step.inputs[first:], strict=True)
            ]
            stacks = [
                at + turn * _each(frame, s, step)
                for at, s in zip(made[step.carries :], step.outputs[step.carries :], strict=True)
            ]
            inputs = [*given[: step.captures], *now, *slices]
            below = self._below(frame, step.plans[-1], inputs, [*following, *stacks], step.arena)
            self.steps(below)
            now = following
        for at, final, slot in zip(now, made, step.outputs, strict=False):
            self.copy(final, at, frame.plan.slots[slot].type.nbytes)

    def move(self, pieces: Sequence[Piece], counter: Address, last: int) -> None:
        """Pieces of memory moved, each on by its steps for the round that the counter has."""
        for start in range(0, len(pieces), _MOVES):
            some = pieces[start : start + _MOVES]
            numbers = [n for p in some for n in (p.target, p.source, p.nbytes, *p.steps)]
            exact = gcd(*numbers)
            unit = 16 if exact % 16 == 0 else 4 if exact % 4 == 0 else 1
            key, count = glue.moves_name(len(some), unit), len(some)
            module = self.around.glue(key, lambda t: join([glue.moves_text(count, unit, t)]))  # noqa: B023
            most = max(p.nbytes for p in some) // unit
            blocks = max(1, min(_MOVE_BLOCKS, -(-most // (4 * glue.MOVE_THREADS))))
            words: list[Word] = [counter, last.to_bytes(8, "little", signed=True)]
            words.append(blocks.to_bytes(8, "little"))
            for p in some:
                words += [p.target, p.source, (p.nbytes // unit).to_bytes(8, "little")]
                words += [step.to_bytes(8, "little", signed=True) for step in p.steps]
            reads = [*(p.read for p in some), (counter, counter + 8)]
            writes = [p.written for p in some]
            function = module.function(key)
            self.launch(function, blocks * count, glue.MOVE_THREADS, words, reads, writes)


@frozen
class Piece:
    """Memory that is moved: so many bytes, and how far its two ends lie apart from round to
    round."""

    target: Address
    source: Address
    nbytes: int
    steps: tuple[int, int]
    rounds: int  # as many as there may be

    @property
    def read(self) -> Range:
        return self.source, self.source + self.nbytes + (self.rounds - 1) * self.steps[1]

    @property
    def written(self) -> Range:
        return self.target, self.target + self.nbytes + (self.rounds - 1) * self.steps[0]


class _Rounds:
    """A loop as a graph that is repeated."""

    def __init__(self, recorder: Recorder, frame: DeviceFrame, step: LoopStep) -> None:
        self.r, self.frame, self.step = recorder, frame, step
        first = step.captures + step.carries
        self.captures = [frame.address(s) for s in step.inputs[: step.captures]]
        self.begin = [frame.address(s) for s in step.inputs[step.captures : first]]
        self.now = [frame.address(s) for s in step.outputs[: step.carries]]
        self.next = [frame.address(s) for s in step.second]
        self.sizes = [frame.plan.slots[s].type.nbytes for s in step.outputs[: step.carries]]
        self.slices = step.inputs[first:]
        self.stacks = step.outputs[step.carries :]
        self.handle = recorder._handle()

    def record(self) -> None:
        r, step = self.r, self.step
        for to, of, size in zip(self.now, self.begin, self.sizes, strict=True):
            r.copy(to, of, size)
        counter = r.around.room(8)
        if step.counted:
            self._counted(glue.START, r, counter)
        else:
            self._asked(r)
        body = r._inner()
        given = [self._own(s) for s in self.slices]
        made = [self._own(s) for s in self.stacks]
        last = step.length - 1 if step.reverse else -1
        if given:
            body.move([self._in(s, at) for s, at in zip(self.slices, given, strict=True)],
                      counter, last)  # fmt: skip
        inputs = [*self.captures, *self.now, *given]
        body.steps(r._below(self.frame, step.plans[-1], inputs, [*self.next, *made], step.arena))
        carried = zip(self.now, self.next, self.sizes, strict=True)
        moved = [Piece(to, of, size, (0, 0), 1) for to, of, size in carried if to != of and size]
        moved += [self._out(s, at) for s, at in zip(self.stacks, made, strict=True)]
        if moved:
            body.move(moved, counter, last)
        if step.counted:
            self._counted(glue.COUNT, body, counter)
        else:
            self._asked(body)
        r._conditional(REPEATED, self.handle, [body])

    def _own(self, slot: int) -> Address:
        """A place for one round's slice."""
        return self.r.around.room(_each(self.frame, slot, self.step))

    def _in(self, slot: int, at: Address) -> Piece:
        size = _each(self.frame, slot, self.step)
        return Piece(at, self.frame.address(slot), size, (0, size), self.step.length)

    def _out(self, slot: int, at: Address) -> Piece:
        size = _each(self.frame, slot, self.step)
        return Piece(self.frame.address(slot), at, size, (size, 0), self.step.length)

    def _counted(self, name: str, recorder: Recorder, counter: Address) -> None:
        """Begin to count, or count a round. It comes after all else of the round."""
        words: list[Word] = [
            Handle(self.handle), counter, self.step.length.to_bytes(8, "little"),
            recorder.around.fault,
        ]  # fmt: skip
        module = recorder.around.glue("control", lambda t: join([glue.control_text(t)]))
        writes = [(counter, counter + 8)]
        recorder.launch(module.function(name), 1, 1, words, [], writes)

    def _asked(self, recorder: Recorder) -> None:
        """Ask the condition of a while about the carries."""
        step, frame = self.step, self.frame
        flag = frame.address(step.flag)
        inputs = [*self.captures, *self.now]
        below = recorder._below(frame, step.plans[0], inputs, [flag], step.arena)
        recorder.steps(below)
        words: list[Word] = [Handle(self.handle), flag, recorder.around.fault]
        recorder._control(glue.SET_FLAG, words, [(flag, flag + 1)])


def _each(frame: DeviceFrame, slot: int, step: LoopStep) -> int:
    """The bytes of one round's part of a slot."""
    return frame.plan.slots[slot].type.nbytes // max(step.length, 1)


def _size(plan: Plan) -> int:
    """About how many nodes a plan has."""
    found: dict[int, int] = {}
    for one in plan.every:
        total = 0
        for step in one.steps:
            times = max(1, step.length) if isinstance(step, LoopStep) and step.counted else 1
            below = step.plans if isinstance(step, (LoopStep, BranchStep)) else ()
            total += 1 + times * sum(found[id(one.plans[p])] for p in below)
        found[id(one)] = total
    return found[id(plan)]
