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
from tenfold.execute.kernels import plan_image
from tenfold.plan import CopyStep, KernelStep, Plan, Step
from tenfold.plan.plan import CONSTANT, INPUT
from tenfold.reference import Callbacks

Array = np.ndarray[Any, Any]
_JUNK = 0xFF  # what memory holds before it is written: no number in any float format


class Replay:
    """Runs single steps of a program's plan, or of the plans below it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.kernels: Mapping[Any, tuple[int, int]] = {
            kernel: (code.image.address(code.compiled.name), code.compiled.extent)
            for kernel, code in program.code.items()
        }
        self.image = plan_image(program.target, 0)
        pointer = ctypes.c_void_p
        kind = ctypes.PYFUNCTYPE(ctypes.c_int32, pointer, pointer, pointer)
        self.call = kind(self.image.address("tn_plan"))
        self.code = ctypes.c_uint64.from_address(self.image.address("tn_code"))
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

            words = Words(alone, self.kernels, ask)
            found = self.words[id(plan), number] = (words, kept, alone)
        self.code.value = found[0].address
        poll = (ctypes.c_int64 * STATE_WORDS)()
        with self.program.running.using(_silent):
            done = self.call(frame.table_at, frame.arena_at, ctypes.addressof(poll))
        if done != DONE:
            raise SystemError(f"step {number} answered {done} and left no exception")


_silent = Callbacks()


class Layout:
    """Which value of its graph each slot of a plan holds, and what each step reads and writes."""

    def __init__(self, plan: Plan) -> None:
        self.reads: list[tuple[tuple[int, int], ...]] = []  # for each step (slot, value)
        self.writes: list[tuple[tuple[int, int], ...]] = []
        graph = plan.graph
        held: dict[int, int] = {}
        found: list[tuple[int, int]] = []
        copied: set[int] = set()
        self.begun: set[int] = set()  # values made in what began as a copy of another
        constant = _constants(plan)
        for number, slot in enumerate(plan.slots[: len(graph.parameters)]):
            if slot.place == INPUT:
                held[number] = slot.number
        for step in plan.steps:
            if isinstance(step, KernelStep):
                count = len(step.reads)
                reads = list(zip(step.slots[:count], step.reads, strict=True))
                ends = step.slots[count : count + len(step.writes)]
                writes = list(zip(ends, step.writes, strict=True))
            elif isinstance(step, CopyStep):
                value = held[step.source] if step.source in held else constant[step.source]
                reads = [(step.source, value)]
                writes = [(step.target, value)]
                copied.add(step.target)
            else:
                node, start = graph.nodes[step.node], graph.starts[step.node]
                made = range(start, start + len(node.types))
                given = step.inputs if step.kind != "branch" else (step.index, *step.inputs)  # type: ignore[union-attr]
                reads = list(zip(given, node.inputs, strict=True))
                writes = list(zip(step.outputs, made, strict=True))
                self.begun.update(v for s, v in writes if s in copied)
            held.update(reads)
            held.update(writes)
            found += (*reads, *writes)
            self.reads.append(tuple(reads))
            self.writes.append(tuple(writes))
        self.slots: dict[tuple[int, str, int], set[int]] = {}  # of a value, in one place
        for number, value in found:
            place = (value, plan.slots[number].place, plan.slots[number].number)
            self.slots.setdefault(place, set()).add(number)
        self.first_write: dict[int, int] = {}
        self.last_write: dict[int, int] = {}
        self.last_use: dict[int, int] = {}
        for at, (some, others) in enumerate(zip(self.reads, self.writes, strict=True)):
            for _, value in others:
                self.first_write.setdefault(value, at)
                self.last_write[value] = at
            for _, value in (*some, *others):
                self.last_use[value] = at

    def whole_of(self, plan: Plan, value: int, slot: int) -> int:
        """The slot of a whole value of which this slot may be a range: it begins before it."""
        one = plan.slots[slot]
        within = [
            n
            for n in self.slots.get((value, one.place, one.number), ())
            if plan.slots[n].offset <= one.offset < plan.slots[n].offset + plan.slots[n].type.nbytes
        ]
        return min(within, key=lambda n: plan.slots[n].offset, default=slot)


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

    def memory(self, value: int, slot: int) -> Array:
        """The array in memory that a slot of this value is, or is a range of."""
        whole = self.layout.whole_of(self.plan, value, slot)
        return slot_array(self.plan, whole, self.table_at, self.arena_at)


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
    elif step.kind == "loop":
        slots += [step.arena, *step.second, *([step.flag] if step.flag >= 0 else [])]  # type: ignore[union-attr]
    elif step.kind == "branch":
        slots.append(step.arena)  # type: ignore[union-attr]
    return tuple(slots)
