"""Updates of a scatter that were sorted by the first digit of their places only: a bucket for each
value of that digit, in which they keep their order.

A block of threads has a bucket. It takes a tile of it at a time, sorts that by the rest of places
in shared memory, brings what updates are to be joined there, and marks where a place begins. Then
each thread takes the places that begin among some neighbours, and joins their updates one after the
other to what is there. The next tile goes on from there, so a place has all of its updates in their
order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.function import FunctionWriter
from tenfold.backends.cuda.emit.memory import GLOBAL, element, size_in_memory
from tenfold.backends.cuda.emit.team import kept, short, wait, wide
from tenfold.backends.cuda.emit.thread import Position, Text
from tenfold.backends.cuda.emit.turns import KernelCode, Turns
from tenfold.backends.cuda.library.radix import Radix
from tenfold.backends.cuda.library.ranking import DIGIT, THREADS, Ranking
from tenfold.backends.cuda.target import WARP
from tenfold.backends.llvm.casts import narrow, widen
from tenfold.backends.llvm.writer import SIZES

if TYPE_CHECKING:
    from tenfold.backends.cuda.emit.scatter import ScatterForm

_AT_ONCE = 8  # updates that a thread reads before it joins them
_WIDEST = 8  # bytes of an update that shared memory has room for


def fits(form: ScatterForm) -> bool:
    """Whether updates of a scatter are joined so: without windows, and no longer than there is room
    for."""
    return bool(form.store.update) and not form.windows and SIZES[form.dtype] <= _WIDEST


class Buckets(Turns):
    """What writes the function that joins updates."""

    def __init__(
        self, form: ScatterForm, keys: Any, numbers: Any, totals: Any, digits: int
    ) -> None:
        """`totals` says where the sizes of buckets begin; so many `digits` are left to sort by."""
        super().__init__(form, keys, numbers)
        self.digits = digits
        code = self.code = KernelCode(self.f, dict.fromkeys(("x", "p", "totals"), "i32"))
        for name, start in (("x", keys), ("p", numbers), ("totals", totals)):
            place = self.f.word(start)
            self.w.put(f"%{name} = getelementptr i8, {GLOBAL} %partial, i64 {place}")
        self.radix, self.ranking = Radix(32), Ranking(code)
        self.radix.f = code
        single = len(self.types) == 1 and kept(self.types[0]) in ("float", "i32")
        self.rows = 16 if single else 8  # updates of a thread in a tile
        self.tile = THREADS * self.rows
        self.values = code.reserve("i32", self.tile)
        self.spots = code.reserve("i32", self.tile)
        # What an update brings takes the place of its number, where it is as long.
        self.brought = [self.spots] if single else [
            code.reserve(kept(ty), self.tile) for ty in self.types
        ]  # fmt: skip
        self.marks = code.reserve("i32", self.tile // WARP)

    def write(self) -> FunctionWriter:
        code, w, ranking = self.code, self.w, self.ranking
        thread = ranking.thread
        size = code.read("totals", code.long(thread))
        before = ranking.scanned(size)
        bucket = code.reserve("i32", 2)

        def tell() -> None:
            code.put(bucket, "i32", "0", before)
            code.put(bucket, "i32", "1", size)

        code.when(w.op(f"icmp eq i32 {thread}, {self.f.sreg('ctaid.x')}"), tell)
        wait(w)
        start, count = code.get(bucket, "i32", "0"), code.get(bucket, "i32", "1")

        def one(at: Position, held: list[Text]) -> list[Text]:
            left = w.intrinsic(
                "umin", "i32", code.num("sub", "i32", count, str(at)), str(self.tile)
            )
            self.sort(code.long(code.num("add", "i32", start, str(at))), left)
            self.bring()
            wait(w)
            self.mark(left)
            wait(w)
            self.join(left)
            wait(w)
            return held

        loop(w, "i32", 0, count, self.tile, (), one)
        return self.f

    def sort(self, first: Text, count: Text) -> None:
        """A tile by the digits that are left, in shared memory."""
        code, radix, ranking, rows = self.code, self.radix, self.ranking, self.rows
        numbers = [ranking.item(rows, row) for row in range(rows)]
        held = [radix.brought(ranking, name, rows, first, count) for name in ("x", "p")]
        memory = self.values, self.spots
        for digit in range(self.digits):
            if digit:
                held = [[code.get(m, "i32", number) for number in numbers] for m in memory]
                wait(self.w)
            goals, _ = radix.ranked(ranking, held[0], count, str(digit * DIGIT))
            for m, items in zip(memory, held, strict=True):
                radix.exchange(m, "i32", goals, items)
            wait(self.w)

    def bring(self) -> None:
        """What each update brings. One that is not there has the number of the first."""
        code, w, store = self.code, self.w, self.store
        wanted = [v for v in (store.value, store.second) if v is not None]

        def some(turn: Position, _: list[Text]) -> list[Text]:
            begin = code.num("add", "i32", code.num("mul", "i32", str(turn), THREADS),
                             self.ranking.thread)  # fmt: skip
            places = [code.num("add", "i32", begin, n * THREADS) for n in range(_AT_ONCE)]
            made = []
            for place in places:
                with self.bound(code.get(self.spots, "i32", place), ()):
                    self.form.compute(self.t, wanted)
                    made.append([self.t.get(v) for v in wanted])
            for place, values in zip(places, made, strict=True):
                for memory, ty, x in zip(self.brought, self.types, values, strict=True):
                    code.put(memory, kept(ty), place, wide(w, ty, x))
            return []

        loop(w, "i32", 0, self.rows, _AT_ONCE, (), some)

    def mark(self, count: Text) -> None:
        """Where places begin, as bits."""
        code, w, ranking = self.code, self.w, self.ranking
        for row in range(self.rows):
            at = code.num("add", "i32", ranking.thread, row * THREADS)
            before = code.num("sub", "i32", w.intrinsic("umax", "i32", at, "1"), 1)
            keys = (code.get(self.values, "i32", n) for n in (at, before))
            begins = w.op(f"icmp ne i32 {', '.join(keys)}")
            begins = w.op(f"or i1 {begins}, {w.op(f'icmp eq i32 {at}, 0')}")
            begins = w.op(f"and i1 {begins}, {w.op(f'icmp ult i32 {at}, {count}')}")
            votes, word = code.votes(begins), code.num("lshr", "i32", at, 5)

            def leave(word: Text = word, votes: Text = votes) -> None:
                code.put(self.marks, "i32", word, votes)

            code.when(w.op(f"icmp eq i32 {ranking.lane}, 0"), leave)

    def join(self, count: Text) -> None:
        """The places that begin among a thread's neighbours, one after the other."""
        code, w = self.code, self.w
        own = code.num("mul", "i32", self.ranking.thread, self.rows)
        bits = code.get(self.marks, "i32", code.num("lshr", "i32", own, 5))
        bits = code.num("lshr", "i32", bits, code.num("and", "i32", own, WARP - 1))
        bits = code.num("and", "i32", bits, (1 << self.rows) - 1)
        turns = w.intrinsic("ctpop", "i32", bits)

        def one(_: Position, held: list[Text]) -> list[Text]:
            (left,) = held
            next_ = w.call("i32", "llvm.cttz.i32", ("i32", left), ("i1", "false"))
            self.join_place(code.num("add", "i32", own, next_), count)
            return [code.num("and", "i32", left, code.num("sub", "i32", left, 1))]

        loop(w, "i32", 0, turns, 1, [("i32", bits)], one)

    def join_place(self, first: Text, count: Text) -> None:
        """All updates of a place in this tile, from its first on, to what is there."""
        code, w = self.code, self.w
        key = code.get(self.values, "i32", first)
        memory = element(self.dtype)
        align = size_in_memory(memory)
        at = code.num("mul", "i64", code.long(key), self.parts)
        places = [
            w.op(
                f"getelementptr {memory}, {GLOBAL} %b{self.store.buffer}, "
                f"i64 {code.num('add', 'i64', at, part)}"
            )
            for part in range(self.parts)
        ]
        there = [
            widen(w, self.dtype, w.op(f"load {memory}, {GLOBAL} {place}, align {align}"), False)
            for place in places
        ]
        before, head, end = w.block, w.fresh("loop"), w.fresh("end")
        w.put(f"br label %{head}")
        w.label(head)
        spot, names = f"%{w.fresh('i')}", [f"%{w.fresh('c')}" for _ in there]
        slot = len(w.lines)
        w.lines.append("")
        now, same = list(names), ""
        last = code.num("sub", "i32", count, 1)
        found = []
        for n in range(_AT_ONCE):
            here = code.num("add", "i32", spot, n)
            near = w.intrinsic("umin", "i32", here, last)
            same = w.op(f"icmp eq i32 {code.get(self.values, 'i32', near)}, {key}")
            same = w.op(f"and i1 {same}, {w.op(f'icmp ult i32 {here}, {count}')}")
            given = [short(w, ty, code.get(m, kept(ty), near))
                     for m, ty in zip(self.brought, self.types, strict=True)]  # fmt: skip
            found.append((same, given))
        for test, given in found:  # those of a place follow each other
            now = self.joined(test, now, given)
        following = code.num("add", "i32", spot, _AT_ONCE)
        pairs = [(spot, "i32", first, following), *zip(names, self.types, there, now, strict=True)]
        w.lines[slot] = self._phis(pairs, before)
        w.put(f"br i1 {same}, label %{head}, label %{end}")
        w.label(end)
        for place, x in zip(places, now, strict=True):
            raw = narrow(w, self.dtype, x, False)
            w.put(f"store {memory} {raw}, {GLOBAL} {place}, align {align}")
