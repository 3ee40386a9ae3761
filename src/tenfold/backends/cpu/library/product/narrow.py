"""Products of integers of 8 and 16 bits that are added up in 32, by panels: exact modulo 2**32.

    void tn_multiply(ptr a, i64 down, i64 on, ptr b, i64 pitch, i1 turned, ptr c, i64 line,
                     i64 rows, i64 columns, i64 terms)

is called as that of `panels` is. Terms go by groups of 32 bits, and a tile has a group where that
of `panels` has a term; of a panel a group of every column comes first, then the next of each.

- Where the target adds up four products of bytes (VNNI), a group is four bytes, unsigned on one
  side and signed on the other. The left operand stays as it is. Where the right one is alike, its
  highest bits are turned over, which adds 128 to each element or takes it away; 128 times the sum
  of the left operand's row makes up for that.
- Elsewhere, and for elements of 16 bits, a group is two of 16 bits with signs: bytes are widened.
  The sum of two products may be 2**31, which wraps as it should.

The left operand is packed, too, a strip of rows at a time, unless its rows are whole groups as they
lie. What is missing of a last group is 0 on the left.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.cpu.library.lanes import Lanes
from tenfold.backends.cpu.library.loops import carried, each, when
from tenfold.backends.cpu.library.product.panels import (
    FAST,
    Multiplication,
    Tile,
    tiles_of,
    widest_of,
)
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.writer import BITS, COMPUTE, Writer, vector

_GROUPS = 256  # of a run
_PITCH = _GROUPS + 16  # of rows that are packed: not all in the same places of the cache
_STRIP = 96  # rows of a strip that is packed
_LONG = 512  # rows of one that is read as it lies
_MADD = {16: "avx512.pmaddw.d.512", 8: "avx2.pmadd.wd", 4: "sse2.pmadd.wd"}  # by lanes
_HIGHEST = 0x80808080 - (1 << 32)  # bits of four bytes
_MADE_UP = {"i8": -128, "u8": 128}  # times the sum of a row, for turned bits of the other operand


def narrow_panels(left: str, right: str, target: LLVMTarget) -> tuple[str, tuple[str, ...]]:
    """The function for operands of two dtypes and those that it calls, and what they declare."""
    w, groups = Writer(target), _Groups(left, right, target)
    text = ""
    for rows, vectors in tiles_of(target):
        text += _GroupTile(groups, w).text(rows, vectors)
    text += _Packing(groups, w, left, rows=True).text()
    text += _Packing(groups, w, right, rows=False).text()
    if groups.alike:
        text += _RowSums(groups, w).text()
    text += _Multiplication(groups, w).text()
    return text, tuple(sorted(w.declared))


class _Groups:
    """What is known of groups of terms of operands of two dtypes."""

    def __init__(self, left: str, right: str, target: LLVMTarget) -> None:
        self.left, self.right = left, right
        four = target.dots and {left, right} <= {"i8", "u8"}
        self.terms = 4 if four else 2
        self.bits = 32 // self.terms  # of a term
        self.alike = four and left == right  # bits of the right operand are turned over
        self.kept = BITS[COMPUTE[left]] == self.bits  # the left operand need not be widened

    def dot(self, lanes: Lanes, before: str, a: str, b: str) -> str:
        """The instruction for sums and the products of groups of the left operand and the right
        one."""
        w, ty, count = lanes.w, lanes.type, lanes.lanes
        if self.terms == 4:
            pair = (b, a) if self.left == "i8" else (a, b)  # the unsigned one is first
            name = f"llvm.x86.avx512.vpdpbusd.{32 * count}"
            w.declare(f"{ty} @{name}({ty}, {ty}, {ty})")
            return f"call {ty} @{name}({ty} {before}, {ty} {pair[0]}, {ty} {pair[1]})"
        halves = vector("i16", True, 2 * count)
        a, b = (w.op(f"bitcast {ty} {x} to {halves}") for x in (a, b))
        if w.target.arch == "x86_64" and count in _MADD:
            made = w.call(ty, f"llvm.x86.{_MADD[count]}", (halves, a), (halves, b))
            return f"add {ty} {before}, {made}"
        products = []
        for first in range(2):
            picked = range(first, 2 * count, 2)
            parts = [masks.pick(w, "i16", x, 2 * count, picked) for x in (a, b)]
            wide = [w.op(f"sext {vector('i16', True, count)} {x} to {ty}") for x in parts]
            products.append(w.op(f"mul {ty} {wide[0]}, {wide[1]}"))
        return f"add {ty} {w.op(f'add {ty} {before}, {products[0]}')}, {products[1]}"


class _GroupTile(Tile):
    """A tile as those of `panels`, with groups for terms, which are aligned as bytes are."""

    def __init__(self, groups: _Groups, w: Writer) -> None:
        super().__init__("i32", w)
        self.groups = groups
        self.more = ", ptr noalias %sums" if groups.alike else ""

    def every_lane(self, place: str) -> str:
        one = self.w.op(f"load i32, ptr {place}, align 1")
        return self.w.splat("i32", one, self.lanes)

    def add_product(self, a: str, b: str, before: str, after: str) -> None:
        self.w.put(f"{after} = {self.groups.dot(self, before, a, b)}")

    def beside(self, row: str) -> str | None:
        return self.every_lane(self.at("%sums", row)) if self.groups.alike else None


class _Packing(Lanes):
    """Packs an operand of a dtype: rows of the left one, columns of the right one."""

    def __init__(self, groups: _Groups, w: Writer, dtype: str, *, rows: bool) -> None:
        super().__init__("i32", w)
        self.groups, self.rows = groups, rows
        self.source, self.signed = COMPUTE[dtype], dtype.startswith("i")
        self.bytes = BITS[self.source] // 8
        self.flipped = _HIGHEST if groups.alike and not rows else 0  # bits of a group
        self.steps = ("%pitch", "1") if rows else ("1", "%pitch")  # to the next line, and group

    def text(self) -> str:
        """A function that packs %count terms of %lines: of rows, each group after group, lines
        %pitch groups apart; of columns, side by side, so that groups are %pitch apart. `along`: in
        memory terms of a line lie side by side, else lines do, %step apart. What is no whole
        vector goes one group after another."""
        w, terms, rows = self.w, self.groups.terms, self.rows
        w.block = "entry"
        whole = w.op(f"udiv i64 %count, {terms}")
        groups = w.op(f"udiv i64 {self.total('%count', str(terms - 1))}, {terms}")
        wide = self.lanes, self.type
        for along in (False, True):
            # A square of half vectors, where what lies side by side is to lie apart: one of whole
            # vectors takes long to compile.
            square = along != rows
            self.lanes, self.type = wide
            if square:
                self.narrow()
            by_line, by_group = (
                self.lanes if square or side_by_side else 1 for side_by_side in (not along, along)
            )
            lines = w.op(f"and i64 %lines, {-by_line}")
            full = w.op(f"and i64 {whole}, {-by_group}")
            with when(w, w.op(f"icmp eq i1 %along, {str(along).lower()}")):
                read = self.groups_of_line if along else self.groups_of_lines
                far, near = ((lines, by_line), (full, by_group))[:: 1 if along else -1]
                with each(w, "0", *far) as first, each(w, "0", *near) as step:
                    number = self.lanes if square else 1
                    made = [read(self.total(first, str(n)), step) for n in range(number)]
                    for n, x in enumerate(self.turned(made) if square else made):
                        at = self.total(step if square else first, str(n))
                        other = first if square else step
                        self.keep(x, *((at, other) if along != square else (other, at)))
                if not (along or square):
                    # The last group, if it lacks some terms.
                    with each(w, whole, groups) as group, each(w, "0", lines, by_line) as line:
                        self.keep(self.groups_of_lines(group, line, whole=False), line, group)
                    full = groups
                self.rest(lines, full, groups)
                w.put("ret void")
                w.label(w.fresh("unreached"))
        return f"""
define internal void @tn_pack_{"left" if rows else "right"}(
  ptr noalias %panel, i64 %pitch, ptr noalias %from, i64 %step, i1 %along, i64 %lines, i64 %count)
  {FAST} {{
entry:
{w.taken()}  ret void
}}
"""

    def groups_of_line(self, line: str, group: str) -> str:
        """Groups of one line, whose terms lie side by side."""
        w, terms, many = self.w, self.groups.terms, self.lanes * self.groups.terms
        at = self.place(self.total(self.times(line, "%step"), self.times(group, str(terms))))
        row = w.op(f"load {vector(self.source, True, many)}, ptr {at}, align {self.bytes}")
        row = self.widened(row, many, f"i{self.groups.bits}")
        packed = vector(f"i{self.groups.bits}", True, many)
        made = w.op(f"bitcast {packed} {row} to {self.type}")
        return w.op(f"xor {self.type} {made}, splat (i32 {self.flipped})")

    def groups_of_lines(self, group: str, line: str, whole: bool = True) -> str:
        """One group of lines that lie side by side; what is missing is 0."""
        ty = vector(self.source, True, self.lanes)
        first = self.times(group, str(self.groups.terms))
        numbers = [self.total(first, str(n)) for n in range(self.groups.terms)]
        seen = [self.term(ty, number, "%step", line, whole) for number in numbers]
        return self.joined(seen, self.lanes)

    def term(self, ty: str, term: str, step: str, start: str, whole: bool) -> str:
        """One term of lines, or 0 for one that is missing."""
        w, last = self.w, self.less("%count", "1")
        near = term if whole else self.least(term, last)
        at = self.place(self.total(self.times(near, step), start))
        x = w.op(f"load {ty}, ptr {at}, align {self.bytes}")
        if whole:
            return x
        there = w.op(f"icmp sle i64 {term}, {last}")
        return w.op(f"select i1 {there}, {ty} {x}, {ty} zeroinitializer")

    def place(self, index: str) -> str:
        return self.w.op(f"getelementptr {self.source}, ptr %from, i64 {index}")

    def target_of(self, line: str, group: str) -> str:
        far, near = self.steps
        return self.at("%panel", self.total(self.times(line, far), self.times(group, near)))

    def keep(self, x: str, line: str, group: str) -> None:
        self.w.put(f"store {self.type} {x}, ptr {self.target_of(line, group)}, align 4")

    def widened(self, x: str, lanes: int, to: str) -> str:
        """Elements of the operand as terms of a group are, or as these stand in 32 bits."""
        w, here = self.w, self.source
        for bits, signed in ((self.groups.bits, self.signed), (BITS[to], False)):
            if bits > BITS[here]:
                types = (vector(e, lanes > 1, lanes) for e in (here, f"i{bits}"))
                x = w.op(f"{'s' if signed else 'z'}ext {next(types)} {x} to {next(types)}")
                here = f"i{bits}"
        return x

    def joined(self, terms: Sequence[str], lanes: int) -> str:
        """Groups of these terms."""
        w, ty = self.w, vector("i32", lanes > 1, lanes)
        made = ""
        for n, term in enumerate(terms):
            wide = self.widened(term, lanes, "i32")
            if n:
                moved = w.op(f"shl {ty} {wide}, {w.const('i32', n * self.groups.bits, lanes > 1)}")
                made = w.op(f"or {ty} {made}, {moved}")
            else:
                made = wide
        return w.op(f"xor {ty} {made}, {w.const('i32', self.flipped, lanes > 1)}")

    def rest(self, lines: str, whole: str, groups: str) -> None:
        """Code for what is behind so many lines and whole groups."""
        w, terms = self.w, self.groups.terms
        along, across = (w.select("%along", "i64", *p) for p in (("%step", "1"), ("1", "%step")))
        with each(w, "0", groups) as group:
            begun = w.select(w.op(f"icmp slt i64 {group}, {whole}"), "i64", lines, "0")
            with each(w, begun, "%lines") as line:
                seen = []
                for n in range(terms):
                    term = self.total(self.times(group, str(terms)), str(n))
                    start = self.times(line, along)
                    seen.append(self.term(self.source, term, across, start, whole=False))
                made, at = self.joined(seen, 1), self.target_of(line, group)
                w.put(f"store i32 {made}, ptr {at}, align 4")


class _RowSums(Lanes):
    def __init__(self, groups: _Groups, w: Writer) -> None:
        super().__init__("i32", w)
        self.groups = groups

    def text(self) -> str:
        """A function for what makes up for turned bits: sums of %rows times a factor."""
        w, ty = self.w, self.type
        w.block = "entry"
        with each(w, "0", "%rows") as row:
            start, zero = self.at("%a", self.times(row, "%down")), (ty, "zeroinitializer")
            with carried(w, "0", "%count", self.lanes, zero) as (group, (before,), onward):
                live = self.below(self.less("%count", group))
                x = masks.load(w, self.at(start, group), "i32", live, self.lanes, align=1)
                onward(w.op(self.groups.dot(self, before, x, f"splat (i32 {0x01010101})")))
            name = f"llvm.vector.reduce.add.v{self.lanes}i32"
            total = w.call("i32", name, (ty, before))
            made = w.op(f"mul i32 {total}, {_MADE_UP[self.groups.left]}")
            w.put(f"store i32 {made}, ptr {self.at('%sums', row)}, align 4")
        return f"""
define internal void @tn_row_sums(
  ptr noalias %sums, ptr noalias %a, i64 %down, i64 %rows, i64 %count) {FAST} {{
entry:
{w.taken()}  ret void
}}
"""


class _Multiplication(Multiplication):
    def __init__(self, groups: _Groups, w: Writer) -> None:
        super().__init__("i32", w)
        self.groups = groups

    def text(self) -> str:
        w, groups, terms = self.w, self.groups, self.groups.terms
        w.block = "entry"
        wide = widest_of(w.target) * self.lanes
        panel, strip, sums = (
            w.op(f"alloca i32, i64 {room}, align 64")
            for room in (_GROUPS * wide, _PITCH * _STRIP, _LONG)
        )
        parts = w.op(
            f"udiv i64 {self.total('%terms', str(_GROUPS * terms - 1))}, {_GROUPS * terms}"
        )
        run = w.op(f"udiv i64 {self.total('%terms', parts, '-1')}, {parts}")
        run = w.op(f"and i64 {self.total(run, str(terms - 1))}, {-terms}")
        along = w.op("icmp eq i64 %on, 1")
        odd = w.op(f"and i64 {w.op('or i64 %terms, %down')}, {terms - 1}")
        even = w.op(f"icmp eq i64 {odd}, 0")
        near = w.op(f"and i1 {along}, {even}") if groups.kept else "false"
        apart = w.select(along, "i64", "%down", "%on")
        most = w.select(near, "i64", str(_LONG), str(_STRIP))
        down = w.select(near, "i64", w.op(f"udiv i64 %down, {terms}"), str(_PITCH))
        with each(w, "0", "%terms", run) as term, each(w, "0", "%rows", most) as row:
            first = w.op(f"icmp eq i64 {term}, 0")
            count = self.least(run, self.less("%terms", term))
            number = w.op(f"udiv i64 {self.total(count, str(terms - 1))}, {terms}")
            rows = self.least(most, self.less("%rows", row))
            start = self.total(self.times(row, "%down"), self.times(term, "%on"))
            source = w.op(f"getelementptr {COMPUTE[groups.left]}, ptr %a, i64 {start}")
            with when(w, w.op(f"xor i1 {near}, true")):
                w.put(
                    f"call void @tn_pack_left(ptr {strip}, i64 {_PITCH}, ptr {source}, "
                    f"i64 {apart}, i1 {along}, i64 {rows}, i64 {count})"
                )
            left = w.select(near, "ptr", source, strip)
            if groups.alike:
                w.put(
                    f"call void @tn_row_sums(ptr {sums}, ptr {left}, i64 {down}, i64 {rows}, "
                    f"i64 {number})"
                )
            to = self.at("%c", self.times(row, "%line"))
            with each(w, "0", "%columns", wide) as column:
                part = self.part(column, wide)
                across, step = (
                    w.select("%turned", "i64", yes, no)
                    for yes, no in ((term, column), (column, term))
                )
                begin = self.total(across, self.times(step, "%pitch"))
                source = w.op(f"getelementptr {COMPUTE[groups.right]}, ptr %b, i64 {begin}")
                w.put(
                    f"call void @tn_pack_right(ptr {panel}, i64 {part.width}, ptr {source}, "
                    f"i64 %pitch, i1 %turned, i64 {part.columns}, i64 {count})"
                )
                self.rows(
                    part,
                    rows,
                    (left, down, "1"),
                    (panel, part.width, number),
                    (to, first),
                    lambda at: f", ptr {self.at(sums, at)}" if groups.alike else "",
                )
        return f"""
define internal void @tn_multiply(
  ptr %a, i64 %down, i64 %on, ptr %b, i64 %pitch, i1 %turned, ptr %c, i64 %line,
  i64 %rows, i64 %columns, i64 %terms) noinline nounwind {{
entry:
{w.taken()}  ret void
}}
"""
