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
        self, form: ScatterForm, keys: Any, numbers: Any, totals: Any, digits: int, spare: int
    ) -> None:
        """`totals` says where the sizes of buckets begin; so many `digits` are left to sort by, and
        so many `spare` bits behind them, for which there is no digit more: their places, two of
        them, are joined side by side."""
        super().__init__(form, keys, numbers)
        self.digits, self.spare = digits, spare
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
            goals, _ = radix.ranked(ranking, held[0], count, str(self.spare + digit * DIGIT))
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

    def group(self, at: Text) -> Text:
        """What a tile was sorted by, at a spot."""
        key = self.code.get(self.values, "i32", at)
        return self.code.num("lshr", "i32", key, self.spare) if self.spare else key

    def mark(self, count: Text) -> None:
        """Where places begin, as bits."""
        code, w, ranking = self.code, self.w, self.ranking
        for row in range(self.rows):
            at = code.num("add", "i32", ranking.thread, row * THREADS)
            before = code.num("sub", "i32", w.intrinsic("umax", "i32", at, "1"), 1)
            keys = (self.group(n) for n in (at, before))
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
        """All updates in this tile of a place, or of two, from the first on, to what is there."""
        code, w = self.code, self.w
        group = self.group(first)
        keys = [code.num("add", "i32", code.num("shl", "i32", group, self.spare), n)
                for n in range(1 << self.spare)]  # fmt: skip
        there = [x for key in keys for x in self.held(key)]
        before, head, end = w.block, w.fresh("loop"), w.fresh("end")
        w.put(f"br label %{head}")
        w.label(head)
        spot, names = f"%{w.fresh('i')}", [f"%{w.fresh('c')}" for _ in there]
        touched = [f"%{w.fresh('t')}" for _ in keys]
        slot = len(w.lines)
        w.lines.append("")
        last = code.num("sub", "i32", count, 1)
        found, goes = [], ""
        for n in range(_AT_ONCE):
            here = code.num("add", "i32", spot, n)
            near = w.intrinsic("umin", "i32", here, last)
            inside = w.op(f"icmp ult i32 {here}, {count}")
            goes = w.op(f"icmp eq i32 {self.group(near)}, {group}")
            goes = w.op(f"and i1 {goes}, {inside}")
            given = [short(w, ty, code.get(m, kept(ty), near))
                     for m, ty in zip(self.brought, self.types, strict=True)]  # fmt: skip
            found.append((inside, code.get(self.values, "i32", near), given))
        now, some = list(names), list(touched)
        for inside, own, given in found:  # those of a place keep their order
            for side, key in enumerate(keys):
                test = w.op(f"and i1 {inside}, {w.op(f'icmp eq i32 {own}, {key}')}")
                part = slice(side * self.parts, (side + 1) * self.parts)
                now[part] = self.joined(test, now[part], given)
                some[side] = w.op(f"or i1 {some[side]}, {test}")
        following = code.num("add", "i32", spot, _AT_ONCE)
        pairs = [(spot, "i32", first, following)]
        pairs += zip(names, self.types * len(keys), there, now, strict=True)
        pairs += [(name, "i1", "false", x) for name, x in zip(touched, some, strict=True)]
        w.lines[slot] = self._phis(pairs, before)
        w.put(f"br i1 {goes}, label %{head}, label %{end}")
        w.label(end)
        for side, (key, test) in enumerate(zip(keys, some, strict=True)):
            values = now[side * self.parts : (side + 1) * self.parts]
            code.when(test, lambda key=key, values=values: self.leave(key, values))  # type: ignore[misc]

    def held(self, key: Text) -> list[Text]:
        """What is there at a place; at one behind all of them what is at the last."""
        w, memory = self.w, element(self.dtype)
        near = key
        if self.spare:
            end = w.const("i32", self.form.places, False)
            near = w.intrinsic("umin", "i32", key, self.code.num("sub", "i32", end, 1))
        align = size_in_memory(memory)
        return [
            widen(w, self.dtype, w.op(f"load {memory}, {GLOBAL} {at}, align {align}"), False)
            for at in self.beside(near)
        ]

    def leave(self, key: Text, values: list[Text]) -> None:
        w, memory = self.w, element(self.dtype)
        for at, x in zip(self.beside(key), values, strict=True):
            raw = narrow(w, self.dtype, x, False)
            w.put(f"store {memory} {raw}, {GLOBAL} {at}, align {size_in_memory(memory)}")

    def beside(self, key: Text) -> list[Text]:
        """Where what is updated lies, part by part."""
        code = self.code
        at = code.num("mul", "i64", code.long(key), self.parts)
        begin = f"getelementptr {element(self.dtype)}, {GLOBAL} %b{self.store.buffer}"
        return [
            self.w.op(f"{begin}, i64 {code.num('add', 'i64', at, part)}")
            for part in range(self.parts)
        ]
