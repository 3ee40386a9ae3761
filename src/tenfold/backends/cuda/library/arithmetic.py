"""What products are made of: elements as they lie in memory, and sums of products in registers.

Sixteen-bit floats add up in f32 and are rounded once, narrow integers in the result's 32 bits.
Complex numbers are two parts. A product goes unrounded into the sum of floats.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.llvm.casts import from_half, to_half
from tenfold.backends.llvm.writer import COMPUTE, MEMORY, SIZES, Writer, float_text, kind, vector

GLOBAL, SHARED = "ptr addrspace(1)", "ptr addrspace(3)"
_SUMS = {"f16": "f32", "bf16": "f32"}
_NAN16 = 0x7FC0  # of bf16


def sums_of(dtype: str) -> str:
    """The dtype in which terms of a dtype are added up.

    >>> sums_of("bf16"), sums_of("i32")
    ('f32', 'i32')
    """
    return _SUMS.get(dtype, dtype)


Parts = list[str]  # of one element: one value, or two of a complex number


class Arithmetic:
    """How terms of a dtype are multiplied and added up."""

    def __init__(self, w: Writer, dtype: str) -> None:
        self.w, self.dtype = w, dtype
        self.sums = sums_of(dtype)
        self.ty = COMPUTE[self.sums]
        self.parts = 2 if kind(dtype) == "c" else 1
        self.size = SIZES[self.sums] // self.parts  # bytes of a part
        self.zero = float_text(self.ty, 0.0) if self.ty in ("float", "double") else "0"

    def place(self, dtype: str, base: str, at: str) -> str:
        """Where an element of a dtype lies in global memory."""
        at = self.w.op(f"shl i64 {at}, 1") if self.parts == 2 else at
        return self.w.op(f"getelementptr {MEMORY[dtype]}, {GLOBAL} {base}, i64 {at}")

    def load(self, dtype: str, place: str, count: int) -> list[Parts]:
        """So many neighbouring elements, as they are multiplied: if there are several, they begin
        at a multiple of their bytes."""
        w, ty = self.w, MEMORY[dtype]
        size = SIZES[dtype] // self.parts
        if self.parts == 2:
            second = w.op(f"getelementptr {ty}, {GLOBAL} {place}, i32 1")
            return [[w.op(f"load {ty}, {GLOBAL} {p}, align {size}") for p in (place, second)]]
        if count == 1:
            return [[self.wide(dtype, w.op(f"load {ty}, {GLOBAL} {place}, align {size}"))]]
        many = vector(ty, True, count)
        x = w.op(f"load {many}, {GLOBAL} {place}, align {size * count}")
        return [
            [self.wide(dtype, w.op(f"extractelement {many} {x}, i64 {n}"))] for n in range(count)
        ]

    def store(self, place: str, elements: Sequence[Parts]) -> None:
        """Store neighbouring results: several at once begin at a multiple of their bytes."""
        w, ty, dtype = self.w, MEMORY[self.dtype], self.dtype
        size = SIZES[dtype] // self.parts
        if len(elements) == 1:
            for n, x in enumerate(elements[0]):
                at = w.op(f"getelementptr {ty}, {GLOBAL} {place}, i32 {n}") if n else place
                w.put(f"store {ty} {self.short(x)}, {GLOBAL} {at}, align {size}")
            return
        many, whole = vector(ty, True, len(elements)), "poison"
        for n, (x,) in enumerate(elements):
            whole = w.op(f"insertelement {many} {whole}, {ty} {self.short(x)}, i64 {n}")
        w.put(f"store {many} {whole}, {GLOBAL} {place}, align {size * len(elements)}")

    def wide(self, dtype: str, x: str) -> str:
        """What was loaded, in the type of sums."""
        w = self.w
        if dtype == "f16":
            return from_half(w, x, False)
        if dtype == "bf16":
            high = w.op(f"shl i32 {w.op(f'zext i16 {x} to i32')}, 16")
            return w.op(f"bitcast i32 {high} to float")
        if MEMORY[dtype] == self.ty:
            return x
        return w.op(f"{'s' if kind(dtype) == 'i' else 'z'}ext {MEMORY[dtype]} {x} to {self.ty}")

    def short(self, x: str) -> str:
        """A sum as it is stored: sixteen-bit floats rounded to the nearest, to even."""
        w = self.w
        if self.dtype == "f16":
            return to_half(w, x, False)
        if self.dtype != "bf16":
            return x
        bits = w.op(f"bitcast float {x} to i32")
        odd = w.op(f"and i32 {w.op(f'lshr i32 {bits}, 16')}, 1")
        up = w.op(f"add i32 {w.op(f'add i32 {bits}, 32767')}, {odd}")
        high = w.op(f"lshr i32 {up}, 16")
        nan = w.op(f"fcmp uno float {x}, {x}")
        return w.op(f"trunc i32 {w.select(nan, 'i32', str(_NAN16), high)} to i16")

    def chosen(self, test: str, one: Parts) -> Parts:
        """An element, or 0 where a test does not hold."""
        return [self.w.select(test, self.ty, x, self.zero) for x in one]

    def add_product(self, held: Parts, a: Parts, b: Parts) -> Parts:
        """A sum with one more product."""
        if self.parts == 1:
            return [self._added(held[0], a[0], b[0])]
        less = self.w.op(f"fneg {self.ty} {a[1]}")
        real = self._added(self._added(held[0], a[0], b[0]), less, b[1])
        return [real, self._added(self._added(held[1], a[0], b[1]), a[1], b[0])]

    def _added(self, held: str, a: str, b: str) -> str:
        w, ty = self.w, self.ty
        if ty in ("float", "double"):
            return w.intrinsic("fma", ty, a, b, held)
        return w.op(f"add {ty} {held}, {w.op(f'mul {ty} {a}, {b}')}")

    def total(self, a: Parts, b: Parts) -> Parts:
        """Two sums in one."""
        op = "fadd" if self.ty in ("float", "double") else "add"
        return [self.w.op(f"{op} {self.ty} {x}, {y}") for x, y in zip(a, b, strict=True)]
