"""Packing: what the columns of a panel see of the input, term by term, side by side.

A panel has a row for each term of the sum and a column for each element of the result. Columns that
follow each other along the last axis read elements that do so, `step` apart; those of one vector
are a piece. Terms differ by offsets that are the same for every column.

A panel is one run of neighbours, or has at most two pieces a vector, or pieces of any number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tenfold.backends.cpu.library.conv.tile import VECTORS, pitch_of
from tenfold.backends.cpu.library.lanes import Lanes
from tenfold.backends.cpu.library.loops import each, when
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.writer import Writer, vector

PIECE = 3  # words: where it begins in the input, its first column, how many it has
PAIR = 4  # words of a vector's first two pieces: where each begins, and its length


def packing(symbol: str, element: str, w: Writer) -> str:
    """A function that packs %count rows of a panel from %x, by pieces and by offsets of terms.

    %most is the greatest number of pieces of a vector; 0 where all is one run.
    """
    panel = _Packing(element, w)
    w.block = "entry"
    near = w.op("icmp eq i64 %step, 1")
    for most, pack in ((0, panel.run), (2, panel.pairs)):
        few = w.op(f"icmp ule i64 %most, {most}")
        with when(w, w.op(f"and i1 {near}, {few}")):
            pack()
    with when(w, near):
        panel.pieces(1)
    with when(w, w.op("icmp eq i64 %step, 2")):
        panel.pieces(2)
    panel.singly()
    return f"""
define internal void @{symbol}_pack(
  ptr noalias %panel, ptr noalias %x, ptr noalias %pieces, i64 %many, ptr noalias %pairs,
  i64 %most, ptr noalias %offsets, i64 %count, i64 %step)
  noinline nounwind "prefer-vector-width"="512" {{
entry:
{w.taken()}  ret void
}}
"""


class _Packing(Lanes):
    """What writes the loops; each ends the function."""

    def run(self) -> None:
        w = self.w
        start = self.get("%pieces")
        with each(w, "0", "%count") as k:
            seen, row = self.term(k)
            source = self.at(seen, start)
            for v in range(VECTORS):
                here = self.at(source, str(v * self.lanes))
                self.store(masks.load(w, here, self.element, None, self.lanes), row, v)
        self.end()

    def pairs(self) -> None:
        """Of each vector the lanes of one piece, and behind them those of another."""
        if not self.masked:
            self.singly("1")
            return
        w, found = self.w, []
        for v in range(VECTORS):
            first, size, second, more = (self.get("%pairs", str(PAIR * v + n)) for n in range(PAIR))
            end = w.op(f"add i64 {size}, {more}")
            before, upto = self.below(size), self.below(end)
            truths = vector("i1", True, self.lanes)
            behind = w.op(f"xor {truths} {before}, {upto}")
            found.append((first, before, w.op(f"sub i64 {second}, {size}"), behind))
        whole = vector(f"i{8 * self.size}", True, self.lanes)
        with each(w, "0", "%count") as k:
            seen, row = self.term(k)
            for v, (first, before, second, behind) in enumerate(found):
                parts = [
                    masks.load(w, self.at(seen, start), self.element, mask, self.lanes)
                    for start, mask in ((first, before), (second, behind))
                ]
                bits = [w.op(f"bitcast {self.type} {x} to {whole}") for x in parts]
                both = w.op(f"or {whole} {bits[0]}, {bits[1]}")
                self.store(w.op(f"bitcast {whole} {both} to {self.type}"), row, v)
        self.end()

    def pieces(self, step: int) -> None:
        """Pieces of elements 1 or 2 apart. What is stored beyond one is stored over by the next, or
        by the next row: row by row where masks cost nothing, else piece by piece, and there rows
        have room behind them."""
        if self.w.masked:
            with each(self.w, "0", "%count") as k, self.each_piece() as (source, column, length):
                self.piece(k, source, column, self.reach(length, step))
        elif self.masked:
            with self.each_piece() as (source, column, length):
                reach = self.reach(length, step)
                with each(self.w, "0", "%count") as k:
                    self.piece(k, source, column, reach)
        else:
            self.singly(str(step))
            return
        self.end()

    def singly(self, step: str = "%step") -> None:
        w = self.w
        with (
            self.each_piece() as (source, column, length),
            each(w, "0", "%count") as k,
            each(w, "0", length) as e,
        ):
            seen, row = self.term(k)
            here = self.at(seen, self.total(source, self.times(e, step)))
            x = w.op(f"load {self.element}, ptr {here}, align {self.size}")
            to = self.at(row, self.total(column, e))
            w.put(f"store {self.element} {x}, ptr {to}, align {self.size}")
        self.end()

    # What they are made of.

    @property
    def masked(self) -> bool:
        """Whether the target reads some lanes of a vector alone."""
        return self.w.masked or self.w.target.moves

    def term(self, k: str) -> tuple[str, str]:
        """What a term's pieces begin from, and its row of the panel."""
        seen = self.at("%x", self.get("%offsets", k))
        first = self.times(k, str(pitch_of(self.w.target) * self.lanes))
        return seen, self.at("%panel", first)

    def reach(self, length: str, step: int) -> list[str]:
        return [self.reached(length, step, part) for part in range(step)]

    def piece(self, k: str, source: str, column: str, reach: Sequence[str]) -> None:
        seen, row = self.term(k)
        here = self.at(seen, source)
        parts = [
            masks.load(self.w, self.at(here, str(n * self.lanes)), self.element, mask, self.lanes)
            for n, mask in enumerate(reach)
        ]
        self.store(self.apart(parts), self.at(row, column), 0)

    @contextmanager
    def each_piece(self) -> Iterator[tuple[str, str, str]]:
        """Where each piece begins, less the offset of a term, its first column, and its length."""
        with each(self.w, "0", "%many") as number:
            first = self.times(number, str(PIECE))
            source, column, length = (
                self.get("%pieces", self.total(first, str(n))) for n in range(PIECE)
            )
            yield source, column, length

    def store(self, x: str, row: str, number: int) -> None:
        here = self.at(row, str(number * self.lanes))
        self.w.put(f"store {self.type} {x}, ptr {here}, align {self.size}")

    def end(self) -> None:
        self.w.put("ret void")
        self.w.label(self.w.fresh("unreached"))
