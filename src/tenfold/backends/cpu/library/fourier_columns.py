"""Fourier transforms of columns, 16 at a time, as LLVM IR: for a power of 2 of points.

The lanes of a vector are columns side by side, so that no element is moved within a vector. Real
and imaginary parts of 16 columns lie in scratch memory, and go from one half of it to the other in
passes of Stockham's form, which leaves results in order: four points are combined at a time, two in
the last pass where the power is odd. Sines and cosines stand behind the words of `params`. The last
columns may be transformed twice, to the same bits.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tenfold.backends.cpu.library.loops import each, look_text, poll
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.text import Fragment, join
from tenfold.backends.llvm.writer import LANES, SIZES, Writer

LEAST, MOST = 8, 1024  # points
WORDS = ("n", "columns", "blocks", "power", "factor")
_LINE = 8  # words before the sines and cosines


def fits(points: int, columns: int) -> bool:
    """Whether there are enough columns, and a power of 2 of points."""
    return LEAST <= points <= MOST and points & points - 1 == 0 and columns >= LANES


@lru_cache(maxsize=16)
def turns(points: int, inverse: bool) -> tuple[int, ...]:
    """The bits of e**(-2πi k / points), a pair of doubles for each k."""
    quarter = np.arange(points // 4 + 1) * (2 * np.pi / points)
    cosine, sine = np.cos(quarter), np.sin(quarter)
    cosine[-1], sine[-1] = 0.0, 1.0
    first = cosine - 1j * sine  # a quarter of the circle, of which the others are turns
    whole = np.concatenate([first[:-1] * turn for turn in (1, -1j, -1, 1j)])
    made = np.ascontiguousarray(whole.conj() if inverse else whole)
    return tuple(made.view(np.int64).tolist())


def params(points: int, columns: int, factor: int, inverse: bool) -> tuple[int, ...]:
    words = (points, columns, -(-columns // LANES), points.bit_length() - 1, factor)
    return (*words, *([0] * (_LINE - len(words))), *turns(points, inverse))


def scratch(points: int, dtype: str) -> int:
    return 2 * 2 * points * LANES * SIZES[dtype]


def columns_text(symbol: str, dtype: str, inverse: bool, target: LLVMTarget) -> str:
    """The module for parts of a dtype."""
    return _Transform(symbol, "float" if dtype == "f32" else "double", inverse, target).module()


class _Transform:
    def __init__(self, symbol: str, part: str, inverse: bool, target: LLVMTarget) -> None:
        self.w = Writer(target)
        self.symbol, self.part, self.inverse = symbol, part, inverse
        self.vector = f"<{LANES} x {part}>"
        self.pairs = f"<{2 * LANES} x {part}>"

    # Points: pairs of vectors.

    def place(self, area: str, point: str, part: int) -> str:
        """Where the parts of a point of all columns lie: real ones, then imaginary ones."""
        first = self.w.op(f"add i64 {self.w.op(f'shl i64 {point}, 1')}, {part}")
        return self.w.op(f"getelementptr {self.vector}, ptr {area}, i64 {first}")

    def load(self, area: str, point: str) -> tuple[str, str]:
        one, two = (
            self.w.op(f"load {self.vector}, ptr {self.place(area, point, n)}, align 64")
            for n in (0, 1)
        )
        return one, two

    def store(self, value: tuple[str, str], area: str, point: str) -> None:
        for n, part in enumerate(value):
            place = self.place(area, point, n)
            self.w.put(f"store {self.vector} {part}, ptr {place}, align 64")

    def add(self, a: tuple[str, str], b: tuple[str, str], op: str = "fadd") -> tuple[str, str]:
        one, two = (self.w.op(f"{op} {self.vector} {x}, {y}") for x, y in zip(a, b, strict=True))
        return one, two

    def turned(self, a: tuple[str, str]) -> tuple[str, str]:
        """Times -i, or for the inverse i."""
        real, imaginary = a
        if self.inverse:
            return self.w.op(f"fneg {self.vector} {imaginary}"), real
        return imaginary, self.w.op(f"fneg {self.vector} {real}")

    def times(self, a: tuple[str, str], b: tuple[str, str]) -> tuple[str, str]:
        w, t = self.w, self.vector
        ac, bd, ad, bc = (
            w.op(f"fmul {t} {x}, {y}")
            for x, y in ((a[0], b[0]), (a[1], b[1]), (a[0], b[1]), (a[1], b[0]))
        )
        return w.op(f"fsub {t} {ac}, {bd}"), w.op(f"fadd {t} {ad}, {bc}")

    def turn(self, k: str) -> tuple[str, str]:
        """A turn by k steps of the whole circle, in every lane."""
        w = self.w
        found = []
        for n in (0, 1):
            at = w.op(f"add i64 {w.op(f'shl i64 {k}, 1')}, {n}")
            number = w.op(f"load double, ptr {w.op(f'getelementptr double, ptr %turns, i64 {at}')}")
            if self.part == "float":
                number = w.op(f"fptrunc double {number} to float")
            found.append(w.splat(self.part, number))
        return found[0], found[1]

    # Passes.

    def fours(self) -> None:
        """Passes of four points, from %from to %to, until one or two are left of a circle."""
        w = self.w
        w.put("store ptr %scratch, ptr %from.at, align 8")
        w.put("store ptr %other, ptr %to.at, align 8")
        with each(w, "0", "%fours") as turn:
            shift = w.op(f"shl i64 {turn}, 1")
            step = w.op(f"shl i64 1, {shift}")  # what is combined already
            quarter = w.op(f"lshr i64 {w.op(f'lshr i64 %n, {shift}')}, 2")
            source, target = (w.op(f"load ptr, ptr %{at}.at, align 8") for at in ("from", "to"))
            with each(w, "0", quarter) as p:
                one = w.op(f"mul i64 {p}, {step}")
                two, three = w.op(f"shl i64 {one}, 1"), w.op(f"mul i64 {one}, 3")
                turns = [self.turn(k) for k in (one, two, three)]
                base = w.op(f"shl i64 {one}, 2")
                with each(w, "0", step) as q:
                    first = w.op(f"add i64 {q}, {one}")
                    far = w.op(f"mul i64 {step}, {quarter}")
                    points = [first]
                    for _ in range(3):
                        points.append(w.op(f"add i64 {points[-1]}, {far}"))
                    a, b, c, d = (self.load(source, point) for point in points)
                    even, odd = self.add(a, c), self.add(a, c, "fsub")
                    even2, odd2 = self.add(b, d), self.turned(self.add(b, d, "fsub"))
                    made = [
                        self.add(even, even2),
                        self.times(self.add(odd, odd2), turns[0]),
                        self.times(self.add(even, even2, "fsub"), turns[1]),
                        self.times(self.add(odd, odd2, "fsub"), turns[2]),
                    ]
                    at = w.op(f"add i64 {q}, {base}")
                    for value in made:
                        self.store(value, target, at)
                        at = w.op(f"add i64 {at}, {step}")
            w.put(f"store ptr {target}, ptr %from.at, align 8")
            w.put(f"store ptr {source}, ptr %to.at, align 8")

    def twos(self) -> None:
        """A pass of two points, where they are left."""
        w = self.w
        half = w.op("lshr i64 %n, 1")
        source, target = (w.op(f"load ptr, ptr %{at}.at, align 8") for at in ("from", "to"))
        odd = w.op("and i64 %power, 1")
        with each(w, "0", w.op(f"mul i64 {odd}, {half}")) as q:
            other = w.op(f"add i64 {q}, {half}")
            a, b = self.load(source, q), self.load(source, other)
            self.store(self.add(a, b), target, q)
            self.store(self.add(a, b, "fsub"), target, other)
        last = w.op(f"icmp ne i64 {odd}, 0")
        w.put(f"store ptr {w.select(last, 'ptr', target, source)}, ptr %from.at, align 8")

    # Memory.

    def take(self) -> None:
        """16 columns from memory."""
        w = self.w
        with each(w, "0", "%n") as point:
            both = w.op(f"load {self.pairs}, ptr {self.memory('%x', point)}, align 4")
            parts = []
            for part in (0, 1):
                order = ", ".join(f"i32 {2 * n + part}" for n in range(LANES))
                mask = f"<{LANES} x i32> <{order}>"
                parts.append(
                    w.op(f"shufflevector {self.pairs} {both}, {self.pairs} poison, {mask}")
                )
            self.store((parts[0], parts[1]), "%scratch", point)

    def give(self) -> None:
        """16 columns to memory, scaled."""
        w = self.w
        order = ", ".join(f"i32 {n // 2 + LANES * (n % 2)}" for n in range(2 * LANES))
        source = w.op("load ptr, ptr %from.at, align 8")
        factor = w.splat(self.part, "%scale")
        with each(w, "0", "%n") as point:
            real, imaginary = (
                w.op(f"fmul {self.vector} {part}, {factor}") for part in self.load(source, point)
            )
            both = w.op(f"shufflevector {self.vector} {real}, {self.vector} {imaginary}, "
                        f"<{2 * LANES} x i32> <{order}>")  # fmt: skip
            w.put(f"store {self.pairs} {both}, ptr {self.memory('%y', point)}, align 4")

    def memory(self, array: str, point: str) -> str:
        far = self.w.op(f"mul i64 {point}, %row.size")
        return self.w.op(f"getelementptr {self.part}, ptr {array}, i64 {far}")

    def module(self) -> str:
        w = self.w
        w.block = "part"
        self.take()
        self.fours()
        self.twos()
        self.give()
        poll(w)
        body = w.taken()
        words = "".join(
            f"  %{name}.at = getelementptr i64, ptr %params, i64 {n}\n"
            f"  %{name} = load i64, ptr %{name}.at, align 8\n"
            for n, name in enumerate(WORDS)
        )
        text = f"""
define dso_local i32 @{self.symbol}(
  ptr %buffers, ptr %params, i64 %low, i64 %high) nounwind "prefer-vector-width"="512" {{
entry:
  %from.at = alloca ptr, align 8
  %to.at = alloca ptr, align 8
  %x.all = load ptr, ptr %buffers, align 8
  %y.row = getelementptr ptr, ptr %buffers, i64 1
  %y.all = load ptr, ptr %y.row, align 8
  %scratch.row = getelementptr ptr, ptr %buffers, i64 2
  %scratch = load ptr, ptr %scratch.row, align 8
{words}  %scale = load {self.part}, ptr %factor.at, align 8
  %turns = getelementptr i64, ptr %params, i64 {_LINE}
  %twice = shl i64 %n, 1
  %other = getelementptr {self.vector}, ptr %scratch, i64 %twice
  %fours = lshr i64 %power, 1
  %row.size = shl i64 %columns, 1
  %part.size = mul i64 %row.size, %n
  %last = sub i64 %columns, {LANES}
  br label %head
head:
  %row = phi i64 [ %low, %entry ], [ %row.more, %done ]
  %on = icmp slt i64 %row, %high
  br i1 %on, label %part, label %end
part:
  %before = udiv i64 %row, %blocks
  %block = urem i64 %row, %blocks
  %wanted = mul i64 %block, {LANES}
  %column = call i64 @llvm.smin.i64(i64 %wanted, i64 %last)
  %part.first = mul i64 %before, %part.size
  %column.first = shl i64 %column, 1
  %first = add i64 %part.first, %column.first
  %x = getelementptr {self.part}, ptr %x.all, i64 %first
  %y = getelementptr {self.part}, ptr %y.all, i64 %first
{body}  br label %done
done:
  %row.more = add i64 %row, 1
  br label %head
end:
  ret i32 0
}}
"""
        needs = ("declare i64 @llvm.smin.i64(i64, i64)", *sorted(w.declared))
        return join([Fragment(needs, look_text(3) + text)])
