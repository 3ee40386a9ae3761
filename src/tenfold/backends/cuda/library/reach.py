"""Chains of boolean matrices row by row: a warp for each range, which goes through its rows.

A row of a product is a set of columns, a bit for each. The first step of a chain is a row of a
matrix: the warp's threads share its words where it is bits, its columns where it is a list. Each
further step goes from every member of a set to its row of the next matrix: there each thread has
members of its own. Three sets are kept, in shared memory where they fit: two for the steps of a
chain, in turn, and the one that all chains of a row come to. What is known is taken out of that,
and the columns that are left are written in order.

Whatever the inputs hold, nothing is read that is not theirs (`ops/rows/reaching`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.team import wait
from tenfold.backends.cuda.emit.thread import Position
from tenfold.backends.cuda.library.function import GLOBAL, SHARED, RoutineFunction
from tenfold.backends.cuda.library.routine import GpuRoutine, RoutineLaunch
from tenfold.backends.cuda.target import WARP, CudaTarget
from tenfold.backends.llvm.text import Fragment
from tenfold.types import TensorType

_TABLES, _FIRST = 4, 4  # tables, and the inputs before them
_PARTS = ("lines", "ranks", "starts", "items")
_SHORT = ("all_chains", "longest", "all_heads", "dense", "extent", "words", "rows", "room")
_SETS = 3
_SHARED_WORDS = 512  # of a set in shared memory, at most


def reach_scratch(types: Sequence[TensorType]) -> int:
    """Bytes of memory for sets that shared memory does not hold."""
    words = -(-types[3].shape[1] // 64)
    return 0 if words <= _SHARED_WORDS else types[2].shape[0] * _SETS * words * 8


def reach_routine(
    types: Sequence[TensorType], result: TensorType, given: Mapping[str, Any]
) -> GpuRoutine:
    """The routine for some chains: a block of one warp for each range."""
    chains, heads, ranges, bits = types[:_FIRST]
    extent, scratch = bits.shape[1], reach_scratch(types)
    sizes = [*chains.shape[:2], heads.shape[0], bits.shape[0], extent, -(-extent // 64)]
    sizes += [given["rows"], given["room"]]
    for k in range(_TABLES):
        lines, _, starts, items = types[_FIRST + 4 * k : _FIRST + 4 * k + 4]
        sizes += [lines.shape[0], starts.shape[0], items.shape[0]]
    apart = "apart" if scratch else "shared"
    name = f"tn_reach_{apart}"
    arrays = len(types) + 2 + bool(scratch)  # without memory of its own it is given none
    words = tuple((size, 8) for size in sizes)
    launch = RoutineLaunch(name, ranges.shape[0], WARP, tuple(range(arrays)), words)
    launches = (launch,) if ranges.shape[0] and given["rows"] + given["room"] else ()
    return GpuRoutine(
        lambda target: _Reach(name, target, bool(scratch)).text(), name, launches, scratch
    )


class _Reach:
    """The function on its way."""

    def __init__(self, name: str, target: CudaTarget, apart: bool) -> None:
        arrays = [("chains", "i32"), ("heads", "i32"), ("ranges", "i32"), ("bits", "i64")]
        words = list(_SHORT)
        for k in range(_TABLES):
            arrays += [(f"{part}{k}", "i64" if part == "lines" else "i32") for part in _PARTS]
            words += [f"matrices{k}", f"begins{k}", f"entries{k}"]
        arrays += [("counts", "i32"), ("columns", "i32"), *([("sets", "i64")] if apart else [])]
        f = self.f = RoutineFunction(name, target, WARP, arrays, words)
        self.w = f.w
        self.block, lane = f.long(f.sreg("ctaid.x")), f.sreg("tid.x")
        self.short_lane, self.lane = lane, f.long(lane)
        self.space, self.memory = GLOBAL if apart else SHARED, "%sets"
        if apart:
            self.first = self.mul(self.mul(self.block, _SETS), "%words")
        else:
            self.memory, self.first = f.reserve("i64", _SETS * _SHARED_WORDS), "0"

    # Numbers, all i64.

    def math(self, op: str, a: str | int, b: str | int) -> str:
        return self.f.num(op, "i64", a, b)

    def add(self, a: str | int, b: str | int) -> str:
        return self.math("add", a, b)

    def mul(self, a: str | int, b: str | int) -> str:
        return self.math("mul", a, b)

    def is_(self, test: str, a: str | int, b: str | int) -> str:
        return self.w.op(f"icmp {test} i64 {a}, {b}")

    def both(self, a: str, b: str) -> str:
        return self.f.num("and", "i1", a, b)

    def clamped(self, x: str, low: str, high: str) -> str:
        """A number held between two; the upper one wins."""
        x = self.w.intrinsic("smax", "i64", x, low)
        return self.w.intrinsic("smin", "i64", x, high)

    def number(self, array: str, at: str | int) -> str:
        """An i32 of an array."""
        return self.w.op(f"sext i32 {self.f.read(array, str(at))} to i64")

    # Flow, the same for all threads of the warp unless it is said.

    def each(self, low: str | int, high: str, do: Callable[[str], None], step: int = 1) -> None:
        def body(at: Position, held: list[str]) -> list[str]:
            do(str(at))
            return held

        loop(self.w, "i64", low, high, step, (), body)

    def strided(self, low: str | int, high: str, do: Callable[[str], None]) -> None:
        """From one number up to another, a thread every so many."""
        self.each(self.add(low, self.lane), high, do, WARP)

    def members(
        self, ty: str, bits: str, held: Sequence[str], do: Callable[[str, list[str]], list[str]]
    ) -> list[str]:
        """The numbers of the bits that are set, rising; what the last one carried, of i64."""
        w = self.w
        before, head, end = w.block, w.fresh("bits"), w.fresh("none")
        w.put(f"br i1 {w.op(f'icmp ne {ty} {bits}, 0')}, label %{head}, label %{end}")
        w.label(head)
        left, slot = f"%{w.fresh('left')}", len(w.lines)
        names = [f"%{w.fresh('c')}" for _ in held]
        w.lines.append("")
        number = w.call(ty, f"llvm.cttz.{ty}", (ty, left), ("i1", "true"))
        made = do(number, names)
        rest = w.op(f"and {ty} {left}, {w.op(f'sub {ty} {left}, 1')}")
        more, latch = w.op(f"icmp ne {ty} {rest}, 0"), w.block
        w.put(f"br i1 {more}, label %{head}, label %{end}")
        phis = [f"  {left} = phi {ty} [ {bits}, %{before} ], [ {rest}, %{latch} ]"]
        for name, x, y in zip(names, held, made, strict=True):
            phis.append(f"  {name} = phi i64 [ {x}, %{before} ], [ {y}, %{latch} ]")
        w.lines[slot] = "\n".join(phis)
        w.label(end)
        return [
            w.op(f"phi i64 [ {x}, %{before} ], [ {y}, %{latch} ]")
            for x, y in zip(held, made, strict=True)
        ]

    # Sets.

    def set(self, number: str | int) -> str:
        """Where one of the sets begins."""
        return self.add(self.first, self.mul(number, "%words"))

    def word(self, at: str) -> str:
        """A pointer to a word of sets."""
        if self.space == SHARED:
            return self.f.place(self.memory, "i64", self.f.short(at))
        return self.w.op(f"getelementptr i64, {GLOBAL} {self.memory}, i64 {at}")

    def load(self, at: str) -> str:
        return self.w.op(f"load i64, {self.space} {self.word(at)}, align 8")

    def joined(self, at: str, bits: str, removes: bool = False) -> None:
        """Put bits into a word, or take them out, where others may do the same. Those that are as
        they shall be are left alone: many threads come with the same ones."""
        place = self.word(at)
        held = self.w.op(f"load volatile i64, {self.space} {place}, align 8")
        if not removes:
            held = self.math("xor", held, -1)
        left = self.math("and", bits, held)
        op, by = ("and", self.math("xor", bits, -1)) if removes else ("or", bits)

        def one() -> None:
            self.w.op(f"atomicrmw {op} {self.space} {place}, i64 {by} monotonic, align 8")

        self.f.when(self.is_("ne", left, 0), one)

    def clear(self, set_: str) -> None:
        def zero(i: str) -> None:
            self.w.put(f"store i64 0, {self.space} {self.word(self.add(set_, i))}, align 8")

        self.strided(0, "%words", zero)

    # Steps.

    def along(
        self, set_: str, step: str, row: str, removes: bool = False, alone: bool = False
    ) -> None:
        """Put the columns of a row of a step into a set, or take them out; `step` is where it
        stands among the words of `chains`, or of `heads` where they are taken out. All threads of
        the warp share a row, unless each has one `alone`."""
        f, array = self.f, "heads" if removes else "chains"
        number, low, high = (self.number(array, self.add(step, n)) for n in range(3))
        through = self.each if alone else self.strided

        def join(at: str, bits: str) -> None:
            self.joined(at, bits, removes)

        def dense() -> None:
            line = self.mul(self.add(self.mul(number, "%extent"), row), "%words")
            through(
                0, "%words", lambda i: join(self.add(set_, i), f.read("bits", self.add(line, i)))
            )

        named = self.both(self.is_("slt", low, 0), self.is_("sge", number, 0))
        f.when(self.both(named, self.is_("slt", number, "%dense")), dense)
        f.when(
            self.both(self.is_("sge", low, 0), self.is_("sge", number, 0)),
            lambda: self._in_tables(join, through, set_, number, low, high, row),
        )

    def _in_tables(
        self, join: Callable[[str, str], None], through: Any, set_: str, number: str, low: str,
        high: str, row: str,
    ) -> None:  # fmt: skip
        f = self.f

        def column(items: str, at: str) -> None:
            item = self.number(items, at)

            def one() -> None:
                bit = self.math("shl", 1, self.math("and", item, 63))
                join(self.add(set_, self.math("lshr", item, 6)), bit)

            f.when(self.is_("ult", item, "%extent"), one)

        for k in range(_TABLES):
            there = self.both(self.is_("sle", low, k), self.is_("sgt", high, k))
            there = self.both(there, self.is_("slt", number, f"%matrices{k}"))
            there = self.both(there, self.is_("sgt", f"%begins{k}", 0))

            def lines(k: int = k) -> None:
                place, word, bit = self._line(k, number, row)

                def some() -> None:
                    first, past = self._stretch(k, place, word, bit)
                    through(first, past, lambda at: column(f"items{k}", at))

                f.when(self.is_("ne", self.math("and", word, bit), 0), some)

            f.when(there, lines)

    def _line(self, k: int, number: str, row: str) -> tuple[str, str, str]:
        """Where the word of a line lies in a table, the word, and the line's bit in it."""
        place = self.add(self.mul(number, "%words"), self.math("lshr", row, 6))
        bit = self.math("shl", 1, self.math("and", row, 63))
        return place, self.f.read(f"lines{k}", place), bit

    def _stretch(self, k: int, place: str, word: str, bit: str) -> tuple[str, str]:
        """Where the columns of a line begin and end."""
        w = self.w
        below = self.math("and", word, self.math("sub", bit, 1))
        last = self.math("sub", f"%begins{k}", 1)
        at = self.clamped(self.number(f"ranks{k}", place), "0", last)
        at = self.add(at, w.intrinsic("ctpop", "i64", below))
        ends = (w.intrinsic("smin", "i64", x, last) for x in (at, self.add(at, 1)))
        first, past = (
            self.clamped(self.number(f"starts{k}", end), "0", f"%entries{k}") for end in ends
        )
        return first, past

    def _may_begin(self, step: str, row: str) -> str:
        """Whether a row of a step may have columns: of most rows none has."""
        f = self.f
        number, low, high = (self.number("chains", self.add(step, n)) for n in range(3))
        found = f.num("and", "i1", self.is_("slt", low, 0), self.is_("sge", number, 0))
        for k in range(_TABLES):
            there = self.both(self.is_("sle", low, k), self.is_("sgt", high, k))
            there = self.both(there, self.is_("sge", low, 0))
            there = self.both(there, self.is_("slt", number, f"%matrices{k}"))
            there = self.both(there, self.is_("sge", number, 0))

            def bit(k: int = k) -> str:
                _, word, bit = self._line(k, number, row)
                return self.is_("ne", self.math("and", word, bit), 0)

            found = f.num("or", "i1", found, f.where(there, "i1", bit))
        return found

    def chain(self, number: str, row: str) -> None:
        """What a chain comes to for a row, put into the set of all chains."""
        f, w = self.f, self.w
        begins = self.mul(number, self.mul("%longest", 3))

        def counted(at: Position, held: list[str]) -> list[str]:
            step = self.number("chains", self.add(begins, self.mul(str(at), 3)))
            ended = self.both(self.is_("eq", held[0], str(at)), self.is_("sge", step, 0))
            return [self.add(held[0], w.op(f"zext i1 {ended} to i64"))]

        (count,) = loop(w, "i64", 0, "%longest", 1, [("i64", "0")], counted)

        def through() -> None:
            one = self.is_("eq", count, 1)
            f.when(f.num("xor", "i1", one, "true"), lambda: self.clear(self.set(1)))
            wait(w)
            self.along(w.select(one, "i64", self.set(0), self.set(1)), begins, row)
            wait(w)
            self.each(1, count, step)

        def step(at: str) -> None:
            here = self.add(begins, self.mul(at, 3))
            odd = self.math("and", at, 1)
            last = self.is_("eq", self.add(at, 1), count)
            source, other = self.set(self.math("sub", 2, odd)), self.set(self.add(odd, 1))
            target = w.select(last, "i64", self.set(0), other)
            f.when(f.num("xor", "i1", last, "true"), lambda: self.clear(other))
            wait(w)
            self._from_set(source, lambda member: self.along(target, here, member, alone=True))
            wait(w)

        f.when(self.is_("sgt", count, 0), lambda: f.when(self._may_begin(begins, row), through))

    def _from_set(self, source: str, do: Callable[[str], None]) -> None:
        """For each member of a set, by a thread that has it alone."""
        f = self.f

        def some(base: str) -> None:
            at = self.add(base, self.lane)
            inside = self.is_("slt", at, "%words")
            mine = f.where(inside, "i64", lambda: self.load(self.add(source, at)))

            def word(number: str, held: list[str]) -> list[str]:
                bits = f.picked("i64", mine, number)
                low = self.math("shl", self.add(base, f.long(number)), 6)
                for half in (0, WARP):
                    place = self.add(self.lane, half)
                    member = self.add(low, place)
                    bit = self.math("and", self.math("lshr", bits, place), 1)
                    there = self.both(self.is_("ne", bit, 0), self.is_("slt", member, "%extent"))
                    f.when(there, lambda member=member: do(member))  # type: ignore[misc]
                return held

            self.members("i32", f.votes(self.is_("ne", mine, 0)), [], word)

        self.each(0, "%words", some, WARP)

    # Rows.

    def _word_of_row(self, at: str) -> str:
        """A word of what a row comes to, without bits behind the last column; 0 behind the last
        word."""
        inside = self.is_("slt", at, "%words")
        mine = self.f.where(inside, "i64", lambda: self.load(self.add(self.set(0), at)))
        beyond = self.math("and", self.math("sub", 0, "%extent"), 63)
        last = self.is_("eq", self.add(at, 1), "%words")
        mask = self.w.select(last, "i64", self.math("lshr", -1, beyond), "-1")
        return self.math("and", mine, mask)

    def _total(self) -> str:
        """How many columns a row comes to."""
        f, w = self.f, self.w

        def some(base: Position, held: list[str]) -> list[str]:
            bits = self._word_of_row(self.add(str(base), self.lane))
            return [self.add(held[0], w.intrinsic("ctpop", "i64", bits))]

        (own,) = loop(w, "i64", 0, "%words", WARP, [("i64", "0")], some)
        every = f.before(f.short(own), self.short_lane)
        return f.long(f.picked("i32", every, WARP - 1))

    def _write(self, cursor: str) -> None:
        """Write the columns of a row, in order, from a place on."""
        f, w = self.f, self.w

        def some(base: Position, held: list[str]) -> list[str]:
            at = self.add(str(base), self.lane)
            bits = self._word_of_row(at)
            count = f.short(w.intrinsic("ctpop", "i64", bits))
            up_to = f.before(count, self.short_lane)
            begin = self.add(held[0], f.long(f.num("sub", "i32", up_to, count)))
            low = self.math("shl", at, 6)

            def one(place: str, held: list[str]) -> list[str]:
                f.write("columns", held[0], f.short(self.add(low, place)))
                return [self.add(held[0], 1)]

            self.members("i64", bits, [begin], one)  # each thread its own
            return [self.add(held[0], f.long(f.picked("i32", up_to, WARP - 1)))]

        start = self.add(self.mul(self.block, "%room"), cursor)
        loop(w, "i64", 0, "%words", WARP, [("i64", start)], some)

    def text(self) -> Fragment:
        """The function: the rows of this block's range, one after the other."""
        f, w = self.f, self.w
        own = self.mul(self.block, 3)
        head, low, high = (self.number("ranges", self.add(own, n)) for n in range(3))
        first = self.clamped(low, "0", "%extent")
        most = w.intrinsic("smin", "i64", "%extent", self.add(first, "%rows"))
        past = w.intrinsic("smax", "i64", first, w.intrinsic("smin", "i64", high, most))
        known = self.both(self.is_("sge", head, 0), self.is_("slt", head, "%all_heads"))
        past = w.select(known, "i64", past, first)
        counts = self.mul(self.block, "%rows")
        at_head = self.mul(head, 5)
        leads = self.is_("eq", self.lane, 0)

        def row(at: Position, held: list[str]) -> list[str]:
            """With the columns so far, and whether there was room for all."""
            number, (used, full) = str(at), held

            def made() -> str:
                self.clear(self.set(0))
                wait(w)
                begin, end = (
                    self.clamped(self.number("heads", self.add(at_head, n)), "0", "%all_chains")
                    for n in range(2)
                )
                self.each(begin, end, lambda c: self.chain(c, number))
                wait(w)
                self.along(self.set(0), self.add(at_head, 2), number, removes=True)
                wait(w)
                total = self._total()
                fits = self.is_("sle", self.add(used, total), "%room")
                f.when(fits, lambda: self._write(used))
                wait(w)  # before the next row clears the set
                return w.select(fits, "i64", total, "-1")

            total = f.where(self.is_("eq", full, 0), "i64", made)
            none = f.num("or", "i1", self.is_("slt", total, 0), self.is_("ne", full, 0))
            count = w.select(none, "i64", "-1", total)
            place = self.add(counts, self.math("sub", number, first))
            f.when(leads, lambda: f.write("counts", place, f.short(count)))
            more = w.select(none, "i64", "0", total)
            return [self.add(used, more), w.op(f"zext i1 {none} to i64")]

        used, _ = loop(w, "i64", first, past, 1, [("i64", "0"), ("i64", "0")], row)
        done = self.math("sub", past, first)
        self.strided(done, "%rows", lambda i: f.write("counts", self.add(counts, i), "0"))
        columns = self.mul(self.block, "%room")
        self.strided(used, "%room", lambda i: f.write("columns", self.add(columns, i), "0"))
        return f.text()
