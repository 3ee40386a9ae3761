"""Rows of small matrices in shared memory, each with a lane of a warp: what is read and written of
them, divided and subtracted, in double precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.team import wait
from tenfold.backends.cuda.library.function import RoutineFunction
from tenfold.backends.cuda.library.polar import multiplied
from tenfold.backends.cuda.target import WARP, CudaTarget
from tenfold.backends.llvm.writer import COMPUTE, float_text, kind

ONE, ZERO = (float_text("double", x) for x in (1.0, 0.0))
Parts = list[str]


class Rows:
    """A function on its way in which a team of lanes has a matrix, with room for so many right
    sides behind it. Of its arrays `a` has matrices, and `b` right sides."""

    def __init__(
        self,
        name: str,
        dtype: str,
        team: int,
        room: int,
        arrays: Sequence[str],
        target: CudaTarget,
    ) -> None:
        self.target, self.team, self.room = target, team, room
        self.type, self.parts = COMPUTE[dtype], 2 if kind(dtype) == "c" else 1
        given = [*((array, self.type) for array in arrays), ("fault", "i32")]
        f = self.f = RoutineFunction(name, target, WARP, given, ("count", "n", "sides"))
        w = self.w = f.w
        self.pitch = team + room + 1
        self.memory = [f.reserve("double", WARP * self.pitch) for _ in range(self.parts)]
        lane = f.sreg("tid.x")
        self.first = f.num("and", "i32", lane, -team)  # the first lane of the team
        self.me = f.num("and", "i32", lane, team - 1)
        teams = f.num("mul", "i64", f.long(f.sreg("ctaid.x")), WARP // team)
        own = f.long(f.num("udiv", "i32", lane, team))
        self.number = f.num("add", "i64", teams, own)
        self.there = w.op(f"icmp slt i64 {self.number}, %count")
        self.n, self.sides = f.short("%n"), f.short("%sides")
        mine = w.op(f"icmp slt i32 {self.me}, {self.n}")
        self.alive = w.op(f"and i1 {self.there}, {mine}")
        self.row = f.num("mul", "i32", lane, self.pitch)
        self.width = f.num("add", "i32", self.n, self.sides)

    # Rows in shared memory.

    def get(self, row: str, column: str) -> Parts:
        at = self.f.num("add", "i32", row, column)
        return [self.f.get(memory, "double", at) for memory in self.memory]

    def put(self, row: str, column: str, value: Parts) -> None:
        at = self.f.num("add", "i32", row, column)
        for memory, part in zip(self.memory, value, strict=True):
            self.f.put(memory, "double", at, part)

    def row_of(self, lane: str) -> str:
        """The row of a lane of this team."""
        return self.f.num("mul", "i32", self.f.num("add", "i32", self.first, lane), self.pitch)

    def place(self, row: str, column: str, width: str) -> list[str]:
        """Where the parts of an element of this matrix lie in an array."""
        f = self.f
        begin = f.num("mul", "i64", self.number, f.num("mul", "i64", "%n", width))
        line = f.num("add", "i64", begin, f.num("mul", "i64", f.long(row), width))
        at = f.num("add", "i64", line, f.long(column))
        first = f.num("mul", "i64", at, self.parts)
        return [f.num("add", "i64", first, part) for part in range(self.parts)]

    def read(self, array: str, column: str, width: str) -> Parts:
        f, ty = self.f, self.type
        value = []
        for place in self.place(self.me, column, width):
            x = f.where(self.alive, ty, lambda place=place: f.read(array, place))  # type: ignore[misc]
            value.append(x if ty == "double" else self.w.op(f"fpext {ty} {x} to double"))
        return value

    def write(self, array: str, places: Sequence[str], value: Parts) -> None:
        ty = self.type
        for place, x in zip(places, value, strict=True):
            short = x if ty == "double" else self.w.op(f"fptrunc double {x} to {ty}")
            self.f.write(array, place, short)

    def worse(self, bad: str, value: Parts) -> str:
        """Whether something was bad, or a number is not finite."""
        for x in value:
            none = self.w.op(f"fsub double {x}, {x}")  # of inf and NaN it is NaN
            bad = self.joined(bad, self.w.op(f"fcmp uno double {none}, {none}"))
        return bad

    def joined(self, bad: str, test: str) -> str:
        """Whether something was bad, or a test holds."""
        return self.f.num("or", "i32", bad, self.w.op(f"zext i1 {test} to i32"))

    def take(self, unit: bool) -> str:
        """The matrix and its right sides in shared memory, zeros in rows that are not there. With
        `unit` the right sides are a unit matrix. It gives 0 where all numbers are finite."""
        w = self.w

        def of_matrix(column: Any, held: list[str]) -> list[str]:
            value = self.read("a", str(column), "%n")
            self.put(self.row, str(column), value)
            return [self.worse(held[0], value)]

        (bad,) = loop(w, "i32", "0", self.n, 1, [("i32", "0")], of_matrix)

        def of_sides(column: Any, held: list[str]) -> list[str]:
            if unit:
                same = w.op(f"icmp eq i32 {column}, {self.me}")
                value = [w.select(same, "double", ONE, ZERO), ZERO][: self.parts]
            else:
                value = self.read("b", str(column), "%sides")
            self.put(self.row, self.f.num("add", "i32", self.n, str(column)), value)
            return [self.worse(held[0], value)]

        if self.room:
            (bad,) = loop(w, "i32", "0", self.sides, 1, [("i32", bad)], of_sides)
        wait(w)
        return bad

    # Numbers.

    def size(self, value: Parts) -> str:
        """As in LAPACK the size of a complex number is what its parts add up to."""
        sizes = [self.w.intrinsic("fabs", "double", x) for x in value]
        return sizes[0] if len(sizes) == 1 else self.w.op(f"fadd double {sizes[0]}, {sizes[1]}")

    def subtract(self, row: str, column: str, factor: Parts) -> None:
        """So much of a row from this one, behind a column."""
        w = self.w

        def one(at: Any, held: list[str]) -> list[str]:
            taken = multiplied(w, factor, self.get(row, str(at)))
            value = self.get(self.row, str(at))
            made = [w.op(f"fsub double {x}, {y}") for x, y in zip(value, taken, strict=True)]
            self.put(self.row, str(at), made)
            return []

        behind = self.f.num("add", "i32", column, 1)
        loop(w, "i32", behind, self.width, 1, [], one)

    def divided(self, value: Parts, by: Parts) -> Parts:
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

    def divide(self, by: Parts) -> None:
        """The right sides of this row by a number."""

        def one(at: Any, held: list[str]) -> list[str]:
            self.put(self.row, str(at), self.divided(self.get(self.row, str(at)), by))
            return []

        loop(self.w, "i32", self.n, self.width, 1, [], one)
