"""Stable sorts of lines, and the few greatest of them.

Elements are moved as they are and compared by keys (`cpu/library/sort/keys`): unsigned numbers that
sort as the elements do, with zeros of either sign equal, and NaNs equal and last. As sorts are
stable, elements of equal keys stay in their order, with their own bits. Positions are moved beside
elements where they are asked for. The greatest come first where keys are complemented.

- Lines of up to 256 elements: for each element, those that go before it are counted.
- Up to a tile of 2048 or 4096: a block sorts a line by radix, in shared memory.
- Longer ones by radix, a digit of eight bits at a time, in three functions: how often each digit
  is in each tile; where each digit of each tile goes; and a move, in which a block sorts its tile
  by the digit, so that neighbours are written together.

The few greatest of a long line are the greatest of the greatest of its tiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.backends.cpu.library.sort.keys import form_of
from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.team import wait
from tenfold.backends.cuda.emit.thread import Position
from tenfold.backends.cuda.library.function import SHARED, RoutineFunction
from tenfold.backends.cuda.library.ranking import DIGIT, DIGITS, THREADS, Ranking
from tenfold.backends.cuda.library.routine import GpuRoutine, RoutineLaunch
from tenfold.backends.cuda.target import WARP, CudaTarget
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import kind
from tenfold.frozen import frozen
from tenfold.types import SHORT, TensorType

_COUNTED = THREADS  # elements of a line that are sorted by counting
_LONGEST = 1 << 31  # elements of a line: positions have 32 bits
_EACH = 4  # counts that a lane scans at a time
_SHARING = 3  # blocks of threads that are meant to share a processor
_ALIGN = 256
X, Y, Z = 0, 1, 2  # arrays of a routine: its input and its outputs; then comes scratch memory


def sort_routine(name: str, type: TensorType, given: Mapping[str, Any]) -> GpuRoutine | None:
    """The routine of a sort along the last axis, of positions or of elements."""
    dtype = SHORT[type.dtype]
    if not type.size or kind(dtype) == "c" or given["axis"] != type.rank - 1:
        return None
    n = type.shape[-1]
    return None if n >= _LONGEST else _Calls(name, dtype, n, type.size // n).sort()


def greatest_routine(type: TensorType, k: int) -> GpuRoutine | None:
    """The routine for the k greatest elements along the last axis, and their positions."""
    n = type.shape[-1]
    if not type.size or not k or n >= _LONGEST:
        return None
    return _Calls("greatest", SHORT[type.dtype], n, type.size // n).greatest(k)


@frozen
class _Way:
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


class _Calls:
    """The launches of a sort, and the functions that they need."""

    def __init__(self, name: str, dtype: str, n: int, lines: int) -> None:
        self.sorts = _Functions(name, dtype)
        self.name, self.n, self.lines = name, n, lines
        self.size = self.sorts.bits // 8
        self.launches: list[RoutineLaunch] = []
        self.scratch = 0

    def reserve(self, count: int, size: int) -> int:
        """Scratch memory: where it begins."""
        start = self.scratch
        self.scratch += -(-count * size // _ALIGN) * _ALIGN
        return start

    def launch(
        self, function: str, blocks: int, arrays: Sequence[tuple[int, int]], *words: int
    ) -> None:
        """One launch: arrays by their numbers, with how many bytes further they begin."""
        every = [*words, *(offset for _, offset in arrays)]
        self.launches.append(
            RoutineLaunch(
                f"{self.sorts.symbol}_{function}", blocks, THREADS,
                tuple(array for array, _ in arrays), tuple((word, 8) for word in every),
            )
        )  # fmt: skip

    def routine(self) -> GpuRoutine:
        prefix = f"{self.sorts.symbol}_"
        names = sorted({one.function.removeprefix(prefix) for one in self.launches})
        sorts = self.sorts
        return GpuRoutine(
            lambda target: sorts.text(names, target), f"{prefix}{' '.join(names)}",
            tuple(self.launches), self.scratch,
        )  # fmt: skip

    def sort(self) -> GpuRoutine:
        n, lines, sorts = self.n, self.lines, self.sorts
        way = _Way(False, sorts.positions, not sorts.positions)
        if n <= _COUNTED:
            self.counted(n, way, ((Y, 0),))
        elif n <= sorts.tile:
            rows = sorts.rows_for(n)
            self.launch(f"block{rows}_{way.name}", lines, ((X, 0), (Y, 0)), n, 1, n, n, n)
        else:
            self.long()
        return self.routine()

    def counted(self, keep: int, way: _Way, outputs: Sequence[tuple[int, int]]) -> None:
        shift = max(2, (self.n - 1).bit_length())
        teams = THREADS >> shift
        blocks = -(-self.lines // teams)
        self.launch(
            f"counted_{way.name}", blocks, ((X, 0), *outputs), self.n, self.lines, shift, keep
        )

    def long(self) -> None:
        n, lines, sorts = self.n, self.lines, self.sorts
        tiles = -(-n // sorts.tile)
        scratch = 1 + 1  # behind the input and the output
        counts = self.reserve(lines * tiles * DIGITS, 4)
        totals = self.reserve(lines * DIGITS, 4)
        passes = sorts.bits // DIGIT
        moved = [(scratch, self.reserve(lines * n, self.size)) for _ in range(min(passes - 1, 2))]
        places = [
            (scratch, self.reserve(lines * n, 4))
            for _ in range(min(passes - 1, 2) if sorts.positions else 0)
        ]
        source, at = (X, 0), (X, 0)
        for number in range(passes):
            first, last = number == 0, number == passes - 1
            way = _Way(False, False, True)
            if sorts.positions:
                way = _Way(not first, True, not last, last)
            shift = number * DIGIT
            grid = lines * tiles
            self.launch("digits", grid, (source, (scratch, counts)), n, tiles, shift)
            blocks = -(-lines * DIGITS * WARP // THREADS)
            of = (scratch, counts), (scratch, totals)
            self.launch("offsets", blocks, of, lines * DIGITS, tiles)
            arrays = [source, *([at] if way.given else [])]
            target, spot = ((Y, 0), (Y, 0)) if last else (moved[number % 2], (X, 0))
            if places and not last:
                spot = places[number % 2]
            arrays += [*([target] if way.values else []), *([spot] if way.positions else []), *of]
            self.launch(f"move_{way.name}", grid, arrays, n, tiles, shift)
            source, at = target, spot

    def greatest(self, k: int) -> GpuRoutine:
        n, lines, sorts = self.n, self.lines, self.sorts
        if n <= _COUNTED:
            self.counted(k, _Way(False, True, True), ((Y, 0), (Z, 0)))
            return self.routine()
        source: list[tuple[int, int]] = [(X, 0)]
        while True:
            tiles = -(-n // sorts.tile)
            left = n - (tiles - 1) * sorts.tile
            following = (tiles - 1) * k + min(k, left)
            final = tiles == 1
            way = _Way(len(source) > 1, True, True, final)
            target = [(Y, 0), (Z, 0)] if final else [
                (3, self.reserve(lines * following, self.size)),
                (3, self.reserve(lines * following, 4)),
            ]  # fmt: skip
            rows = sorts.rows_for(n)
            self.launch(
                f"block{rows}_{way.name}", lines * tiles, (*source, *target),
                n, tiles, k, sorts.tile, following,
            )  # fmt: skip
            if final:
                return self.routine()
            source, n = target, following


class _Functions:
    """What writes the functions of a sort."""

    def __init__(self, name: str, dtype: str) -> None:
        self.form = form_of("sort", dtype)
        self.symbol, self.bits = f"tn_{name}_{dtype}", self.form.bits
        self.type = f"i{self.bits}"
        self.positions = name != "sort"
        self.falling = name == "greatest"
        self.rows = 16 if self.bits <= 32 else 8  # items of a thread
        self.f: RoutineFunction

    @property
    def tile(self) -> int:
        return THREADS * self.rows

    def rows_for(self, n: int) -> int:
        """Items of a thread for a line that a block sorts."""
        return next(rows for rows in (2, 4, 8, 16) if n <= THREADS * rows or rows == self.rows)

    def text(self, names: Sequence[str], target: CudaTarget) -> Fragment:
        parts = [self._function(name, target) for name in names]
        needs = dict.fromkeys(line for part in parts for line in part.declarations)
        return Fragment(tuple(needs), "\n".join(part.body for part in parts))

    def _function(self, name: str, target: CudaTarget) -> Fragment:
        head, _, marks = name.partition("_")
        way = _Way(*(mark in marks for mark in "gpvf"))
        if head == "counted":
            return self.counted(name, way, target)
        if head == "digits":
            return self.digits(name, target)
        if head == "offsets":
            return self.offsets(name, target)
        if head == "move":
            return self.move(name, way, target)
        return self.block(name, int(head.removeprefix("block")), way, target)

    def begin(
        self, name: str, target: CudaTarget, arrays: Sequence[tuple[str, str]],
        words: Sequence[str], least: int = 1,
    ) -> RoutineFunction:  # fmt: skip
        f = RoutineFunction(
            f"{self.symbol}_{name}", target, THREADS, arrays, words, least, moved=True
        )
        self.f = f
        return f

    def arrays(self, way: _Way) -> list[tuple[str, str]]:
        """What a function in some way is given: x, p, and y, z for what it writes."""
        place = "i64" if way.final else "i32"
        marked = (
            (True, ("x", self.type)),
            (way.given, ("p", "i32")),
            (way.values, ("y", self.type)),
            (way.positions, ("z", place)),
        )
        return [array for there, array in marked if there]

    # Elements.

    def key(self, raw: str) -> str:
        """A number that sorts as an element does."""
        w, form, ty = self.f.w, self.form, self.type
        if form.letter != "f":
            made = w.op(f"xor {ty} {raw}, {form.sign}") if form.letter == "i" else raw
        else:
            size = w.op(f"and {ty} {raw}, {~form.sign}")
            minus = w.op(f"ashr {ty} {raw}, {form.bits - 1}")
            made = w.op(f"xor {ty} {raw}, {w.op(f'or {ty} {minus}, {form.sign}')}")
            zero = w.op(f"icmp eq {ty} {size}, 0")
            made = w.select(zero, ty, str(form.sign), made)
            made = w.select(w.op(f"icmp ugt {ty} {size}, {form.infinity}"), ty, "-1", made)
        return w.op(f"xor {ty} {made}, -1") if self.falling else made

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

    def kept(self, way: _Way, to: str, value: str, position: str) -> None:
        """Write an item: its element, its position (an i32)."""
        f = self.f
        if way.values:
            f.write("y", to, value)
        if way.positions:
            f.write("z", to, f.long(position) if way.final else position)

    # Short lines.

    def counted(self, name: str, way: _Way, target: CudaTarget) -> Fragment:
        """A team of threads for each line, a thread for an element: its place is how many go before
        it."""
        words = ("n", "lines", "shift", "keep")
        f = self.begin(name, target, self.arrays(way), words)
        w = f.w
        keys = f.reserve(self.type, THREADS)
        thread, shift, n = f.sreg("tid.x"), f.short("%shift"), f.short("%n")
        size = f.num("shl", "i32", 1, shift)
        team = f.num("lshr", "i32", thread, shift)
        me = f.num("and", "i32", thread, f.num("sub", "i32", size, 1))
        teams = f.num("lshr", "i32", THREADS, shift)
        line = f.num("mul", "i64", f.long(f.sreg("ctaid.x")), f.long(teams))
        line = f.num("add", "i64", line, f.long(team))
        inside = f.num("and", "i1", w.op(f"icmp ult i32 {me}, {n}"),
                       w.op(f"icmp slt i64 {line}, %lines"))  # fmt: skip
        at = f.num("add", "i64", f.num("mul", "i64", line, "%n"), f.long(me))
        raw = f.where(inside, self.type, lambda: f.read("x", at))
        key = w.select(inside, self.type, self.key(raw), "-1")  # behind all others
        f.put(keys, self.type, thread, key)
        wait(w)
        first = f.num("shl", "i32", team, shift)

        def body(j: Position, held: list[str]) -> list[str]:
            place = held[0]
            for n in range(4):
                other = f.num("add", "i32", str(j), n)
                found = f.get(keys, self.type, f.num("add", "i32", first, other))
                less = w.op(f"icmp ult {self.type} {found}, {key}")
                same = w.op(f"icmp eq {self.type} {found}, {key}")
                same = f.num("and", "i1", same, w.op(f"icmp ult i32 {other}, {me}"))
                before = f.num("or", "i1", less, same)
                place = f.num("add", "i32", place, w.op(f"zext i1 {before} to i32"))
            return [place]

        (place,) = loop(w, "i32", 0, n, 4, [("i32", "0")], body)
        to = f.num("add", "i64", f.num("mul", "i64", line, "%keep"), f.long(place))
        among = w.op(f"icmp slt i64 {f.long(place)}, %keep")
        f.when(f.num("and", "i1", inside, among), lambda: self.kept(way, to, raw, me))
        return f.text()

    # Lines that a block sorts.

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
        for row in range(rows):
            number = ranking.item(rows, row)
            at = f.num("add", "i64", first, f.long(number))
            there = f.w.op(f"icmp ult i32 {number}, {count}")
            made.append(f.where(there, f.types[array], lambda at=at: f.read(array, at)))  # type: ignore[misc]
        return made

    def located(
        self, ranking: Ranking, way: _Way, rows: int, within: str, first: str, count: str
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

    def block(self, name: str, rows: int, way: _Way, target: CudaTarget) -> Fragment:
        """A block for each line, or for a tile of it: all digits, one after the other. The first
        `keep` of each are written."""
        words = ("n", "tiles", "keep", "size", "made")
        f = self.begin(name, target, self.arrays(way), words, _SHARING)
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
        held = loop(w, "i64", 0, self.bits, DIGIT, slots, body)
        start = f.num("mul", "i64", line, "%made")
        start = f.num("add", "i64", start, f.num("mul", "i64", f.long(tile), "%keep"))
        last = w.intrinsic("umin", "i32", count, f.short("%keep"))
        for row, number in enumerate(numbers):
            there = w.op(f"icmp ult i32 {number}, {last}")
            to = f.num("add", "i64", start, f.long(number))
            position = held[rows + row] if places else ""
            f.when(there, lambda to=to, row=row, p=position: self.kept(way, to, held[row], p))  # type: ignore[misc]
        return f.text()

    # Long lines.

    def digits(self, name: str, target: CudaTarget) -> Fragment:
        """How often each digit is in each tile: by lines, then digits, then tiles."""
        arrays = [("x", self.type), ("counts", "i32")]
        f = self.begin(name, target, arrays, ("n", "tiles", "shift"))
        w = f.w
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
        return f.text()

    def _counted_at(self, line: str, digit: str, tile: str) -> str:
        """Where the count of a digit in a tile lies."""
        f = self.f
        row = f.num("add", "i64", f.num("mul", "i64", line, DIGITS), f.long(digit))
        return f.num("add", "i64", f.num("mul", "i64", row, "%tiles"), f.long(tile))

    def offsets(self, name: str, target: CudaTarget) -> Fragment:
        """A warp for each digit of a line: how many there are in the tiles before each, in place of
        how many are in it, and how many there are in all."""
        arrays = [("counts", "i32"), ("totals", "i32")]
        f = self.begin(name, target, arrays, ("all", "tiles"))
        w = f.w
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
        return f.text()

    def move(self, name: str, way: _Way, target: CudaTarget) -> Fragment:
        """A block for each tile: sorted by a digit in shared memory, then written where its digits
        go."""
        arrays = [*self.arrays(way), ("counts", "i32"), ("totals", "i32")]
        f = self.begin(name, target, arrays, ("n", "tiles", "shift"), _SHARING)
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
        return f.text()
