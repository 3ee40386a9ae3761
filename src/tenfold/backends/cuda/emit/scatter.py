"""Scatters by many threads, with the bits of one that takes updates in their order.

- Where the order does not matter (integers that are added, multiplied, or of which the extreme
  stays, and bools), each update is an atomic operation. Where all updates write the same, it is a
  store.
- Where the last update wins, each leaves its number by an atomic maximum, then the winners store:
  in memory for every place, so not for few updates of many places.
- Elsewhere, as with sums of floats, updates are sorted by the places they go to (`library/radix`,
  which keeps their order), and a thread for each place takes its own one after the other. Where
  there are many, blocks of threads do that for buckets of places (`emit/buckets`).

Updates are numbered along the axes that places hang on: parallel ones, then those in order. What
lies along other axes, the windows, never meets what lies elsewhere there: it shares a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from math import prod
from typing import Any

from tenfold.backends.cuda.emit.atomics import atomic
from tenfold.backends.cuda.emit.buckets import Buckets, fits
from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.function import FunctionWriter, KernelText, finish
from tenfold.backends.cuda.emit.memory import (
    GLOBAL,
    guard,
    load,
    store,
)
from tenfold.backends.cuda.emit.point import apart, first_of, outside_of, thread_number
from tenfold.backends.cuda.emit.team import wait
from tenfold.backends.cuda.emit.thread import Position, Text, Thread
from tenfold.backends.cuda.emit.turns import KernelCode, Turns
from tenfold.backends.cuda.library.function import SHARED, Code
from tenfold.backends.cuda.library.radix import BLOCKED, SCANNED, SHARING, TILED, Radix, Way
from tenfold.backends.cuda.library.ranking import DIGIT, DIGITS, THREADS
from tenfold.backends.cuda.target import WARP
from tenfold.backends.llvm.writer import SIZES, kind
from tenfold.kernel.analyse.scatter import scatter_of
from tenfold.kernel.ir.index import AXIS, Atom, Index
from tenfold.kernel.ir.kernel import SEQUENTIAL, Kernel, Store
from tenfold.kernel.ir.number import Facts, prefers_less

_FEW = 33  # updates in order below which each thread takes all of its window's
_LARGEST = 1 << 31  # places and updates: both are numbered by 32 bits
_BLOCK = 256  # threads
_BUCKETS = 2  # blocks that have a bucket and are meant to share a processor
_ONE_BLOCK = 1 << 14  # elements for which one function by one block is less than three by many
_MARKED = 1 << 24  # places from which marks would take more memory than they are worth
_MARKS = 1 << 12  # places whose marks are in shared memory


def emit_scatter(
    kernel: Kernel, begin: Callable[[], FunctionWriter], facts: Facts
) -> KernelText | None:
    """The text of a legal kernel with axes in order, if it is a scatter that many threads can carry
    out."""
    found = scatter_of(kernel)
    if found is None:
        return None
    scatter = ScatterForm(kernel, found, begin, facts)
    rounds: Any = prod(kernel.axes[a].extent for a in scatter.ordered)
    if prefers_less(rounds, _FEW):
        return None
    if not scatter.count < _LARGEST or not scatter.places < _LARGEST:
        return None
    return scatter.emit()


class ScatterForm:
    """A kernel with one store that is a scatter, and its functions."""

    def __init__(
        self, kernel: Kernel, number: int, begin: Callable[[], FunctionWriter], facts: Facts
    ) -> None:
        self.kernel, self.number, self.begin, self.facts = kernel, number, begin, facts
        self.store: Store = kernel.stores[number]
        self.dtype = kernel.buffers[self.store.buffer].dtype
        self.places: Any = kernel.buffers[self.store.buffer].size
        placed = frozenset[int]().union(*(kernel.free[v] for v in self.store.index.values()))
        axes = range(len(kernel.axes))
        self.ordered = [a for a in axes if kernel.axes[a].kind == SEQUENTIAL]
        apart_ = [a for a in axes if a in placed and a not in self.ordered]
        self.numbered = [*apart_, *self.ordered]
        self.windows = [a for a in axes if a not in self.numbered]
        self.index = self.store.index.rebuild(self._without_windows)
        self.count: Any = prod(kernel.axes[a].extent for a in self.numbered)
        self.all: Any = prod(a.extent for a in kernel.axes)
        self.functions: list[tuple[FunctionWriter, int, Any, int]] = []

    def _without_windows(self, atom: Atom) -> Index:
        inside = atom.kind == AXIS and atom.of in self.windows
        return Index() if inside else Index(((atom, 1),))

    def emit(self) -> KernelText:
        value, ordered = self.store.value, set(self.ordered)
        free = frozenset[int]().union(
            *(self.kernel.free[v] for v in (value, self.store.second) if v is not None)
        )
        small = self.store.buffer in self.begin().odd and SIZES[self.dtype] < 4
        if not self.store.update:
            if not free & ordered:
                return self.at_once(lambda t: store(t, self.number))
            if prefers_less(self.all, _ONE_BLOCK) and self.places <= _MARKS:
                return self.last_wins_in_block()
            few = not prefers_less(self.places, 8 * self.count)
            if few and not prefers_less(self.places, _MARKED):
                return self.sorted()
            return self.last_wins()
        if kind(self.dtype) in "biu" and not small:
            return self.at_once(lambda t: atomic(t, self.store, self.dtype))
        return self.sorted()

    # A thread.

    def grid(self, axes: Sequence[int]) -> tuple[FunctionWriter, Thread, Text, str]:
        """A function with a thread for each position of some axes: its number, and the label of its
        end."""
        f = self.begin()
        t = f.thread()
        extents = [self.kernel.axes[a].extent for a in axes]
        me, end = thread_number(f, t.position), f.w.fresh("end")
        total: Any = prod(extents)
        outside_of(f.w, t.position, me, total, end)
        t.base.update(zip(axes, apart(f.w, t.position, me, extents), strict=True))
        self.functions.append((f, _BLOCK, (total + _BLOCK - 1) // _BLOCK, 1))
        return f, t, me, end

    def close(self, f: FunctionWriter, end: str) -> None:
        f.w.put(f"br label %{end}")
        f.w.label(end)

    def compute(self, t: Thread, values: Iterable[int]) -> None:
        """What some values need, and they themselves."""
        wanted = set(values)
        for n in range(len(self.kernel.instructions) - 1, -1, -1):
            if n in wanted:
                wanted.update(self.kernel.instructions[n].uses())
        for n in sorted(wanted):
            if (n, 0) not in t.env:
                if self.kernel.instructions[n].op == "load":
                    load(t, n)
                else:
                    t.compute(n)

    def others(self, t: Thread) -> None:
        """Checks, and stores whose order does not matter, of a thread that has a position of all
        axes."""
        kernel = self.kernel
        self.guard(t)
        for n, item in enumerate(kernel.stores):
            if n != self.number:
                self.compute(t, item.uses())
                missing = [a for a in range(len(kernel.axes)) if a not in kernel.store_free(item)]
                store(t, n, first_of(t, missing))

    def guard(self, t: Thread) -> None:
        self.compute(t, (c.condition for c in self.kernel.checks))
        for n in range(len(self.kernel.checks)):
            guard(t, n)

    def place(self, t: Thread) -> Text:
        """The place of an update as an i32: that of the first in its window."""
        self.compute(t, self.store.index.values())
        at = t.whole(self.index)
        return self.short(t, at)

    def short(self, t: Thread, x: Text) -> Text:
        """A position as an i32."""
        return x if t.position == "i32" else t.w.op(f"trunc i64 {x} to i32")

    # Updates whose order does not matter.

    def at_once(self, put: Callable[[Thread], None]) -> KernelText:
        """One function: all that there is to be done for each update."""
        f, t, _, end = self.grid([*self.numbered, *self.windows])
        self.others(t)
        self.compute(t, self.store.uses())
        put(t)
        self.close(f, end)
        return finish(self.functions, self.facts)

    # The last update wins.

    def last_wins(self) -> KernelText:
        for step in ("clear", "mark"):
            f, t, me, end = self.grid(self.numbered)
            at = self.mark(f, t)
            if step == "clear":  # of what is touched, not of all
                t.w.put(f"store i32 0, {GLOBAL} {at}, align 4")
            else:
                number = t.w.op(f"add i32 {self.short(t, me)}, 1")
                t.w.op(f"atomicrmw umax {GLOBAL} {at}, i32 {number} monotonic, align 4")
            self.close(f, end)
        f, t, _, end = self.grid([*self.numbered, *self.windows])
        w = t.w
        self.others(t)
        winner = w.op(f"load i32, {GLOBAL} {self.mark(f, t)}, align 4")
        number = self.numbering(t)
        wins = w.op(f"icmp eq i32 {winner}, {w.op(f'add i32 {number}, 1')}")
        self.compute(t, self.store.uses())
        store(t, self.number, wins)
        self.close(f, end)
        return finish(self.functions, self.facts, self.places * 4)

    def last_wins_in_block(self) -> KernelText:
        """The same by one block, with marks in its shared memory."""
        f = self.begin()
        t, w = f.thread(), f.w
        ty = t.position
        marks, thread = f.reserve("i32", _MARKS), f.sreg("tid.x")
        first = w.op(f"zext i32 {thread} to i64") if ty == "i64" else thread

        def each(axes: Sequence[int], put: Callable[[Text, Text], None]) -> None:
            """For each position of some axes: its number, and where its mark is."""
            extents = [self.kernel.axes[a].extent for a in axes]
            total: Any = prod(extents)

            def body(me: Position, held: list[Text]) -> list[Text]:
                with ExitStack() as stack:
                    for axis, at in zip(axes, apart(w, ty, str(me), extents), strict=True):
                        stack.enter_context(t.inside(axis, at))
                    place = self.place(t)
                    put(str(me), w.op(f"getelementptr i32, {SHARED} {marks}, i32 {place}"))
                return held

            loop(w, ty, first, total, _BLOCK, (), body)

        def clear(_: Text, mark: Text) -> None:
            w.put(f"store i32 0, {SHARED} {mark}, align 4")

        def claim(me: Text, mark: Text) -> None:
            number = w.op(f"add i32 {self.short(t, me)}, 1")
            w.op(f"atomicrmw umax {SHARED} {mark}, i32 {number} monotonic, align 4")

        def end(_: Text, mark: Text) -> None:
            self.others(t)
            winner = w.op(f"load i32, {SHARED} {mark}, align 4")
            number = w.op(f"add i32 {self.numbering(t)}, 1")
            self.compute(t, self.store.uses())
            store(t, self.number, w.op(f"icmp eq i32 {winner}, {number}"))

        each(self.numbered, clear)
        wait(w)
        each(self.numbered, claim)
        wait(w)
        each([*self.numbered, *self.windows], end)
        self.functions.append((f, _BLOCK, 1, 1))
        return finish(self.functions, self.facts)

    def mark(self, f: FunctionWriter, t: Thread) -> Text:
        f.partial = True
        return t.w.op(f"getelementptr i32, {GLOBAL} %partial, i32 {self.place(t)}")

    def numbering(self, t: Thread) -> Text:
        """The number of an update, as an i32."""
        w, total = t.w, "0"
        for axis in self.numbered:
            extent = w.const("i32", self.kernel.axes[axis].extent, False)
            position = t.base[axis]
            assert isinstance(position, str)
            total = w.op(f"mul i32 {total}, {extent}")
            total = w.op(f"add i32 {total}, {self.short(t, position)}")
        return total

    # One after the other at each place.

    def sorted(self) -> KernelText:
        """Places, sorted with the numbers of updates; then a thread for each place and position in
        a window. Or a block for each bucket of places, which sorts the rest of them itself."""
        n, radix = self.count, Radix(32)
        small = bool(n <= radix.tile)  # a block sorts them
        tiles = 1 if small else (n + radix.tile - 1) // radix.tile
        starts, room = [], 0
        for size in (n * 4, n * 4, n * 4, n * 4, tiles * DIGITS * 4, DIGITS * 4):
            starts.append(room)
            room = room + (size + 15) // 16 * 16
        keys, numbers, counts = starts[0:2], starts[2:4], starts[4:6]
        apart_ = len(self.kernel.stores) > 1 or any(
            not self.kernel.free[c.condition].isdisjoint(self.windows) for c in self.kernel.checks
        )
        self.leave_places(guarded=not apart_)
        if apart_:
            f, t, _, end = self.grid([*self.numbered, *self.windows])
            self.others(t)
            self.close(f, end)
        passes = 1
        while not self.places <= DIGITS**passes:
            passes += 1
        bucketed = not small and 1 < passes <= 3 and fits(self)
        shifts = [turn * DIGIT for turn in range(1 if small else passes)]
        if bucketed:  # the first digit alone; the others are left to each bucket
            shifts = [(self.places - 1).bit_length() - DIGIT]
        count_arrays = dict(zip(("counts", "totals"), counts, strict=True))
        for turn, shift in enumerate(shifts):
            way = Way(turn > 0, True, True, final=False)  # at first an update lies at its number
            source, target = turn % 2, 1 - turn % 2
            given = {"x": keys[source], "p": numbers[source], "y": keys[target],
                     "z": numbers[target]}  # fmt: skip
            if small:
                rows = radix.rows_for(n)
                words = dict(zip(BLOCKED, (n, 1, n, n, n, passes * DIGIT), strict=True))
                radix.block(self.helper(words, given, 1), rows, way)
                continue
            words = dict(zip(TILED, (n, tiles, shift), strict=True))
            one = {"x": keys[source], "counts": counts[0]}
            radix.digits(self.helper(words, one, tiles, least=1))
            scanned = dict(zip(SCANNED, (DIGITS, tiles), strict=True))
            blocks = DIGITS * WARP // THREADS
            radix.offsets(self.helper(scanned, count_arrays, blocks, least=1))
            radix.move(self.helper(words, given | count_arrays, tiles), way)
        last = len(shifts) % 2
        if bucketed:
            spare = int(passes == 3 and bool(self.places <= 2 * DIGITS**2))
            left = passes - 1 - spare
            made = Buckets(self, keys[last], numbers[last], counts[1], left, spare).write()
            self.functions.append((made, THREADS, DIGITS, _BUCKETS))
            return finish(self.functions, self.facts, room)
        turns = Turns(self, keys[last], numbers[last])
        made = turns.write() if self.store.update else turns.write_last()
        self.functions.append((made, _BLOCK, (self.all + _BLOCK - 1) // _BLOCK, 1))
        return finish(self.functions, self.facts, room)

    def helper(
        self, words: dict[str, Any], arrays: dict[str, Any], blocks: Any, least: int = SHARING
    ) -> Code:
        """A function that sorts: its words, and its arrays in the memory that functions share."""
        f = self.begin()
        f.partial = f.common = True
        for name, value in words.items():
            f.w.put(f"%{name} = add i64 {f.word(value)}, 0")
        for name, start in arrays.items():
            f.w.put(f"%{name} = getelementptr i8, {GLOBAL} %partial, i64 {f.word(start)}")
        self.functions.append((f, THREADS, blocks, least))
        return KernelCode(f, dict.fromkeys(arrays, "i32"))

    def leave_places(self, guarded: bool) -> None:
        """The place of each update, and checks."""
        f, t, me, end = self.grid(self.numbered)
        f.partial = True
        if guarded:
            self.guard(t)
        at = t.w.op(f"getelementptr i32, {GLOBAL} %partial, {t.position} {me}")
        t.w.put(f"store i32 {self.place(t)}, {GLOBAL} {at}, align 4")
        self.close(f, end)
