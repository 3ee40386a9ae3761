"""Arrays laid out as a library wants them, and its results as nodes have them: functions that copy
elements, one after another or as matrices turned over, and change them on the way.

An element may be cast between f32 and f64, scaled by a factor, and have its imaginary part dropped
at the first place along a line and at another, which is how a transform to real numbers takes its
ends. What is outside of a triangle is zero. An inf or a NaN sets the fault word where that is asked
for. Lines that are turned over may be a part of longer ones.

A block turns a tile of 32 × 32 elements over in shared memory. All of it is read before anything is
written, neighbours by neighbours both times. Narrow matrices are written one element after another,
each read from where it lies.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

from tenfold.backends.cuda.emit.memory import guarded
from tenfold.backends.cuda.emit.team import wait
from tenfold.backends.cuda.library.function import RoutineFunction
from tenfold.backends.cuda.library.routine import FAULT, RoutineLaunch
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import BITS, COMPUTE, float_text, kind
from tenfold.frozen import frozen

_TILE, _ROWS, _THREADS, _EACH = 32, 8, 256, 4
_NARROW = 8  # rows or columns below which tiles would be mostly empty
_WORDS = ("size", "rows", "columns", "last", "factor", "line", "matrix")
LOWER, UPPER, DIAGONAL = "lower", "upper", "diagonal"  # parts of results
Parts = list[str]


@frozen
class Laying:
    """What the text of a copy hangs on. `ends`: imaginary parts at the ends of lines are dropped;
    `told`: the fault word is set where an element is no finite number; `part`: the triangle of
    results that is kept, or the diagonal; `ones`: there are ones on the diagonal, whatever is read;
    `narrow`: what is turned over has few rows or columns."""

    source: str  # dtypes
    target: str
    turned: bool = False
    scaled: bool = False
    ends: bool = False
    told: bool = False
    part: str = ""
    ones: bool = False
    narrow: bool = False

    def of(self, rows: int, columns: int) -> Laying:
        """The same for matrices of such extents."""
        return replace(self, narrow=self.turned and min(rows, columns) < _NARROW)

    @property
    def name(self) -> str:
        marks = {
            "turned": self.turned, "scaled": self.scaled, "ends": self.ends, "told": self.told,
            self.part: self.part, "ones": self.ones, "narrow": self.narrow,
        }  # fmt: skip
        held = (name for name, holds in marks.items() if holds)
        return "_".join(("tn_laid", self.source, self.target, *held))

    def text(self, target: CudaTarget) -> Fragment:
        return _Writer(self, target).text()


@frozen
class Place:
    """One of a routine's arrays, and how many bytes into it."""

    array: int
    start: int = 0


def laid(
    how: Laying,
    source: Place,
    target: Place,
    shape: tuple[int, int, int],
    last: int = -1,
    factor: float = 1.0,
    apart: tuple[int, int] | None = None,
) -> RoutineLaunch:
    """The launch that copies so many matrices of rows and columns. Where ends of lines are dropped,
    these run down the rows of what is turned over, else along the columns; `last` is the place of
    the second one, -1 where there is none. `apart` is how far lines and matrices that are turned
    over lie apart, if they are parts of longer ones."""
    count, rows, columns = shape
    size = count * rows * columns
    if how.turned and not how.narrow:
        blocks = count * -(-rows // _TILE) * -(-columns // _TILE)
    else:
        blocks = -(-size // (_THREADS * _EACH))
    (bits,) = struct.unpack("<q", struct.pack("<d", factor))
    arrays = (source.array, target.array, *((FAULT,) if how.told else ()))
    apart = apart or (columns, rows * columns)
    given = (size, rows, columns, last, bits, *apart, source.start, target.start)
    words = tuple((word, 8) for word in given)
    return RoutineLaunch(how.name, blocks, _THREADS, arrays, words)


class _Writer:
    """The text of one such function."""

    def __init__(self, how: Laying, target: CudaTarget) -> None:
        self.how = how
        arrays = [("source.base", COMPUTE[how.source]), ("target.base", COMPUTE[how.target])]
        arrays += [("fault", "i32")] if how.told else []
        words = (*_WORDS, "source.at", "target.at")
        f = self.f = RoutineFunction(how.name, target, _THREADS, arrays, words)
        self.w = f.w
        for name, dtype in (("source", how.source), ("target", how.target)):
            f.types[name] = COMPUTE[dtype]
            space = "ptr addrspace(1)"
            f.w.put(f"%{name} = getelementptr i8, {space} %{name}.base, i64 %{name}.at")
        self.parts = 2 if kind(how.source) == "c" else 1
        self.placed = bool(how.ends or how.part or how.ones or how.narrow)
        self.type = COMPUTE[how.target]
        self.thread, self.block = f.long(f.sreg("tid.x")), f.long(f.sreg("ctaid.x"))

    def text(self) -> Fragment:
        if self.how.turned and not self.how.narrow:
            self._turned()
        else:
            self._straight()
        return self.f.text()

    def _straight(self) -> None:
        """Elements one after another: a thread has some, a block apart."""
        f, w = self.f, self.w
        first = f.num("add", "i64", f.num("mul", "i64", self.block, _THREADS * _EACH), self.thread)
        read = []
        for n in range(_EACH):
            at = f.num("add", "i64", first, n * _THREADS)
            there = w.op(f"icmp slt i64 {at}, %size")
            which, row, column = self._place(at) if self.placed else (at, at, at)
            source = self._source(which, column, row) if self.how.narrow else at
            read.append((at, there, row, column, self._read_where(there, source)))
        for at, there, row, column, value in read:
            self._written(at, there, self._kept(self._changed(value, column), row, column))

    def _place(self, at: str) -> tuple[str, str, str]:
        """The matrix, the row and the column of an element of the results."""
        f, turned = self.f, self.how.turned
        rows, columns = ("%columns", "%rows") if turned else ("%rows", "%columns")
        line, column = (f.num(op, "i64", at, columns) for op in ("udiv", "urem"))
        which, row = (f.num(op, "i64", line, rows) for op in ("udiv", "urem"))
        return which, row, column

    def _source(self, which: str, row: str, column: str) -> str:
        """Where an element of a matrix is read."""
        f = self.f
        begin = f.num("mul", "i64", which, "%matrix")
        line = f.num("add", "i64", begin, f.num("mul", "i64", row, "%line"))
        return f.num("add", "i64", line, column)

    def _turned(self) -> None:
        f, w, tile = self.f, self.w, _TILE
        down, across = (
            f.num("udiv", "i64", f.num("add", "i64", f"%{x}", tile - 1), tile)
            for x in ("rows", "columns")
        )
        tiles = f.num("mul", "i64", down, across)
        which, here = (f.num(op, "i64", self.block, tiles) for op in ("udiv", "urem"))
        top, left = (
            f.num("mul", "i64", f.num(op, "i64", here, across), tile) for op in ("udiv", "urem")
        )
        begin = f.num("mul", "i64", which, f.num("mul", "i64", "%rows", "%columns"))
        x, y = f.num("urem", "i64", self.thread, tile), f.num("udiv", "i64", self.thread, tile)
        memory = [f.reserve(self.type, tile * (tile + 1)) for _ in range(self.parts)]
        read: list[tuple[str, Parts]] = []
        for n in range(0, tile, _ROWS):
            own = f.num("add", "i64", y, n)
            row, column, there = self._at(top, left, own, x, "%rows", "%columns")
            source = self._source(which, row, column)
            value = self._read(
                w.select(there, "i64", source, f.num("mul", "i64", which, "%matrix"))
            )
            read.append((own, self._changed(value, row)))
        for own, value in read:
            place = f.short(f.num("add", "i64", f.num("mul", "i64", own, tile + 1), x))
            for held, part in zip(memory, value, strict=True):
                f.put(held, self.type, place, part)
        wait(w)
        for n in range(0, tile, _ROWS):
            own = f.num("add", "i64", y, n)
            row, column, there = self._at(left, top, own, x, "%columns", "%rows")
            line = f.num("add", "i64", begin, f.num("mul", "i64", row, "%rows"))
            at = f.num("add", "i64", line, column)
            place = f.short(f.num("add", "i64", f.num("mul", "i64", x, tile + 1), own))
            value = [f.get(held, self.type, place) for held in memory]
            self._written(at, there, self._kept(value, row, column))

    def _at(
        self, top: str, left: str, y: str, x: str, rows: str, columns: str
    ) -> tuple[str, str, str]:
        """The row and the column of an element of a tile, and whether it is there."""
        f, w = self.f, self.w
        row, column = f.num("add", "i64", top, y), f.num("add", "i64", left, x)
        inside = [w.op(f"icmp slt i64 {a}, {b}") for a, b in ((row, rows), (column, columns))]
        return row, column, w.op(f"and i1 {inside[0]}, {inside[1]}")

    # Elements.

    def _read(self, at: str) -> Parts:
        return [self.f.read("source", one) for one in self._places(at)]

    def _read_where(self, there: str, at: str) -> Parts:
        """An element that somebody else may be writing, unless it is there for this thread."""
        types = [self.f.types["source"]] * self.parts
        return guarded(self.w, there, lambda: self._read(at), types)

    def _kept(self, value: Parts, row: str, column: str) -> Parts:
        """An element of the results, or zero where it lies outside of the part."""
        w, ty, part = self.w, self.type, self.how.part
        one, zero = (float_text(ty, x) for x in (1.0, 0.0))
        if part:
            test = {LOWER: "sge", UPPER: "sle", DIAGONAL: "eq"}[part]
            inside = w.op(f"icmp {test} i64 {row}, {column}")
            value = [w.select(inside, ty, x, zero) for x in value]
        if self.how.ones:
            there = w.op(f"icmp eq i64 {row}, {column}")
            ones = [one, zero][: self.parts]
            value = [w.select(there, ty, x, y) for x, y in zip(ones, value, strict=True)]
        return value

    def _places(self, at: str) -> Sequence[str]:
        if self.parts == 1:
            return (at,)
        first = self.f.num("mul", "i64", at, 2)
        return first, self.f.num("add", "i64", first, 1)

    def _written(self, at: str, there: str, value: Parts) -> None:
        def write() -> None:
            for place, part in zip(self._places(at), value, strict=True):
                self.f.write("target", place, part)

        self.f.when(there, write)

    def _changed(self, value: Parts, place: str) -> Parts:
        """An element as it is written; `place` is where on its line it lies."""
        f, w, how, ty = self.f, self.w, self.how, self.type
        held = COMPUTE[how.source]
        if how.told:
            for part in value:  # inf - inf and NaN - NaN are no numbers
                none = w.op(f"fsub {held} {part}, {part}")
                f.when(w.op(f"fcmp uno {held} {none}, {none}"), self._tell)
        if BITS[held] != BITS[ty]:
            op = "fpext" if BITS[ty] > BITS[held] else "fptrunc"
            value = [w.op(f"{op} {held} {part} to {ty}") for part in value]
        if how.ends:
            ends = [w.op(f"icmp eq i64 {place}, {end}") for end in ("0", "%last")]
            dropped = w.op(f"or i1 {ends[0]}, {ends[1]}")
            value = [value[0], w.select(dropped, ty, float_text(ty, 0.0), value[1])]
        if how.scaled:
            factor = w.op("bitcast i64 %factor to double")
            factor = factor if ty == "double" else w.op(f"fptrunc double {factor} to {ty}")
            value = [w.op(f"fmul {ty} {part}, {factor}") for part in value]
        return value

    def _tell(self) -> None:
        self.w.op("atomicrmw or ptr addrspace(1) %fault, i32 1 monotonic, align 4")
