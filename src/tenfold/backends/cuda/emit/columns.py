"""Rows that are columns: neighbouring threads have neighbouring columns, and the warps of a block
share the rows of these. A sum is a balanced tree over runs of four rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

from tenfold.backends.cuda.emit.control import balanced, least, loop, total
from tenfold.backends.cuda.emit.function import FunctionWriter
from tenfold.backends.cuda.emit.joining import Held, Joining
from tenfold.backends.cuda.emit.memory import guarded
from tenfold.backends.cuda.emit.parts import apart_of, counted, or_nothing, state_of
from tenfold.backends.cuda.emit.phases import BUSY, Phases, PhaseWriter
from tenfold.backends.cuda.emit.rowform import RowForm, rising
from tenfold.backends.cuda.emit.team import chosen, wait
from tenfold.backends.cuda.emit.thread import Position, Slot, Text, Thread
from tenfold.backends.cuda.target import WARP
from tenfold.kernel.ir.kernel import Fold
from tenfold.kernel.ir.number import Facts, prefers_less

_BLOCK = 256  # threads at least
_RUN = Fold().run
_RUNS = 2  # that a thread has at once: so many rows are on their way
_AT_ONCE = _RUN * _RUNS


class Columns(Phases):
    """A warp has 32 columns; `warps` of them share the rows of these, each a stretch of runs."""

    def __init__(self, form: RowForm, begin: Callable[[], FunctionWriter], facts: Facts) -> None:
        self.warps = _warps(form)
        self.threads = max(_BLOCK, WARP * self.warps)
        self.sides = self.threads // (WARP * self.warps)  # of 32 columns, in a block
        super().__init__(form, begin, facts)

    @property
    def name(self) -> str:
        return f"columns{self.warps}"

    @property
    def unit(self) -> int:
        """As many rows as all warps have at once."""
        return self.warps * _AT_ONCE

    def groups_of(self, rows: Any) -> Any:
        return (rows + WARP * self.sides - 1) // (WARP * self.sides)

    def writer(self, f: FunctionWriter, t: Thread) -> ColumnsWriter:
        return ColumnsWriter(self, f, t)


def _warps(form: RowForm) -> int:
    """How many warps share the rows of a column: more where these are many, and where there are
    few columns, as long as each has as many rows as it has at once."""
    extent = form.kernel.axes[form.row].extent
    columns: Any = prod(form.kernel.axes[a].extent for a in form.outer)
    warps = next((n for n in (1, 2, 4) if prefers_less(extent, 32 * n + 1)), 8)
    if warps == 8 and not prefers_less(extent, 1024):
        return 32
    while warps < 8 and not prefers_less(extent, 2 * warps * _AT_ONCE):
        if not prefers_less(columns // (_BLOCK // warps), BUSY):
            break
        warps *= 2
    return warps


class ColumnsWriter(PhaseWriter):
    """A block that has columns, or a part of their rows."""

    phases: Columns

    def place(self) -> Text:
        w, phases, ty = self.w, self.phases, self.t.position
        group = self.block_of(phases.groups)
        self.thread = self.f.sreg("tid.x")
        side = WARP * phases.sides
        if phases.sides > 1:
            own = w.op(f"and i32 {self.thread}, {side - 1}")
            shift = side.bit_length() - 1
        else:
            own, shift = w.op(f"and i32 {self.thread}, {WARP - 1}"), 5
        self.own = own
        self.turn = w.op(f"lshr i32 {self.thread}, {shift}")  # which of the warps, by rows
        column = w.op(f"add i32 {w.op(f'mul i32 {group}, {side}')}, {own}")
        if ty == "i64":
            column = w.op(f"zext i32 {column} to i64")
        if phases.rows % side:
            self.alive = w.op(f"icmp ult {ty} {column}, {w.const(ty, phases.rows, False)}")
            last = w.const(ty, phases.rows - 1, False)
            column = w.op(f"select i1 {self.alive}, {ty} {column}, {ty} {last}")
        return column

    def first(self) -> Text:
        return self.w.op(f"icmp eq i32 {self.turn}, 0")

    def stretch(self) -> tuple[Position, Position]:
        """The rows of this thread: as many runs as the others have, a power of two, so that each
        stretch is a part of the tree."""
        w, phases, ty = self.w, self.phases, self.t.position
        size: Any
        if phases.size:
            size = phases.size * _AT_ONCE
        else:
            each = (phases.extent + phases.warps - 1) // phases.warps
            runs = (each + _RUN - 1) // _RUN
            size = (1 << (runs - 1).bit_length()) * _RUN
        number = self.turn
        if self.part is not None:
            before = w.op(f"mul i32 {self.part}, {phases.warps}")
            number = w.op(f"add i32 {before}, {number}")
        if ty == "i64":
            number = w.op(f"zext i32 {number} to i64")
        self.rows_at_once = size
        low = w.op(f"mul {ty} {number}, {w.const(ty, size, False)}")
        high = w.op(f"add {ty} {low}, {w.const(ty, size, False)}")
        return low, least(w, ty, high, phases.extent)

    def slots(self, at: Position) -> tuple[Text, list[Slot]]:
        """The rows from here on that a thread has at once."""
        w, ty, extent = self.w, self.t.position, self.phases.extent
        if extent % _AT_ONCE == 0:
            return str(at), [Slot(n) for n in range(_AT_ONCE)]
        slots = []
        for n in range(_AT_ONCE):
            here = total(w, ty, at, n)
            slots.append(Slot(n, w.op(f"icmp ult {ty} {here}, {w.const(ty, extent, False)}")))
        return str(at), slots

    def partial(self, members: Sequence[int]) -> list[Held]:
        w, t = self.w, self.t
        self.uniform(self.roots_of(members))
        joinings = [Joining.of(self.kernel, m) for m in members]
        low, high = self.stretch()
        most = self.rows_at_once // _AT_ONCE
        counters = [self.counter(j, most) if j.shaped else None for j in joinings]
        begin = state_of(joinings, counters)

        def one(at: Position, held: list[Text]) -> list[Text]:
            number, states, out = held[0], apart_of(joinings, counters, held[1:]), list[Text]()
            anchor, slots = self.slots(at)
            with t.across(self.form.row, anchor, slots):
                self.need(self.roots_of(members))
                for member, joining, counter, mine in zip(
                    members, joinings, counters, states, strict=True
                ):
                    args = self.kernel.instructions[member].args
                    values = [[t.get(a, n) for a in args] for n in range(len(slots))]
                    if counter is not None:
                        out += counter.join(number, self._runs(joining, values, slots), mine)
                        continue
                    for given, slot in zip(values, slots, strict=True):
                        made = joining.step(w, mine, given, rising(self.form, member) is not None)
                        mine = chosen(w, slot, joining, mine, made)
                    out += mine
            return [w.op(f"add i32 {number}, 1"), *out]

        number, *rest = loop(w, t.position, low, high, _AT_ONCE, [("i32", "0"), *begin], one)
        found = list[Held]()
        some = w.op(f"icmp ne i32 {number}, 0")
        states = apart_of(joinings, counters, rest)
        for joining, counter, held in zip(joinings, counters, states, strict=True):
            if counter is not None:
                held = guarded(w, some, partial(counter.total, number, held), joining.types)
                held = or_nothing(w, joining, some, held)
            found.append(self._joined(joining, held))
        return found

    def _runs(
        self, joining: Joining, values: Sequence[Sequence[Text]], slots: Sequence[Slot]
    ) -> Held:
        """The runs that a thread has at once, as a balanced tree."""
        runs = []
        for first in range(0, len(slots), _RUN):
            held = joining.identity
            for n in range(first, first + _RUN):
                after = joining.step(self.w, held, values[n])
                held = chosen(self.w, slots[n], joining, held, after)
            runs.append(held)
        return balanced(self.w, joining, runs)

    def _joined(self, joining: Joining, held: Held) -> Held:
        """What the warps have of a column, by shared memory, in all of them."""
        phases, w = self.phases, self.w
        if phases.warps == 1:
            return held
        side = WARP * phases.sides
        memory = [self.f.reserve(_kept(ty), phases.threads) for ty in joining.types]
        mine = w.op(f"add i32 {w.op(f'mul i32 {self.turn}, {side}')}, {self.own}")
        for name, ty, x in zip(memory, joining.types, held, strict=True):
            raw = w.op(f"zext i1 {x} to i8") if ty == "i1" else x
            at = w.op(f"getelementptr {_kept(ty)}, ptr addrspace(3) {name}, i32 {mine}")
            w.put(f"store {_kept(ty)} {raw}, ptr addrspace(3) {at}")
        wait(w)
        parts = []
        for number in range(phases.warps):
            place = w.op(f"add i32 {self.own}, {number * side}") if number else self.own
            part = []
            for name, ty in zip(memory, joining.types, strict=True):
                at = w.op(f"getelementptr {_kept(ty)}, ptr addrspace(3) {name}, i32 {place}")
                x = w.op(f"load {_kept(ty)}, ptr addrspace(3) {at}")
                part.append(w.op(f"icmp ne i8 {x}, 0") if ty == "i1" else x)
            parts.append(part)
        return balanced(w, joining, parts)

    def share(self) -> tuple[Text, int]:
        return self.turn, self.phases.warps

    def recall(self, joining: Joining, read: Any) -> Held:
        """The warps of a column share its parts: each has neighbours, a power of two of them."""
        w, phases = self.w, self.phases
        each = 1 << ((phases.parts + phases.warps - 1) // phases.warps - 1).bit_length()
        first = w.op(f"mul i32 {self.turn}, {w.const('i32', each, False)}")
        stop = w.op(f"add i32 {first}, {w.const('i32', each, False)}")
        count = w.const("i32", phases.parts, False)
        stop = w.intrinsic("umin", "i32", stop, count)
        held = counted(w, self.counter(joining, each), first, stop, read)
        some = w.op(f"icmp ult i32 {first}, {count}")
        return self._joined(joining, or_nothing(w, joining, some, held))

    def sweep(self) -> None:
        w, ty = self.w, self.t.position
        low, high = self.stretch()
        if self.alive is not None:  # without a column there is nothing to be read, either
            stop = high if isinstance(high, str) else w.const(ty, high, False)
            high = w.op(f"select i1 {self.alive}, {ty} {stop}, {ty} {low}")

        def one(at: Position, _: list[Text]) -> list[Text]:
            anchor, slots = self.slots(at)
            with self.t.across(self.form.row, anchor, slots):
                self.along()
            return []

        loop(w, ty, low, high, _AT_ONCE, (), one)


def _kept(ty: str) -> str:
    return "i8" if ty == "i1" else ty
