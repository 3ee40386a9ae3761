"""Columns that teams of threads keep: each element is read once, and stays in a register through
all that is computed of its column.

Neighbouring threads have neighbouring columns; the threads of one column lie as far apart as a
block has columns, and each has some rows that follow each other. A sum is a balanced tree over runs
of four rows: within a thread, by shuffles within a warp, and through shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tenfold.backends.cuda.emit.control import balanced
from tenfold.backends.cuda.emit.function import FunctionWriter, KernelText, finish
from tenfold.backends.cuda.emit.joining import Held, Joining
from tenfold.backends.cuda.emit.phases import BUSY
from tenfold.backends.cuda.emit.rowform import RowForm, passes
from tenfold.backends.cuda.emit.rows import RowsEmitter
from tenfold.backends.cuda.emit.team import chosen, exchange, wait
from tenfold.backends.cuda.emit.thread import Slot, Text
from tenfold.backends.cuda.target import WARP
from tenfold.backends.llvm.writer import Writer
from tenfold.frozen import frozen
from tenfold.kernel.ir.kernel import Fold
from tenfold.kernel.ir.number import Facts, prefers_less

_RUN = Fold().run
_MOST = 32  # rows that a thread keeps
_BLOCK = 256  # threads, if a column needs no more
_LEAST = 8  # columns of a block: a sector of memory
_LONGEST = 64  # threads of a column


@frozen
class ColumnLayout:
    """How so many `threads` have a column: each has some `rows`, a power of two of runs."""

    threads: int
    rows: int
    packed: int = 1

    @property
    def reach(self) -> int:
        return self.threads * self.rows

    def offsets(self) -> list[int]:
        return list(range(self.rows))

    def anchor(self, w: Writer, ty: str, me: Text) -> Text:
        at = w.op(f"mul i32 {me}, {self.rows}")
        return w.op(f"zext i32 {at} to i64") if ty == "i64" else at


class ColumnTeam:
    """The threads of a block as teams of one layout, a column each."""

    def __init__(self, f: FunctionWriter, layout: ColumnLayout, block: int) -> None:
        self.f, self.w, self.layout, self.block = f, f.w, layout, block
        self.teams = block // layout.threads
        self.thread = f.sreg("tid.x")
        self.me = self.w.op(f"lshr i32 {self.thread}, {self.teams.bit_length() - 1}")
        self.local = self.me  # the number among those of its column in this block
        self.warps = block // WARP

    def number(self) -> Text:
        """Which column of the block this thread has."""
        return self.w.op(f"and i32 {self.thread}, {self.teams - 1}")

    def first(self) -> Text:
        """The number of the first column of this block."""
        return self.w.op(f"mul i32 {self.f.sreg('ctaid.x')}, {self.teams}")

    def wait(self) -> None:
        """Until all threads of the block have come here."""
        wait(self.w)

    def joined(
        self, joining: Joining, values: Sequence[Sequence[Text]], slots: Sequence[Slot]
    ) -> Held:
        """What all rows of a column come to, in each of its threads."""
        w = self.w
        runs = []
        for first in range(0, len(slots), _RUN):
            held = joining.identity
            for n in range(first, min(first + _RUN, len(slots))):
                held = chosen(w, slots[n], joining, held, joining.step(w, held, values[n]))
            runs.append(held)
        held = balanced(w, joining, runs)
        step = self.teams
        while step < WARP:
            other = [exchange(w, ty, x, step) for ty, x in zip(joining.types, held, strict=True)]
            held = joining.merge(w, held, other)
            step *= 2
        return self.across(joining, balanced(w, joining, self._gathered(joining, held)))

    def across(self, joining: Joining, held: Held) -> Held:
        """What all blocks of a column have: it has but one."""
        return held

    def _gathered(self, joining: Joining, held: Held) -> list[Held]:
        """What the warps have of a column: the first threads of each write it, all read it."""
        w, wide = self.w, min(self.teams, WARP)
        across = max(1, self.teams // WARP)  # warps side by side
        column = self.number()
        row = w.op(f"lshr i32 {self.thread}, {max(self.teams, WARP).bit_length() - 1}")
        count = self.warps // across
        memory = [self.f.reserve(_kept(ty), count * self.teams) for ty in joining.types]
        lane = w.op(f"and i32 {self.thread}, {WARP - 1}")
        writes = w.op(f"icmp ult i32 {lane}, {wide}")
        yes, on = w.fresh("write"), w.fresh("wrote")
        w.put(f"br i1 {writes}, label %{yes}, label %{on}")
        w.label(yes)
        mine = w.op(f"add i32 {w.op(f'mul i32 {row}, {self.teams}')}, {column}")
        for name, ty, x in zip(memory, joining.types, held, strict=True):
            raw = w.op(f"zext i1 {x} to i8") if ty == "i1" else x
            at = w.op(f"getelementptr {_kept(ty)}, ptr addrspace(3) {name}, i32 {mine}")
            w.put(f"store {_kept(ty)} {raw}, ptr addrspace(3) {at}")
        w.put(f"br label %{on}")
        w.label(on)
        wait(w)
        found = []
        for number in range(count):
            part = []
            for name, ty in zip(memory, joining.types, strict=True):
                place = w.op(f"add i32 {column}, {number * self.teams}") if number else column
                at = w.op(f"getelementptr {_kept(ty)}, ptr addrspace(3) {name}, i32 {place}")
                x = w.op(f"load {_kept(ty)}, ptr addrspace(3) {at}")
                part.append(w.op(f"icmp ne i8 {x}, 0") if ty == "i1" else x)
            found.append(part)
        return found


def _kept(ty: str) -> str:
    return "i8" if ty == "i1" else ty


def column_layout(extent: Any, columns: Any) -> ColumnLayout | None:
    """The layout of so many columns, if threads can keep them: few threads a column, but as many
    as it takes to keep a chip busy."""
    found = None
    threads = _LEAST
    while threads <= _LONGEST:
        rows = next((n for n in (4, 8, 16, _MOST) if extent <= n * threads), None)
        if rows is not None:
            found = ColumnLayout(threads, rows)
            blocks = columns // max(_LEAST, _BLOCK // threads)
            if rows == _RUN or not prefers_less(blocks, BUSY) or threads * _LEAST >= _BLOCK:
                return found
        threads *= 2
    return found


def emit_kept_columns(form: RowForm, f: FunctionWriter, facts: Facts) -> KernelText | None:
    """A kernel of columns, kept; None where they are read but once, or are too long."""
    kernel = form.kernel
    if passes(form) < 2:
        return None
    columns: Any = prod(kernel.axes[a].extent for a in form.outer)
    layout = column_layout(kernel.axes[form.row].extent, columns)
    if layout is None:
        return None
    block = max(_BLOCK, layout.threads * _LEAST)
    team = ColumnTeam(f, layout, block)
    f.schedule = f"kept{layout.threads}"
    RowsEmitter(f, f.thread(), form, team).body(1)
    return finish([(f, block, (columns + team.teams - 1) // team.teams, 1)], facts)
