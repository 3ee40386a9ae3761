"""Small matrices, solved by functions of ours: any number of them at once, and without a library.

A team of 4, 8, 16 or 32 lanes of a warp has a matrix, a lane a row of it in shared memory, and
behind it a row of the right sides. Rows are eliminated with partial pivoting, in double precision:
each step takes the row with the greatest element of a column, and subtracts as much of it from all
others, or from those that are left where there are no right sides. So a right side has come to the
solution in the end. Rows are not swapped: each lane keeps the place that its row would have then.
Of a positive definite matrix a lane has a row of its lower factor. A triangular matrix is
substituted: each row is divided by its diagonal, and subtracted from those that follow.

A matrix with an inf or a NaN in it, a singular one, and one whose results are no finite numbers are
the evaluator's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.team import exchange, wait
from tenfold.backends.cuda.library.polar import multiplied, polar
from tenfold.backends.cuda.library.routine import FAULT, GpuRoutine, RoutineLaunch
from tenfold.backends.cuda.library.small_rows import ONE, ZERO, Parts, Rows
from tenfold.backends.cuda.target import WARP, CudaTarget
from tenfold.backends.llvm.functions import called, definitions
from tenfold.backends.llvm.text import Fragment, merged
from tenfold.backends.llvm.writer import float_text
from tenfold.frozen import frozen
from tenfold.types import SHORT, TensorType

MOST = 32  # rows, and columns of right sides
_TEAMS = (4, 8, 16, 32)
_LEAST = float_text("double", -1.0)
TRIANGULAR, LU = "triangular_solve", "lu"
SMALL = {  # and the arrays of each
    "cholesky": ("a", "x"),
    "solve": ("a", "b", "x"),
    TRIANGULAR: ("a", "b", "x"),
    "inv": ("a", "x"),
    "det": ("a", "x"),
    "slogdet": ("a", "x", "log"),
    LU: ("a", "order", "lower", "upper"),
}


@frozen
class _Form:
    """What the text of a function hangs on: what it does, the dtype, how many lanes have a matrix,
    and for how many right sides there is room. Of triangular ones which triangle, and whether the
    diagonal stands for ones."""

    name: str
    dtype: str
    team: int
    sides: int
    lower: bool = False
    unit: bool = False

    @property
    def function(self) -> str:
        marks = f"{'_lower' if self.lower else ''}{'_unit' if self.unit else ''}"
        return f"tn_small_{self.name}_{self.dtype}_{self.team}_{self.sides}{marks}"

    def text(self, target: CudaTarget) -> Fragment:
        return _Writer(self, target).text()


def small_routine(
    name: str, types: Sequence[TensorType], given: Mapping[str, Any]
) -> GpuRoutine | None:
    """The routine of small square matrices, None where they are not."""
    *before, m, n = types[0].shape
    right = types[-1].shape[-1]
    sides = {"solve": right, TRIANGULAR: right, "inv": n}.get(name, 0)
    if name not in SMALL or m != n or max(n, sides) > MOST or not all(t.size for t in types):
        return None
    team, room = (next(t for t in _TEAMS if t >= x) for x in (n, max(sides, 1)))
    way = (given["lower"], given["unit"]) if name == TRIANGULAR else ()
    form = _Form(name, SHORT[types[0].dtype], team, room if sides else 0, *way)
    arrays = (*range(len(SMALL[name])), FAULT)
    count = prod(before)
    words = tuple((word, 8) for word in (count, n, sides))
    launch = RoutineLaunch(form.function, -(-count // (WARP // team)), WARP, arrays, words)
    return GpuRoutine(form.text, form.function, (launch,), checks=True)


class _Writer(Rows):
    """The text of one function."""

    def __init__(self, form: _Form, target: CudaTarget) -> None:
        self.form = form
        arrays = SMALL[form.name]
        super().__init__(form.function, form.dtype, form.team, form.sides, arrays, target)

    def text(self) -> Fragment:
        bad = self.take(self.form.name == "inv")
        if self.form.name == "cholesky":
            bad = self._lower(bad)
        elif self.form.name == TRIANGULAR:
            bad = self._substituted(bad)
        else:
            bad, parity, place = self._eliminated(bad)
            if self.form.sides:
                bad = self._solved(bad, place)
            elif self.form.name == LU:
                self._triangles(place)
            else:
                self._determinant(parity, place)
        w = self.w
        wrong = w.op(f"and i1 {w.op(f'icmp ne i32 {bad}, 0')}, {self.there}")

        def tell() -> None:
            w.op("atomicrmw or ptr addrspace(1) %fault, i32 1 monotonic, align 4")

        self.f.when(wrong, tell)
        return merged([self.f.text(), *definitions(sorted(w.maths), self.target.llvm)])

    # Elimination.

    def _eliminated(self, bad: str) -> tuple[str, str, str]:
        """All columns, one after another: what was bad, the parity of the order of rows, and the
        place of this one in it."""
        f, w = self.f, self.w

        def step(column: Any, held: list[str]) -> list[str]:
            bad, parity, place = held
            j = str(column)
            value = self.get(self.row, j)
            left = w.op(f"and i1 {self.alive}, {w.op(f'icmp sge i32 {place}, {j}')}")
            size = self.size(value)  # NaN is behind a zero: all lanes are to choose the same
            size = w.select(w.op(f"fcmp ord double {size}, {ZERO}"), "double", size, ZERO)
            size = w.select(left, "double", size, _LEAST)
            chosen, came = self._greatest(size, place)
            row = self.row_of(chosen)
            pivot = self.get(row, j)
            none = w.op(f"fcmp oeq double {self.size(pivot)}, {ZERO}")
            other = w.op(f"icmp ne i32 {self.me}, {chosen}")
            if self.form.sides:  # all others, so that nothing is left to be substituted
                f.when(other, lambda: self.subtract(row, j, self.divided(value, pivot)))
            else:
                behind = w.op(f"and i1 {left}, {other}")
                f.when(behind, lambda: self._reduce(row, j, value, pivot, none))
            wait(w)
            moved = w.op(f"icmp eq i32 {place}, {j}")
            place = w.select(other, "i32", w.select(moved, "i32", came, place), j)
            swapped = w.op(f"zext i1 {w.op(f'icmp ne i32 {came}, {j}')} to i32")
            bad = bad if self.form.name == LU else self.joined(bad, none)
            return [bad, f.num("xor", "i32", parity, swapped), place]

        slots = [("i32", bad), ("i32", "0"), ("i32", self.me)]
        bad, parity, place = loop(w, "i32", "0", self.n, 1, slots, step)
        return bad, parity, w.select(self.alive, "i32", place, "0")

    def _greatest(self, size: str, place: str) -> tuple[str, str]:
        """The lane of the team that has the greatest number, of several the first in the order of
        rows, and its place in that."""
        w, lane = self.w, self.me
        step = 1
        while step < self.form.team:
            other = exchange(w, "double", size, step)
            theirs, there = (exchange(w, "i32", x, step) for x in (lane, place))
            more = w.op(f"fcmp ogt double {other}, {size}")
            alike = w.op(f"fcmp oeq double {other}, {size}")
            earlier = w.op(f"icmp slt i32 {there}, {place}")
            better = w.op(f"or i1 {more}, {w.op(f'and i1 {alike}, {earlier}')}")
            size = w.select(better, "double", other, size)
            lane, place = (
                w.select(better, "i32", x, y) for x, y in ((theirs, lane), (there, place))
            )
            step *= 2
        return lane, place

    def _reduce(self, row: str, column: str, value: Parts, pivot: Parts, none: str) -> None:
        """This row without its element of a column, in whose place the factor is kept."""
        factor = [self.w.select(none, "double", ZERO, x) for x in self.divided(value, pivot)]
        self.subtract(row, column, factor)
        self.put(self.row, column, factor)

    # Results.

    def _solved(self, bad: str, column: str) -> str:
        """A row of the solution, by the lane whose row was taken for its column."""
        f = self.f
        pivot = self.get(self.row, column)

        def one(at: Any, held: list[str]) -> list[str]:
            value = self.get(self.row, f.num("add", "i32", self.n, str(at)))
            made = self.divided(value, pivot)
            places = self.place(column, str(at), "%sides")
            f.when(self.alive, lambda: self.write("x", places, made))
            kept = [self.w.select(self.alive, "double", x, ZERO) for x in made]
            return [self.worse(held[0], kept)]

        (bad,) = loop(self.w, "i32", "0", self.sides, 1, [("i32", bad)], one)
        return bad

    def _determinant(self, parity: str, column: str) -> None:
        """As NumPy has it: a sign, and the exponential of a sum of logarithms."""
        f, w = self.f, self.w
        one = [ONE, ZERO][: self.parts]
        pivot = [
            w.select(self.alive, "double", x, y)
            for x, y in zip(self.get(self.row, column), one, strict=True)
        ]
        size, sign = polar(w, pivot)
        total = called(w, "log", "f64", [size], False)
        step = 1
        while step < self.form.team:
            other = [exchange(w, "double", x, step) for x in (total, *sign)]
            total = w.op(f"fadd double {total}, {other[0]}")
            sign = multiplied(w, sign, other[1:])
            step *= 2
        odd = w.op(f"icmp ne i32 {parity}, 0")
        sign = [w.select(odd, "double", w.op(f"fneg double {x}"), x) for x in sign]
        first = w.op(f"icmp eq i32 {self.me}, 0")
        begin = f.num("mul", "i64", self.number, self.parts)
        places = [f.num("add", "i64", begin, part) for part in range(self.parts)]

        def write() -> None:
            found = sign
            if self.form.name == "slogdet":
                self.write("log", [self.number], [total])
            else:
                size = called(w, "exp", "f64", [total], False)
                found = [w.op(f"fmul double {x}, {size}") for x in sign]
            self.write("x", places, found)

        f.when(w.op(f"and i1 {first}, {self.there}"), write)

    def _triangles(self, place: str) -> None:
        """A row of each triangle, and where it comes from."""
        f, w = self.f, self.w
        one, zero = (float_text(self.type, x) for x in (1.0, 0.0))

        def write(column: Any, held: list[str]) -> list[str]:
            at = str(column)
            below, same = (w.op(f"icmp {test} i32 {at}, {place}") for test in ("slt", "eq"))
            value = self.get(self.row, at)
            unit = [w.select(same, "double", x, ZERO) for x in (ONE, ZERO)[: self.parts]]
            lower = [w.select(below, "double", x, y) for x, y in zip(value, unit, strict=True)]
            upper = [w.select(below, "double", ZERO, x) for x in value]
            places = self.place(place, at, "%n")
            (spot, *_) = self.place(self.me, at, "%n")
            spot = f.num("udiv", "i64", spot, self.parts)

            def written() -> None:
                self.write("lower", places, lower)
                self.write("upper", places, upper)
                f.write("order", spot, w.select(same, self.type, one, zero))

            f.when(self.alive, written)
            return []

        loop(w, "i32", "0", self.n, 1, [], write)

    # Triangular matrices.

    def _substituted(self, bad: str) -> str:
        f, w = self.f, self.w
        last = f.num("sub", "i32", self.n, 1)

        def step(turn: Any, held: list[str]) -> list[str]:
            j = str(turn) if self.form.lower else f.num("sub", "i32", last, str(turn))
            row, own = self.row_of(j), w.op(f"icmp eq i32 {self.me}, {j}")
            bad = held[0]
            if not self.form.unit:
                pivot = self.get(row, j)
                bad = self.joined(bad, w.op(f"fcmp oeq double {self.size(pivot)}, {ZERO}"))
                f.when(own, lambda: self.divide(pivot))
                wait(w)
            follows = w.op(f"icmp {'sgt' if self.form.lower else 'slt'} i32 {self.me}, {j}")
            factor = self.get(self.row, j)
            f.when(
                w.op(f"and i1 {follows}, {self.alive}"), lambda: self.subtract(row, last, factor)
            )
            wait(w)
            return [bad]

        (bad,) = loop(w, "i32", "0", self.n, 1, [("i32", bad)], step)

        def write(at: Any, held: list[str]) -> list[str]:
            value = self.get(self.row, f.num("add", "i32", self.n, str(at)))
            places = self.place(self.me, str(at), "%sides")
            f.when(self.alive, lambda: self.write("x", places, value))
            kept = [w.select(self.alive, "double", x, ZERO) for x in value]
            return [self.worse(held[0], kept)]

        (bad,) = loop(w, "i32", "0", self.sides, 1, [("i32", bad)], write)
        return bad

    # Positive definite matrices.

    def _lower(self, bad: str) -> str:
        """The lower factor: column after column, each taken from what is right of it."""
        f, w = self.f, self.w

        def step(column: Any, held: list[str]) -> list[str]:
            j = str(column)
            pivot = self.get(self.row_of(j), j)[0]
            good = w.op(f"fcmp ogt double {pivot}, {ZERO}")
            root = w.intrinsic("sqrt", "double", pivot)
            value = self.get(self.row, j)
            own = w.op(f"icmp eq i32 {self.me}, {j}")
            made = [w.op(f"fdiv double {x}, {root}") for x in value]
            on = [root, ZERO][: self.parts]
            made = [w.select(own, "double", x, y) for x, y in zip(on, made, strict=True)]
            wait(w)
            f.when(w.op(f"icmp sge i32 {self.me}, {j}"), lambda: self.put(self.row, j, made))
            wait(w)

            def one(at: Any, inner: list[str]) -> list[str]:
                theirs = self.get(self.row_of(str(at)), j)
                theirs = [theirs[0], *(w.op(f"fneg double {x}") for x in theirs[1:])]
                taken = multiplied(w, made, theirs)
                before = self.get(self.row, str(at))
                left = [w.op(f"fsub double {x}, {y}") for x, y in zip(before, taken, strict=True)]
                self.put(self.row, str(at), left)
                return []

            last = w.intrinsic("smin", "i32", f.num("add", "i32", self.me, 1), self.n)

            def rest() -> None:
                loop(w, "i32", f.num("add", "i32", j, 1), last, 1, [], one)

            f.when(w.op(f"icmp sgt i32 {self.me}, {j}"), rest)
            wait(w)
            return [self.joined(held[0], w.op(f"xor i1 {good}, true"))]

        (bad,) = loop(w, "i32", "0", self.n, 1, [("i32", bad)], step)

        def write(column: Any, held: list[str]) -> list[str]:
            inside = w.op(f"icmp sle i32 {column}, {self.me}")
            value = [w.select(inside, "double", x, ZERO) for x in self.get(self.row, str(column))]
            places = self.place(self.me, str(column), "%n")
            f.when(self.alive, lambda: self.write("x", places, value))
            return []

        loop(w, "i32", "0", self.n, 1, [], write)
        return bad
