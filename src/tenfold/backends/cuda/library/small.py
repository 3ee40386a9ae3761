"""Small matrices, solved by functions of ours: any number of them at once, and without a library.

A team of 4, 8, 16 or 32 lanes of a warp has a matrix, a lane a row of it in shared memory, and
behind it a row of the right sides. Rows are eliminated with partial pivoting, in double precision:
each step takes the row with the greatest element of a column, and subtracts as much of it from all
others. So a right side has come to the solution in the end. Rows are not swapped: each lane keeps
which column its row was taken for. Of a positive definite matrix a lane has a row of its lower
factor. A triangular matrix is substituted: each row is divided by its diagonal, and subtracted from
those that follow.

A matrix with an inf or a NaN in it, a singular one, and one whose results are no finite numbers are
the evaluator's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.team import exchange, wait
from tenfold.backends.cuda.library.function import RoutineFunction
from tenfold.backends.cuda.library.polar import multiplied, polar
from tenfold.backends.cuda.library.routine import FAULT, GpuRoutine, RoutineLaunch
from tenfold.backends.cuda.target import WARP, CudaTarget
from tenfold.backends.llvm.functions import called, definitions
from tenfold.backends.llvm.text import Fragment, merged
from tenfold.backends.llvm.writer import COMPUTE, float_text, kind
from tenfold.frozen import frozen
from tenfold.types import SHORT, TensorType

MOST = 32  # rows, and columns of right sides
_TEAMS = (4, 8, 16, 32)
_ONE, _ZERO = (float_text("double", x) for x in (1.0, 0.0))
_LEAST = float_text("double", -1.0)
Parts = list[str]
TRIANGULAR = "triangular_solve"
SMALL = {  # and the arrays of each
    "cholesky": ("a", "x"),
    "solve": ("a", "b", "x"),
    TRIANGULAR: ("a", "b", "x"),
    "inv": ("a", "x"),
    "det": ("a", "x"),
    "slogdet": ("a", "x", "log"),
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


class _Writer:
    """The text of one function."""

    def __init__(self, form: _Form, target: CudaTarget) -> None:
        self.form, self.target = form, target
        self.type, self.parts = COMPUTE[form.dtype], 2 if kind(form.dtype) == "c" else 1
        arrays = [(name, self.type) for name in SMALL[form.name]]
        given = [*arrays, ("fault", "i32")]
        f = self.f = RoutineFunction(form.function, target, WARP, given, ("count", "n", "sides"))
        w = self.w = f.w
        self.pitch = form.team + form.sides + 1
        self.memory = [f.reserve("double", WARP * self.pitch) for _ in range(self.parts)]
        lane = f.sreg("tid.x")
        self.first = f.num("and", "i32", lane, -form.team)  # the first lane of the team
        self.me = f.num("and", "i32", lane, form.team - 1)
        teams = f.num("mul", "i64", f.long(f.sreg("ctaid.x")), WARP // form.team)
        own = f.long(f.num("udiv", "i32", lane, form.team))
        self.number = f.num("add", "i64", teams, own)
        self.there = w.op(f"icmp slt i64 {self.number}, %count")
        self.n, self.sides = f.short("%n"), f.short("%sides")
        mine = w.op(f"icmp slt i32 {self.me}, {self.n}")
        self.alive = w.op(f"and i1 {self.there}, {mine}")
        self.row = f.num("mul", "i32", lane, self.pitch)
        self.width = f.num("add", "i32", self.n, self.sides)

    def text(self) -> Fragment:
        bad = self._taken()
        if self.form.name == "cholesky":
            bad = self._lower(bad)
        elif self.form.name == TRIANGULAR:
            bad = self._substituted(bad)
        else:
            bad, parity, column = self._eliminated(bad)
            if self.form.sides:
                bad = self._solved(bad, column)
            else:
                self._determinant(parity, column)
        w = self.w
        wrong = w.op(f"and i1 {w.op(f'icmp ne i32 {bad}, 0')}, {self.there}")

        def tell() -> None:
            w.op("atomicrmw or ptr addrspace(1) %fault, i32 1 monotonic, align 4")

        self.f.when(wrong, tell)
        return merged([self.f.text(), *definitions(sorted(w.maths), self.target.llvm)])

    # Rows in shared memory.

    def _get(self, row: str, column: str) -> Parts:
        at = self.f.num("add", "i32", row, column)
        return [self.f.get(memory, "double", at) for memory in self.memory]

    def _put(self, row: str, column: str, value: Parts) -> None:
        at = self.f.num("add", "i32", row, column)
        for memory, part in zip(self.memory, value, strict=True):
            self.f.put(memory, "double", at, part)

    def _row_of(self, lane: str) -> str:
        """The row of a lane of this team."""
        return self.f.num("mul", "i32", self.f.num("add", "i32", self.first, lane), self.pitch)

    def _place(self, row: str, column: str, width: str) -> list[str]:
        """Where the parts of an element of this matrix lie in an array."""
        f = self.f
        begin = f.num("mul", "i64", self.number, f.num("mul", "i64", "%n", width))
        line = f.num("add", "i64", begin, f.num("mul", "i64", f.long(row), width))
        at = f.num("add", "i64", line, f.long(column))
        first = f.num("mul", "i64", at, self.parts)
        return [f.num("add", "i64", first, part) for part in range(self.parts)]

    def _read(self, array: str, column: str, width: str) -> Parts:
        f, ty = self.f, self.type
        value = []
        for place in self._place(self.me, column, width):
            x = f.where(self.alive, ty, lambda place=place: f.read(array, place))  # type: ignore[misc]
            value.append(x if ty == "double" else self.w.op(f"fpext {ty} {x} to double"))
        return value

    def _write(self, array: str, places: Sequence[str], value: Parts) -> None:
        ty = self.type
        for place, x in zip(places, value, strict=True):
            short = x if ty == "double" else self.w.op(f"fptrunc double {x} to {ty}")
            self.f.write(array, place, short)

    def _worse(self, bad: str, value: Parts) -> str:
        """Whether something was bad, or a number is not finite."""
        for x in value:
            none = self.w.op(f"fsub double {x}, {x}")  # of inf and NaN it is NaN
            bad = self._or(bad, self.w.op(f"fcmp uno double {none}, {none}"))
        return bad

    def _or(self, bad: str, test: str) -> str:
        return self.f.num("or", "i32", bad, self.w.op(f"zext i1 {test} to i32"))

    def _taken(self) -> str:
        """The matrix and its right sides in shared memory, zeros in rows that are not there."""
        w = self.w

        def of_matrix(column: Any, held: list[str]) -> list[str]:
            value = self._read("a", str(column), "%n")
            self._put(self.row, str(column), value)
            return [self._worse(held[0], value)]

        (bad,) = loop(w, "i32", "0", self.n, 1, [("i32", "0")], of_matrix)

        def of_sides(column: Any, held: list[str]) -> list[str]:
            if self.form.name == "inv":
                same = w.op(f"icmp eq i32 {column}, {self.me}")
                value = [w.select(same, "double", _ONE, _ZERO), _ZERO][: self.parts]
            else:
                value = self._read("b", str(column), "%sides")
            self._put(self.row, self.f.num("add", "i32", self.n, str(column)), value)
            return [self._worse(held[0], value)]

        if self.form.sides:
            (bad,) = loop(w, "i32", "0", self.sides, 1, [("i32", bad)], of_sides)
        wait(w)
        return bad

    # Elimination.

    def _eliminated(self, bad: str) -> tuple[str, str, str]:
        """All columns, one after another: what was bad, the parity of the order of rows, and which
        column this row was taken for."""
        f, w = self.f, self.w
        idle = w.op(f"zext i1 {w.op(f'xor i1 {self.alive}, true')} to i32")

        def step(column: Any, held: list[str]) -> list[str]:
            bad, parity, taken, own = held
            j = str(column)
            value = self._get(self.row, j)
            free = w.op(f"icmp eq i32 {taken}, 0")
            size = w.select(free, "double", self._size(value), _LEAST)
            chosen = self._greatest(size)
            row = self._row_of(chosen)
            pivot = self._get(row, j)
            bad = self._or(bad, w.op(f"fcmp oeq double {self._size(pivot)}, {_ZERO}"))
            before = f.num("lshr", "i32", f.votes(free), self.first)
            less = f.num("sub", "i32", f.num("shl", "i32", "1", chosen), 1)
            passed = w.intrinsic("ctpop", "i32", f.num("and", "i32", before, less))
            parity = f.num("add", "i32", parity, passed)
            other = w.op(f"icmp ne i32 {self.me}, {chosen}")
            f.when(other, lambda: self._subtract(row, j, self._divided(value, pivot)))
            wait(w)
            same = w.op(f"xor i1 {other}, true")
            taken = f.num("or", "i32", taken, w.op(f"zext i1 {same} to i32"))
            return [bad, parity, taken, w.select(same, "i32", j, own)]

        slots = [("i32", bad), ("i32", "0"), ("i32", idle), ("i32", "0")]
        bad, parity, _, own = loop(w, "i32", "0", self.n, 1, slots, step)
        return bad, parity, own

    def _size(self, value: Parts) -> str:
        """As in LAPACK the size of a complex number is what its parts add up to."""
        sizes = [self.w.intrinsic("fabs", "double", x) for x in value]
        return sizes[0] if len(sizes) == 1 else self.w.op(f"fadd double {sizes[0]}, {sizes[1]}")

    def _greatest(self, size: str) -> str:
        """The lane of the team that has the greatest number, the first of several."""
        w, lane = self.w, self.me
        step = 1
        while step < self.form.team:
            other, theirs = exchange(w, "double", size, step), exchange(w, "i32", lane, step)
            more = w.op(f"fcmp ogt double {other}, {size}")
            alike = w.op(f"fcmp oeq double {other}, {size}")
            earlier = w.op(f"icmp slt i32 {theirs}, {lane}")
            better = w.op(f"or i1 {more}, {w.op(f'and i1 {alike}, {earlier}')}")
            size = w.select(better, "double", other, size)
            lane = w.select(better, "i32", theirs, lane)
            step *= 2
        return lane

    def _subtract(self, row: str, column: str, factor: Parts) -> None:
        """So much of a row from this one, behind a column."""
        w = self.w

        def one(at: Any, held: list[str]) -> list[str]:
            taken = multiplied(w, factor, self._get(row, str(at)))
            value = self._get(self.row, str(at))
            made = [w.op(f"fsub double {x}, {y}") for x, y in zip(value, taken, strict=True)]
            self._put(self.row, str(at), made)
            return []

        behind = self.f.num("add", "i32", column, 1)
        loop(w, "i32", behind, self.width, 1, [], one)

    def _divided(self, value: Parts, by: Parts) -> Parts:
        """A quotient; complex numbers are scaled first, so that no square is too large or too
        small."""
        w = self.w
        if len(value) == 1:
            return [w.op(f"fdiv double {value[0]}, {by[0]}")]
        sizes = [w.intrinsic("fabs", "double", x) for x in by]
        larger = w.op(f"fcmp ogt double {sizes[1]}, {sizes[0]}")
        scale = w.select(larger, "double", sizes[1], sizes[0])
        a, b = (w.op(f"fdiv double {x}, {scale}") for x in by)
        squares = [w.op(f"fmul double {x}, {x}") for x in (a, b)]
        square = w.op(f"fadd double {squares[0]}, {squares[1]}")
        made = multiplied(w, value, [a, w.op(f"fneg double {b}")])
        made = [w.op(f"fdiv double {x}, {square}") for x in made]
        return [w.op(f"fdiv double {x}, {scale}") for x in made]

    # Results.

    def _solved(self, bad: str, column: str) -> str:
        """A row of the solution, by the lane whose row was taken for its column."""
        f = self.f
        pivot = self._get(self.row, column)

        def one(at: Any, held: list[str]) -> list[str]:
            value = self._get(self.row, f.num("add", "i32", self.n, str(at)))
            made = self._divided(value, pivot)
            places = self._place(column, str(at), "%sides")
            f.when(self.alive, lambda: self._write("x", places, made))
            kept = [self.w.select(self.alive, "double", x, _ZERO) for x in made]
            return [self._worse(held[0], kept)]

        (bad,) = loop(self.w, "i32", "0", self.sides, 1, [("i32", bad)], one)
        return bad

    def _determinant(self, parity: str, column: str) -> None:
        """As NumPy has it: a sign, and the exponential of a sum of logarithms."""
        f, w = self.f, self.w
        one = [_ONE, _ZERO][: self.parts]
        pivot = [
            w.select(self.alive, "double", x, y)
            for x, y in zip(self._get(self.row, column), one, strict=True)
        ]
        size, sign = polar(w, pivot)
        total = called(w, "log", "f64", [size], False)
        step = 1
        while step < self.form.team:
            other = [exchange(w, "double", x, step) for x in (total, *sign)]
            total = w.op(f"fadd double {total}, {other[0]}")
            sign = multiplied(w, sign, other[1:])
            step *= 2
        odd = w.op(f"icmp ne i32 {f.num('and', 'i32', parity, 1)}, 0")
        sign = [w.select(odd, "double", w.op(f"fneg double {x}"), x) for x in sign]
        first = w.op(f"icmp eq i32 {self.me}, 0")
        begin = f.num("mul", "i64", self.number, self.parts)
        places = [f.num("add", "i64", begin, part) for part in range(self.parts)]

        def write() -> None:
            found = sign
            if self.form.name == "slogdet":
                self._write("log", [self.number], [total])
            else:
                size = called(w, "exp", "f64", [total], False)
                found = [w.op(f"fmul double {x}, {size}") for x in sign]
            self._write("x", places, found)

        f.when(w.op(f"and i1 {first}, {self.there}"), write)

    # Triangular matrices.

    def _substituted(self, bad: str) -> str:
        f, w = self.f, self.w
        last = f.num("sub", "i32", self.n, 1)

        def step(turn: Any, held: list[str]) -> list[str]:
            j = str(turn) if self.form.lower else f.num("sub", "i32", last, str(turn))
            row, own = self._row_of(j), w.op(f"icmp eq i32 {self.me}, {j}")
            bad = held[0]
            if not self.form.unit:
                pivot = self._get(row, j)
                bad = self._or(bad, w.op(f"fcmp oeq double {self._size(pivot)}, {_ZERO}"))
                f.when(own, lambda: self._divide(pivot))
                wait(w)
            follows = w.op(f"icmp {'sgt' if self.form.lower else 'slt'} i32 {self.me}, {j}")
            factor = self._get(self.row, j)
            f.when(
                w.op(f"and i1 {follows}, {self.alive}"), lambda: self._subtract(row, last, factor)
            )
            wait(w)
            return [bad]

        (bad,) = loop(w, "i32", "0", self.n, 1, [("i32", bad)], step)

        def write(at: Any, held: list[str]) -> list[str]:
            value = self._get(self.row, f.num("add", "i32", self.n, str(at)))
            places = self._place(self.me, str(at), "%sides")
            f.when(self.alive, lambda: self._write("x", places, value))
            kept = [w.select(self.alive, "double", x, _ZERO) for x in value]
            return [self._worse(held[0], kept)]

        (bad,) = loop(w, "i32", "0", self.sides, 1, [("i32", bad)], write)
        return bad

    def _divide(self, by: Parts) -> None:
        """The right sides of this row by a number."""

        def one(at: Any, held: list[str]) -> list[str]:
            self._put(self.row, str(at), self._divided(self._get(self.row, str(at)), by))
            return []

        loop(self.w, "i32", self.n, self.width, 1, [], one)

    # Positive definite matrices.

    def _lower(self, bad: str) -> str:
        """The lower factor: column after column, each taken from what is right of it."""
        f, w = self.f, self.w

        def step(column: Any, held: list[str]) -> list[str]:
            j = str(column)
            pivot = self._get(self._row_of(j), j)[0]
            good = w.op(f"fcmp ogt double {pivot}, {_ZERO}")
            root = w.intrinsic("sqrt", "double", pivot)
            value = self._get(self.row, j)
            own = w.op(f"icmp eq i32 {self.me}, {j}")
            made = [w.op(f"fdiv double {x}, {root}") for x in value]
            on = [root, _ZERO][: self.parts]
            made = [w.select(own, "double", x, y) for x, y in zip(on, made, strict=True)]
            wait(w)
            f.when(w.op(f"icmp sge i32 {self.me}, {j}"), lambda: self._put(self.row, j, made))
            wait(w)

            def one(at: Any, inner: list[str]) -> list[str]:
                theirs = self._get(self._row_of(str(at)), j)
                theirs = [theirs[0], *(w.op(f"fneg double {x}") for x in theirs[1:])]
                taken = multiplied(w, made, theirs)
                before = self._get(self.row, str(at))
                rest = [w.op(f"fsub double {x}, {y}") for x, y in zip(before, taken, strict=True)]
                self._put(self.row, str(at), rest)
                return []

            behind = w.op(f"icmp sgt i32 {self.me}, {j}")
            last = w.intrinsic("smin", "i32", f.num("add", "i32", self.me, 1), self.n)
            f.when(behind, lambda: loop(w, "i32", f.num("add", "i32", j, 1), last, 1, [], one))
            wait(w)
            return [self._or(held[0], w.op(f"xor i1 {good}, true"))]

        (bad,) = loop(w, "i32", "0", self.n, 1, [("i32", bad)], step)

        def write(column: Any, held: list[str]) -> list[str]:
            inside = w.op(f"icmp sle i32 {column}, {self.me}")
            value = [w.select(inside, "double", x, _ZERO) for x in self._get(self.row, str(column))]
            places = self._place(self.me, str(column), "%n")
            f.when(self.alive, lambda: self._write("x", places, value))
            return []

        loop(w, "i32", "0", self.n, 1, [], write)
        return bad
