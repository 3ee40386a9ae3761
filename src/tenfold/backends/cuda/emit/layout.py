"""How the threads of a team have a row: which elements are whose."""

from __future__ import annotations

from typing import Any

from tenfold.backends.cuda.emit.thread import Text
from tenfold.backends.cuda.target import WARP
from tenfold.backends.llvm.writer import Writer
from tenfold.frozen import frozen
from tenfold.kernel.ir.kernel import Fold

LANES = 16
QUADS = 4  # threads that have a short row, four lanes each


@frozen
class Layout:
    """How a team of so many `threads` has a row, or a part of it: `turns` times a run for each
    sixteen threads, of which `rounds` and `copies` are there at all; four elements packed, or
    one. Four threads have a short row by themselves: all copies of four lanes each."""

    threads: int
    turns: int
    rounds: int
    copies: int
    packed: int  # 4 or 1

    @property
    def groups(self) -> int:
        return max(1, self.threads // LANES)

    @property
    def reach(self) -> int:
        """The elements that the team has room for."""
        fold = Fold()
        if self.turns * self.groups == 1:
            return (self.rounds - 1) * fold.round + self.copies * LANES
        return self.turns * self.groups * fold.round * fold.run

    def offsets(self) -> list[int]:
        """Where a thread's slots lie, turn by turn, round by round, from its first."""
        fold = Fold()
        run = fold.round * fold.run
        if self.threads == QUADS:
            return [
                r * fold.round + c * LANES + n
                for r in range(self.rounds)
                for c in range(self.copies)
                for n in range(self.packed)
            ]
        step = 1 if self.packed > 1 else LANES
        return [
            turn * self.groups * run + r * fold.round + c * step
            for turn in range(self.turns)
            for r in range(self.rounds)
            for c in range(self.copies)
        ]

    def anchor(self, w: Writer, ty: str, me: Text) -> Text:
        """Where the first slot of a thread lies, by its number in the team."""
        fold = Fold()
        group = w.op(f"lshr i32 {me}, 4")
        own = w.op(f"and i32 {me}, 15")
        first = w.op(f"mul i32 {group}, {fold.round * fold.run}")
        own = w.op(f"mul i32 {own}, {self.packed}") if self.packed > 1 else own
        at = w.op(f"add i32 {first}, {own}")
        return w.op(f"zext i32 {at} to i64") if ty == "i64" else at


def layout_of(extent: Any, packed: bool) -> Layout | None:
    """The layout of a row of so many elements, if a team can keep it."""
    fold = Fold()
    if packed and extent <= 2 * fold.round:
        if extent > fold.round:
            return Layout(QUADS, 1, 2, 4, 4)
        copies = next(n for n in (1, 2, 3, 4) if extent <= n * LANES)
        return Layout(QUADS, 1, 1, copies, 4)
    if extent <= fold.round:
        copies = next(n for n in (1, 2, 3, 4) if extent <= n * LANES)
        return Layout(LANES, 1, 1, copies, 1)
    run = fold.round * fold.run
    wide = 4 if packed else 1
    if extent <= run:
        rounds = next(n for n in (2, 3, 4) if extent <= n * fold.round)
        return Layout(LANES, 1, rounds, 4, wide)
    if 2 * run < extent <= 4 * run:  # no memory is shared by a warp alone, and nothing waited for
        return Layout(WARP, 2, fold.run, 4, wide)
    threads = WARP
    while threads <= 256:
        if extent <= threads // LANES * run:
            return Layout(threads, 1, fold.run, 4, wide)
        threads *= 2
    if extent <= 2 * 256 // LANES * run:
        return Layout(256, 2, fold.run, 4, wide)
    return None
