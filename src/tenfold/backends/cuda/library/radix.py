"""Sorting by radix, a digit of eight bits at a time: what the functions of one pass do.

How often each digit is in each tile, where each digit of each tile goes, and a move, in which a
block sorts its tile by the digit in shared memory, so that neighbours are written together. Items
are moved as they are, with their positions where these are asked for; keys are made of them on the
way.
"""

from __future__ import annotations

from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.team import wait
from tenfold.backends.cuda.emit.thread import Position
from tenfold.backends.cuda.library.function import SHARED, Code
from tenfold.backends.cuda.library.ranking import DIGIT, DIGITS, THREADS, Ranking
from tenfold.backends.cuda.target import WARP
from tenfold.frozen import frozen

SHARING = 3  # blocks of threads that are meant to share a processor
_EACH = 4  # counts that a lane scans at a time
TILED = ("n", "tiles", "shift")  # the words of functions that have tiles
COUNTS = ("counts", "i32"), ("totals", "i32")
BLOCKED = ("n", "tiles", "keep", "size", "made", "bits")  # the words of `block`
SCANNED = ("all", "tiles")  # the words of `offsets`, which is given COUNTS


@frozen
class Way:
    """What a function reads and writes: positions or none, elements or none. `final` positions are
    of 64 bits, others of 32."""

    given: bool  # positions are read; else an item's place is its position
    positions: bool
    values: bool
    final: bool = True

    @property
    def name(self) -> str:
        marks = (self.given, "g"), (self.positions, "p"), (self.values, "v"), (self.final, "f")
        return "".join(mark for there, mark in marks if there)


class Radix:
    """What writes the functions for items of so many bits."""

    def __init__(self, bits: int) -> None:
        self.bits, self.type = bits, f"i{bits}"
        self.rows = 16 if bits <= 32 else 8  # items of a thread
        self.f: Code

    def key(self, raw: str) -> str:
        """A number that sorts as an item does."""
        return raw

    @property
    def tile(self) -> int:
        return THREADS * self.rows

    def rows_for(self, n: int) -> int:
        """Items of a thread for a line that a block sorts."""
        return next(rows for rows in (2, 4, 8, 16) if n <= THREADS * rows or rows == self.rows)

    def arrays(self, way: Way) -> list[tuple[str, str]]:
        """What a function in some way is given: x, p, and y, z for what it writes."""
        place = "i64" if way.final else "i32"
        marked = (
            (True, ("x", self.type)),
            (way.given, ("p", "i32")),
            (way.values, ("y", self.type)),
            (way.positions, ("z", place)),
        )
        return [array for there, array in marked if there]

    def digit(self, raw: str, shift: str) -> str:
        """A digit of an element's key, as an i32."""
        f, w, ty = self.f, self.f.w, self.type
        key = self.key(raw)
        if self.bits == 8:
            return w.op(f"zext i8 {key} to i32")
        by = shift if self.bits == 64 else w.op(f"trunc i64 {shift} to {ty}")
        found = w.op(f"lshr {ty} {key}, {by}")
        if self.bits != 32:
            found = w.op(f"{'trunc' if self.bits > 32 else 'zext'} {ty} {found} to i32")
        return f.num("and", "i32", found, DIGITS - 1)

    def kept(self, way: Way, to: str, value: str, position: str) -> None:
        """Write an item: its element, its position (an i32)."""
        f = self.f
        if way.values:
            f.write("y", to, value)
        if way.positions:
            f.write("z", to, f.long(position) if way.final else position)

    def tiled(self, size: str) -> tuple[str, str, str, str, str]:
        """Of a block that has a tile of so many elements (an i64): its line and the tile's number
        there, where both begin, and how many elements it has."""
        f, w = self.f, self.f.w
        block, tiles = f.sreg("ctaid.x"), f.short("%tiles")
        which = f.num("udiv", "i32", block, tiles)
        tile = f.num("sub", "i32", block, f.num("mul", "i32", which, tiles))
        line = f.long(which)
        within = f.num("mul", "i64", f.long(tile), size)
        first = f.num("add", "i64", f.num("mul", "i64", line, "%n"), within)
        left = f.num("sub", "i64", "%n", within)
        count = f.short(w.intrinsic("smin", "i64", left, size))
        return line, tile, within, first, count

    def brought(self, ranking: Ranking, array: str, rows: int, first: str, count: str) -> list[str]:
        """What an array has for the items of a thread."""
        f = self.f
        made = []
        begin = f.num("add", "i64", first, f.long(ranking.item(rows, 0)))
        for row in range(rows):
            number = ranking.item(rows, row)
            at = f.num("add", "i64", begin, row * WARP)
            there = f.w.op(f"icmp ult i32 {number}, {count}")
            made.append(f.where(there, f.types[array], lambda at=at: f.read(array, at)))  # type: ignore[misc]
        return made

    def located(
        self, ranking: Ranking, way: Way, rows: int, within: str, first: str, count: str
    ) -> list[str]:
        """The positions of a thread's items, where they are asked for."""
        if way.given:
            return self.brought(ranking, "p", rows, first, count)
        if not way.positions:
            return []
        begin = self.f.short(within)
        return [self.f.num("add", "i32", begin, ranking.item(rows, row)) for row in range(rows)]

    def ranked(
        self, ranking: Ranking, raws: list[str], count: str, shift: str
    ) -> tuple[list[str], str]:
        """Where items go in the block, and where the thread's digit begins. What is not there goes
        behind all others."""
        w = self.f.w
        digits = []
        for row, raw in enumerate(raws):
            there = w.op(f"icmp ult i32 {ranking.item(len(raws), row)}, {count}")
            digits.append(w.select(there, "i32", self.digit(raw, shift), str(DIGITS - 1)))
        return ranking.ranked(digits)

    def exchange(self, memory: str, ty: str, places: list[str], values: list[str]) -> None:
        for place, value in zip(places, values, strict=True):
            self.f.put(memory, ty, place, value)

    def block(self, f: Code, rows: int, way: Way) -> None:
        """A block for each line, or for a tile of it: all digits of so many `bits`, one after the
        other. The first `keep` of each are written."""
        self.f = f
        w, ranking = f.w, Ranking(f)
        values = f.reserve(self.type, THREADS * rows)
        spots = f.reserve("i32", THREADS * rows) if way.positions else ""
        line, tile, within, first, count = self.tiled("%size")
        raws = self.brought(ranking, "x", rows, first, count)
        places = self.located(ranking, way, rows, within, first, count)
        numbers = [ranking.item(rows, row) for row in range(rows)]

        def body(shift: Position, held: list[str]) -> list[str]:
            goals, _ = self.ranked(ranking, held[:rows], count, str(shift))
            self.exchange(values, self.type, goals, held[:rows])
            self.exchange(spots, "i32", goals[: len(places)], held[rows:])
            wait(w)
            made = [f.get(values, self.type, number) for number in numbers]
            made += [f.get(spots, "i32", number) for number in numbers[: len(places)]]
            wait(w)
            return made

        slots = [*((self.type, x) for x in raws), *(("i32", x) for x in places)]
        held = loop(w, "i64", 0, "%bits", DIGIT, slots, body)
        start = f.num("mul", "i64", line, "%made")
        start = f.num("add", "i64", start, f.num("mul", "i64", f.long(tile), "%keep"))
        last = w.intrinsic("umin", "i32", count, f.short("%keep"))
        for row, number in enumerate(numbers):
            there = w.op(f"icmp ult i32 {number}, {last}")
            to = f.num("add", "i64", start, f.long(number))
            position = held[rows + row] if places else ""
            f.when(there, lambda to=to, row=row, p=position: self.kept(way, to, held[row], p))  # type: ignore[misc]

    def digits(self, f: Code) -> None:
        """How often each digit is in each tile: by lines, then digits, then tiles."""
        self.f, w = f, f.w
        memory = f.reserve("i32", DIGITS)
        thread = f.sreg("tid.x")
        f.put(memory, "i32", thread, "0")
        line, tile, _, first, count = self.tiled(str(self.tile))
        numbers = [f.num("add", "i32", thread, n * THREADS) for n in range(self.rows)]
        there = [w.op(f"icmp ult i32 {number}, {count}") for number in numbers]
        raws = []
        for number, test in zip(numbers, there, strict=True):
            at = f.num("add", "i64", first, f.long(number))
            raws.append(f.where(test, self.type, lambda at=at: f.read("x", at)))  # type: ignore[misc]
        wait(w)
        for raw, test in zip(raws, there, strict=True):
            place = f.place(memory, "i32", self.digit(raw, "%shift"))

            def one(place: str = place) -> None:
                w.op(f"atomicrmw add {SHARED} {place}, i32 1 monotonic, align 4")

            f.when(test, one)
        wait(w)
        to = self._counted_at(line, thread, tile)
        f.write("counts", to, f.get(memory, "i32", thread))

    def _counted_at(self, line: str, digit: str, tile: str) -> str:
        """Where the count of a digit in a tile lies."""
        f = self.f
        row = f.num("add", "i64", f.num("mul", "i64", line, DIGITS), f.long(digit))
        return f.num("add", "i64", f.num("mul", "i64", row, "%tiles"), f.long(tile))

    def offsets(self, f: Code) -> None:
        """A warp for each digit of a line: how many there are in the tiles before each, in place of
        how many are in it, and how many there are in all."""
        self.f, w = f, f.w
        thread = f.sreg("tid.x")
        lane = f.num("and", "i32", thread, WARP - 1)
        warps = f.num("mul", "i64", f.long(f.sreg("ctaid.x")), THREADS // WARP)
        me = f.num("add", "i64", warps, f.long(f.num("lshr", "i32", thread, 5)))
        alive = w.op(f"icmp slt i64 {me}, %all")
        begins = f.num("mul", "i64", me, "%tiles")

        def body(chunk: Position, held: list[str]) -> list[str]:
            carry = held[0]
            spots = [
                f.num("add", "i64", f.num("add", "i64", str(chunk), n * WARP), f.long(lane))
                for n in range(_EACH)
            ]
            tests = [f.num("and", "i1", alive, w.op(f"icmp slt i64 {at}, %tiles")) for at in spots]
            places = [f.num("add", "i64", begins, at) for at in spots]
            found = [
                f.where(test, "i32", lambda at=at: f.read("counts", at))  # type: ignore[misc]
                for test, at in zip(tests, places, strict=True)
            ]
            for test, at, x in zip(tests, places, found, strict=True):
                up_to = f.before(x, lane)
                made = f.num("add", "i32", carry, f.num("sub", "i32", up_to, x))
                f.when(test, lambda at=at, made=made: f.write("counts", at, made))  # type: ignore[misc]
                carry = f.num("add", "i32", carry, f.picked("i32", up_to, WARP - 1))
            return [carry]

        (total,) = loop(w, "i64", 0, "%tiles", _EACH * WARP, [("i32", "0")], body)
        leads = f.num("and", "i1", alive, w.op(f"icmp eq i32 {lane}, 0"))
        f.when(leads, lambda: f.write("totals", me, total))

    def move(self, f: Code, way: Way) -> None:
        """A block for each tile: sorted by a digit in shared memory, then written where its digits
        go."""
        self.f = f
        w, ranking, rows = f.w, Ranking(f), self.rows
        values = f.reserve(self.type, self.tile)
        spots = f.reserve("i32", self.tile) if way.positions else ""
        moves = f.reserve("i32", DIGITS)
        line, tile, within, first, count = self.tiled(str(self.tile))
        raws = self.brought(ranking, "x", rows, first, count)
        goals, start = self.ranked(ranking, raws, count, "%shift")
        self.exchange(values, self.type, goals, raws)
        # Positions only now: while items are ranked, registers are few.
        places = self.located(ranking, way, rows, within, first, count)
        self.exchange(spots, "i32", goals[: len(places)], places)
        digit = ranking.thread
        total = f.num("add", "i64", f.num("mul", "i64", line, DIGITS), f.long(digit))
        before = ranking.scanned(f.read("totals", total))
        before = f.num("add", "i32", before, f.read("counts", self._counted_at(line, digit, tile)))
        f.put(moves, "i32", digit, f.num("sub", "i32", before, start))
        wait(w)
        begins = f.num("mul", "i64", line, "%n")
        for row in range(rows):
            number = f.num("add", "i32", ranking.thread, row * THREADS)

            def one(number: str = number) -> None:
                raw = f.get(values, self.type, number)
                by = f.get(moves, "i32", self.digit(raw, "%shift"))
                to = f.num("add", "i64", begins, f.long(f.num("add", "i32", number, by)))
                self.kept(way, to, raw, f.get(spots, "i32", number) if spots else "")

            f.when(w.op(f"icmp ult i32 {number}, {count}"), one)
