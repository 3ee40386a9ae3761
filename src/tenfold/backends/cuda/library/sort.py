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
from tenfold.backends.cuda.library.function import RoutineFunction
from tenfold.backends.cuda.library.radix import BLOCKED, COUNTS, SCANNED, SHARING, TILED, Radix, Way
from tenfold.backends.cuda.library.ranking import DIGIT, DIGITS, THREADS
from tenfold.backends.cuda.library.routine import GpuRoutine, RoutineLaunch
from tenfold.backends.cuda.target import WARP, CudaTarget
from tenfold.backends.llvm.text import Fragment, merged
from tenfold.backends.llvm.writer import kind
from tenfold.types import SHORT, TensorType

_COUNTED = THREADS  # elements of a line that are sorted by counting
_LONGEST = 1 << 31  # elements of a line: positions have 32 bits
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
        way = Way(False, sorts.positions, not sorts.positions)
        if n <= _COUNTED:
            self.counted(n, way, ((Y, 0),))
        elif n <= sorts.tile:
            rows = sorts.rows_for(n)
            self.launch(
                f"block{rows}_{way.name}", lines, ((X, 0), (Y, 0)), n, 1, n, n, n, sorts.bits
            )
        else:
            self.long()
        return self.routine()

    def counted(self, keep: int, way: Way, outputs: Sequence[tuple[int, int]]) -> None:
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
            way = Way(False, False, True)
            if sorts.positions:
                way = Way(not first, True, not last, last)
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
            self.counted(k, Way(False, True, True), ((Y, 0), (Z, 0)))
            return self.routine()
        source: list[tuple[int, int]] = [(X, 0)]
        while True:
            tiles = -(-n // sorts.tile)
            left = n - (tiles - 1) * sorts.tile
            following = (tiles - 1) * k + min(k, left)
            final = tiles == 1
            way = Way(len(source) > 1, True, True, final)
            target = [(Y, 0), (Z, 0)] if final else [
                (3, self.reserve(lines * following, self.size)),
                (3, self.reserve(lines * following, 4)),
            ]  # fmt: skip
            rows = sorts.rows_for(n)
            self.launch(
                f"block{rows}_{way.name}", lines * tiles, (*source, *target),
                n, tiles, k, sorts.tile, following, sorts.bits,
            )  # fmt: skip
            if final:
                return self.routine()
            source, n = target, following


class _Functions(Radix):
    """What writes the functions of a sort."""

    def __init__(self, name: str, dtype: str) -> None:
        self.form = form_of("sort", dtype)
        super().__init__(self.form.bits)
        self.symbol = f"tn_{name}_{dtype}"
        self.positions = name != "sort"
        self.falling = name == "greatest"

    def text(self, names: Sequence[str], target: CudaTarget) -> Fragment:
        return merged(self._function(name, target) for name in names)

    def _function(self, name: str, target: CudaTarget) -> Fragment:
        head, _, marks = name.partition("_")
        way = Way(*(mark in marks for mark in "gpvf"))
        if head == "counted":
            return self.counted(name, way, target)
        if head == "digits":
            f = self.begin(name, target, [("x", self.type), COUNTS[0]], TILED)
            self.digits(f)
        elif head == "offsets":
            f = self.begin(name, target, COUNTS, SCANNED)
            self.offsets(f)
        elif head == "move":
            f = self.begin(name, target, [*self.arrays(way), *COUNTS], TILED, SHARING)
            self.move(f, way)
        else:
            f = self.begin(name, target, self.arrays(way), BLOCKED, SHARING)
            self.block(f, int(head.removeprefix("block")), way)
        return f.text()

    def begin(
        self, name: str, target: CudaTarget, arrays: Sequence[tuple[str, str]],
        words: Sequence[str], least: int = 1,
    ) -> RoutineFunction:  # fmt: skip
        f = RoutineFunction(
            f"{self.symbol}_{name}", target, THREADS, arrays, words, least, moved=True
        )
        self.f = f
        return f

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

    # Short lines.

    def counted(self, name: str, way: Way, target: CudaTarget) -> Fragment:
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
