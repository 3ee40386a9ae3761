"""Products by few columns, at most as many as half of 64 bytes hold: two terms in a vector.

    void tn_multiply(ptr a, i64 down, i64 on, ptr b, i64 pitch, i1 turned, ptr c, i64 line,
                     i64 rows, i64 columns, i64 terms)

is called as that of `panels` is. A vector of the panel has a pair of terms of each column side by
side, and is multiplied by the same pair of a row in all its lanes: so a whole vector is at work
where there are columns for half of one. Of a run the even terms are added one after the other, and
so the odd ones, then the two sums. Vectors are of 64 bytes whatever the level, which gives the same
bits on each.
"""

from __future__ import annotations

from collections.abc import Iterable

from tenfold.backends.cpu.library.lanes import Lanes
from tenfold.backends.cpu.library.loops import carried, each, when
from tenfold.backends.cpu.library.product.panels import FAST, TERMS
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.writer import COMPUTE, Writer, vector

_BYTES = 64
_TILES = "tn_near", "tn_apart"  # of rows whose terms follow each other, or do not


def pairs(dtype: str, target: LLVMTarget) -> tuple[str, tuple[str, ...]]:
    """The function and those that it calls, and what they declare."""
    w, element = Writer(target), COMPUTE[dtype]
    text = "".join(_Tile(element, w).text(apart) for apart in (False, True))
    text += _Packing(element, w).text() + _Product(element, w).text()
    return text, tuple(sorted(w.declared))


def rows_of(target: LLVMTarget) -> int:
    """Rows of a tile: a row's sums are a vector of 64 bytes, and all lie in registers."""
    return 12 if target.masked else 6


class _Pairs(Lanes):
    """Vectors of pairs; `each_column` has one element for each column."""

    def __init__(self, element: str, w: Writer) -> None:
        super().__init__(element, w)
        self.lanes = _BYTES // self.size
        self.type = vector(element, True, self.lanes)
        self.each_column = Lanes(element, w)
        self.each_column.lanes = self.half = self.lanes // 2
        self.each_column.type = vector(element, True, self.half)

    def shuffled(self, ty: str, a: str, b: str, places: Iterable[int]) -> str:
        numbers = [f"i32 {n}" for n in places]
        given = f"{ty} {a}, {ty} {b}, <{len(numbers)} x i32> <{', '.join(numbers)}>"
        return self.w.op(f"shufflevector {given}")


class _Tile(_Pairs):
    def text(self, apart: bool) -> str:
        """A function that adds a run of terms to some rows. The terms of a row follow each other,
        or lie %on `apart`. There are %valid rows: the last one stands for those that are missing,
        and is stored again."""
        w, ty, few, rows = self.w, self.type, self.each_column, rows_of(self.w.target)
        w.block = "entry"
        last = self.less("%valid", "1")
        numbers = [self.least(str(r), last) for r in range(rows)]
        starts = [self.at("%a", self.times(r, "%down")) for r in numbers]
        sums = [(ty, "zeroinitializer")] * rows
        whole = "0"
        if not apart:  # rows are short: the next ones are asked for while these are read
            line = _BYTES // self.size
            whole, below = w.op(f"and i64 %count, {-line}"), self.times("%down", str(rows))
            with carried(w, "0", whole, line, *sums) as (low, before, onward):
                for start in starts:
                    self.ask(self.at(start, self.total(low, below)))
                sums = [(ty, x) for x in before]
                high = self.total(low, str(line))
                with carried(w, low, high, 2, *sums) as (term, inner, inward):
                    inward(*self.added(starts, term, inner, apart))
                onward(*inner)
            sums = [(ty, x) for x in before]
        even = w.op("and i64 %count, -2")
        for low, high, lone in ((whole, even, False), (even, "%count", True)):
            with carried(w, low, high, 2, *sums) as (term, before, onward):
                onward(*self.added(starts, term, before, apart, lone))
            sums = [(ty, x) for x in before]
        before_columns = w.select("%first", "i64", "0", "%columns")
        there, live = few.below(before_columns), few.below("%columns")
        targets = [self.at("%c", self.times(r, "%columns")) for r in numbers]
        old = [few.read(at, there) for at in targets]
        new = [self.folded(x) for _, x in sums]
        made = [w.op(f"fadd {few.type} {x}, {y}") for x, y in zip(old, new, strict=True)]
        if w.target.moves:  # AVX's masked stores take long
            with when(w, w.op(f"icmp eq i64 %columns, {self.half}")):
                for at, x in zip(targets, made, strict=True):
                    masks.store(w, at, self.element, x, None, self.half)
                w.put("ret void")
                w.label(w.fresh("unreached"))
        for at, x in zip(targets, made, strict=True):
            masks.store(w, at, self.element, x, live, self.half)
        return f"""
define internal void @{_TILES[apart]}(
  ptr noalias %a, i64 %down, i64 %on, i64 %valid, ptr noalias %b, i64 %count, ptr noalias %c,
  i64 %columns, i1 %first) {FAST} {{
entry:
{w.taken()}  ret void
}}
"""

    def added(
        self, starts: list[str], term: str, sums: list[str], apart: bool, lone: bool = False
    ) -> list[str]:
        """The sums with one more pair of terms, or with the last one alone."""
        panel = self.at("%b", self.times(term, str(self.half)))
        seen = self.w.op(f"load {self.type}, ptr {panel}, align {_BYTES}")
        here = self.times(term, "%on") if apart else term
        made = []
        for start, x in zip(starts, sums, strict=True):
            place = self.at(start, here)
            factor = self.alone(place) if lone else self.factor(place, apart)
            made.append(f"%{self.w.fresh('sum')}")
            self.add_product(factor, seen, x, made[-1])
        return made

    def ask(self, place: str) -> None:
        """Ask for a line: for the first cache where it holds the rows of two tiles."""
        near = 3 if self.size < 8 else 2
        self.w.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.w.put(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 {near}, i32 1)")

    def factor(self, place: str, apart: bool) -> str:
        """A pair of terms, in all lanes."""
        if apart:
            even = self.every_lane(place)
            odd = self.every_lane(self.at(place, "%on"))
            mixed = (n + self.lanes * (n % 2) for n in range(self.lanes))
            return self.shuffled(self.type, even, odd, mixed)
        pair = vector(self.element, True, 2)
        both = self.w.op(f"load {pair}, ptr {place}, align {self.size}")
        return self.shuffled(pair, both, "poison", [0, 1] * self.half)

    def alone(self, place: str) -> str:
        """The last term of an odd number of them, and nothing beside it."""
        even = self.every_lane(place)
        mixed = (n + self.lanes * (n % 2) for n in range(self.lanes))
        return self.shuffled(self.type, even, "zeroinitializer", mixed)

    def folded(self, sums: str) -> str:
        """The sums of even terms and those of odd ones, added."""
        even, odd = (
            self.shuffled(self.type, sums, "poison", range(first, self.lanes, 2))
            for first in (0, 1)
        )
        return self.w.op(f"fadd {self.each_column.type} {even}, {odd}")


class _Packing(_Pairs):
    def text(self) -> str:
        """A function that packs %count terms of %b in pairs, with zeros beside an odd one."""
        w, few = self.w, self.each_column
        w.block = "entry"
        live = few.below("%columns")
        with when(w, w.op("xor i1 %turned, true")):
            with each(w, "0", "%count", 2) as term:
                place = self.at("%b", self.times(term, "%pitch"))
                even = few.read(place, live)
                more = w.op(f"icmp slt i64 {self.total(term, '1')}, %count")
                columns = w.select(more, "i64", "%columns", "0")
                odd = few.read(self.at(place, "%pitch"), few.below(columns))
                mixed = (n // 2 + self.half * (n % 2) for n in range(self.lanes))
                both = self.shuffled(few.type, even, odd, mixed)
                to = self.at("%panel", self.times(term, str(self.half)))
                w.put(f"store {self.type} {both}, ptr {to}, align {_BYTES}")
            w.put("ret void")
            w.label(w.fresh("unreached"))
        with each(w, "0", "%count", 2) as term:
            to = self.at("%panel", self.times(term, str(self.half)))
            w.put(f"store {self.type} zeroinitializer, ptr {to}, align {_BYTES}")
        pair, even = vector(self.element, True, 2), w.op("and i64 %count, -2")
        with each(w, "0", "%columns") as column:
            start = self.at("%b", self.times(column, "%pitch"))
            first = self.at("%panel", self.times(column, "2"))
            for low, high, ty in (("0", even, pair), (even, "%count", self.element)):
                with each(w, low, high, 2) as term:
                    x = w.op(f"load {ty}, ptr {self.at(start, term)}, align {self.size}")
                    to = self.at(first, self.times(term, str(self.half)))
                    w.put(f"store {ty} {x}, ptr {to}, align {self.size}")
        return f"""
define internal void @tn_pack_pairs(
  ptr noalias %panel, ptr noalias %b, i64 %pitch, i1 %turned, i64 %columns, i64 %count) {FAST} {{
entry:
{w.taken()}  ret void
}}
"""


class _Product(_Pairs):
    def text(self) -> str:
        w = self.w
        w.block = "entry"
        panel = w.op(f"alloca {self.element}, i64 {TERMS * self.half}, align {_BYTES}")
        parts = w.op(f"udiv i64 {self.total('%terms', str(TERMS - 1))}, {TERMS}")
        run = w.op(f"udiv i64 {self.total('%terms', parts, '-1')}, {parts}")
        near = w.op("icmp eq i64 %on, 1")
        tile = w.select(near, "ptr", *(f"@{name}" for name in _TILES))
        with each(w, "0", "%terms", run) as term:
            first = w.op(f"icmp eq i64 {term}, 0")
            count = self.least(run, self.less("%terms", term))
            along = w.select("%turned", "i64", "1", "%pitch")
            source = self.at("%b", self.times(term, along))
            w.put(
                f"call void @tn_pack_pairs(ptr {panel}, ptr {source}, i64 %pitch, i1 %turned, "
                f"i64 %columns, i64 {count})"
            )
            left = self.at("%a", self.times(term, "%on"))
            with each(w, "0", "%rows", rows_of(w.target)) as row:
                at = self.at(left, self.times(row, "%down"))
                to = self.at("%c", self.times(row, "%columns"))
                w.put(
                    f"call void {tile}(ptr {at}, i64 %down, i64 %on, "
                    f"i64 {self.less('%rows', row)}, ptr {panel}, i64 {count}, ptr {to}, "
                    f"i64 %columns, i1 {first})"
                )
        return f"""
define internal void @tn_multiply(
  ptr %a, i64 %down, i64 %on, ptr %b, i64 %pitch, i1 %turned, ptr %c, i64 %line,
  i64 %rows, i64 %columns, i64 %terms) noinline nounwind {{
entry:
{w.taken()}  ret void
}}
"""
