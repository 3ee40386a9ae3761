"""Reductions over rows with accumulators in memory.

Where lanes lie along a parallel axis and the reduced axis is long, walking down a few columns at
a time wastes the memory's bandwidth. Instead the lane loop goes innermost: a chunk of columns at
a time, each row adds to accumulators that stay in the nearest cache, and every value over the
lane axis that a later loop reads is kept there too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tenfold.backends.cpu.emit.fold import ending, fresh, merged
from tenfold.backends.cpu.emit.loops import Position
from tenfold.backends.cpu.emit.memory import store
from tenfold.backends.cpu.emit.prefetch import ask_for_rows
from tenfold.backends.cpu.emit.reductions import Reduction
from tenfold.backends.cpu.emit.state import Val
from tenfold.backends.llvm.writer import BITS, COMPUTE, element_of, vector
from tenfold.kernel.analyse.nest import Compute, Guard, Item, Loop, Write

if TYPE_CHECKING:
    from tenfold.backends.cpu.emit.emit import Emitter


_APART = 256  # bytes between what is kept: loads that lie alike in a page wait for stores


def spread(e: Emitter, loop: Loop) -> None:
    """The outermost loop, over the lane axis, chunk by chunk."""
    extent = e.kernel.axes[loop.axis].extent
    begin, end = e.part(loop.axis, 0, extent)
    work = _Spread(e, loop, _wanted(e, loop.body))

    def chunk(start: Position, _: list[str]) -> list[str]:
        size = e.schedule.chunk
        if isinstance(start, int) and isinstance(end, int):
            work.run(start, min(start + size, end))
        else:
            stop = e.w.op(f"add nsw i64 {start}, {size}")
            work.run(start, e.w.intrinsic("smin", "i64", stop, str(end)))
        return []

    e.loop(begin, end, e.schedule.chunk, (), chunk, extent)


def _wanted(e: Emitter, items: Sequence[Item]) -> set[int]:
    """The values over the lane axis that are read in another run of items than they are made in;
    a loop is a run of its own."""
    made: dict[int, int] = {}
    found: set[int] = set()
    run = 0
    for item in items:
        alone = isinstance(item, Loop)
        run += alone
        found |= {v for v in used(e, [item]) if made.get(v, run) != run}
        if isinstance(item, Compute):
            made[item.value] = run
        elif isinstance(item, Loop):
            made.update(dict.fromkeys(item.members, run))
        run += alone
    return found


def used(e: Emitter, items: Sequence[Item]) -> set[int]:
    """What these items read."""
    found: set[int] = set()
    stack = list(items)
    while stack:
        item = stack.pop()
        if isinstance(item, Compute):
            found.update(e.kernel.instructions[item.value].uses())
        elif isinstance(item, Write):
            found.update(e.kernel.stores[item.store].uses())
        elif isinstance(item, Guard):
            found.add(e.kernel.checks[item.check].condition)
        else:
            stack += item.body
            for member in item.members:
                found.update(e.kernel.instructions[member].args)
    return found


class _Spread:
    def __init__(self, e: Emitter, loop: Loop, wanted: set[int]) -> None:
        self.e, self.loop, self.wanted = e, loop, wanted
        self.memory: dict[object, str] = {}
        self.start: Position = 0
        self.stop: Position = 0

    def run(self, start: Position, stop: Position) -> None:
        """All items of the loop's body for one chunk."""
        self.start, self.stop = start, stop
        pending: list[Item] = []
        for item in self.loop.body:
            if not isinstance(item, Loop):
                pending.append(item)
                continue
            self.straight(pending)
            pending = []
            if item.members:
                self.reduction(item)
            else:
                self.inner(item)
        self.straight(pending)

    def lanes(self, body: Callable[[], None], reads: set[int]) -> None:
        """Run a body over the chunk, with the kept values it reads at hand."""
        e, axis = self.e, self.loop.axis

        def inner() -> None:
            for v in sorted(reads):
                if v not in e.s.env and v in self.memory:
                    e.s.env[v] = Val(
                        ((self.recall(v, COMPUTE[e.kernel.instructions[v].dtype]),),), True
                    )
            body()

        extent, chunk = e.kernel.axes[axis].extent, e.schedule.chunk
        e.lane_range(axis, 0, extent, self.start, self.stop, inner, most=chunk)

    def place(self, key: object, element: str, row: Position = 0, rows: int = 1) -> str:
        """Where the vector of this position is kept, in one of several rows."""
        e, size = self.e, max(1, BITS[element] // 8)
        if key not in self.memory:
            self.memory[key] = e.private(rows * e.schedule.chunk * size + _APART)
        at = e.w.op(f"sub nsw i64 {e.s.base[self.loop.axis]}, {self.start}")
        if row != 0:
            at = e.w.op(f"add i64 {at}, {e.w.op(f'mul i64 {row}, {e.schedule.chunk}')}")
        ty = "i8" if element == "i1" else element
        return e.w.op(f"getelementptr {ty}, ptr {self.memory[key]}, i64 {at}")

    def recall(self, key: object, element: str) -> str:
        w, at = self.e.w, self.place(key, element)
        if element == "i1":
            x = w.op(f"load {vector('i8')}, ptr {at}, align 16")
            return w.op(f"trunc {vector('i8')} {x} to {vector('i1')}")
        return w.op(f"load {vector(element)}, ptr {at}, align {min(64, BITS[element] * 2)}")

    def remember(self, key: object, element: str, x: str) -> None:
        w, at = self.e.w, self.place(key, element)
        ty = element
        if element == "i1":
            ty, x = "i8", w.op(f"zext {vector('i1')} {x} to {vector('i8')}")
        w.put(f"store {vector(ty)} {x}, ptr {at}, align {min(64, BITS[ty] * 2)}")

    def keep(self, value: int) -> None:
        if value in self.wanted:
            element = COMPUTE[self.e.kernel.instructions[value].dtype]
            self.remember(value, element, self.e.s.get(value, 0, True)[0])

    def straight(self, items: Sequence[Item]) -> None:
        e = self.e
        if not items:
            return

        made = {item.value for item in items if isinstance(item, Compute)}
        # Further results of a reduction are kept by its end. What else is made here must not be
        # recalled in the tail, though the whole vectors before it have been given a place by then.
        states = {v for v in made if e.kernel.instructions[v].op == "state"}

        def body() -> None:
            for item in items:
                if isinstance(item, Compute):
                    e.s.env[item.value] = e.compute(item.value)
                    self.keep(item.value)
                elif isinstance(item, Write):
                    store(e.s, item.store)

        self.lanes(body, (used(e, items) - made) | states)

    def inner(self, loop: Loop) -> None:
        """A parallel loop inside: the lanes go inside it."""
        e = self.e
        extent = e.kernel.axes[loop.axis].extent
        reads = used(e, loop.body)

        def body() -> None:
            ask_for_rows(e, loop, 2)
            e.block(loop.body)

        def trip(i: Position, _: list[str]) -> list[str]:
            with e.s.inside(loop.axis, i, 0, extent):
                self.lanes(body, reads)
            return []

        e.loop(0, extent, 1, (), trip)

    def reduction(self, loop: Loop) -> None:
        _Rows(self, loop).run()


class _Rows:
    """Reductions over rows, of which a block at once joins what is held.

    Of a float sum an accumulator is held for each level of blocks in a chunk, as the kernel's fold
    has them. It is added to the next, and begins anew, when the next block of its level begins: so
    all are still open when the rows after the last whole block are joined.
    """

    def __init__(self, spread: _Spread, loop: Loop) -> None:
        e = self.e = spread.e
        self.spread, self.loop, self.fold = spread, loop, e.kernel.fold
        self.extent = e.kernel.axes[loop.axis].extent
        self.makers: list[Reduction] = []
        for m in loop.members:
            i = e.kernel.instructions[m]
            place = e.kernel.instructions[i.args[1]].dtype if len(i.args) > 1 else ""
            dtype = e.kernel.instructions[i.args[0]].dtype
            self.makers.append(Reduction(e.w, i.attr[0], dtype, place, 1, True, False, True))
        self.slots = [slot for maker in self.makers for slot in maker.slots()]
        self.flushed = [m.flushed for m in self.makers for _ in m.slots()]
        self.levels = range(1, self.fold.levels if any(self.flushed) else 2)
        self.rows = self.fold.waiting(self.extent)  # of sums that wait

    def run(self) -> None:
        e, spread, fold, extent = self.e, self.spread, self.fold, self.extent
        reads, whole = used(e, [self.loop]), extent // fold.block * fold.block

        def block(i: Position, _: list[str]) -> list[str]:
            spread.lanes(lambda: self.block(i), reads)
            return []

        def chunk(i: Position, _: list[str]) -> list[str]:
            self.turn(i)
            end = ending(e, i, fold.chunk, whole, whole % fold.chunk == 0)
            e.loop(i, end, fold.block, (), block, fold.chunk, empty=False)
            return []

        spread.lanes(self.begin, set())
        if any(self.flushed) and extent > fold.chunk:
            e.loop(0, whole, fold.chunk, (), chunk)
            if whole < extent and whole % fold.chunk == 0:
                self.turn(whole)
        else:
            e.loop(0, whole, fold.block, (), block)
        if whole < extent:
            spread.lanes(lambda: self.rest(whole), reads)
        spread.lanes(self.finish, set())

    def begin(self) -> None:
        for level in self.levels:
            self.hold(level, [first for _, first in self.slots])

    def block(self, i: Position) -> None:
        """The rows of a block, which may be the first of one of the next level."""
        held = self.opened(i, 1, self.held(1))
        made = self.nothing(held)
        for row in range(self.fold.block):
            here = i + row if isinstance(i, int) else i
            if row and not isinstance(i, int):
                here = self.e.w.op(f"add nsw i64 {i}, {row}")
            made = self.row(here, made)
        self.hold(1, merged(self.makers, held, made))

    def rest(self, first: int) -> None:
        """The rows after the last whole block."""
        held = self.opened(first, 1, self.held(1))
        slots = [(ty, x) for (ty, _), x in zip(self.slots, self.nothing(held), strict=True)]
        made = self.e.loop(first, self.extent, 1, slots, self.row)
        self.hold(1, merged(self.makers, held, made))

    def row(self, i: Position, held: list[str]) -> list[str]:
        e, loop, made = self.e, self.loop, list[str]()
        with e.s.inside(loop.axis, i, 0, self.extent):
            ask_for_rows(e, loop, self.fold.block)
            e.block(loop.body)
            for m, maker in zip(loop.members, self.makers, strict=True):
                args = e.kernel.instructions[m].args
                places = [e.s.get(args[1], 0, True)[0]] if len(args) > 1 else []
                mine = held[len(made) : len(made) + len(maker.slots())]
                made += maker.step(mine, [e.s.get(args[0], 0, True)], places, [None])
        return made

    def nothing(self, held: list[str]) -> list[str]:
        """Where a block starts: float sums from -0, which any value takes the place of."""
        zeros = [self.e.w.const(element_of(ty), -0.0, True) for ty, _ in self.slots]
        pairs = zip(zeros, held, self.flushed, strict=True)
        return [zero if flushed else x for zero, x, flushed in pairs]

    def opened(self, i: Position, level: int, held: list[str]) -> list[str]:
        """What a level goes on from where a block begins. If that is the first of a block of the
        level above, it is nothing, and what was held is added there."""
        size = self.fold.block ** (level + 1)
        if level == self.levels[-1] or i == 0:
            return held

        def close(_: Position, held: list[str]) -> list[str]:
            above = merged(self.makers, self.held(level + 1), held)
            self.hold(level + 1, self.opened(i, level + 1, above))
            return [x for _, x in fresh(self.makers, held)]

        if isinstance(i, int):
            return held if i % size else close(0, held)
        w = self.e.w
        first = w.op(f"icmp eq i64 {w.op(f'urem i64 {i}, {size}')}, 0")
        slots = [(ty, x) for (ty, _), x in zip(self.slots, held, strict=True)]
        return self.e.loop(0, w.op(f"zext i1 {first} to i64"), 1, slots, close, 1)

    def turn(self, i: Position) -> None:
        """A chunk begins: the last one waits for another as long."""
        e, w = self.e, self.e.w
        number = w.op(f"udiv i64 {i}, {self.fold.chunk}")

        def wait(_: Position, __: list[str]) -> list[str]:
            place = w.call("i64", "llvm.cttz.i64", ("i64", number), ("i1", "true"))
            self.spread.lanes(lambda: self.put_aside(place), set())
            return []

        e.loop(0, w.intrinsic("umin", "i64", number, "1"), 1, (), wait, 1)  # none at first

    def put_aside(self, place: str) -> None:
        """What all levels hold, with as many chunks as wait."""

        def carry(waiting: Position, held: list[str]) -> list[str]:
            return self.carried(waiting, held)

        held = self.closed()
        slots = [(ty, x) for (ty, _), x in zip(self.slots, held, strict=True)]
        sums = self.e.loop(0, place, 1, slots, carry, self.rows)
        for n, ((ty, _), x) in enumerate(zip(self.slots, sums, strict=True)):
            if self.flushed[n]:
                self.e.w.put(f"store {ty} {x}, ptr {self.waits(n, place)}, align 8")
        for level in self.levels:
            self.hold(level, [x for _, x in fresh(self.makers, held)])

    def closed(self) -> list[str]:
        """Every level added to the next: all of a chunk."""
        held = self.held(1)
        for level in self.levels[1:]:
            held = merged(self.makers, self.held(level), held)
        return held

    def carried(self, waiting: Position, held: list[str]) -> list[str]:
        """A chunk, or several, with as many that waited."""
        others = []
        for n, (ty, x) in enumerate(self.slots):
            load = f"load {ty}, ptr {self.waits(n, waiting)}, align 8" if self.flushed[n] else ""
            others.append(self.e.w.op(load) if load else x)
        return merged(self.makers, others, held)

    def waits(self, slot: int, place: Position) -> str:
        element = element_of(self.slots[slot][0])
        return self.spread.place((self.loop, slot, "waits"), element, place, self.rows)

    def finish(self) -> None:
        e, before = self.e, self.fold.chunks(self.extent) - 1
        held = self.closed()
        for n in range(before.bit_length() if any(self.flushed) else 0):
            if before >> n & 1:
                held = self.carried(n, held)
        for m, maker in zip(self.loop.members, self.makers, strict=True):
            result, place = maker.finish(held[: len(maker.slots())])
            del held[: len(maker.slots())]
            e.s.env[m] = result
            self.spread.keep(m)
            if place is not None:
                for v, i in enumerate(e.kernel.instructions):
                    if i.op == "state" and i.args == (m,):
                        self.spread.remember(v, COMPUTE[i.dtype], place.at(0)[0])

    def held(self, level: int) -> list[str]:
        """What a level holds; others than float sums have the first alone."""
        return [
            self.spread.recall((self.loop, n, level), element_of(ty))
            if level == 1 or self.flushed[n]
            else x
            for n, (ty, x) in enumerate(self.slots)
        ]

    def hold(self, level: int, values: list[str]) -> None:
        for n, ((ty, _), x) in enumerate(zip(self.slots, values, strict=True)):
            if level == 1 or self.flushed[n]:
                self.spread.remember((self.loop, n, level), element_of(ty), x)
