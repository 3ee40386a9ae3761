"""Running folds: what an element is joined with, how it is held and how it lies in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from tenfold.backends.cuda.library.function import RoutineFunction
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.casts import from_half, to_half
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import BITS, COMPUTE, MEMORY, kind
from tenfold.types import DTYPES

_SHARING = 4  # blocks of threads that are meant to share a processor, of 64 bits half of them


class Fold(ABC):
    """What writes the functions of a fold."""

    def __init__(self, symbol: str, dtype: str, step: str, reverse: bool) -> None:
        self.symbol, self.dtype, self.step, self.reverse = symbol, dtype, step, reverse
        self.span = 2 if kind(dtype) == "c" else 1
        self.memory = MEMORY[dtype]
        self.type = "i8" if dtype == "bool" else COMPUTE[dtype]
        self.float = self.type in ("float", "double")
        self.anyhow = not self.float or step in ("max", "min")  # the order does not matter
        self.sharing = _SHARING if BITS[self.type] <= 32 else _SHARING // 2
        self.f: RoutineFunction

    def widened(self, x: str) -> str:
        """What was loaded, as it is computed with."""
        w = self.f.w
        if self.dtype == "f16":
            return from_half(w, x, False)
        if self.dtype == "bf16":
            bits = w.op(f"shl i32 {w.op(f'zext i16 {x} to i32')}, 16")
            return w.op(f"bitcast i32 {bits} to float")
        return x

    def narrowed(self, x: str) -> str:
        """A value as it lies in memory."""
        w = self.f.w
        if self.dtype == "f16":
            return to_half(w, x, False)
        if self.dtype != "bf16":
            return x
        bits = w.op(f"bitcast float {x} to i32")
        odd = w.op(f"and i32 {w.op(f'lshr i32 {bits}, 16')}, 1")
        near = w.op(f"add i32 {w.op(f'add i32 {bits}, 32767')}, {odd}")
        quiet = w.op(f"or i32 {bits}, {0x400000}")
        near = w.select(w.op(f"fcmp uno float {x}, {x}"), "i32", quiet, near)
        return w.op(f"trunc i32 {w.op(f'lshr i32 {near}, 16')} to i16")

    def joined(self, a: str, b: str) -> str:
        """What comes before, joined with what follows."""
        w, ty = self.f.w, self.type
        if self.step in ("add", "mul"):
            return w.op(f"{'f' if self.float else ''}{self.step} {ty} {a}, {b}")
        if self.float:  # the first NaN stays
            farther = w.op(f"fcmp {'ugt' if self.step == 'max' else 'ult'} {ty} {b}, {a}")
            number = w.op(f"fcmp ord {ty} {a}, {a}")
            return w.select(w.op(f"and i1 {farther}, {number}"), ty, b, a)
        sign = "s" if kind(self.dtype) == "i" else "u"
        return w.intrinsic(f"{sign}{self.step}", ty, a, b)

    def nothing(self) -> str:
        """What changes nothing that it is joined with."""
        if self.float:
            value = {"add": -0.0, "mul": 1.0, "max": -np.inf, "min": np.inf}[self.step]
            return self.f.w.const(self.type, value, False)
        limits = np.iinfo(DTYPES["u8" if self.dtype == "bool" else self.dtype])
        found = {"add": 0, "mul": 1, "max": limits.min, "min": limits.max}[self.step]
        return self.f.w.const(self.type, found, False)

    @abstractmethod
    def function(self, name: str, target: CudaTarget) -> Fragment:
        """The function that a launch names, behind what all names of the fold begin with."""
