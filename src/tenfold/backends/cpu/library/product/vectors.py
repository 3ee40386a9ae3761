"""Products of a matrix with a vector by code of our own, for AVX2 and AVX-512.

    void tn_along(ptr a, i64 ld, ptr x, ptr y, i64 rows, i64 terms)
    void tn_across(ptr a, i64 ld, ptr x, ptr y, i64 columns, i64 terms)
    void tn_add(ptr x, ptr y, i64 count)

`tn_along` adds to each of %y a row of the matrix times %x, `tn_across` to all of them the rows
times the elements of %x, `tn_add` adds vectors. Either reads four rows at once, each from its
beginning to its end, and asks for nothing ahead: that is what processors read fastest, from any
cache and from memory. NumPy's arrays begin in the middle of a line of the cache, and a vector that
crosses two costs two: so rows are read by whole lines.

Along a row as many sums as 64 bytes hold are made side by side, halves of which are added at the
end; across rows a term is added after the other. Where a row is read by lines, a term may go to
another lane; lanes are turned back before they are added. So bits hang neither on where a matrix
lies nor on the level.
"""

from __future__ import annotations

from tenfold.backends.cpu.library.lanes import Lanes
from tenfold.backends.cpu.library.loops import carried, each
from tenfold.backends.cpu.library.product.panels import FAST
from tenfold.backends.llvm import masks
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.writer import COMPUTE, Writer, vector

_ROWS = 4  # that are read at once
_LINE = 64  # bytes of the sums of a row, and of a line of the cache
_LONG = 4096  # bytes of a row from which on it is read by lines of the cache
_STEP = 128  # bytes of each row in a round across rows


def has_vectors(dtype: str, target: LLVMTarget) -> bool:
    """Whether there is such code for a dtype; a library's is used where there is none."""
    return dtype in ("f32", "f64") and target.fma and (target.masked or target.moves)


def vectors(dtype: str, target: LLVMTarget) -> tuple[str, tuple[str, ...]]:
    """The functions, and what they declare."""
    w = Writer(target)
    text = "".join(kind(COMPUTE[dtype], w).text() for kind in (_Along, _Across, _Add))
    return text, tuple(sorted(w.declared))


class _Vectors(Lanes):
    def before_line(self, place: str) -> str:
        """How many elements lie before the next line of the cache."""
        w = self.w
        number = w.op(f"ptrtoint ptr {place} to i64")
        left = w.op(f"and i64 {self.less('0', number)}, {_LINE - 1}")
        return w.op(f"udiv i64 {left}, {self.size}")

    def live(self, low: str, high: str, part: int = 0) -> str:
        """Of the lanes of a part those from `low` up to `high`."""
        first = str(part * self.lanes)
        ends = (self.greatest(self.less(end, first), "0") for end in (low, high))
        under, upto = (self.below(end) for end in ends)
        truths = vector("i1", True, self.lanes)
        return self.w.op(
            f"and {truths} {upto}, {self.w.op(f'xor {truths} {under}, splat (i1 true)')}"
        )


class _Along(_Vectors):
    def text(self) -> str:
        w, ty, element = self.w, self.type, self.element
        w.block = "entry"
        parts = range(_LINE // w.target.vector_bytes)
        line = _LINE // self.size
        turned = w.op(f"alloca [{2 * _LINE} x i8], align {_LINE}")
        last = self.less("%rows", "1")
        long = w.op(f"icmp uge i64 %terms, {_LONG // self.size}")
        sums = [(ty, "zeroinitializer")] * (_ROWS * len(parts))
        with each(w, "0", "%rows", _ROWS) as row:
            numbers = [self.least(self.total(row, str(r)), last) for r in range(_ROWS)]
            starts = [self.at("%a", self.times(number, "%ld")) for number in numbers]
            head = w.select(long, "i64", self.before_line(starts[0]), "0")
            begun = w.op(f"icmp ne i64 {head}, 0")
            # First what lies before the first line, and whole lines, then what is left.
            early = w.select(begun, "i64", self.less(head, str(line)), "0")
            rest = self.less("%terms", head)
            whole = self.total(head, w.op(f"and i64 {rest}, {-line}"))
            with carried(w, "0", "2", 1, *sums) as (turn, outer, onward):
                second = w.op(f"icmp ne i64 {turn}, 0")
                low, high, end = (
                    w.select(second, "i64", late, soon)
                    for late, soon in ((whole, early), ("%terms", head), ("%terms", whole))
                )
                sums = [(ty, x) for x in outer]
                with carried(w, low, high, line, *sums) as (k, some, inward):
                    from_, to = self.less("0", k), self.less("%terms", k)
                    inward(*self.added(starts, k, some, [self.live(from_, to, p) for p in parts]))
                sums = [(ty, x) for x in some]
                with carried(w, high, end, line, *sums) as (k, all_, inward):
                    inward(*self.added(starts, k, all_, [None for _ in parts]))
                onward(*all_)
            sums = [(ty, x) for x in outer]
            once = w.op(f"zext i1 {begun} to i64")
            with carried(w, "0", once, 1, *sums) as (_, before, onward):
                rows = [self.turned_back(before[r::_ROWS], turned, head) for r in range(_ROWS)]
                onward(*(row[part] for part in range(len(parts)) for row in rows))
            made = [self.folded(before[r::_ROWS]) for r in range(_ROWS)]
            places = [self.at("%y", number) for number in numbers]
            befores = [w.op(f"load {element}, ptr {at}, align {self.size}") for at in places]
            for at, x, s in zip(places, befores, made, strict=True):
                total = w.op(f"fadd {element} {x}, {s}")
                w.put(f"store {element} {total}, ptr {at}, align {self.size}")
        return _function(
            "tn_along", "ptr noalias %a, i64 %ld, ptr noalias %x, ptr noalias %y, i64 %rows, "
            "i64 %terms", w,
        )  # fmt: skip

    def added(
        self, starts: list[str], k: str, sums: list[str], live: list[str | None]
    ) -> list[str]:
        """The sums with the terms of a round; those of a part of all rows follow each other."""
        made = []
        for part, mask in enumerate(live):
            here = self.total(k, str(part * self.lanes)) if part else k
            factor = self.read(self.at("%x", here), mask)
            for r, start in enumerate(starts):
                name = f"%{self.w.fresh('sum')}"
                seen = self.read(self.at(start, here), mask)
                self.add_product(factor, seen, sums[part * _ROWS + r], name)
                made.append(name)
        return made

    def turned_back(self, parts: list[str], place: str, head: str) -> list[str]:
        """The sums in order: those of the first terms are as many lanes from the end as terms lie
        before the first line."""
        w, line = self.w, _LINE // self.size
        for at in (0, line):
            for n, part in enumerate(parts):
                to = self.at(place, str(at + n * self.lanes))
                w.put(f"store {self.type} {part}, ptr {to}, align {w.target.vector_bytes}")
        by = w.op(f"and i64 {self.less('0', head)}, {line - 1}")
        return [self.read(self.at(place, self.total(by, str(n * self.lanes))))
                for n in range(len(parts))]  # fmt: skip

    def folded(self, parts: list[str]) -> str:
        """The sum of all lanes: halves are added until one is left."""
        w, element, lanes = self.w, self.element, self.lanes
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [
                w.op(f"fadd {self.type} {a}, {b}")
                for a, b in zip(parts[:half], parts[half:], strict=True)
            ]
        x = parts[0]
        while lanes > 1:
            low, high = w.halves(element, x, lanes)
            lanes //= 2
            x = w.op(f"fadd {vector(element, True, lanes)} {low}, {high}")
        return w.op(f"extractelement {vector(element, True, 1)} {x}, i64 0")


class _Across(_Vectors):
    def text(self) -> str:
        w = self.w
        w.block = "entry"
        step = _STEP // self.size
        fours = w.op(f"and i64 %terms, {-_ROWS}")
        with each(w, "0", fours, _ROWS) as term:
            factors, starts = self.rows(term, _ROWS)
            head = self.least(self.before_line(starts[0]), "%columns")
            whole = self.total(head, w.op(f"and i64 {self.less('%columns', head)}, {-step}"))
            with each(w, "0", "2") as turn:  # columns before the first line, then what is left
                second = w.op(f"icmp ne i64 {turn}, 0")
                low = w.select(second, "i64", whole, "0")
                high = w.select(second, "i64", "%columns", head)
                with each(w, low, high, self.lanes) as column:
                    self.add(factors, starts, column, self.below(self.less(high, column)))
            with each(w, head, whole, step) as column:
                for v in range(0, step, self.lanes):
                    self.add(factors, starts, self.total(column, str(v)), None)
        with each(w, fours, "%terms") as term:
            factors, starts = self.rows(term, 1)
            with each(w, "0", "%columns", self.lanes) as column:
                self.add(factors, starts, column, self.below(self.less("%columns", column)))
        return _function(
            "tn_across", "ptr noalias %a, i64 %ld, ptr noalias %x, ptr noalias %y, i64 %columns, "
            "i64 %terms", w,
        )  # fmt: skip

    def rows(self, first: str, count: int) -> tuple[list[str], list[str]]:
        """The factors of some rows, each in all lanes, and where they begin."""
        numbers = [self.total(first, str(r)) for r in range(count)]
        factors = [self.every_lane(self.at("%x", number)) for number in numbers]
        return factors, [self.at("%a", self.times(number, "%ld")) for number in numbers]

    def add(self, factors: list[str], starts: list[str], column: str, live: str | None) -> None:
        to = self.at("%y", column)
        x = self.read(to, live)
        for factor, start in zip(factors, starts, strict=True):
            name = f"%{self.w.fresh('sum')}"
            self.add_product(factor, self.read(self.at(start, column), live), x, name)
            x = name
        masks.store(self.w, to, self.element, x, live, self.lanes)


class _Add(Lanes):
    def text(self) -> str:
        w = self.w
        w.block = "entry"
        with each(w, "0", "%count", self.lanes) as at:
            live = self.below(self.less("%count", at))
            to = self.at("%y", at)
            more = self.read(self.at("%x", at), live)
            total = w.op(f"fadd {self.type} {self.read(to, live)}, {more}")
            masks.store(w, to, self.element, total, live, self.lanes)
        return _function("tn_add", "ptr noalias %x, ptr noalias %y, i64 %count", w)


def _function(name: str, parameters: str, w: Writer) -> str:
    return f"""
define internal void @{name}({parameters}) {FAST} {{
entry:
{w.taken()}  ret void
}}
"""
