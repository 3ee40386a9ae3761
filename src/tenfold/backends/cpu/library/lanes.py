"""What products and convolutions are written with: elements, vectors of them, and words."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.llvm import masks
from tenfold.backends.llvm.writer import BITS, Writer, vector


class Lanes:
    """Writes for elements of one type; a vector has as many lanes as the target's registers."""

    def __init__(self, element: str, w: Writer) -> None:
        self.element, self.w = element, w
        self.size = BITS[element] // 8
        self.lanes = w.target.lanes(self.size)
        self.type = vector(element, True, self.lanes)

    def narrow(self) -> None:
        """Write for vectors of half as many lanes."""
        self.lanes //= 2
        self.type = vector(self.element, True, self.lanes)

    # Words.

    def total(self, *terms: str) -> str:
        made = terms[0]
        for term in terms[1:]:
            made = self.w.op(f"add i64 {made}, {term}")
        return made

    def less(self, a: str, b: str) -> str:
        return self.w.op(f"sub i64 {a}, {b}")

    def times(self, a: str, b: str) -> str:
        return self.w.op(f"mul i64 {a}, {b}")

    def split(self, number: str, by: str) -> tuple[str, str]:
        """What a division gives, and what it leaves."""
        return self.w.op(f"udiv i64 {number}, {by}"), self.w.op(f"urem i64 {number}, {by}")

    def least(self, a: str, b: str) -> str:
        return self.w.call("i64", "llvm.smin.i64", ("i64", a), ("i64", b))

    def greatest(self, a: str, b: str) -> str:
        return self.w.call("i64", "llvm.smax.i64", ("i64", a), ("i64", b))

    def get(self, table: str, number: str = "0") -> str:
        place = self.w.op(f"getelementptr i64, ptr {table}, i64 {number}")
        return self.w.op(f"load i64, ptr {place}, align 8")

    def put(self, value: str, table: str, number: str = "0") -> None:
        place = self.w.op(f"getelementptr i64, ptr {table}, i64 {number}")
        self.w.put(f"store i64 {value}, ptr {place}, align 8")

    def buffer(self, number: int) -> str:
        """The address of an array that the function was given."""
        place = self.w.op(f"getelementptr ptr, ptr %buffers, i64 {number}")
        return self.w.op(f"load ptr, ptr {place}, align 8")

    # Elements and vectors.

    def at(self, start: str, index: str) -> str:
        return self.w.op(f"getelementptr {self.element}, ptr {start}, i64 {index}")

    def read(self, place: str, mask: str | None = None) -> str:
        """The vector at a place; 0 where masked off."""
        return masks.load(self.w, place, self.element, mask, self.lanes)

    def every_lane(self, place: str) -> str:
        """A vector of the element at a place."""
        one = self.w.op(f"load {self.element}, ptr {place}, align {self.size}")
        return self.w.splat(self.element, one, self.lanes)

    def below(self, count: str) -> str:
        """The first so many lanes."""
        w, bits = self.w, 8 * self.size
        if bits < 64:
            count = w.op(f"trunc i64 {count} to i{bits}")
        numbers = "<" + ", ".join(f"i{bits} {n}" for n in range(self.lanes)) + ">"
        every = w.splat(f"i{bits}", count, self.lanes)
        return w.op(f"icmp ult {vector(f'i{bits}', True, self.lanes)} {numbers}, {every}")

    def reached(self, count: str, step: int, part: int) -> str:
        """Which lanes of a part are read for so many elements, this step apart. Of those 2 apart
        the last is read up to itself, not up to the next."""
        if step == 1:
            return self.below(count)
        ends = self.w.op(f"shl i64 {count}, 1")
        left = self.less(ends, str(1 + part * self.lanes))
        return self.below(self.least(self.greatest(left, "0"), str(self.lanes)))

    def apart(self, parts: Sequence[str]) -> str:
        """Of one part all lanes, of two every other."""
        if len(parts) == 1:
            return parts[0]
        even = ", ".join(f"i32 {2 * n}" for n in range(self.lanes))
        return self.w.op(
            f"shufflevector {self.type} {parts[0]}, {self.type} {parts[1]}, "
            f"<{self.lanes} x i32> <{even}>"
        )

    def add_product(self, a: str, b: str, before: str, after: str) -> None:
        """The name `after` for a sum and one more product, rounded once where the target can."""
        w, ty = self.w, self.type
        if self.element.startswith("i"):
            w.put(f"{after} = add {ty} {before}, {w.op(f'mul {ty} {a}, {b}')}")
        elif w.fma:
            name = f"llvm.fma.v{self.lanes}f{8 * self.size}"
            w.declare(f"{ty} @{name}({ty}, {ty}, {ty})")
            w.put(f"{after} = call {ty} @{name}({ty} {a}, {ty} {b}, {ty} {before})")
        else:
            w.put(f"{after} = fadd {ty} {before}, {w.op(f'fmul {ty} {a}, {b}')}")

    def turned(self, lines: list[str]) -> list[str]:
        """Columns of a square of as many vectors as lanes: parts of pairs of them change places,
        of lanes that are one apart, then two, and so on."""
        step, numbers = 1, range(self.lanes)
        while step < self.lanes:
            made = list(lines)
            for n in numbers:
                if n & step:
                    continue
                pair = f"{self.type} {lines[n]}, {self.type} {lines[n + step]}"
                low = [i + self.lanes - step if i & step else i for i in numbers]
                high = [i + self.lanes if i & step else i + step for i in numbers]
                for to, picked in ((n, low), (n + step, high)):
                    places = ", ".join(f"i32 {i}" for i in picked)
                    made[to] = self.w.op(f"shufflevector {pair}, <{self.lanes} x i32> <{places}>")
            lines, step = made, 2 * step
        return lines
