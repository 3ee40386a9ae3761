"""Running folds: each element joined with all before it along an axis.

They have the shape of the CPU's (`cpu/library/running`), so that both give the same bits. A line is
blocks of 16 elements, in which each is joined with those 1, 2, 4 and 8 before it; blocks are joined
one after the other in stretches of 4096, and stretches one after the other again. What is behind
the last whole block goes on from there, an element after the other. Where there are columns behind
the axis, each of them is folded one after the other.

A thread has a block, a team of threads a line or a stretch of one, and the first of a team goes
along what its blocks come to. A line of several stretches takes three functions: what stretches
come to, what comes before each, and the rest. Parts of complex elements are apart, as lanes on the
CPU are: a stretch is of 2048 of them. Complex products go one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.team import wait
from tenfold.backends.cuda.emit.thread import Position
from tenfold.backends.cuda.library.function import RoutineFunction
from tenfold.backends.cuda.library.routine import GpuRoutine, RoutineLaunch
from tenfold.backends.cuda.target import WARP, CudaTarget
from tenfold.backends.llvm.casts import from_half, to_half
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import BITS, COMPUTE, MEMORY, kind
from tenfold.types import DTYPES, SHORT, TensorType

STEPS = {"cumsum": "add", "cumprod": "mul", "cummax": "max", "cummin": "min"}
_THREADS, _BLOCK = 256, 16
_STRETCH = _THREADS * _BLOCK
_TURN = 8  # elements that a thread loads or stores at a time
_SHARING = 4  # blocks of threads that are meant to share a processor, of 64 bits half of them
_EACH = 4  # stretches that a lane looks at at a time
_ROWS = 16  # rows of a column that are loaded at a time
_NARROW = 64  # threads of a block that has columns


def running_routine(name: str, type: TensorType, given: Mapping[str, Any]) -> GpuRoutine | None:
    """The routine of a running fold along `axis`."""
    if not type.size:
        return None
    dtype, step = SHORT[type.dtype], STEPS[name]
    axis, reverse = given["axis"], given["reverse"]
    n, before, behind = type.shape[axis], prod(type.shape[:axis]), prod(type.shape[axis + 1 :])
    span = 2 if kind(dtype) == "c" else 1
    symbol = f"tn_{name}{'_reverse' if reverse else ''}_{dtype}"
    made = _Fold(symbol, dtype, step, reverse)
    scratch = 0
    if span == 2 and step == "mul":
        launches = [_launch(f"{symbol}_one", before * behind, _NARROW, (0, 1), n, behind)]
    elif behind > 1:
        row = behind * span
        launches = [_launch(f"{symbol}_columns", before * row, _NARROW, (0, 1), n, row)]
    else:
        launches, scratch = _lines(symbol, n * span, before, span * BITS[made.type] // 8)
    return GpuRoutine(made.text, symbol, tuple(launches), scratch)


def _launch(
    function: str, threads: int, each: int, arrays: tuple[int, ...], n: int, columns: int
) -> RoutineLaunch:
    words = tuple((word, 8) for word in (threads, n, columns))
    return RoutineLaunch(function, -(-threads // each), each, arrays, words)


def _lines(symbol: str, count: int, lines: int, held: int) -> tuple[list[RoutineLaunch], int]:
    """The launches for lines of `count` lanes, and the bytes of what comes before stretches."""
    stretches = -(-count // _STRETCH)
    team = min(_THREADS, 1 << (-(-count // _BLOCK) - 1).bit_length())
    blocks = -(-lines // (_THREADS // team)) * stretches
    shift = team.bit_length() - 1

    def words(stretches: int, apart: int) -> tuple[tuple[int, int], ...]:
        return tuple((word, 8) for word in (count, lines, shift, stretches, apart))

    if stretches == 1:
        return [RoutineLaunch(f"{symbol}_lines", blocks, _THREADS, (0, 1, 1), words(1, 0))], 0
    bases = (lines, 8), (stretches, 8)
    return [
        RoutineLaunch(
            f"{symbol}_totals", lines * (stretches - 1), _THREADS, (0, 2),
            words(stretches - 1, stretches),
        ),
        RoutineLaunch(f"{symbol}_bases", lines, WARP, (2,), bases),
        RoutineLaunch(f"{symbol}_lines", blocks, _THREADS, (0, 1, 2), words(stretches, stretches)),
    ], lines * stretches * held  # fmt: skip


class _Fold:
    """What writes the functions of a fold."""

    def __init__(self, symbol: str, dtype: str, step: str, reverse: bool) -> None:
        self.symbol, self.dtype, self.step, self.reverse = symbol, dtype, step, reverse
        self.span = 2 if kind(dtype) == "c" else 1
        self.memory = MEMORY[dtype]
        self.type = "i8" if dtype == "bool" else COMPUTE[dtype]
        self.float = self.type in ("float", "double")
        self.sharing = _SHARING if BITS[self.type] <= 32 else _SHARING // 2
        self.f: RoutineFunction

    def text(self, target: CudaTarget) -> Fragment:
        if self.span == 2 and self.step == "mul":
            parts = [self.products(target)]
        else:
            parts = [
                self.lines(target, totals=True),
                self.bases(target),
                self.lines(target, totals=False),
                self.columns(target),
            ]
        needs = dict.fromkeys(line for part in parts for line in part.declarations)
        return Fragment(tuple(needs), "\n".join(part.body for part in parts))

    # Elements.

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

    def turned(self, at: str, count: str) -> str:
        """Where a lane lies, of so many: parts of an element keep their order."""
        if not self.reverse:
            return at
        f = self.f
        back = f.num("sub", "i64", f.num("sub", "i64", count, self.span), at)
        if self.span == 1:
            return back
        part = f.num("and", "i64", at, 1)
        return f.num("add", "i64", back, f.num("shl", "i64", part, 1))

    # Lines.

    def lines(self, target: CudaTarget, totals: bool) -> Fragment:
        """A team for each line, or for a stretch of one; or what each stretch comes to."""
        name = f"{self.symbol}_{'totals' if totals else 'lines'}"
        arrays = [("x", self.memory), *([] if totals else [("y", self.memory)]), ("b", self.type)]
        words = ("count", "lines", "shift", "stretches", "apart")
        f = self.f = RoutineFunction(name, target, _THREADS, arrays, words, self.sharing)
        w = f.w
        thread, block = f.sreg("tid.x"), f.sreg("ctaid.x")
        self.staged = f.reserve(self.memory, _STRETCH + _THREADS)
        self.chain = f.reserve(self.type, self.span * _THREADS)
        shift, stretches = f.short("%shift"), f.short("%stretches")
        teams = f.num("lshr", "i32", _THREADS, shift)
        which = f.num("udiv", "i32", block, stretches)
        stretch = f.num("sub", "i32", block, f.num("mul", "i32", which, stretches))
        first = f.num("mul", "i64", f.long(which), f.long(teams))
        start = f.num("mul", "i64", f.long(stretch), _STRETCH)
        self._each_slot(thread, shift, first, start, self._stage)
        wait(w)
        own = f.num("mul", "i32", thread, _BLOCK + 1)
        given = [
            self.widened(f.get(self.staged, self.memory, f.num("add", "i32", own, n)))
            for n in range(_BLOCK)
        ]
        held = self._prefix(given)
        for part in range(self.span):
            at = f.num("add", "i32", thread, part * _THREADS)
            f.put(self.chain, self.type, at, held[_BLOCK - self.span + part])
        wait(w)
        size = f.num("shl", "i32", 1, shift)
        me = f.num("and", "i32", thread, f.num("sub", "i32", size, 1))
        leads = w.op(f"icmp eq i32 {me}, 0")
        line = f.num("add", "i64", first, f.long(f.num("lshr", "i32", thread, shift)))
        place = f.num("mul", "i64", line, "%apart")
        place = f.num("add", "i64", place, f.long(stretch))
        place = f.num("mul", "i64", place, self.span)

        def along() -> None:
            made = self._chained(thread, size)
            if totals:
                for part, total in enumerate(made):
                    f.write("b", f.num("add", "i64", place, part), total)

        f.when(leads, along)
        if totals:
            return f.text()
        wait(w)
        carries = [
            f.get(self.chain, self.type, f.num("add", "i32", thread, part * _THREADS))
            for part in range(self.span)
        ]
        several = w.op("icmp ne i64 %apart, 0")
        bases = []
        for part in range(self.span):
            at = f.num("add", "i64", place, part)
            base = f.where(several, self.type, lambda at=at: f.read("b", at))  # type: ignore[misc]
            bases.append(w.select(several, self.type, base, self.nothing()))
        end = f.num("add", "i64", start, f.long(f.num("mul", "i32", me, _BLOCK)))
        end = f.num("add", "i64", end, _BLOCK)
        whole = w.op(f"icmp sle i64 {end}, %count")
        self._finish(own, whole, given, held, carries, bases)
        wait(w)
        self._each_slot(thread, shift, first, start, self._unstage)
        return f.text()

    def _each_slot(self, thread: str, shift: str, first: str, start: str, do: Any) -> None:
        """Go through what a block of threads has, neighbours by neighbours: where an element lies,
        where it is staged, and whether it is there."""
        f = self.f
        reach = f.num("add", "i32", shift, _BLOCK.bit_length() - 1)
        mask = f.num("sub", "i32", f.num("shl", "i32", 1, reach), 1)

        def some(turn: Position, held: list[str]) -> list[str]:
            for n in range(_TURN):
                slot = f.num("add", "i32", f.num("add", "i32", str(turn), thread), n * _THREADS)
                line = f.num("add", "i64", first, f.long(f.num("lshr", "i32", slot, reach)))
                at = f.num("add", "i64", start, f.long(f.num("and", "i32", slot, mask)))
                inside = f.w.op(f"icmp slt i64 {at}, %count")
                inside = f.num("and", "i1", inside, f.w.op(f"icmp slt i64 {line}, %lines"))
                begins = f.num("mul", "i64", line, "%count")
                place = f.num("add", "i64", begins, self.turned(at, "%count"))
                do(place, f.num("add", "i32", slot, f.num("lshr", "i32", slot, 4)), inside)
            return held

        # In a loop, so that places of loads are not kept for the stores.
        loop(f.w, "i32", 0, _STRETCH, _TURN * _THREADS, (), some)

    def _stage(self, place: str, slot: str, inside: str) -> None:
        f = self.f
        found = f.where(inside, self.memory, lambda: f.read("x", place))
        f.put(self.staged, self.memory, slot, found)

    def _unstage(self, place: str, slot: str, inside: str) -> None:
        f = self.f
        f.when(inside, lambda: f.write("y", place, f.get(self.staged, self.memory, slot)))

    def _prefix(self, given: list[str]) -> list[str]:
        """A block, each element joined with all before it in the block."""
        held, shift = list(given), self.span
        while shift < _BLOCK:
            held = [
                self.joined(held[n - shift], x) if n >= shift else x for n, x in enumerate(held)
            ]
            shift *= 2
        return held

    def _chained(self, thread: str, size: str) -> list[str]:
        """Put what comes before each block in place of what it comes to; what all come to."""
        f, w = self.f, self.f.w

        def several(count: int) -> Any:
            def body(at: Position, held: list[str]) -> list[str]:
                made = []
                for part, carry in enumerate(held):
                    first = f.num("add", "i32", thread, str(at))
                    first = f.num("add", "i32", first, part * _THREADS)
                    places = [f.num("add", "i32", first, n) for n in range(count)]
                    found = [f.get(self.chain, self.type, place) for place in places]
                    for place, x in zip(places, found, strict=True):
                        f.put(self.chain, self.type, place, carry)
                        carry = self.joined(carry, x)
                    made.append(carry)
                return made

            return body

        held = [self.nothing()] * self.span
        whole = f.num("and", "i32", size, -_BLOCK)
        slots = [(self.type, x) for x in held]
        held = loop(w, "i32", 0, whole, _BLOCK, slots, several(_BLOCK))
        slots = [(self.type, x) for x in held]
        return loop(w, "i32", whole, size, 1, slots, several(1))

    def _finish(
        self, own: str, whole: str, given: list[str], held: list[str], carries: list[str],
        bases: list[str],
    ) -> None:  # fmt: skip
        """Stage what a block comes to with what is before it; of one that is not whole, an element
        after the other."""
        f, span = self.f, self.span

        def keep(n: int, value: str) -> None:
            at = f.num("add", "i32", own, n)
            f.put(self.staged, self.memory, at, self.narrowed(value))

        def at_once() -> None:
            for n, x in enumerate(held):
                made = self.joined(bases[n % span], self.joined(carries[n % span], x))
                keep(n, made)

        def in_order() -> None:
            last = [self.joined(b, c) for b, c in zip(bases, carries, strict=True)]
            for n, x in enumerate(given):
                last[n % span] = self.joined(last[n % span], x)
                keep(n, last[n % span])

        f.when(whole, at_once)
        f.when(f.num("xor", "i1", whole, "true"), in_order)

    def bases(self, target: CudaTarget) -> Fragment:
        """A warp for each line: what comes before each stretch, in place of what it comes to."""
        words = ("lines", "stretches")
        f = self.f = RoutineFunction(
            f"{self.symbol}_bases", target, WARP, [("b", self.type)], words
        )
        w, span = f.w, self.span
        lane = f.sreg("tid.x")
        line = f.num("mul", "i64", f.long(f.sreg("ctaid.x")), "%stretches")
        totals = f.num("sub", "i64", "%stretches", 1)

        def spot(chunk: str, n: int) -> str:
            return f.num("add", "i64", f.num("add", "i64", chunk, n * WARP), f.long(lane))

        def brought(chunk: str) -> list[str]:
            found = []
            for n in range(_EACH):
                at = spot(chunk, n)
                place = f.num("mul", "i64", f.num("add", "i64", line, at), span)
                there = w.op(f"icmp slt i64 {at}, {totals}")
                for part in range(span):
                    here = f.num("add", "i64", place, part)
                    found.append(f.where(there, self.type, lambda here=here: f.read("b", here)))  # type: ignore[misc]
            return found

        def body(chunk: Position, held: list[str]) -> list[str]:
            carry, now = held[:span], held[span:]
            following = brought(f.num("add", "i64", str(chunk), _EACH * WARP))
            for n in range(_EACH):
                mine = list(carry)
                for j in range(WARP):
                    here = w.op(f"icmp eq i32 {lane}, {j}")
                    for part in range(span):
                        mine[part] = w.select(here, self.type, carry[part], mine[part])
                        other = f.picked(self.type, now[n * span + part], j)
                        carry[part] = self.joined(carry[part], other)
                at = spot(str(chunk), n)
                place = f.num("mul", "i64", f.num("add", "i64", line, at), span)

                def keep(place: str = place, mine: list[str] = mine) -> None:
                    for part, x in enumerate(mine):
                        f.write("b", f.num("add", "i64", place, part), x)

                f.when(w.op(f"icmp slt i64 {at}, %stretches"), keep)
            return [*carry, *following]

        slots = [(self.type, x) for x in [*[self.nothing()] * span, *brought("0")]]
        loop(w, "i64", 0, "%stretches", _EACH * WARP, slots, body)
        return f.text()

    # Columns.

    def columns(self, target: CudaTarget) -> Fragment:
        """A thread for each lane of a row: down its column, one after the other."""
        f, first, end = self._column(f"{self.symbol}_columns", target, 1)
        w = f.w

        def brought(row: str) -> list[str]:
            return [self._down(f, first, row, n, 0)[0] for n in range(_ROWS)]

        def body(row: Position, held: list[str]) -> list[str]:
            so_far, now = held[0], held[1:]
            following = brought(f.num("add", "i64", str(row), _ROWS))
            for n, x in enumerate(now):
                so_far = self.joined(so_far, self.widened(x))
                self._up(f, first, str(row), n, [so_far])
            return [so_far, *following]

        slots = [(self.type, self.nothing()), *((self.memory, x) for x in brought("0"))]
        loop(w, "i64", 0, "%n", _ROWS, slots, body)
        w.put(f"br label %{end}")
        w.label(end)
        return f.text()

    def products(self, target: CudaTarget) -> Fragment:
        """A thread for each column of complex elements: one after the other."""
        f, first, end = self._column(f"{self.symbol}_one", target, 2)
        w, ty = f.w, self.type

        def brought(row: str) -> list[str]:
            return [x for n in range(_ROWS) for x in self._down(f, first, row, n, 1)]

        def body(row: Position, held: list[str]) -> list[str]:
            (a, b), now = held[:2], held[2:]
            following = brought(f.num("add", "i64", str(row), _ROWS))
            for n in range(_ROWS):
                c, d = now[2 * n : 2 * n + 2]
                ac, bd, ad, bc = (
                    w.op(f"fmul {ty} {p}, {q}") for p, q in ((a, c), (b, d), (a, d), (b, c))
                )
                real, imaginary = w.op(f"fsub {ty} {ac}, {bd}"), w.op(f"fadd {ty} {ad}, {bc}")
                if n == 0:  # the first of all as it is: 1 + 0i times it may be another
                    begins = w.op(f"icmp eq i64 {row}, 0")
                    real = w.select(begins, ty, c, real)
                    imaginary = w.select(begins, ty, d, imaginary)
                a, b = real, imaginary
                self._up(f, first, str(row), n, [a, b])
            return [a, b, *following]

        one, none = w.const(ty, 1.0, False), w.const(ty, 0.0, False)
        slots = [(ty, x) for x in (one, none, *brought("0"))]
        loop(w, "i64", 0, "%n", _ROWS, slots, body)
        w.put(f"br label %{end}")
        w.label(end)
        return f.text()

    def _column(self, name: str, target: CudaTarget, each: int) -> tuple[RoutineFunction, str, str]:
        """A function with a thread a column: where its column begins, in lanes, and the label of
        its end."""
        arrays = [("x", self.memory), ("y", self.memory)]
        f = self.f = RoutineFunction(name, target, _NARROW, arrays, ("all", "n", "columns"))
        w = f.w
        block = f.num("mul", "i64", f.long(f.sreg("ctaid.x")), _NARROW)
        me = f.num("add", "i64", block, f.long(f.sreg("tid.x")))
        begin, end = w.fresh("begin"), w.fresh("end")
        w.put(f"br i1 {w.op(f'icmp slt i64 {me}, %all')}, label %{begin}, label %{end}")
        w.label(begin)
        part = f.num("udiv", "i64", me, "%columns")
        column = f.num("urem", "i64", me, "%columns")
        rows = f.num("mul", "i64", part, "%n")
        first = f.num("add", "i64", f.num("mul", "i64", rows, "%columns"), column)
        self.row = f.num("mul", "i64", "%columns", each)
        return f, f.num("mul", "i64", first, each), end

    def _spot(self, f: RoutineFunction, first: str, row: str, n: int) -> tuple[str, str]:
        """Where a row lies in a column, and whether there is one."""
        at = f.num("add", "i64", row, n)
        there = f.w.op(f"icmp slt i64 {at}, %n")
        if self.reverse:
            at = f.num("sub", "i64", f.num("sub", "i64", "%n", 1), at)
        return f.num("add", "i64", first, f.num("mul", "i64", at, self.row)), there

    def _down(self, f: RoutineFunction, first: str, row: str, n: int, more: int) -> list[str]:
        """What lies in a row, with so many lanes more."""
        place, there = self._spot(f, first, row, n)
        found = []
        for part in range(1 + more):
            at = f.num("add", "i64", place, part)
            found.append(f.where(there, self.memory, lambda at=at: f.read("x", at)))  # type: ignore[misc]
        return found

    def _up(self, f: RoutineFunction, first: str, row: str, n: int, values: list[str]) -> None:
        place, there = self._spot(f, first, row, n)

        def keep() -> None:
            for part, x in enumerate(values):
                f.write("y", f.num("add", "i64", place, part), self.narrowed(x))

        f.when(there, keep)
