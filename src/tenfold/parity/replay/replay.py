"""Replay: a program's plan carried out by its backend, a step at a time or as a whole.

A frame is a plan with memory of its own, laid out as the plan says. A step that is run in it reads
and writes where it does in a whole run, so that what overwrites a value too early does so here.
There are guard bytes around outputs, around the arena and around what a step writes in it: a write
that goes too far is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.backends.program import Program
from tenfold.ops import TABLE
from tenfold.plan import CopyStep, KernelStep, Plan, Step
from tenfold.plan.steps.plan import ARENA, CONSTANT, INPUT
from tenfold.plan.steps.spared import spared_rows
from tenfold.reference import Callbacks
from tenfold.types import TensorType

Array = np.ndarray[Any, Any]
JUNK = 0xFF  # what memory holds before it is written: no number in any float format
ZONE = 128  # guard bytes on either side
_ALIGN = 64
_SILENT = Callbacks()


class Replay:
    """Runs single steps of a program's plan, or of the plans below it. Callbacks are not called."""

    def __init__(self, program: Program) -> None:
        self._running = program.running
        self._stepper = program.stepper()

    def run(self, frame: Frame, number: int) -> None:
        """Carry out one step in a frame. An exception of a host step is raised. What a copy may
        leave to a later step is copied too: without it, only the whole plan is run."""
        with self._running.using(_SILENT):
            self._stepper.step(frame.plan, number, frame)
        step = frame.plan.steps[number]
        if isinstance(step, CopyStep):
            spared = spared_rows(frame.plan.graph, step.update)
            if spared is not None:
                spared.of(frame.memory(step.target))[...] = spared.of(frame.memory(step.source))


def run_whole(
    program: Program, arrays: Sequence[Array], callbacks: Callbacks
) -> tuple[list[Array], str | None]:
    """The outputs of the very plan that answers calls, in guarded memory; and what it wrote
    outside of it, if anything."""
    memory = GuardedMemory(arrays, program.outputs, program.arena_bytes, program.donated)
    with program.running.using(callbacks):
        program.stepper().whole(memory)
    return memory.outputs, memory.damage()


class Layout:
    """Which value of its graph each slot of a plan holds, and what each step reads and writes.

    A kernel may write a value range by range: such a write names the whole's value and a slot that
    begins where the range does. `writes` has the slot of the whole instead.
    """

    def __init__(self, plan: Plan) -> None:
        self.reads: list[tuple[tuple[int, int], ...]] = []  # for each step (slot, value)
        self.writes: list[tuple[tuple[int, int], ...]] = []
        graph = plan.graph
        constant = _constants(plan)
        held: dict[int, int] = {
            number: slot.number
            for number, slot in enumerate(plan.slots[: len(graph.parameters)])
            if slot.place == INPUT
        }
        raw: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]] = []
        wholes = set(zip(plan.outputs, graph.outputs, strict=True))
        for step in plan.steps:
            if isinstance(step, KernelStep):
                count = len(step.reads)
                reads = list(zip(step.slots[:count], step.reads, strict=True))
                ends = step.slots[count : count + len(step.writes)]
                writes = list(zip(ends, step.writes, strict=True))
            else:
                reads, writes = _moves(plan, step, held, constant)
                wholes.update(writes)
            wholes.update(reads)
            held.update(reads)
            held.update(writes)
            raw.append((reads, writes))
        # A whole that nobody reads has no slot but those of its ranges: the first is its own.
        ranges = {place for _, writes in raw for place in writes} - wholes
        places: dict[tuple[int, str, int], list[int]] = {}
        for number, value in (
            *sorted(wholes),
            *sorted(ranges, key=lambda place: plan.slots[place[0]].offset),
        ):
            slot = plan.slots[number]
            places.setdefault((value, slot.place, slot.number), []).append(number)
        # Two slots may be one place: of a copy that has nothing to do.
        regions = [region(plan, number) for number in range(len(plan.slots))]
        one: dict[tuple[int, Any], int] = {}
        for number, value in sorted(wholes):
            one.setdefault((value, regions[number]), number)

        def same(slot: int, value: int) -> tuple[int, int]:
            return one.get((value, regions[slot]), slot), value

        # Where a value is first and last written in one slot, and which began as copies.
        self.first_write: dict[tuple[int, int], int] = {}
        self.last_write: dict[tuple[int, int], int] = {}
        self.begun: set[tuple[int, int]] = set()
        copied: set[int] = set()
        for at, (step, (reads, writes)) in enumerate(zip(plan.steps, raw, strict=True)):
            if isinstance(step, KernelStep):
                writes = [(_whole(plan, s, places, v, wholes), v) for s, v in writes]
                self.begun.update(same(s, v) for s, v in writes if s in copied)
            elif isinstance(step, CopyStep):
                copied.add(step.target)
            self.reads.append(tuple(same(s, v) for s, v in reads))
            self.writes.append(tuple(dict.fromkeys(same(s, v) for s, v in writes)))
            for place in self.writes[-1]:
                self.first_write.setdefault(place, at)
                self.last_write.setdefault(place, at)
                if place not in self.reads[-1]:  # a copy onto itself writes nothing
                    self.last_write[place] = at


def _moves(
    plan: Plan, step: Any, held: Mapping[int, int], constant: Mapping[int, int]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """What a step that is no kernel reads and writes. A copy holds the value that it copies."""
    if isinstance(step, CopyStep):
        value = held[step.source] if step.source in held else constant[step.source]
        return [(step.source, value)], [(step.target, value)]
    node, start = plan.graph.nodes[step.node], plan.graph.starts[step.node]
    made = range(start, start + len(node.types))
    given = (step.index, *step.inputs) if step.kind == "branch" else step.inputs
    reads = list(zip(given, node.inputs, strict=True))
    return reads, list(zip(step.outputs, made, strict=True))


def _whole(
    plan: Plan,
    slot: int,
    places: Mapping[tuple[int, str, int], Sequence[int]],
    value: int,
    wholes: set[tuple[int, int]],
) -> int:
    """The slot of the whole of which a slot that a kernel writes is a range, or the slot itself."""
    if (slot, value) in wholes:
        return slot
    one = plan.slots[slot]
    for number in places.get((value, one.place, one.number), ()):
        whole = plan.slots[number]
        if whole.offset <= one.offset < whole.offset + max(whole.type.nbytes, 1):
            return number
    return slot


class GuardedMemory:
    """What a plan is run in: its inputs, its outputs and an arena, with guard bytes around what
    it may write. Where it is not `filled`, pages that nobody looks at are never touched."""

    def __init__(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[TensorType],
        arena_bytes: int,
        donated: Sequence[int],
        filled: bool = True,
    ) -> None:
        self._filled = filled
        self._guarded: list[tuple[str, Array, Array]] = []  # what, and the bytes on either side
        self.inputs = []
        for number, array in enumerate(inputs):
            kept = np.asarray(array)
            if number in donated:
                made = self._room(f"argument {number}", kept.nbytes)
                kept = _shaped(made, kept.dtype, kept.shape)
                kept[...] = array
            elif not (kept.flags.c_contiguous and kept.flags.aligned):
                kept = np.array(kept, order="C")
            self.inputs.append(kept)
        self.outputs = [
            _shaped(self._room(f"output {number}", type.nbytes), type.dtype, type.shape)
            for number, type in enumerate(outputs)
        ]
        self.arena = self._room("the arena", arena_bytes)

    def _room(self, what: str, nbytes: int) -> Array:
        """New memory, aligned as an arena is, with guard bytes on either side."""
        block = np.empty(nbytes + 2 * ZONE + _ALIGN, np.uint8)
        start = ZONE + -(block.__array_interface__["data"][0] + ZONE) % _ALIGN
        end = start + nbytes
        before, room, after = block[start - ZONE : start], block[start:end], block[end : end + ZONE]
        for part in (before, room, after) if self._filled else (before, after):
            part[...] = JUNK
        self._guarded.append((what, before, after))
        return room

    def damage(self) -> str | None:
        """What was written to that nobody may write to, or None."""
        for what, before, after in self._guarded:
            for side, zone in (("before", before), ("past the end of", after)):
                hit = np.count_nonzero(zone != JUNK)
                if hit:
                    return f"{hit} bytes {side} {what} were written to"
        return None


def _shaped(room: Array, dtype: Any, shape: tuple[int, ...]) -> Array:
    made: Array = room.view(dtype).reshape(shape)
    return made


class Frame(GuardedMemory):
    """A plan with memory: its inputs, its outputs and an arena."""

    def __init__(self, plan: Plan, inputs: Sequence[Array], filled: bool = True) -> None:
        self.plan = plan
        types = [plan.graph.types[v] for v in plan.graph.outputs]
        super().__init__(inputs, types, plan.arena_bytes, plan.donated, filled)

    def memory(self, slot: int) -> Array:
        """The array that a slot is."""
        where, type = self.plan.slots[slot], self.plan.slots[slot].type
        if where.place == CONSTANT:
            raw = self.plan.constants[where.number]
            return np.frombuffer(raw, type.dtype).reshape(type.shape).copy()
        if where.place == ARENA:
            room = self.arena
        else:
            rows = self.inputs if where.place == INPUT else self.outputs
            room = rows[where.number].reshape(-1).view(np.uint8)
        return _shaped(room[where.offset : where.offset + type.nbytes], type.dtype, type.shape)

    def zones(self, slots: Iterable[int]) -> list[tuple[int, Array]]:
        """The bytes of the arena beside these slots, each piece with where it begins."""
        regions = [region(self.plan, s) for s in slots]
        taken = sorted({(r[2], r[3]) for r in regions if r[0] == ARENA and r[3] > r[2]})
        found: list[tuple[int, Array]] = []
        free = 0  # the first byte that none of them has
        for number, (start, end) in enumerate(taken):
            if max(free, start - ZONE) < start:
                found.append((max(free, start - ZONE), self.arena[max(free, start - ZONE) : start]))
            free = max(free, end)
            until = taken[number + 1][0] if number + 1 < len(taken) else self.arena.size
            if free < min(until, free + ZONE):
                found.append((free, self.arena[free : min(until, free + ZONE)]))
                free = min(until, free + ZONE)
        return found


def _constants(plan: Plan) -> dict[int, int]:
    """The value in each slot of constants: by its bits, or where none has these by its type."""
    nodes = [(n, s) for n, s in zip(plan.graph.nodes, plan.graph.starts, strict=True)
             if TABLE[n.op].literal]  # fmt: skip
    by_bits = {(n.types[0], n["data"]): start for n, start in reversed(nodes)}
    by_type = {n.types[0]: start for n, start in reversed(nodes)}
    return {
        number: by_bits.get((slot.type, plan.constants[slot.number]), by_type[slot.type])
        for number, slot in enumerate(plan.slots)
        if slot.place == CONSTANT
    }


def region(plan: Plan, number: int) -> tuple[str, int, int, int]:
    """Where a slot lies: its place and number, and the first byte and the one after the last."""
    slot = plan.slots[number]
    which = slot.number if slot.place != "arena" else 0
    return slot.place, which, slot.offset, slot.offset + slot.type.nbytes


def overlaps(plan: Plan, a: int, b: int) -> bool:
    """Whether two slots share memory."""
    x, y = region(plan, a), region(plan, b)
    return x[:2] == y[:2] and x[2] < y[3] and y[2] < x[3]


def written(step: Step, layout: Layout, at: int) -> tuple[int, ...]:
    """Every slot that a step may write, its own memory too."""
    slots = [slot for slot, _ in layout.writes[at]]
    if isinstance(step, KernelStep):
        slots += step.slots[len(step.reads) + len(step.writes) :]
    elif step.kind == "routine":
        slots += step.scratch  # type: ignore[union-attr]
    elif step.kind == "loop":
        slots += [step.arena, *step.second, *([step.flag] if step.flag >= 0 else [])]  # type: ignore[union-attr]
    elif step.kind == "branch":
        slots.append(step.arena)  # type: ignore[union-attr]
    return tuple(slots)
