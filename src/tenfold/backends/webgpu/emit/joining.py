"""How values join what a reduction holds, as `kernel/ir/legal` says, in WGSL."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tenfold.backends.webgpu.wgsl.instructions import instruction, is_nan
from tenfold.backends.webgpu.wgsl.types import REGISTER, constant, floating
from tenfold.backends.webgpu.wgsl.writer import Writer
from tenfold.frozen import frozen
from tenfold.kernel.ir.kernel import Kernel
from tenfold.types import DTYPES

Held = list[str]  # names of what is held: one value, or two


@frozen
class Joining:
    """One reduction. A value that takes part is a list, too: the operands of the reduction."""

    kind: str
    dtype: str
    place: str = ""  # the dtype of a second operand: a position, a factor or an imaginary part

    @classmethod
    def of(cls, kernel: Kernel, member: int) -> Joining:
        i = kernel.instructions[member]
        place = kernel.instructions[i.args[1]].dtype if len(i.args) > 1 else ""
        return cls(i.attr[0], i.dtype, place)

    @property
    def pairs(self) -> bool:
        """Complex numbers are multiplied."""
        return self.kind.endswith("prod") and bool(self.place)

    @property
    def shaped(self) -> bool:
        """Whether the order of joining shows in the bits, and is that of the kernel's fold."""
        return self.kind in ("sum", "dot", "prod") and floating(self.dtype) and not self.pairs

    @property
    def dtypes(self) -> list[str]:
        """What it holds."""
        if self.pairs:
            return [self.dtype] * 2
        return [self.dtype, self.place] if self.kind.startswith("arg") else [self.dtype]

    @property
    def types(self) -> list[str]:
        return [REGISTER[d] for d in self.dtypes]

    @property
    def identity(self) -> Held:
        """What changes no other, as constants."""
        if self.kind in ("sum", "dot", "any"):
            return [self._constant(self.dtype, 0)]
        if self.kind in ("prod", "fused prod", "all"):
            one = self._constant(self.dtype, 1)
            return [one, self._constant(self.dtype, 0)] if self.pairs else [one]
        low = self.kind in ("max", "argmax")
        first = self._constant(self.dtype, self._end(low))
        if not self.place:
            return [first]  # any position that is met is below this one
        return [first, self._constant(self.place, np.iinfo(DTYPES[self.place]).max)]

    def _end(self, low: bool) -> float:
        if floating(self.dtype):
            return -math.inf if low else math.inf
        if self.dtype == "bool":
            return not low
        found = np.iinfo(DTYPES[self.dtype])
        return int(found.min if low else found.max)

    @staticmethod
    def _constant(dtype: str, value: float) -> str:
        return constant(dtype, np.array(value, DTYPES[dtype]).tobytes())

    def step(self, w: Writer, held: Held, given: Sequence[str]) -> Held:
        """One more value."""
        if self.kind == "dot":
            return [instruction(w, "fma", self.dtype, [self.dtype] * 3, [*given, held[0]])]
        if self.pairs:
            return self._product(w, held, given)
        return self.merge(w, held, list(given))

    def merge(self, w: Writer, a: Held, b: Held) -> Held:
        """Two accumulators as one."""
        both = [self.dtype] * 2
        match self.kind:
            case "sum" | "dot":
                return [instruction(w, "add", self.dtype, both, [a[0], b[0]])]
            case "any":
                return [w.let(self.types[0], f"{a[0]} | {b[0]}")]
            case "all":
                return [w.let(self.types[0], f"{a[0]} & {b[0]}")]
            case "prod" if not self.pairs:
                return [instruction(w, "mul", self.dtype, both, [a[0], b[0]])]
            case "prod" | "fused prod":
                return self._product(w, a, b)
            case "min" | "max":
                taken = self._taken(w, a[0], b[0])
                return [w.let(self.types[0], f"select({a[0]}, {b[0]}, {taken})")]
        return self._farther(w, a, b)

    def _beyond(self, a: str, b: str) -> str:
        """Whether b lies beyond a."""
        if self.dtype == "bool":
            return f"(!{a} & {b})" if self.kind.endswith("max") else f"({a} & !{b})"
        return f"({b} {'>' if self.kind.endswith('max') else '<'} {a})"

    def _taken(self, w: Writer, held: str, x: str) -> str:
        """Whether a value takes the place of another: it lies beyond it, or is NaN."""
        beyond = self._beyond(held, x)
        if floating(self.dtype):
            beyond = f"{beyond} | {is_nan(self.dtype, x)}"
        return w.let("bool", beyond)

    def _farther(self, w: Writer, a: Held, b: Held) -> Held:
        """The farther of two values with its position; a NaN before all others, the first of
        equals."""
        beyond, same = self._beyond(a[0], b[0]), f"({a[0]} == {b[0]})"
        if floating(self.dtype):
            mine, other = (w.let("bool", is_nan(self.dtype, x[0])) for x in (a, b))
            beyond = f"(({beyond} | {other}) & !{mine})"
            same = f"({same} | ({mine} & {other}))"
        taken = w.let("bool", f"{beyond} | ({same} & ({b[1]} < {a[1]}))")
        return [
            w.let(ty, f"select({x}, {y}, {taken})")
            for ty, x, y in zip(self.types, a, b, strict=True)
        ]

    def _product(self, w: Writer, held: Held, given: Sequence[str]) -> Held:
        """Complex numbers multiplied, each part rounded as it stands, or by two fused steps."""
        (re, im), (a, b) = held, given

        def two(op: str, x: str, y: str) -> str:
            return instruction(w, op, self.dtype, [self.dtype] * 2, [x, y])

        second, cross = two("mul", im, b), two("mul", im, a)
        if self.kind == "fused prod":
            minus = instruction(w, "neg", self.dtype, [self.dtype], [second])
            three = [self.dtype] * 3
            return [
                instruction(w, "fma", self.dtype, three, [re, a, minus]),
                instruction(w, "fma", self.dtype, three, [re, b, cross]),
            ]
        first, last = two("mul", re, a), two("mul", re, b)
        return [two("sub", first, second), two("add", last, cross)]
