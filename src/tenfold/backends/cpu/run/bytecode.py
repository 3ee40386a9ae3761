"""A plan as bytecode: words that the interpreter `tn_steps` reads, bound to the addresses of this
process."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.backends.cpu.entry.abi import PARAM_BYTES
from tenfold.backends.cpu.library.product.tiles import (
    product_symbol,
    product_tiles,
    product_way,
)
from tenfold.backends.cpu.library.routine import routine_symbol
from tenfold.backends.cpu.loop.walk import Walk
from tenfold.backends.cpu.loop.writer import ASK, LITERAL, SLOT
from tenfold.backends.cpu.run.opcodes import (
    ARENA_BASE,
    JOINED,
    NULL_BASE,
    POLL_ROWS,
    TABLE_BASE,
    Opcode,
)
from tenfold.backends.cpu.run.order import StepOrder
from tenfold.backends.cpu.run.overwrite import step_order
from tenfold.backends.cpu.run.weights import routine_step, side_by_side, weigh
from tenfold.backends.cpu.threads.cut import Cut, KernelPlace, cut, share
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.graph.op import PRODUCT
from tenfold.kernel.ir.kernel import SCRATCH
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.plan import (
    BranchStep,
    CopyStep,
    HostStep,
    KernelStep,
    LoopStep,
    Plan,
    RoutineStep,
    Slot,
)
from tenfold.plan.steps.loops import Which
from tenfold.plan.steps.plan import ARENA, CONSTANT, OUTPUT
from tenfold.plan.steps.spared import spared_rows
from tenfold.types import KIND

Array = np.ndarray[Any, Any]

NO_LOOPS: Mapping[Which, str] = {}
_POLLED = 20_000  # nanoseconds of work after which a step polls
_COPIED = 1 << 28  # bytes that are copied without a poll


def _symbol(plan: Plan, step: RoutineStep, target: LLVMTarget) -> str:
    node = plan.graph.nodes[step.node]
    types = tuple(plan.graph.types[v] for v in node.inputs)
    return routine_symbol(step.name, types, dict(node.attributes), target)


def routines_of(plan: Plan, target: LLVMTarget) -> tuple[str, ...]:
    """The names of the routines that a plan and those below it call, each once."""
    steps = [(one, s) for one in plan.every for s in one.steps if isinstance(s, RoutineStep)]
    return tuple(dict.fromkeys(_symbol(p, s, target) for p, s in steps))


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


class Bytecode:
    """The bytecode of a plan and of all below it, and the memory it points into."""

    def __init__(
        self,
        plan: Plan,
        target: LLVMTarget,
        kernels: Mapping[SizedKernel, KernelPlace],
        ask: Callable[[int, int], int],
        routines: Mapping[str, int],
        loops: Mapping[Which, str] = NO_LOOPS,
        alarms: Mapping[int, int] | None = None,
        fine: bool = False,
    ) -> None:
        """`kernels` has where each lies; `ask(plan, step)` is the address of the callable for a
        host step, or for a kernel whose check fails; `routines` has the addresses of those in
        `routines_of(plan)`, and of the functions that `loops` names. `alarms` has for plans the
        address of a callable that is to be called when they are reached: what they are part of is
        not run by a loop's function. `fine`: kernels are cut where they can be, as those of larger
        sizes are."""
        self.plan = plan
        self.target = target
        self.alarms = alarms or {}
        self.loops = loops
        self.numbers = {id(one): n for n, one in enumerate(plan.every)}
        self.constants: dict[int, list[int]] = {}  # their addresses, by the plan's number
        self.kernels = kernels
        self.routines = routines
        self.ask = ask
        self.kept: list[Array] = []  # what the bytecode points at
        self.rows: dict[int, Array] = {}  # the bytecode of each plan, by id
        self.addresses: dict[int, int] = {}
        self.marks: dict[int, list[int]] = {}  # where each step of a plan begins, and the end
        self.weights, self._steps = weigh(plan.every)
        self._cuts: dict[SizedKernel, Cut | None] = {}
        self._fine = fine
        for number, one in enumerate(plan.every):
            row = self.rows[id(one)] = np.array(self.write(one, number), np.int64)
            self.addresses[id(one)] = self.keep(row)
        self.address = self.addresses[id(plan)]
        del self.ask  # who asks may hold this bytecode: dropped, both are freed at once

    def alone(self, plan: Plan, number: int) -> Array:
        """The bytecode of one step of a plan; it points at what this one keeps."""
        row, marks = self.rows[id(plan)], self.marks[id(plan)]
        step = row[marks[number] : marks[number + 1]]
        return np.concatenate((row[:3], step, np.array([Opcode.END])))

    def silence(self, plan: Plan) -> None:
        """Have the alarm of a plan rung no more, in calls under way, too."""
        self.rows[id(plan)][3:5] = Opcode.POLL, 0

    def keep(self, array: Array) -> int:
        self.kept.append(array)
        return _address(array)

    def write(self, plan: Plan, number: int) -> list[int]:
        rows = len(plan.graph.parameters) + len(plan.outputs)
        constants = [self.keep(_aligned(np.frombuffer(raw, np.uint8))) for raw in plan.constants]
        self.constants[number] = constants
        places = [self.place(plan, slot, constants) for slot in plan.slots]
        params = self.params(plan)
        words = [rows, 1, 1]
        if number in self.alarms:
            words += (Opcode.HOST, self.alarms[number])
        most, below = 1, 1
        marks = self.marks[id(plan)] = []
        for at, step in enumerate(plan.steps):
            marks.append(len(words))
            match step:
                case KernelStep():
                    fault = self.ask(number, at) if plan.own[step.kernel].checks else 0
                    words += self.kernel(plan, step, places, params[at], fault)
                    most = max(most, len(step.slots) + POLL_ROWS)
                case CopyStep():
                    words += self.copy(plan, step, places)
                case HostStep():
                    words += (Opcode.HOST, self.ask(number, at))
                case RoutineStep() if step.name == PRODUCT:
                    words += self.product(plan, step, places)
                    most = max(most, 3 + POLL_ROWS)
                case RoutineStep():
                    unsolved = self.ask(number, at) if routine_step(plan, step).leaves else 0
                    words += self.routine(plan, step, places, unsolved)
                    rows = len(step.inputs) + len(step.outputs) + len(step.scratch)
                    most = max(most, rows + POLL_ROWS)
                case BranchStep():
                    words += self.branch(plan, step, places)
                    below = max(below, len(step.inputs) + len(step.outputs))
                case LoopStep() if (number, at) in self.loops and not self.alarmed(plan, step):
                    function, count = self.native_loop(plan, step, self.loops[number, at], places)
                    words += function
                    most = max(most, count + POLL_ROWS)
                case LoopStep():
                    words += self.loop(plan, step, places)
                    below = max(below, len(step.inputs) + len(step.outputs) + step.carries + 1)
            if self.polls_after(plan, at):
                words += (Opcode.POLL, self._steps[id(plan)][at])
        marks.append(len(words))
        words.append(Opcode.END)
        words[1:3] = most, below
        return words

    def kernel(
        self,
        plan: Plan,
        step: KernelStep,
        places: Sequence[tuple[int, int]],
        params: int,
        fault: int,
    ) -> list[int]:
        """A kernel, in parts where that pays."""
        call = plan.call(step)
        code = self.kernels[call]
        if call not in self._cuts:
            self._cuts[call] = cut(call, code, self._fine)
        found = self._cuts[call]
        words = [Opcode.KERNEL, code.address, params, code.extent(call), fault, len(step.slots)]
        for slot in step.slots:
            words += places[slot]
        if found is None:
            return words
        if found.joined and code.outer is not None:
            extent = call.size(call.kernel.axes[code.outer].extent)
            more = [code.polls, found.chunk, found.parts, found.nanoseconds, extent, JOINED]
            return [Opcode.CUT, *words[1:], *more]
        buffers = call.kernel.buffers
        scratch = [
            (n, plan.slots[s].type.nbytes)
            for n, s in enumerate(step.slots)
            if buffers[n].role == SCRATCH
        ]
        return _cut_words(words, found, scratch, code.polls)

    def polls_after(self, plan: Plan, at: int) -> bool:
        """Whether signals are looked for after a step. Those that come with the last one of all
        Python sees at once."""
        if self._steps[id(plan)][at] <= _POLLED or isinstance(plan.steps[at], LoopStep):
            return False
        return plan is not self.plan or at + 1 < len(plan.steps)

    def order(self, polling: Collection[SizedKernel]) -> StepOrder:
        """The order of the plan's steps; `polling` are the kernels that look for signals."""
        plan = self.plan
        polled = [
            self.polls_after(plan, at)
            or (isinstance(step, CopyStep) and plan.slots[step.source].type.nbytes > _COPIED)
            for at, step in enumerate(plan.steps)
        ]
        return step_order(plan, polling, polled)

    def place(self, plan: Plan, slot: Slot, constants: Sequence[int]) -> tuple[int, int]:
        if slot.place == ARENA:
            return ARENA_BASE, slot.offset
        if slot.place == CONSTANT:
            return NULL_BASE, constants[slot.number] + slot.offset
        first = TABLE_BASE + (len(plan.graph.parameters) if slot.place == OUTPUT else 0)
        return first + slot.number, slot.offset

    def params(self, plan: Plan) -> dict[int, int]:
        """Where the parameters and sizes of each kernel step lie, equal ones once."""
        raw, at, found = bytearray(), {}, {}
        known: dict[bytes, int] = {}
        for number, step in enumerate(plan.steps):
            if isinstance(step, KernelStep) and (step.params or step.sizes):
                row = b"".join(p.ljust(PARAM_BYTES, b"\0") for p in step.params)
                row += struct.pack(f"{len(step.sizes)}q", *step.sizes)
                at[number] = known.setdefault(row, len(raw))
                if at[number] == len(raw):
                    raw += row + bytes(-len(row) % PARAM_BYTES)
        start = self.keep(_aligned(np.frombuffer(bytes(raw), np.uint8))) if raw else 0
        for number, step in enumerate(plan.steps):
            if isinstance(step, KernelStep):
                found[number] = start + at[number] if number in at else 0
        return found

    def copy(self, plan: Plan, step: CopyStep, places: Sequence[tuple[int, int]]) -> list[int]:
        """A copy, with polls between its parts if it is long. Of one whose rows may be left out,
        what is before, between and behind them."""
        (target, to), (source, at) = places[step.target], places[step.source]

        def part(begin: int, end: int) -> list[int]:
            words: list[int] = []
            for start in range(begin, end, _COPIED):
                size = min(_COPIED, end - start)
                words += (Opcode.POLL, size // 8) if start > begin else ()
                words += (Opcode.COPY, size, target, to + start, source, at + start)
            return words

        def gaps(begin: int, end: int, *axes: tuple[int, int]) -> list[int]:
            (few, far), (rows, apart) = ((1, 0), *axes)[-2:]
            if end == begin or not few * rows:
                return []
            sizes = end - begin, rows, apart, few, far
            return [Opcode.COPY_ROWS, *sizes, target, to + begin, source, at + begin]

        nbytes = plan.slots[step.source].type.nbytes
        spared = spared_rows(plan.graph, step.update)
        if spared is None:
            return part(0, nbytes)
        first, end = spared.offset, spared.offset + spared.bytes
        words = part(0, first)
        for depth in reversed(range(len(spared.axes))):
            count, apart = spared.axes[depth]
            words += gaps(end, first + apart, *spared.axes[:depth], (count - 1, apart))
            end += (count - 1) * apart
        return words + part(end, nbytes)

    def product(
        self, plan: Plan, step: RoutineStep, places: Sequence[tuple[int, int]]
    ) -> list[int]:
        """A product in tiles, which is called as a kernel is."""
        node = plan.graph.nodes[step.node]
        types = [plan.graph.types[v] for v in node.inputs]
        same = step.inputs[0] == step.inputs[1]
        given = dict(node.attributes)
        way = product_way(types, given, self.target)
        tiles = product_tiles(types, given, same, way)
        function = self.routines[product_symbol(types, given, self.target)]
        params = self.keep(_aligned(np.array(tiles.params, np.int64).view(np.uint8)))
        (a, b), (c,) = step.inputs, step.outputs
        return [
            Opcode.KERNEL, function, params, tiles.count, 0, 3,
            *places[a], *places[b], *places[c],
        ]  # fmt: skip

    def routine(
        self, plan: Plan, step: RoutineStep, places: Sequence[tuple[int, int]], unsolved: int
    ) -> list[int]:
        """A routine, which is called as a kernel is; what it leaves unsolved Python does."""
        routine = routine_step(plan, step)
        params = self.keep(_aligned(np.array(routine.params, np.int64).view(np.uint8)))
        slots = (*step.inputs, *step.outputs, *step.scratch)
        address = self.routines[routine.symbol]
        words = [Opcode.KERNEL, address, params, routine.parts, unsolved, len(slots)]
        for slot in slots:
            words += places[slot]
        found = share(routine.weight, routine.parts, 1)
        if found is None:
            return words
        first = len(slots) - len(step.scratch)
        scratch = [(first + n, plan.slots[s].type.nbytes) for n, s in enumerate(step.scratch)]
        return _cut_words(words, found, scratch)

    def branch(self, plan: Plan, step: BranchStep, places: Sequence[tuple[int, int]]) -> list[int]:
        dtype = plan.slots[step.index].type.dtype
        rows = (*step.inputs, *step.outputs)
        words = [
            Opcode.BRANCH, 8 * dtype.itemsize, int(KIND[dtype] == "i"), len(step.plans), len(rows),
            *places[step.index], *places[step.arena],
        ]  # fmt: skip
        for slot in rows:
            words += places[slot]
        return words + [self.addresses[id(plan.plans[p])] for p in step.plans]

    def alarmed(self, plan: Plan, step: LoopStep) -> bool:
        """Whether a plan that a loop carries out, at any depth, has an alarm."""
        inner = {self.numbers[id(p)] for n in step.plans for p in plan.plans[n].every}
        return not inner.isdisjoint(self.alarms)

    def native_loop(
        self, plan: Plan, step: LoopStep, name: str, places: Sequence[tuple[int, int]]
    ) -> tuple[list[int], int]:
        """A loop that is one function, called as a kernel is; and how many addresses it takes."""
        walk = Walk(plan, step, self.numbers)
        operands: list[int] = []
        for kind, number, at in walk.operands:
            if kind == SLOT:
                base, offset = places[number]
                operands += (base, offset + at)
            elif kind == LITERAL:
                which, constant = number >> 32, number & 0xFFFFFFFF
                operands += (NULL_BASE, self.constants[which][constant] + at)
            else:
                assert kind == ASK
                operands += (NULL_BASE, self.ask(number, at))
        numbers = [n if isinstance(n, int) else self.kernels[n].extent(n) for n in walk.numbers]
        raw = walk.params + struct.pack(f"{len(numbers)}q", *numbers)
        params = self.keep(_aligned(np.frombuffer(raw, np.uint8)))
        count = len(walk.operands)
        return [Opcode.KERNEL, self.routines[name], params, 1, 0, count, *operands], count

    def loop(self, plan: Plan, step: LoopStep, places: Sequence[tuple[int, int]]) -> list[int]:
        first = step.captures + step.carries
        slices, stacks = step.inputs[first:], step.outputs[step.carries :]
        bodies = [plan.plans[p] for p in step.plans]
        codes = [self.addresses[id(body)] for body in bodies]
        words = [
            Opcode.LOOP, step.captures, step.carries, len(slices), len(stacks),
            step.length if step.counted else -1, int(step.reverse),
            sum(self.weights[id(body)] for body in bodies), codes[0], codes[-1],
            *places[step.arena], *(places[step.flag] if step.flag >= 0 else (NULL_BASE, 0)),
        ]  # fmt: skip
        if not self.alarmed(plan, step) and side_by_side(plan, step, self._steps):
            words[0], words[8] = Opcode.ROUNDS, max(64, bodies[0].arena_bytes)
        for slot in step.inputs[: step.captures]:
            words += places[slot]
        outputs = step.outputs[: step.carries]
        for source, final, second in zip(
            step.inputs[step.captures : first], outputs, step.second or outputs, strict=True
        ):
            words += (*places[source], *places[final], *places[second])
            words.append(plan.slots[final].type.nbytes)
        for slot in (*slices, *stacks):
            words += (*places[slot], plan.slots[slot].type.nbytes // max(step.length, 1))
        return words


def _cut_words(
    words: list[int], found: Cut, scratch: Sequence[tuple[int, int]], polls: bool = True
) -> list[int]:
    """The words of a kernel that is cut: its own and those of its parts. Of the scratch buffers
    each worker has its own, one behind the other."""
    pieces, size = list[int](), 0
    for number, nbytes in scratch:
        pieces += (number, size)
        size += -(-nbytes // 64) * 64
    more = [polls, found.chunk, found.parts, found.nanoseconds, size, len(scratch), *pieces]
    return [Opcode.CUT, *words[1:], *more]


def _aligned(raw: Array) -> Array:
    """A copy that begins at a multiple of 64."""
    room = np.empty(raw.size + 64, np.uint8)
    start = -room.__array_interface__["data"][0] % 64
    made = room[start : start + raw.size]
    made[...] = raw
    return made
