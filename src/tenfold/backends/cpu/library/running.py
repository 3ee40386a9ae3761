"""Running folds, as LLVM IR: one function for each op, dtype and direction.

An array is parts before the axis, the axis, and columns behind it. Where there are columns, 256 of
them are folded at a time, row by row, one after the other as NumPy does. A line alone is folded in
blocks of 16 elements: within a block each element is joined with those 1, 2, 4 and 8 before it,
then with what comes before the block. Blocks are joined one after the other up to 4096 elements,
and such stretches one after the other again, so that a sum is off by far less than one of all in a
row. The lanes of a complex line are pairs. All of it is fixed by the extents: every target gives
the same bits.

Sums begin with -0, which changes nothing, not even the sign of a zero. Sixteen-bit floats are
folded in f32, and rounded where they are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from tenfold.backends.cpu.library.loops import carried, each, look_text, poll, when
from tenfold.backends.cpu.library.routine import NodeRoutine
from tenfold.backends.llvm.casts import from_half, to_half
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.backends.llvm.text import Fragment, join
from tenfold.backends.llvm.writer import BITS, COMPUTE, LANES, MEMORY, Writer, kind, vector
from tenfold.types import DTYPES, SHORT, TensorType

_STEPS = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}
_REVERSE = "_reverse"
_STRETCH = 4096  # elements
_WIDTH = 256  # columns that are folded at a time
_POLLED = 1 << 16  # rows, or elements of a line, without a poll
_WORDS = ("n", "columns", "blocks", "width")


def running_routine(name: str, type: TensorType, given: Mapping[str, Any]) -> NodeRoutine:
    """The call of a running fold along `axis`."""
    axis = given["axis"]
    n, before, behind = type.shape[axis], prod(type.shape[:axis]), prod(type.shape[axis + 1 :])
    pairs = 2 if kind(SHORT[type.dtype]) == "c" else 1
    blocks = -(-behind * pairs // _WIDTH)
    width = _WIDTH
    if name == "cumprod" and pairs == 2:
        blocks, width = behind, 1  # one at a time
    symbol = f"tn_{name}{_REVERSE if given['reverse'] else ''}_{SHORT[type.dtype]}"
    return NodeRoutine(symbol, (n, behind, blocks, width), before * blocks, 0, type.size)


def running_text(name: str, dtype: str, target: LLVMTarget) -> str:
    """The module of a running fold."""
    step = _STEPS[name.removesuffix(_REVERSE)]
    reverse = name.endswith(_REVERSE)
    if step == "mul" and kind(dtype) == "c":
        return _Fold(f"tn_{name}_{dtype}", dtype, step, reverse, target).products()
    return _Fold(f"tn_{name}_{dtype}", dtype, step, reverse, target).module()


class _Fold:
    """What writes one function."""

    def __init__(
        self, symbol: str, dtype: str, step: str, reverse: bool, target: LLVMTarget
    ) -> None:
        self.w = Writer(target)
        self.symbol, self.dtype, self.step, self.reverse = symbol, dtype, step, reverse
        self.span = 2 if kind(dtype) == "c" else 1  # lanes of an element
        self.memory = MEMORY[dtype]
        self.type = "i8" if dtype == "bool" else COMPUTE[dtype]
        self.float = self.type in ("float", "double")

    # Elements, or vectors of them.

    def load(self, place: str, wide: bool) -> str:
        w = self.w
        found = w.op(f"load {vector(self.memory, wide)}, ptr {place}, align {self.bytes}")
        if self.dtype == "f16":
            return from_half(w, found, wide)
        if self.dtype == "bf16":
            i32 = vector("i32", wide)
            bits = w.op(f"zext {vector('i16', wide)} {found} to {i32}")
            bits = w.op(f"shl {i32} {bits}, {w.const('i32', 16, wide)}")
            return w.op(f"bitcast {i32} {bits} to {vector('float', wide)}")
        return found

    def store(self, value: str, place: str, wide: bool) -> None:
        w = self.w
        if self.dtype == "f16":
            value = to_half(w, value, wide)
        elif self.dtype == "bf16":
            value = self._to_bf16(value, wide)
        w.put(f"store {vector(self.memory, wide)} {value}, ptr {place}, align {self.bytes}")

    def _to_bf16(self, value: str, wide: bool) -> str:
        w, i32 = self.w, vector("i32", wide)

        def const(number: int) -> str:
            return w.const("i32", number, wide)

        bits = w.op(f"bitcast {vector('float', wide)} {value} to {i32}")
        nan = w.op(f"fcmp uno {vector('float', wide)} {value}, {value}")
        odd = w.op(f"and {i32} {w.op(f'lshr {i32} {bits}, {const(16)}')}, {const(1)}")
        near = w.op(f"add {i32} {w.op(f'add {i32} {bits}, {const(0x7FFF)}')}, {odd}")
        quiet = w.op(f"or {i32} {bits}, {const(0x400000)}")
        near = w.select(nan, i32, quiet, near)
        return w.op(
            f"trunc {i32} {w.op(f'lshr {i32} {near}, {const(16)}')} to {vector('i16', wide)}"
        )

    @property
    def bytes(self) -> int:
        return BITS[self.memory] // 8

    def joined(self, a: str, b: str, wide: bool) -> str:
        """What comes before, joined with what follows."""
        w, type = self.w, vector(self.type, wide)
        if self.step in ("add", "mul"):
            return w.op(f"{'f' if self.float else ''}{self.step} {type} {a}, {b}")
        if self.float:  # the first NaN stays
            truth = vector("i1", wide)
            farther = w.op(f"fcmp {'ugt' if self.step == 'max' else 'ult'} {type} {b}, {a}")
            number = w.op(f"fcmp ord {type} {a}, {a}")
            return w.select(w.op(f"and {truth} {farther}, {number}"), type, b, a)
        sign = "s" if kind(self.dtype) == "i" else "u"
        return w.intrinsic(f"{sign}{self.step}", type, a, b)

    def nothing(self, wide: bool) -> str:
        """What changes nothing that it is joined with."""
        if self.float:
            value = {"add": -0.0, "mul": 1.0, "max": -np.inf, "min": np.inf}[self.step]
            return self.w.const(self.type, value, wide)
        limits = np.iinfo(DTYPES["u8" if self.dtype == "bool" else self.dtype])
        found = {"add": 0, "mul": 1, "max": limits.min, "min": limits.max}[self.step]
        return self.w.const(self.type, found, wide)

    def at(self, base: str, index: str) -> str:
        return self.w.op(f"getelementptr {self.memory}, ptr {base}, i64 {index}")

    def turned(self, value: str) -> str:
        """A vector with its elements the other way round, where the fold goes that way."""
        if not self.reverse:
            return value
        order = [LANES - self.span - n + 2 * (n % self.span) for n in range(LANES)]
        return self.shuffled(value, value, order)

    def shuffled(self, a: str, b: str, lanes: list[int]) -> str:
        type = vector(self.type)
        numbers = ", ".join(f"i32 {n}" for n in lanes)
        return self.w.op(f"shufflevector {type} {a}, {type} {b}, <{LANES} x i32> <{numbers}>")

    # A line.

    def prefix(self, value: str) -> str:
        """A block, each element joined with all before it in the block."""
        shift = self.span
        nothing = self.nothing(True)
        while shift < LANES:
            lanes = [LANES + n - shift if n >= shift else n for n in range(LANES)]
            moved = self.shuffled(nothing, value, lanes)
            value = self.joined(moved, value, True)
            shift *= 2
        return value

    def line(self) -> str:
        """`%x` and `%y` are lines of %n elements."""
        w, span = self.w, self.span
        last = [LANES - span + n % span for n in range(LANES)]
        type, wide = self.type, vector(self.type)
        count = w.op(f"mul i64 %n, {span}")
        whole = w.op(f"and i64 {count}, {-LANES}")
        nothing = self.nothing(True)
        first = (wide, nothing)
        with carried(w, "0", count, _STRETCH, first) as (low, (base,), becomes):
            far = w.op(f"add i64 {low}, {_STRETCH}")
            high = w.intrinsic("smin", "i64", far, whole)
            with carried(w, low, high, LANES, first) as (i, (carry,), onward):
                at = i
                if self.reverse:
                    at = w.op(f"sub i64 {w.op(f'sub i64 {count}, {i}')}, {LANES}")
                block = self.prefix(self.turned(self.load(self.at("%x", at), True)))
                made = self.joined(base, self.joined(carry, block, True), True)
                self.store(self.turned(made), self.at("%y", at), True)
                onward(self.joined(carry, self.shuffled(block, block, last), True))
            becomes(self.joined(base, carry, True))
            past = w.op(f"and i64 {far}, {_POLLED - 1}")
            with when(w, w.op(f"icmp eq i64 {past}, 0")):
                poll(w)
        w.put(f"store {wide} {base}, ptr %base, align 64")
        # What is left goes on from there, an element after the other.
        with each(w, whole, count, span) as i:
            for n in range(span):
                lane = w.op(f"getelementptr {type}, ptr %base, i64 {n}")
                at = w.op(f"add i64 {i}, {n}")
                if self.reverse:
                    at = w.op(f"add i64 {w.op(f'sub i64 {count}, {i}')}, {n - span}")
                so_far = w.op(f"load {type}, ptr {lane}, align 4")
                value = self.joined(so_far, self.load(self.at("%x", at), False), False)
                w.put(f"store {type} {value}, ptr {lane}, align 4")
                self.store(value, self.at("%y", at), False)
        return w.taken()

    # Columns.

    def columns(self) -> str:
        """`%x` and `%y` are the first of so many columns, of rows %row.size apart."""
        w, type, wide = self.w, self.type, vector(self.type)
        whole = w.op(f"and i64 %count, {-LANES}")
        with each(w, "0", "%count") as j:
            place = w.op(f"getelementptr {type}, ptr %folded, i64 {j}")
            w.put(f"store {type} {self.nothing(False)}, ptr {place}, align 4")
        with each(w, "0", "%n") as i:
            row = i
            if self.reverse:
                row = w.op(f"sub i64 {w.op('sub i64 %n, 1')}, {i}")
            first = w.op(f"mul i64 {row}, %row.size")
            x, y = self.at("%x", first), self.at("%y", first)
            for low, high, by in (("0", whole, LANES), (whole, "%count", 1)):
                is_wide = by == LANES
                with each(w, low, high, by) as j:
                    place = w.op(f"getelementptr {type}, ptr %folded, i64 {j}")
                    held = wide if is_wide else type
                    so_far = w.op(f"load {held}, ptr {place}, align 4")
                    value = self.joined(so_far, self.load(self.at(x, j), is_wide), is_wide)
                    w.put(f"store {held} {value}, ptr {place}, align 4")
                    self.store(value, self.at(y, j), is_wide)
            past = w.op(f"and i64 {i}, {_POLLED // LANES - 1}")
            with when(w, w.op(f"icmp eq i64 {past}, 1")):
                poll(w)
        return w.taken()

    # Complex products.

    def product(self) -> str:
        """`%x` and `%y` are one column of pairs: an element after the other."""
        w, type = self.w, self.type
        for part, number in ((0, 1.0), (1, 0.0)):
            place = w.op(f"getelementptr {type}, ptr %base, i64 {part}")
            w.put(f"store {type} {w.const(type, number, False)}, ptr {place}, align 4")
        with each(w, "0", "%n") as i:
            row = i
            if self.reverse:
                row = w.op(f"sub i64 {w.op('sub i64 %n, 1')}, {i}")
            first = w.op(f"mul i64 {row}, %row.size")
            x, y = self.at("%x", first), self.at("%y", first)
            places = ["%base", w.op(f"getelementptr {type}, ptr %base, i64 1")]
            a, b = (w.op(f"load {type}, ptr {place}, align 4") for place in places)
            c, d = (self.load(self.at(x, str(n)), False) for n in (0, 1))
            ac, bd, ad, bc = (
                w.op(f"fmul {type} {p}, {q}") for p, q in ((a, c), (b, d), (a, d), (b, c))
            )
            real, imaginary = w.op(f"fsub {type} {ac}, {bd}"), w.op(f"fadd {type} {ad}, {bc}")
            begins = w.op(f"icmp eq i64 {i}, 0")  # as it is: 1 + 0i times it may be another
            for n, (made, own) in enumerate(((real, c), (imaginary, d))):
                value = w.select(begins, type, own, made)
                w.put(f"store {type} {value}, ptr {places[n]}, align 4")
                self.store(value, self.at(y, str(n)), False)
            past = w.op(f"and i64 {i}, {_POLLED - 1}")
            with when(w, w.op(f"icmp eq i64 {past}, 1")):
                poll(w)
        return w.taken()

    # The whole.

    def module(self) -> str:
        self.w.block = "one"
        line = self.line()
        self.w.block = "many"
        columns = self.columns()
        return self.text(
            f"""  %alone = icmp eq i64 %columns, 1
  br i1 %alone, label %one, label %many
one:
{line}  br label %done
many:
{columns}  br label %done
"""
        )

    def products(self) -> str:
        self.w.block = "part"
        return self.text(self.product() + "  br label %done\n")

    def text(self, body: str) -> str:
        words = "".join(
            f"  %{name}.at = getelementptr i64, ptr %params, i64 {n}\n"
            f"  %{name} = load i64, ptr %{name}.at, align 8\n"
            for n, name in enumerate(_WORDS)
        )
        folded = f"[{max(_WIDTH, LANES)} x {self.type}]"
        text = f"""
define dso_local i32 @{self.symbol}(
  ptr %buffers, ptr %params, i64 %low, i64 %high) nounwind "prefer-vector-width"="512" {{
entry:
  %base = alloca {vector(self.type)}, align 64
  %folded = alloca {folded}, align 64
  %x.all = load ptr, ptr %buffers, align 8
  %y.row = getelementptr ptr, ptr %buffers, i64 1
  %y.all = load ptr, ptr %y.row, align 8
{words}  %row.size = mul i64 %columns, {self.span}
  %part.size = mul i64 %row.size, %n
  %piece.size = mul i64 %width, {self.span if self.step == "mul" and self.span == 2 else 1}
  br label %head
head:
  %row = phi i64 [ %low, %entry ], [ %row.more, %done ]
  %on = icmp slt i64 %row, %high
  br i1 %on, label %part, label %end
part:
  %before = udiv i64 %row, %blocks
  %block = urem i64 %row, %blocks
  %part.first = mul i64 %before, %part.size
  %column = mul i64 %block, %piece.size
  %first = add i64 %part.first, %column
  %left = sub i64 %row.size, %column
  %count = call i64 @llvm.smin.i64(i64 %left, i64 %piece.size)
  %x = getelementptr {self.memory}, ptr %x.all, i64 %first
  %y = getelementptr {self.memory}, ptr %y.all, i64 %first
{body}done:
  %row.more = add i64 %row, 1
  br label %head
end:
  ret i32 0
}}
"""
        needs = ("declare i64 @llvm.smin.i64(i64, i64)", *sorted(self.w.declared))
        return join([Fragment(needs, look_text(2) + text)])
