"""Replay: the steps of a program's plan, carried out natively one at a time.

A frame is a plan with memory of its own, laid out as the plan says. A step that is run in it reads
and writes where it does in a whole run, so that what overwrites a value too early does so here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tenfold.backends.cpu.entry import DONE
from tenfold.backends.cpu.poll import STATE_WORDS
from tenfold.backends.cpu.program import Words
from tenfold.execute import Program
from tenfold.execute.host import make_callable, slot_array
from tenfold.execute.kernels import steps_image
from tenfold.plan import CopyStep, KernelStep, Plan, Step
from tenfold.plan.plan import CONSTANT, INPUT
from tenfold.reference import Callbacks

Array = np.ndarray[Any, Any]
_JUNK = 0xFF  # what memory holds before it is written: no number in any float format


class Replay:
    """Runs single steps of a program's plan, or of the plans below it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.kernels = program.places()
        kind = ctypes.PYFUNCTYPE(ctypes.c_int32, *(ctypes.c_void_p,) * 4)
        self.call = kind(steps_image(program.target, True).address("tn_steps"))
        self.words: dict[tuple[int, int], tuple[Words, list[Any], Plan]] = {}

    def run(self, frame: Frame, number: int) -> None:
        """Carry out one step in a frame. An exception of a host step is raised."""
        plan = frame.plan
        found = self.words.get((id(plan), number))
        if found is None:
            alone = replace(plan, steps=(plan.steps[number],))
            kept: list[Any] = []

            def ask(which: int, step: int) -> int:
                made: Callable[..., None] = make_callable(
                    alone.every[which], step, self.program.running, self.program.callbacks
                )
                kept.append(made)
                return id(made)

            words = Words(alone, self.kernels, ask, self.program.routines())
            found = self.words[id(plan), number] = (words, kept, alone)
        poll = (ctypes.c_int64 * STATE_WORDS)()
        with self.program.running.using(_silent):
            done = self.call(
                frame.table_at, frame.arena_at, ctypes.addressof(poll), found[0].address
            )
        if done != DONE:
            raise SystemError(f"step {number} answered {done} and left no exception")


_silent = Callbacks()


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
        one: dict[tuple[int, Any], int] = {}
        for number, value in sorted(wholes):
            one.setdefault((value, region(plan, number)), number)

        def same(slot: int, value: int) -> tuple[int, int]:
            return one.get((value, region(plan, slot)), slot), value

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


class Frame:
    """A plan with memory: its inputs, its outputs and an arena."""

    def __init__(self, plan: Plan, layout: Layout, inputs: Sequence[Array]) -> None:
        self.plan = plan
        self.layout = layout
        self.inputs = [
            np.array(a, order="C")
            if n in plan.donated
            else np.ascontiguousarray(a).reshape(np.shape(a))
            for n, a in enumerate(inputs)
        ]
        self.outputs = [np.empty(plan.graph.types[v].shape, plan.graph.types[v].dtype)
                        for v in plan.graph.outputs]  # fmt: skip
        rows = [a.__array_interface__["data"][0] for a in (*self.inputs, *self.outputs)]
        self.table = (ctypes.c_void_p * max(len(rows), 1))(*rows)
        self.table_at = ctypes.addressof(self.table)
        self.arena = np.full(plan.arena_bytes + 64, _JUNK, np.uint8)
        self.arena_at = (self.arena.__array_interface__["data"][0] + 63) & -64

    def memory(self, slot: int) -> Array:
        """The array that a slot is."""
        return slot_array(self.plan, slot, self.table_at, self.arena_at)


def _constants(plan: Plan) -> dict[int, int]:
    """The value in each slot of constants: by its bits, or where none has these by its type."""
    nodes = [(n, s) for n, s in zip(plan.graph.nodes, plan.graph.starts, strict=True)
             if n.op == "constant"]  # fmt: skip
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


def written(plan: Plan, step: Step, layout: Layout, at: int) -> tuple[int, ...]:
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
