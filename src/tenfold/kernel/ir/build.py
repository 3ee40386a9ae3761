"""The builder: makes a kernel instruction by instruction, each distinct one once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tenfold.kernel.ir.index import Index
from tenfold.kernel.ir.index import axis as axis_index
from tenfold.kernel.ir.index import value as value_index
from tenfold.kernel.ir.kernel import (
    COMPARISONS,
    ELEMENTWISE,
    PARALLEL,
    READ,
    REDUCED,
    SCRATCH,
    WRITE,
    Axis,
    Buffer,
    Check,
    Fold,
    Free,
    Instruction,
    Kernel,
    Store,
    free_axes,
)
from tenfold.kernel.ir.number import Number
from tenfold.types import DTYPES


class Builder:
    """Collects a kernel. Values are the numbers of its instructions.

    >>> b = Builder()
    >>> x, y = b.buffer("f32", 12), b.buffer("f32", 12, "write")
    >>> i = b.axis(12)
    >>> v = b.load(x, i)
    >>> b.store(y, i, b.op("mul", "f32", v, b.literal("f32", 2.5)))
    >>> print(b.finish())
    kernel (a0:12)
      b0: read f32[12]
      b1: write f32[12]
      %0 = load b0[a0]                                 ; f32 a0
      %1 = param 0                                     ; f32
      %2 = mul %0 %1                                   ; f32 a0
      b1[a0] = %2
    """

    def __init__(self, fold: Fold | None = None) -> None:
        self.axes: list[Axis] = []
        self.buffers: list[Buffer] = []
        self.params: list[str] = []
        self.literals: dict[int, bytes] = {}  # parameter -> the raw value it stands for
        self.instructions: list[Instruction] = []
        self.free: list[Free] = []
        self.stage: list[int] = []
        self.stores: list[Store] = []
        self.checks: list[Check] = []
        self.fold = fold or Fold()
        self._known: dict[Instruction, int] = {}
        self._reduced: dict[tuple[int, int, int], int] = {}
        self._scratch_stage: dict[int, int] = {}

    # Axes and buffers.

    def axis(self, extent: int, kind: str = PARALLEL) -> Index:
        """A new axis, as an index."""
        self.axes.append(Axis(extent, kind))
        return axis_index(len(self.axes) - 1, extent)

    def reduced(self, extent: int, stage: int, turn: int = 0) -> tuple[int, Index]:
        """The axis of reductions of this extent at this stage, and its index.

        Reductions of equal extent and stage share one axis and so one loop; a reduction over
        several axes numbers them by `turn`.
        """
        key = (extent, stage, turn)
        if key not in self._reduced:
            self._reduced[key] = len(self.axes)
            self.axes.append(Axis(extent, REDUCED))
        number = self._reduced[key]
        return number, axis_index(number, extent)

    def buffer(self, dtype: str, size: int, role: str = READ, alias: int = 0) -> int:
        """A buffer of `size` elements."""
        self.buffers.append(Buffer(dtype, size, role, alias))
        return len(self.buffers) - 1

    def scratch(self, dtype: str, size: int, rows: Sequence[int]) -> int:
        """A private buffer that lives for one position of the axes `rows`."""
        self.buffers.append(Buffer(dtype, size, SCRATCH, 0, tuple(rows)))
        return len(self.buffers) - 1

    # Instructions.

    def put(self, instruction: Instruction) -> int:
        """The number of an instruction, which is added unless an equal one is there."""
        number = len(self.instructions)
        found = self._known.setdefault(instruction, number)
        if found != number:
            return found
        self.free.append(free_axes(instruction, self.free, self.axes, self.buffers))
        stage = max((self.stage[v] for v in instruction.uses()), default=0)
        if instruction.op == "reduce":
            stage += 1
        elif instruction.op == "load":
            stage = max(stage, self._scratch_stage.get(instruction.attr[0], 0))
        self.stage.append(stage)
        self.instructions.append(instruction)
        return number

    def dtype(self, value: int) -> str:
        return self.instructions[value].dtype

    def load(self, buffer: int, index: Index, condition: int | None = None) -> int:
        """The element at a flat index, or 0 where the condition fails (it is not touched)."""
        dtype = self.buffers[buffer].dtype
        args: tuple[int, ...] = ()
        if condition is not None:
            known = self._truth(condition)
            if known is False:
                return self.const(dtype, 0)
            if known is None:
                args = (condition,)
        return self.put(Instruction("load", dtype, args, (buffer,), index))

    def const(self, dtype: str, value: Any) -> int:
        """A constant, kept as raw bits and part of the kernel's identity. What is computed from
        sizes is an index."""
        if isinstance(value, Number):
            return self.cast(self.index(Index((), value)), dtype)  # type: ignore[arg-type]
        if not isinstance(value, bytes):
            value = np.asarray(value).astype(DTYPES[dtype]).tobytes()
        return self.put(Instruction("const", dtype, (), (value,)))

    def param(self, dtype: str) -> int:
        """A scalar given when the kernel runs; each call makes a new one."""
        self.params.append(dtype)
        return self.put(Instruction("param", dtype, (), (len(self.params) - 1,)))

    def literal(self, dtype: str, value: Any) -> int:
        """A literal of the program: 0, ±1 and booleans are constants, others parameters whose
        values are collected in `literals`, so that kernels that differ in them are equal."""
        raw = np.asarray(value).astype(DTYPES[dtype])
        immediate = bool(raw == 0) or bool(raw == 1) or (dtype[0] != "u" and bool(raw == -1))
        if dtype == "bool" or immediate:
            return self.const(dtype, raw.tobytes())
        number = self.param(dtype)
        self.literals[self.instructions[number].attr[0]] = raw.tobytes()
        return number

    def index(self, index: Index, dtype: str = "i64") -> int:
        """An index as a value."""
        if not index.terms and not isinstance(index.const, Number):
            return self.const(dtype, index.const)
        return self.put(Instruction("index", dtype, (), (), index))

    def as_index(self, value: int, bound: int) -> Index:
        """A computed integer known to lie in [0, bound), for use inside an index."""
        instruction = self.instructions[value]
        if instruction.op == "index" and instruction.index is not None:
            return instruction.index
        if instruction.op == "const":
            raw = np.frombuffer(instruction.attr[0], DTYPES[instruction.dtype])[0]
            return Index((), int(raw))
        return value_index(value, bound)

    def inside(self, index: Index, low: int, high: int) -> int:
        """Whether low <= index < high; known at once where the index's range tells."""
        least, most = index.range()
        if low <= least and most < high:
            return self.const("bool", True)
        if most < low or least >= high:
            return self.const("bool", False)
        return self.put(Instruction("inside", "bool", (), (low, high), index))

    def both(self, a: int | None, b: int | None) -> int | None:
        """The conjunction of two conditions, None meaning always."""
        if a is None or b is None:
            return b if a is None else a
        return self.op("and", "bool", *sorted((a, b)))

    def op(self, name: str, dtype: str, *args: int) -> int:
        """An elementwise instruction; `dtype` is that of the result."""
        if ELEMENTWISE.get(name) != len(args):
            raise ValueError(f"kernel instruction {name} with {len(args)} operands")
        if name in COMPARISONS:
            dtype = "bool"
        if dtype == "bool" and name in ("and", "or"):
            a, b = args
            for one, other in ((a, b), (b, a)):
                known = self._truth(one)
                if known is not None:  # `and` with True and `or` with False give the other
                    return other if known is (name == "and") else one
            if a == b:
                return a
        return self.put(Instruction(name, dtype, args))

    def select(self, condition: int, yes: int, no: int) -> int:
        known = self._truth(condition)
        if known is not None or yes == no:
            return yes if known is not False else no
        return self.put(Instruction("select", self.dtype(yes), (condition, yes, no)))

    def cast(self, value: int, dtype: str) -> int:
        """The value in another dtype; floats to integers saturate and NaN gives 0."""
        source = self.instructions[value]
        if source.dtype == dtype:
            return value
        if source.op == "index" and source.index is not None and dtype in ("i32", "i64"):
            low, high = source.index.range()
            if low >= -(2**31) and high < 2**31:
                return self.index(source.index, dtype)
        return self.put(Instruction("cast", dtype, (value,)))

    def bitcast(self, value: int, dtype: str) -> int:
        """The same bits as another dtype of the same size."""
        if self.dtype(value) == dtype:
            return value
        return self.put(Instruction("bitcast", dtype, (value,)))

    def reduce(
        self, kind: str, axes: Sequence[int], value: int, position: int | None = None
    ) -> int:
        """A reduction over reduced axes. argmin and argmax take the position as a second value,
        and `state(result, 1)` is the position of the extreme, the least among equals."""
        args = (value,) if position is None else (value, position)
        if (len(args) == 2) != (kind in ("argmin", "argmax")):
            raise ValueError(f"reduction {kind} of {len(args)} values")
        return self.put(Instruction("reduce", self.dtype(value), args, (kind, *axes)))

    def state(self, reduction: int, number: int) -> int:
        """A further result of a reduction; number 0 is the reduction itself."""
        if number == 0:
            return reduction
        dtype = self.dtype(self.instructions[reduction].args[number])
        return self.put(Instruction("state", dtype, (reduction,), (number,)))

    # Effects.

    def store(
        self,
        buffer: int,
        index: Index,
        value: int,
        condition: int | None = None,
        update: str = "",
    ) -> None:
        """Write a value at a flat index, where the condition holds; with an `update`, join it to
        what is there."""
        known = None if condition is None else self._truth(condition)
        if known is False:
            return
        if known is True:
            condition = None
        self.stores.append(Store(buffer, index, value, condition, update))
        if self.buffers[buffer].role == READ:
            self.buffers[buffer] = replace(self.buffers[buffer], role=WRITE)
        elif self.buffers[buffer].role == SCRATCH:
            before = self._scratch_stage.get(buffer, 0)
            self._scratch_stage[buffer] = max(before, self.stage[value] + 1)

    def check(self, condition: int, code: int = 0) -> None:
        """Set bit `code` of the kernel's fault where the condition fails."""
        if self._truth(condition) is not True:
            self.checks.append(Check(condition, code))

    def finish(self) -> Kernel:
        """The kernel, without the instructions that nothing reads."""
        return Kernel(
            tuple(self.axes),
            tuple(self.buffers),
            tuple(self.params),
            tuple(self.instructions),
            tuple(self.stores),
            tuple(self.checks),
            self.fold,
            tuple(self.free),
        ).live()

    def _truth(self, value: int) -> bool | None:
        """What a condition is known to be, or None."""
        instruction = self.instructions[value]
        if instruction.op != "const":
            return None
        return bool(instruction.attr[0] != b"\0")
