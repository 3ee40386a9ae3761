"""Record the steps of a plan as lists of what a device is to do, once for each room: dispatches
with their memory bound, and between them what the host does or decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenfold.backends.webgpu.library.routine import routine_of
from tenfold.backends.webgpu.native.buffer import Range
from tenfold.backends.webgpu.run.beyond import OnCPU
from tenfold.backends.webgpu.run.gates import Flat, Open, Sent
from tenfold.backends.webgpu.run.kernels import Code, Compiled, Kernels
from tenfold.backends.webgpu.run.memory import Frame, Room
from tenfold.backends.webgpu.run.moves import Bound
from tenfold.backends.webgpu.shader import BUFFER, FAULT, SCRATCH, WORDS, BoundShader
from tenfold.frozen import frozen, mutable
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.plan import BranchStep, CopyStep, HostStep, KernelStep, LoopStep, RoutineStep
from tenfold.plan.steps.plan import Step
from tenfold.types import DTYPES


@frozen(eq=False)
class Run:
    """Dispatches, one after the other. Those of a kernel that checks are of a step."""

    dispatches: tuple[Bound, ...]
    frame: Frame | None = None
    number: int = -1


@frozen(eq=False)
class OnHost:
    """A step that the host carries out."""

    frame: Frame
    number: int


@frozen(eq=False)
class Beyond:
    """A kernel that the CPU's backend carries out."""

    step: OnCPU


@frozen(eq=False)
class Rounds:
    """A loop. Each round is one of three: from what is given to one of two places, or from either
    of these to the other."""

    step: LoopStep
    begin: tuple[Bound, ...]
    rounds: Callable[[int], Sequence[Item]]  # by which of the three
    end: Callable[[int], Sequence[Item]]  # by how many rounds there were
    condition: Callable[[int], Sequence[Item]]  # by which round would be next
    flag: Range | None  # what the condition says
    state: Range  # of its gates: whether it goes on, and how many rounds there were
    open: Bound
    gated: Callable[[int], Sequence[Sent] | None]  # a round behind a gate, if it is all dispatches


@frozen(eq=False)
class Choice:
    """A branch, by the value of an index. All of them are sent behind a gate where they are
    dispatches alone, and few; the gate stands behind another or behind none."""

    step: BranchStep
    index: Range
    dtype: str
    branch: Callable[[int], Sequence[Item]]
    gated: Callable[[Open | None], Sequence[Sent] | None]


Item = Run | OnHost | Beyond | Rounds | Choice

IN_VAIN = 64  # dispatches of branches that are sent though another may be chosen


def which_round(number: int) -> int:
    """Which of three a round is: the first, or one from the first place or from the second.

    >>> [which_round(n) for n in range(5)]
    [0, 1, 2, 1, 2]
    """
    return number and 2 - number % 2


@mutable
class Recorder:
    """Records for one room."""

    room: Room
    kernels: Kernels
    code: Code

    def steps(self, frame: Frame, numbers: Sequence[int] | None = None) -> list[Item]:
        """Steps of a plan, all of them or some."""
        plan, made = frame.plan, list[Item]()
        for number in range(len(plan.steps)) if numbers is None else numbers:
            made += self._step(frame, number, plan.steps[number])
        return _joined(made)

    def _step(self, frame: Frame, number: int, step: Step) -> list[Item]:
        match step:
            case KernelStep():
                return self._kernel(frame, number, step)
            case CopyStep():
                source, target = frame.range(step.source), frame.range(step.target)
                return self._copy(source, target, frame.plan.slots[step.source].type.nbytes)
            case LoopStep():
                return [self._loop(frame, number, step)]
            case BranchStep():
                return [self._branch(frame, number, step)]
            case RoutineStep():
                return self._routine(frame, number, step)
            case HostStep():
                return [OnHost(frame, number)]

    def _copy(self, source: Range, target: Range, nbytes: int) -> list[Item]:
        if source.key() == target.key() or not nbytes:
            return []
        return [Run(tuple(self.kernels.mover.move(self.room, source, target, nbytes)))]

    # Kernels.

    def _kernel(self, frame: Frame, number: int, step: KernelStep) -> list[Item]:
        call = frame.plan.call(step)
        found = self.code[call]
        code = found.code
        if code is None:
            return [Beyond(OnCPU(frame, number))]
        ranges, starts = self._ranges(frame, step, call)
        key = id(frame.plan), number, *starts.items()
        if key not in self.room.known:
            own = code.text.shifted.call(call, starts)
            if not code.text.facts.hold(own.sizes):
                code = self.kernels.code(call, found.odd, tuple(starts.items()))
                own = code.text.shifted.call(call, starts)
            bound = code.text.shader.bound(code.text.facts, own.sizes, step.params)
            self.room.known[key] = code.compiled, bound
        dispatches = self._dispatches(*self.room.known[key], ranges)
        if not dispatches:
            return []
        checks = frame.plan.own[step.kernel].checks
        return [Run(dispatches, frame, number) if checks else Run(dispatches)]

    def _ranges(
        self, frame: Frame, step: KernelStep, call: SizedKernel
    ) -> tuple[list[Range], dict[int, int]]:
        """What is bound for each buffer, and the elements where they begin in that."""
        ranges, starts = [], {}
        for n, (slot, buffer) in enumerate(zip(step.slots, call.kernel.buffers, strict=True)):
            each = DTYPES[buffer.dtype].itemsize
            one, lead = self._shown(frame.range(slot), call.size(buffer.size) * each)
            if lead:
                starts[n] = lead // each
            ranges.append(one)
        return ranges, starts

    def _shown(self, one: Range, nbytes: int) -> tuple[Range, int]:
        """So many bytes as they can be bound, and where they begin in that."""
        lead = one.offset % self.kernels.target.alignment
        return one.part(-lead, lead + nbytes), lead

    def _routine(self, frame: Frame, number: int, step: RoutineStep) -> list[Item]:
        plan = frame.plan
        ranges, starts = [], []
        for slot in (*step.inputs, *step.outputs):
            type = plan.slots[slot].type
            one, lead = self._shown(frame.range(slot), type.nbytes)
            ranges.append(one)
            starts.append(lead // type.dtype.itemsize)
        key = id(plan), number, *starts
        if key not in self.room.known:
            node = plan.graph.nodes[step.node]
            types = [plan.graph.types[v] for v in node.inputs]
            found = routine_of(step.name, types, dict(node.attributes), self.kernels.target)
            assert found is not None
            self.room.known[key] = self.kernels.routine(found.shader), found.bound(starts)
        return [Run(self._dispatches(*self.room.known[key], ranges))]

    def _dispatches(
        self, code: Compiled, bound: BoundShader, ranges: Sequence[Range]
    ) -> tuple[Bound, ...]:
        """What is done of a shader, with its memory."""
        room, made = self.room, []
        places, total = list[int](), 0
        for nbytes in bound.scratch:
            places.append(total)
            total += -(-nbytes // 256) * 256
        if total > room.scratch.size:
            room.scratch = room.device.range(total)
        for one in bound.dispatches:
            memory = []
            for binding in code.shader.bindings:
                if binding.kind == BUFFER:
                    memory.append(ranges[binding.number])
                elif binding.kind == SCRATCH:
                    size = bound.scratch[binding.number]
                    memory.append(room.scratch.part(places[binding.number], size))
                elif binding.kind == FAULT:
                    memory.append(room.fault)
                elif binding.kind == WORDS:
                    memory.append(room.words.of(one.words))
                else:
                    memory.append(room.zero)
            group = room.device.bind_group(code.kinds, memory)
            made.append(Bound(code.pipelines[one.entry], group, one.groups))
        return tuple(made)

    # Plans below.

    def _branch(self, frame: Frame, number: int, step: BranchStep) -> Choice:
        inputs = [frame.range(n) for n in step.inputs]
        outputs = [frame.range(n) for n in step.outputs]
        index, dtype = frame.range(step.index), str(frame.plan.slots[step.index].type.dtype)
        room, count, place = self.room, len(step.plans), (id(frame.plan), number)
        known: dict[int, list[Item]] = {}
        gates: dict[object, Sequence[Sent] | None] = {}

        def branch(which: int) -> list[Item]:
            if which not in known:
                below = self._below(frame, step.plans[which], inputs, outputs, step.arena)
                known[which] = self.steps(below)
            return known[which]

        def gated(before: Open | None) -> Sequence[Sent] | None:
            key = None if before is None else (before.state.key(), before.word)
            if key not in gates:
                state = room.more((*place, "chosen"), 4 * count)
                found = [flat(branch(n), Open(state, n)) for n in range(count)]
                some = [one for one in found if one is not None]
                sizes, made = [len(one) for one in some], None
                if len(some) == count and sum(sizes) - min(sizes) <= IN_VAIN:
                    made = self.kernels.gates.choice(room, index, dtype, some, state, before, place)
                gates[key] = made
            return gates[key]

        return Choice(step, index, dtype, branch, gated)

    def _below(
        self,
        frame: Frame,
        which: int,
        inputs: Sequence[Range],
        outputs: Sequence[Range],
        arena: int,
    ) -> Frame:
        """The frame of a plan below this one."""
        plan = frame.plan.plans[which]
        return Frame(plan, inputs, outputs, frame.range(arena), frame.constants)

    def _loop(self, frame: Frame, number: int, step: LoopStep) -> Rounds:
        mover, room = self.kernels.mover, self.room
        first = step.captures + step.carries
        captures = [frame.range(n) for n in step.inputs[: step.captures]]
        given = [frame.range(n) for n in step.inputs[step.captures : first]]
        final = [frame.range(n) for n in step.outputs[: step.carries]]
        second = [frame.range(n) for n in step.second]
        whole = [frame.range(n) for n in step.inputs[first:]]
        stacks = [frame.range(n) for n in step.outputs[step.carries :]]
        each = max(step.length, 1)
        place = id(frame.plan), number

        def parts(what: str, wholes: Sequence[Range]) -> list[Range]:
            sizes = [one.size // each for one in wholes]
            return [
                room.more((*place, what, n), size).part(0, size) for n, size in enumerate(sizes)
            ]

        slices, made = parts("slices", whole), parts("stacks", stacks)
        turn = room.more((*place, "turn"), 16)
        counted = bool(whole or stacks)
        before = [
            one
            for w, s in zip(whole, slices, strict=True)
            for one in mover.slice(room, w, s, s.size, turn)
        ]
        after = [
            one
            for s, w in zip(made, stacks, strict=True)
            for one in mover.stack(room, s, w, s.size, turn)
        ]
        if counted:
            after.append(mover.next(room, turn, -1 if step.reverse else 1))
        begin = [mover.begin(room, turn, each - 1 if step.reverse else 0)] if counted else []
        # Carries go to and fro between two places; one that is changed in place stays where it is.
        to = [_other(a, f, s) for a, f, s in zip(given, final, second, strict=True)]
        back = [_other(a, f, s) for a, f, s in zip(to, final, second, strict=True)]
        ways = ((given, to), (to, back), (back, to))
        known: dict[int, list[Item]] = {}
        conditions: dict[int, list[Item]] = {}
        flag = frame.range(step.flag) if not step.counted else None

        def rounds(which: int) -> list[Item]:
            if which not in known:
                now, goal = ways[which]
                below = self._below(
                    frame, step.plans[-1], [*captures, *now, *slices], [*goal, *made], step.arena
                )
                items: list[Item] = [Run(tuple(before))] if before else []
                items += self.steps(below)
                items += [Run(tuple(after))] if after else []
                known[which] = _joined(items)
            return known[which]

        def condition(which: int) -> list[Item]:
            if which not in conditions:
                assert flag is not None
                now = ways[which][0]
                below = self._below(frame, step.plans[0], [*captures, *now], [flag], step.arena)
                conditions[which] = self.steps(below)
            return conditions[which]

        state = room.more((*place, "gate"), 16)
        gates: dict[int, Sequence[Sent] | None] = {}

        def gated(which: int) -> Sequence[Sent] | None:
            if which not in gates:
                asked = flat(condition(which), None)
                body = None if asked is None else flat(rounds(which), Open(state))
                made = None
                if flag is not None and asked is not None and body is not None:
                    made = self.kernels.gates.round(room, asked, body, flag, state, (*place, which))
                gates[which] = made
            return gates[which]

        def end(count: int) -> list[Item]:
            now = ways[which_round(count)][0]
            items: list[Item] = []
            for source, target, n in zip(now, final, step.outputs, strict=False):
                items += self._copy(source, target, frame.plan.slots[n].type.nbytes)
            return _joined(items)

        opened = self.kernels.gates.open(room, state)
        return Rounds(step, tuple(begin), rounds, end, condition, flag, state, opened, gated)


def flat(items: Sequence[Item], before: Open | None) -> Flat | None:
    """What is sent of items that are dispatches alone, choices among such, or few rounds of such,
    behind a gate or behind none; None where there is more to do for them."""
    made: list[Bound | Sent] = []
    for item in items:
        found: Flat | None = None
        match item:
            case Run():
                found = item.dispatches
            case Choice():
                found = item.gated(before)
            case Rounds():
                found = _few_rounds(item, before)
        if found is None:
            return None
        made += found
    return made


def _few_rounds(item: Rounds, before: Open | None) -> Flat | None:
    """A loop of known length whose rounds are no more dispatches than may be sent in vain."""
    length = item.step.length
    if not item.step.counted or length > IN_VAIN:
        return None
    made: list[Bound | Sent] = [*item.begin]
    parts = [*(item.rounds(which_round(n)) for n in range(length)), item.end(length)]
    for part in parts:
        found = flat(part, before)
        if found is None or len(made) + len(found) > IN_VAIN:
            return None
        made += found
    return made


def _other(now: Range, final: Range, second: Range) -> Range:
    """Where a carry goes from here."""
    return second if now.key() == final.key() else final


def _joined(items: Sequence[Item]) -> list[Item]:
    """The same with neighbouring runs of dispatches as one, where no kernel checks."""
    made: list[Item] = []
    for item in items:
        last = made[-1] if made else None
        if isinstance(item, Run) and isinstance(last, Run) and item.frame is last.frame is None:
            made[-1] = Run(last.dispatches + item.dispatches)
        else:
            made.append(item)
    return made
