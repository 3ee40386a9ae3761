"""How values join what a reduction holds: one accumulator at a time, as `kernel/ir/legal` says."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tenfold.backends.cuda.emit.thread import Text
from tenfold.backends.llvm.instructions import instruction
from tenfold.backends.llvm.writer import COMPUTE, Writer, float_text, kind
from tenfold.frozen import frozen
from tenfold.kernel.ir.kernel import Kernel
from tenfold.types import DTYPES

Held = list[Text]  # what an accumulator holds: one value, or two


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
    def floating(self) -> bool:
        return kind(self.dtype) == "f"

    @property
    def pairs(self) -> bool:
        """Complex numbers are multiplied."""
        return self.kind.endswith("prod") and bool(self.place)

    @property
    def shaped(self) -> bool:
        """Whether the order of joining shows in the bits, and is that of the kernel's fold."""
        return self.kind in ("sum", "dot", "prod") and self.floating and not self.pairs

    @property
    def types(self) -> list[str]:
        """What it holds, as LLVM has it."""
        own = COMPUTE[self.dtype]
        if self.pairs:
            return [own, own]
        return [own, COMPUTE[self.place]] if self.kind.startswith("arg") else [own]

    @property
    def identity(self) -> Held:
        """What changes no other: of a sum the zero that it begins with."""
        own = COMPUTE[self.dtype]
        match self.kind:
            case "sum" | "dot":
                return [float_text(own, 0.0) if self.floating else "0"]
            case "prod" | "fused prod":
                one = float_text(own, 1.0) if self.floating else "1"
                return [one, float_text(own, 0.0)] if self.pairs else [one]
            case "any":
                return ["false"]
            case "all":
                return ["true"]
        low = self.kind in ("max", "argmax")
        first = self._end(low)
        # Any position that is met is below this one.
        return [first, str(np.iinfo(DTYPES[self.place]).max)] if self.place else [first]

    def _end(self, low: bool) -> Text:
        if self.floating:
            return float_text(COMPUTE[self.dtype], -math.inf if low else math.inf)
        if self.dtype == "bool":
            return "false" if low else "true"
        found = np.iinfo(DTYPES[self.dtype])
        return str(int(found.min if low else found.max))

    def step(self, w: Writer, held: Held, given: Sequence[Text], later: bool = False) -> Held:
        """One more value. Of one with a `later` position it is not asked whether it is as far, so
        what is held at first stays where no value is farther, with its position."""
        if later and self.kind.startswith("arg"):
            return self._either(w, self._beyond(w, held[0], given[0]), list(given), held)
        if self.kind == "dot":
            ty = COMPUTE[self.dtype]
            return [w.intrinsic("fma", ty, given[0], given[1], held[0])]
        if self.pairs:
            return self._product(w, held, given)
        return self.merge(w, held, list(given))

    def merge(self, w: Writer, a: Held, b: Held) -> Held:
        """Two accumulators as one."""
        own = COMPUTE[self.dtype]
        match self.kind:
            case "sum" | "dot":
                return [self._plain(w, "add", a, b)]
            case "any":
                return [w.op(f"or i1 {a[0]}, {b[0]}")]
            case "all":
                return [w.op(f"and i1 {a[0]}, {b[0]}")]
            case "prod" if not self.pairs:
                return [self._plain(w, "mul", a, b)]
            case "prod" | "fused prod":
                return self._product(w, a, b)
            case "min" | "max":
                if own == "float":  # one instruction, of zeros of both signs the greater or less
                    return [w.intrinsic(f"{self.kind}imum", own, a[0], b[0])]
                taken = self._taken(w, a[0], b[0])
                return [w.op(f"select i1 {taken}, {own} {b[0]}, {own} {a[0]}")]
        return self._farther(w, a, b)

    def is_extreme(self, w: Writer, x: Text, top: Text) -> Text:
        """Whether a value is the least or greatest of all: where there is a NaN, it is one."""
        same = self._compared(w, "eq", x, top)
        return w.op(f"or i1 {same}, {self._compared(w, 'ne', x, x)}") if self.floating else same

    def _plain(self, w: Writer, op: str, a: Held, b: Held) -> Text:
        return instruction(w, op, self.dtype, [self.dtype] * 2, [a[0], b[0]], False)

    def _compared(self, w: Writer, op: str, a: Text, b: Text) -> Text:
        return instruction(w, op, "bool", [self.dtype] * 2, [a, b], False)

    def _taken(self, w: Writer, held: Text, x: Text) -> Text:
        """Whether a value takes the place of another: it lies beyond it, or is NaN."""
        if self.dtype == "bool":
            other = w.op(f"xor i1 {held}, true")
            more = w.op(f"and i1 {other}, {x}") if self.kind.endswith("max") else None
            return more or w.op(f"and i1 {held}, {w.op(f'xor i1 {x}, true')}")
        beyond = self._compared(w, "gt" if self.kind.endswith("max") else "lt", x, held)
        if not self.floating:
            return beyond
        return w.op(f"or i1 {beyond}, {self._compared(w, 'ne', x, x)}")

    def _farther(self, w: Writer, a: Held, b: Held) -> Held:
        """The farther of two values with its position; a NaN before all others, the first of
        equals."""
        beyond, same = self._beyond(w, a[0], b[0]), self._compared(w, "eq", a[0], b[0])
        if self.floating:
            mine, other = (self._compared(w, "ne", x[0], x[0]) for x in (a, b))
            same = w.op(f"or i1 {same}, {w.op(f'and i1 {mine}, {other}')}")
        sooner = instruction(w, "lt", "bool", [self.place] * 2, [b[1], a[1]], False)
        beyond = w.op(f"or i1 {beyond}, {w.op(f'and i1 {same}, {sooner}')}")
        return self._either(w, beyond, b, a)

    def _beyond(self, w: Writer, held: Text, x: Text) -> Text:
        """Whether a value is farther than another, or the only NaN of both."""
        beyond = self._compared(w, "gt" if self.kind == "argmax" else "lt", x, held)
        if not self.floating:
            return beyond
        nan, number = self._compared(w, "ne", x, x), self._compared(w, "eq", held, held)
        return w.op(f"or i1 {beyond}, {w.op(f'and i1 {nan}, {number}')}")

    def _either(self, w: Writer, test: Text, yes: Held, no: Held) -> Held:
        return [
            w.op(f"select i1 {test}, {ty} {x}, {ty} {y}")
            for ty, x, y in zip(self.types, yes, no, strict=True)
        ]

    def _product(self, w: Writer, held: Held, given: Sequence[Text]) -> Held:
        """Complex numbers multiplied, each part rounded as it stands, or by two fused steps."""
        ty, (re, im), (a, b) = COMPUTE[self.dtype], held, given
        second = w.op(f"fmul {ty} {im}, {b}")
        cross = w.op(f"fmul {ty} {im}, {a}")
        if self.kind == "fused prod":
            minus = w.op(f"fneg {ty} {second}")
            return [
                w.intrinsic("fma", ty, re, a, minus),
                w.intrinsic("fma", ty, re, b, cross),
            ]
        first, last = w.op(f"fmul {ty} {re}, {a}"), w.op(f"fmul {ty} {re}, {b}")
        return [w.op(f"fsub {ty} {first}, {second}"), w.op(f"fadd {ty} {last}, {cross}")]
