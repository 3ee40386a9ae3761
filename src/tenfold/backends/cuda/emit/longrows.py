"""Rows too long for a team's registers, and few rows: a block goes through them chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tenfold.backends.cuda.emit.control import least, loop
from tenfold.backends.cuda.emit.function import FunctionWriter
from tenfold.backends.cuda.emit.joining import Held, Joining
from tenfold.backends.cuda.emit.layout import Layout
from tenfold.backends.cuda.emit.parts import apart_of, recalled_by_block, state_of
from tenfold.backends.cuda.emit.phases import Phases, PhaseWriter
from tenfold.backends.cuda.emit.rowform import rising
from tenfold.backends.cuda.emit.rows import packs
from tenfold.backends.cuda.emit.team import Team, chosen
from tenfold.backends.cuda.emit.thread import Position, Slot, Text, Thread
from tenfold.kernel.ir.kernel import Fold

_THREADS = 256  # which have a chunk at once
_CHUNK = Fold().stretch


class LongRows(Phases):
    """Rows along which rounds lie; a unit is a chunk."""

    threads = _THREADS
    name = "long"

    @property
    def unit(self) -> int:
        return _CHUNK

    def writer(self, f: FunctionWriter, t: Thread) -> LongRowsWriter:
        return LongRowsWriter(self, f, t)


class LongRowsWriter(PhaseWriter):
    """A block that has a row, or a part of it."""

    phases: LongRows

    def __init__(self, phases: LongRows, f: FunctionWriter, t: Thread) -> None:
        super().__init__(phases, f, t)
        self.count = 4 if packs(t, phases.form) else 1
        threads = phases.threads
        turns = _CHUNK // (threads * 4 * Fold().run)
        self.layout = Layout(threads, turns, Fold().run, 4, self.count)
        self.team = Team(f, self.layout, threads)

    def place(self) -> Text:
        row = self.block_of(self.phases.rows)
        return self.w.op(f"zext i32 {row} to i64") if self.t.position == "i64" else row

    def first(self) -> Text:
        return self.w.op(f"icmp eq i32 {self.team.thread}, 0")

    def share(self) -> tuple[Text, int]:
        return self.team.thread, self.phases.threads

    def recall(self, joining: Joining, read: Any) -> Held:
        def exchanged(joining: Joining, held: Held, _: int) -> list[Held]:
            return self.team.gathered(joining, [held], False, 1)

        phases = self.phases
        return recalled_by_block(self.f, joining, read, phases.parts, phases.threads, exchanged)

    def chunks(self) -> tuple[Position, Position]:
        """The first chunk of this block's part, and the one behind its last."""
        w, phases = self.w, self.phases
        if self.part is None:
            return 0, phases.units
        first = w.op(f"mul i32 {self.part}, {phases.size}")
        stop = w.op(f"add i32 {first}, {phases.size}")
        return first, w.intrinsic("umin", "i32", stop, w.const("i32", phases.units, False))

    def each_chunk(
        self,
        carried: Sequence[tuple[str, Text]],
        body: Callable[[bool, Position, list[Text]], list[Text]],
    ) -> list[Text]:
        """Go through the chunks of this block's part: whole ones, of whose elements nothing is
        asked, and then what is left of the row."""
        w, extent = self.w, self.phases.extent
        low, high = self.chunks()
        if extent % _CHUNK == 0:
            return loop(w, "i32", low, high, 1, carried, partial(body, True))
        whole = extent // _CHUNK
        stop = least(w, "i32", high, whole)
        held = loop(w, "i32", low, stop, 1, carried, partial(body, True))
        rest = [(ty, x) for (ty, _), x in zip(carried, held, strict=True)]
        begin: Position = whole
        if isinstance(low, str):
            begin = w.intrinsic("smax", "i32", low, w.const("i32", whole, False))
        return loop(w, "i32", begin, high, 1, rest, partial(body, False))

    def slots(self, chunk: Position, whole: bool) -> tuple[Text, list[Slot]]:
        """The slots of this thread in a chunk."""
        w, ty, extent = self.w, self.t.position, self.phases.extent
        own = self.layout.anchor(w, ty, self.team.me)
        number = chunk
        if ty == "i64" and isinstance(chunk, str):
            number = w.op(f"zext i32 {chunk} to i64")
        start = w.op(f"mul {ty} {number}, {_CHUNK}")
        anchor = w.op(f"add {ty} {own}, {start}")
        offsets = self.layout.offsets()
        if whole:
            return anchor, [Slot(n) for n in offsets]
        slots: list[Slot] = []
        for n, offset in enumerate(offsets):
            if n % self.count:
                slots.append(Slot(offset, slots[-1].active))
                continue
            at = w.op(f"add {ty} {anchor}, {offset}") if offset else anchor
            slots.append(Slot(offset, w.op(f"icmp ult {ty} {at}, {w.const(ty, extent, False)}")))
        return anchor, slots

    def partial(self, members: Sequence[int]) -> list[Held]:
        w, t = self.w, self.t
        self.uniform(self.roots_of(members))
        joinings = [Joining.of(self.kernel, m) for m in members]
        most = self.phases.size or self.phases.units
        counters = [self.counter(j, most) if j.shaped else None for j in joinings]
        begin = state_of(joinings, counters)

        def one(whole: bool, chunk: Position, held: list[Text]) -> list[Text]:
            number, states, out = held[0], apart_of(joinings, counters, held[1:]), list[Text]()
            anchor, slots = self.slots(chunk, whole)
            with t.across(self.form.row, anchor, slots):
                self.need(self.roots_of(members), self.count)
                for member, joining, counter, mine in zip(
                    members, joinings, counters, states, strict=True
                ):
                    args = self.kernel.instructions[member].args
                    values = [[t.get(a, n) for a in args] for n in range(len(slots))]
                    if counter is not None:
                        made = self.team.joined(joining, values, slots, again=True)
                        out += counter.join(number, made, mine)
                        continue
                    for given, slot in zip(values, slots, strict=True):
                        made = joining.step(w, mine, given, rising(self.form, member) is not None)
                        mine = chosen(w, slot, joining, mine, made)
                    out += mine
            return [w.op(f"add i32 {number}, 1"), *out]

        number, *rest = self.each_chunk([("i32", "0"), *begin], one)
        found = list[Held]()
        states = apart_of(joinings, counters, rest)
        for joining, counter, mine in zip(joinings, counters, states, strict=True):
            if counter is not None:
                found.append(counter.total(number, mine))
            else:  # those are joined in the end
                found.append(self.team.joined(joining, [mine], [Slot(0)]))
        return found

    def sweep(self) -> None:
        def one(whole: bool, chunk: Position, _: list[Text]) -> list[Text]:
            anchor, slots = self.slots(chunk, whole)
            with self.t.across(self.form.row, anchor, slots):
                self.along(self.count)
            return []

        self.each_chunk((), one)
