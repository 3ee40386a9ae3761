"""Products by code of our own: panels of the right operand, tiles of the result in registers.

    void tn_multiply(ptr a, i64 down, i64 on, ptr b, i64 pitch, i1 turned, ptr c, i64 line,
                     i64 rows, i64 columns, i64 terms)

What is added up goes by runs of up to `TERMS` terms, each from nothing, one term after the other,
and runs are added in order: so an element's bits hang on the number of terms alone, not on how a
product is cut. A run of some vectors of columns is packed side by side, a panel; few rows read it
as it lies, and all do where it is small. The left operand is read where it is, an element for each
row: `down` is the step to the next row, `on` to the next term, so it may lie either way.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from tenfold.backends.cpu.library.lanes import Lanes
from tenfold.backends.cpu.library.loops import each, when
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.writer import COMPUTE, Writer
from tenfold.frozen import frozen

TERMS = 512  # of a run
_TALL, _NARROW, _FLAT = 6, 8, 4  # rows of a tile, of half a vector, where few are left
_NEAR = 16  # rows that read the right operand as it lies
_HELD = 8192  # elements of a right operand that is read as it lies: the first cache holds them


def panels(dtype: str, target: LLVMTarget) -> tuple[str, tuple[str, ...]]:
    """The function and those that it calls, and what they declare."""
    w = Writer(target)
    text = ""
    for rows, vectors in tiles_of(target):
        text += Tile(COMPUTE[dtype], w).text(rows, vectors)
    text += _Packing(COMPUTE[dtype], w).text() + _Multiplication(COMPUTE[dtype], w).text()
    return text, tuple(sorted(w.declared))


def widest_of(target: LLVMTarget) -> int:
    """The vectors of a panel: a tile has six times as many sums, which lie in registers."""
    return 4 if target.masked else 2


def tiles_of(target: LLVMTarget) -> list[tuple[int, int]]:
    """Each of some rows and vectors, with half a vector first."""
    numbers = range(widest_of(target) + 1)
    tall = [(_TALL if vectors else _NARROW, vectors) for vectors in numbers]
    return tall + [(_FLAT, vectors) for vectors in numbers]


FAST = 'noinline nounwind "prefer-vector-width"="512"'


class Tile(Lanes):
    more = ""  # parameters of its own

    def beside(self, row: str) -> str | None:
        """What is added to all sums of a row, a vector."""
        return None

    def text(self, rows: int, vectors: int) -> str:
        """A function that adds a run of terms to a tile of so many vectors; of half a one, if there
        are none. There are %valid rows: the last one stands for those that are missing, and is
        stored again. Of the last vector %tail lanes are columns."""
        if not vectors:
            self.narrow()
        w, ty, lanes = self.w, self.type, self.lanes
        name, vectors = f"tn_{rows}x{vectors}", max(vectors, 1)
        places = list(product(range(rows), range(vectors)))
        w.block = "entry"
        last = self.less("%valid", "1")
        numbers = [self.least(str(r), last) for r in range(rows)]
        starts = [self.at("%a", self.times(r, "%down")) for r in numbers]
        w.put("br label %terms")
        w.label("terms")
        w.put("%i = phi i64 [ 0, %entry ], [ %i.more, %terms ]")
        w.put("%o = phi i64 [ 0, %entry ], [ %o.more, %terms ]")
        w.put("%p = phi ptr [ %b, %entry ], [ %p.more, %terms ]")
        for r, v in places:
            w.put(f"%s{r}.{v} = phi {ty} [ zeroinitializer, %entry ], [ %t{r}.{v}, %terms ]")
        seen = [self.read(self.at("%p", str(v * lanes))) for v in range(vectors)]
        for r in range(rows):
            factor = self.every_lane(self.at(starts[r], "%o"))
            for v in range(vectors):
                self.add_product(factor, seen[v], f"%s{r}.{v}", f"%t{r}.{v}")
        w.put(f"%p.more = getelementptr {self.element}, ptr %p, i64 %pitch")
        w.put("%o.more = add i64 %o, %on")
        w.put("%i.more = add nuw i64 %i, 1")
        w.put("%i.on = icmp ult i64 %i.more, %count")
        w.put("br i1 %i.on, label %terms, label %end")
        w.label("end")
        live = [self.below(str(lanes))] * (vectors - 1) + [self.below("%tail")]
        before = w.select("%first", "i64", "0", str(lanes))
        truths = f"<{lanes} x i1>"
        there = self.below(before)
        lines = [self.at("%c", self.times(r, "%line")) for r in numbers]
        targets = {(r, v): self.at(lines[r], str(v * lanes)) for r, v in places}
        masked = [w.op(f"and {truths} {there}, {one}") for one in live]
        plus = "add" if self.element.startswith("i") else "fadd"
        made = {
            (r, v): w.op(f"{plus} {ty} {self.read(at, masked[v])}, %t{r}.{v}")
            for (r, v), at in targets.items()
        }
        for r, number in enumerate(numbers):
            beside = self.beside(number)
            for v in range(vectors if beside else 0):
                made[r, v] = w.op(f"{plus} {ty} {made[r, v]}, {beside}")
        if w.target.moves:  # AVX's masked stores take long
            with when(w, w.op(f"icmp eq i64 %tail, {lanes}")):
                for place, at in targets.items():
                    masks.store(w, at, self.element, made[place], None, lanes)
                w.put("ret void")
                w.label(w.fresh("unreached"))
        for (r, v), at in targets.items():
            masks.store(w, at, self.element, made[r, v], live[v], lanes)
        w.put("ret void")
        return f"""
define internal void @{name}(
  ptr noalias %a, i64 %down, i64 %on, i64 %valid, ptr noalias %b, i64 %pitch, i64 %count,
  ptr noalias %c, i64 %line, i64 %tail, i1 %first{self.more}) {FAST} {{
entry:
{w.taken()}}}
"""


class _Packing(Lanes):
    def text(self) -> str:
        """A function that packs %count rows of a panel of %columns: side by side from rows of %b,
        or turned from columns. What is stored beyond a row is stored over by the next."""
        w, lanes, widest = self.w, self.lanes, widest_of(self.w.target)
        w.block = "entry"
        with when(w, w.op("xor i1 %turned, true")):
            live = [
                self.below(self.greatest(self.less("%columns", str(v * lanes)), "0"))
                for v in range(widest)
            ]
            with each(w, "0", "%count") as term:
                source = self.at("%b", self.times(term, "%pitch"))
                row = self.at("%panel", self.times(term, "%width"))
                places = [str(v * lanes) for v in range(widest)]
                seen = [self.read(self.at(source, p), m) for p, m in zip(places, live, strict=True)]
                for place, x in zip(places, seen, strict=True):
                    self.store(x, self.at(row, place))
            w.put("ret void")
            w.label(w.fresh("unreached"))
        self.narrow()  # a square of whole vectors takes long to compile
        last = self.less("%columns", "1")
        with (
            each(w, "0", "%columns", self.lanes) as column,
            each(w, "0", "%count", self.lanes) as term,
        ):
            alive = self.below(self.less("%count", term))
            lines = []
            for n in range(self.lanes):
                line = self.least(self.total(column, str(n)), last)
                at = self.at("%b", self.total(self.times(line, "%pitch"), term))
                lines.append(self.read(at, alive))
            for n, line in enumerate(self.turned(lines)):
                row = self.times(self.total(term, str(n)), "%width")
                self.store(line, self.at("%panel", self.total(row, column)))
        return f"""
define internal void @tn_pack(
  ptr noalias %panel, i64 %width, ptr noalias %b, i64 %pitch, i1 %turned, i64 %columns, i64 %count)
  {FAST} {{
entry:
{w.taken()}  ret void
}}
"""

    def store(self, x: str, at: str) -> None:
        self.w.put(f"store {self.type} {x}, ptr {at}, align {self.size}")


@frozen
class Part:
    """Some columns of a product, as the text names them: the first, how many, those of a panel of
    them, which tiles multiply it, and how many columns its last vector has."""

    column: str
    columns: str
    width: str
    kind: str
    narrow: str
    tail: str


class Multiplication(Lanes):
    """What goes from panel to panel, and multiplies each by tiles of rows."""

    def part(self, column: str, wide: int) -> Part:
        w = self.w
        columns = self.least(str(wide), self.less("%columns", column))
        vectors = w.op(f"udiv i64 {self.total(columns, str(self.lanes - 1))}, {self.lanes}")
        narrow = w.op(f"icmp ule i64 {columns}, {self.lanes // 2}")
        full = self.times(vectors, str(self.lanes))
        width = w.select(narrow, "i64", str(self.lanes // 2), full)
        tail = self.less(columns, self.times(self.less(vectors, "1"), str(self.lanes)))
        kind = w.select(narrow, "i64", "0", vectors)
        return Part(column, columns, width, kind, narrow, tail)

    def rows(
        self,
        part: Part,
        count: str,
        left: tuple[str, str, str],
        right: tuple[str, str, str],
        to: tuple[str, str],
        more: Callable[[str], str] = lambda row: "",
    ) -> None:
        """Code that multiplies some rows by a panel. `left` is where they lie, with the steps to
        the next row and the next term, `right` the panel, its pitch and how many terms it has, `to`
        the first row of the result, and whether these are the first terms of it. `more(row)` is
        what else a tile is given."""
        w = self.w
        tall = w.select(part.narrow, "i64", str(_NARROW), str(_TALL))
        with each(w, "0", count, "%high") as row:
            valid = self.less(count, row)
            flat = self.flat(valid, tall)
            w.put(f"%high = select i1 {flat}, i64 {_FLAT}, i64 {tall}")
            at = self.at(left[0], self.times(row, left[1]))
            place = self.at(to[0], self.total(self.times(row, "%line"), part.column))
            given = (
                f"ptr {at}, i64 {left[1]}, i64 {left[2]}, i64 {valid}, ptr {right[0]}, "
                f"i64 {right[1]}, i64 {right[2]}, ptr {place}, i64 %line, i64 {part.tail}, "
                f"i1 {to[1]}{more(row)}"
            )
            first = w.select(flat, "i64", str(widest_of(w.target) + 1), "0")
            names = [f"tn_{r}x{v}" for r, v in tiles_of(w.target)]
            done = w.fresh("done")
            labels = " ".join(f"i64 {n}, label %{done}.{n}" for n in range(1, len(names)))
            which = self.total(part.kind, first)
            w.put(f"switch i64 {which}, label %{done}.0 [ {labels} ]")
            for n, name in enumerate(names):
                w.label(f"{done}.{n}")
                w.put(f"call void @{name}({given})")
                w.put(f"br label %{done}")
            w.label(done)

    def flat(self, left: str, tall: str) -> str:
        """Whether the next tile is one of fewer rows: what is left fits one, or two."""
        w = self.w
        one = w.op(f"icmp ule i64 {left}, {_FLAT}")
        more = w.op(f"icmp ugt i64 {left}, {tall}")
        two = w.op(f"icmp ule i64 {left}, {2 * _FLAT}")
        return w.op(f"or i1 {one}, {w.op(f'and i1 {more}, {two}')}")


class _Multiplication(Multiplication):
    def text(self) -> str:
        w, widest = self.w, widest_of(self.w.target)
        w.block = "entry"
        wide = widest * self.lanes
        room = (TERMS + self.lanes + 1) * wide
        panel = w.op(f"alloca {self.element}, i64 {room}, align 64")
        parts = w.op(f"udiv i64 {self.total('%terms', str(TERMS - 1))}, {TERMS}")
        run = w.op(f"udiv i64 {self.total('%terms', parts, '-1')}, {parts}")
        plain = w.op("xor i1 %turned, true")
        few = w.op(f"icmp ule i64 %rows, {_NEAR}")
        held = w.op(f"icmp ule i64 {self.times('%terms', '%pitch')}, {_HELD}")
        few = w.op(f"or i1 {few}, {held}")
        with each(w, "0", "%terms", run) as term, each(w, "0", "%columns", wide) as column:
            first = w.op(f"icmp eq i64 {term}, 0")
            count = self.least(run, self.less("%terms", term))
            part = self.part(column, wide)
            over, along = (
                w.select("%turned", "i64", yes, no) for yes, no in ((term, column), (column, term))
            )
            source = self.at("%b", self.total(over, self.times(along, "%pitch")))
            even = w.op(f"icmp eq i64 {part.columns}, {part.width}")
            near = w.op(f"and i1 {plain}, {w.op(f'and i1 {few}, {even}')}")
            with when(w, w.op(f"xor i1 {near}, true")):
                w.put(
                    f"call void @tn_pack(ptr {panel}, i64 {part.width}, ptr {source}, i64 %pitch, "
                    f"i1 %turned, i64 {part.columns}, i64 {count})"
                )
            seen = w.select(near, "ptr", source, panel)
            pitch = w.select(near, "i64", "%pitch", part.width)
            left = self.at("%a", self.times(term, "%on"))
            self.rows(part, "%rows", (left, "%down", "%on"), (seen, pitch, count), ("%c", first))
        return f"""
define internal void @tn_multiply(
  ptr %a, i64 %down, i64 %on, ptr %b, i64 %pitch, i1 %turned, ptr %c, i64 %line,
  i64 %rows, i64 %columns, i64 %terms) noinline nounwind {{
entry:
{w.taken()}  ret void
}}
"""
