"""Running folds down columns."""

from __future__ import annotations

from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.thread import Position
from tenfold.backends.cuda.library.fold import Fold
from tenfold.backends.cuda.library.function import RoutineFunction
from tenfold.backends.cuda.library.routine import RoutineLaunch
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import BITS

_ROWS = 16  # rows of a column that are loaded at a time, of up to 32 bits twice as many
_NARROW = 32  # threads of a block that has columns
_SHORTEST = 64  # rows of a part of a column
_BUSY = 132 * 256  # threads that keep a large chip busy


def column_launches(
    symbol: str, n: int, before: int, row: int, held: int, anyhow: bool
) -> tuple[list[RoutineLaunch], int]:
    """The launches for rows of so many lanes, and the bytes of what comes before parts of columns:
    these have parts where the order of joining does not matter, and there are few of them."""
    parts = min(-(-n // _SHORTEST), -(-_BUSY // (before * row))) if anyhow else 1
    size = -(-n // max(parts, 1))
    parts = -(-n // size)
    one = before * row
    if parts == 1:
        return [column_launch(f"{symbol}_columns", one, (0, 1, 1), n, row, n, 1)], 0
    return [
        column_launch(f"{symbol}_parts", one * parts, (0, 0, 2), n, row, size, parts),
        column_launch(f"{symbol}_seams", one, (2, 2, 2), parts, row, parts, 1),
        column_launch(f"{symbol}_columns", one * parts, (0, 1, 2), n, row, size, parts),
    ], one * parts * held


def column_launch(
    function: str,
    threads: int,
    arrays: tuple[int, ...],
    n: int,
    columns: int,
    size: int,
    parts: int,
) -> RoutineLaunch:
    words = tuple((word, 8) for word in (threads, n, columns, size, parts))
    return RoutineLaunch(function, -(-threads // _NARROW), _NARROW, arrays, words)


class ColumnFold(Fold):
    """What writes the functions for columns."""

    def function(self, name: str, target: CudaTarget) -> Fragment:
        return self.products(target) if name == "one" else self.columns(target, name)

    @property
    def rows(self) -> int:
        """Rows that are loaded at a time."""
        paired = self.step == "mul" and self.span == 2
        return _ROWS if BITS[self.memory] > 32 or paired else 2 * _ROWS

    def columns(self, target: CudaTarget, stage: str = "columns") -> Fragment:
        """A thread for each lane of a row: down its column or a part of it, one after the other.
        Before that, what `parts` come to; and at their `seams`, what comes before each in place of
        what it comes to."""
        seams = stage == "seams"
        f, column, end = self._column(f"{self.symbol}_{stage}", target, 1, seams)
        w = f.w
        several = w.op("icmp ne i64 %parts, 1")
        so_far = self.nothing()
        if stage == "columns":
            base = f.where(several, self.type, lambda: f.read("b", self.seam))
            so_far = w.select(several, self.type, base, so_far)

        def brought(row: str) -> list[str]:
            return [self._down(f, column, row, n, 0)[0] for n in range(self.rows)]

        def body(row: Position, held: list[str]) -> list[str]:
            so_far, now = held[0], held[1:]
            following = brought(f.num("add", "i64", str(row), self.rows))
            for n, x in enumerate(now):
                if seams:
                    self._up(f, column, str(row), n, [so_far])
                value = x if seams else self.widened(x)
                onward = self.joined(so_far, value)
                if stage == "parts":  # what is behind the end is not to be joined
                    there = self._spot(f, column, str(row), n)[1]
                    onward = w.select(there, self.type, onward, so_far)
                so_far = onward
                if stage == "columns":
                    self._up(f, column, str(row), n, [so_far])
            return [so_far, *following]

        kept = self.type if seams else self.memory
        slots = [(self.type, so_far), *((kept, x) for x in brought(self.start))]
        (total, *_) = loop(w, "i64", self.start, self.end, self.rows, slots, body)
        if stage == "parts":
            f.write("b", self.seam, total)
        w.put(f"br label %{end}")
        w.label(end)
        return f.text()

    def products(self, target: CudaTarget) -> Fragment:
        """A thread for each column of complex elements: one after the other."""
        f, first, end = self._column(f"{self.symbol}_one", target, 2)
        w, ty = f.w, self.type

        def brought(row: str) -> list[str]:
            return [x for n in range(self.rows) for x in self._down(f, first, row, n, 1)]

        def body(row: Position, held: list[str]) -> list[str]:
            (a, b), now = held[:2], held[2:]
            following = brought(f.num("add", "i64", str(row), self.rows))
            for n in range(self.rows):
                c, d = now[2 * n : 2 * n + 2]
                ac, bd, ad, bc = (
                    w.op(f"fmul {ty} {p}, {q}") for p, q in ((a, c), (b, d), (a, d), (b, c))
                )
                real, imaginary = w.op(f"fsub {ty} {ac}, {bd}"), w.op(f"fadd {ty} {ad}, {bc}")
                if n == 0:  # the first of all as it is: 1 + 0i times it may be another
                    begins = w.op(f"icmp eq i64 {row}, 0")
                    real = w.select(begins, ty, c, real)
                    imaginary = w.select(begins, ty, d, imaginary)
                a, b = real, imaginary
                self._up(f, first, str(row), n, [a, b])
            return [a, b, *following]

        one, none = w.const(ty, 1.0, False), w.const(ty, 0.0, False)
        slots = [(ty, x) for x in (one, none, *brought("0"))]
        loop(w, "i64", 0, "%n", self.rows, slots, body)
        w.put(f"br label %{end}")
        w.label(end)
        return f.text()

    def _column(
        self, name: str, target: CudaTarget, each: int, seams: bool = False
    ) -> tuple[RoutineFunction, str, str]:
        """A function with a thread for each column, or part of one: where its column begins, in
        lanes, and the label of its end. Columns of `seams` are those of what parts come to."""
        kept = self.type if seams else self.memory
        arrays = [("x", kept), ("y", kept), ("b", self.type)]
        words = ("all", "n", "columns", "size", "parts")
        f = self.f = RoutineFunction(name, target, _NARROW, arrays, words)
        w = f.w
        self.turns = self.reverse and not seams
        block = f.num("mul", "i64", f.long(f.sreg("ctaid.x")), _NARROW)
        me = f.num("add", "i64", block, f.long(f.sreg("tid.x")))
        begin, end = w.fresh("begin"), w.fresh("end")
        w.put(f"br i1 {w.op(f'icmp slt i64 {me}, %all')}, label %{begin}, label %{end}")
        w.label(begin)
        self.seam = me
        rest = f.num("udiv", "i64", me, "%columns")
        column = f.num("sub", "i64", me, f.num("mul", "i64", rest, "%columns"))
        before = f.num("udiv", "i64", rest, "%parts")
        part = f.num("sub", "i64", rest, f.num("mul", "i64", before, "%parts"))
        self.start = f.num("mul", "i64", part, "%size")
        far = f.num("add", "i64", self.start, "%size")
        self.end = w.intrinsic("smin", "i64", far, "%n")
        rows = f.num("mul", "i64", before, "%n")
        first = f.num("add", "i64", f.num("mul", "i64", rows, "%columns"), column)
        self.row = f.num("mul", "i64", "%columns", each)
        return f, f.num("mul", "i64", first, each), end

    def _spot(self, f: RoutineFunction, first: str, row: str, n: int) -> tuple[str, str]:
        """Where a row lies in a column, and whether there is one."""
        at = f.num("add", "i64", row, n)
        there = f.w.op(f"icmp slt i64 {at}, {self.end}")
        if self.turns:
            at = f.num("sub", "i64", f.num("sub", "i64", "%n", 1), at)
        return f.num("add", "i64", first, f.num("mul", "i64", at, self.row)), there

    def _down(self, f: RoutineFunction, first: str, row: str, n: int, more: int) -> list[str]:
        """What lies in a row, with so many lanes more."""
        place, there = self._spot(f, first, row, n)
        found = []
        for part in range(1 + more):
            at = f.num("add", "i64", place, part)
            found.append(f.where(there, f.types["x"], lambda at=at: f.read("x", at)))  # type: ignore[misc]
        return found

    def _up(self, f: RoutineFunction, first: str, row: str, n: int, values: list[str]) -> None:
        place, there = self._spot(f, first, row, n)

        def keep() -> None:
            for part, x in enumerate(values):
                made = x if f.types["y"] == self.type else self.narrowed(x)
                f.write("y", f.num("add", "i64", place, part), made)

        f.when(there, keep)
