"""Reductions over rows with accumulators in memory.

Where lanes lie along a parallel axis and the reduced axis is long, walking down a few columns at
a time wastes the memory's bandwidth. Instead the lane loop goes innermost: a chunk of columns at
a time, each row adds to accumulators that stay in the nearest cache, and every value over the
lane axis that a later loop reads is kept there too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tenfold.backends.cpu.ahead import ask_for_rows
from tenfold.backends.cpu.loops import Position
from tenfold.backends.cpu.memory import store
from tenfold.backends.cpu.reductions import Reduction
from tenfold.backends.cpu.state import Val
from tenfold.backends.cpu.writer import BITS, COMPUTE, LANES, lanes_of, vector
from tenfold.kernel.nest import Compute, Guard, Item, Loop, Write

if TYPE_CHECKING:
    from tenfold.backends.cpu.emit import Emitter

ROWS = 4  # that join the accumulators at once


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

    def place(self, key: object, element: str) -> str:
        """Where the vector of this position is kept."""
        e, size = self.e, max(1, BITS[element] // 8)
        if key not in self.memory:
            self.memory[key] = e.private(e.schedule.chunk * size)
        at = e.w.op(f"sub nsw i64 {e.s.base[self.loop.axis]}, {self.start}")
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
            ask_for_rows(e, loop, ROWS // 2)
            e.block(loop.body)

        def trip(i: Position, _: list[str]) -> list[str]:
            with e.s.inside(loop.axis, i, 0, extent):
                self.lanes(body, reads)
            return []

        e.loop(0, extent, 1, (), trip)

    def reduction(self, loop: Loop) -> None:
        e = self.e
        makers: list[tuple[int, Reduction]] = []
        for m in loop.members:
            i = e.kernel.instructions[m]
            place = e.kernel.instructions[i.args[1]].dtype if len(i.args) > 1 else ""
            dtype = e.kernel.instructions[i.args[0]].dtype
            makers.append((m, Reduction(e.w, i.attr[0], dtype, place, 1, True, False, True)))
        extent = e.kernel.axes[loop.axis].extent
        reads = used(e, [loop])

        def begin() -> None:
            for m, maker in makers:
                for n, (ty, first) in enumerate(maker.slots()):
                    self.remember(("held", m, n), _element(ty), first)

        def step(i: Position, rows: int) -> None:
            """Some rows at once join what is held."""
            held = {
                m: [
                    self.recall(("held", m, n), _element(ty))
                    for n, (ty, _) in enumerate(maker.slots())
                ]
                for m, maker in makers
            }
            for row in range(rows):
                here = i + row if isinstance(i, int) else i
                if row and not isinstance(i, int):
                    here = e.w.op(f"add nsw i64 {i}, {row}")
                with e.s.inside(loop.axis, here, 0, extent):
                    ask_for_rows(e, loop, ROWS)
                    e.block(loop.body)
                    for m, maker in makers:
                        args = e.kernel.instructions[m].args
                        places = [e.s.get(args[1], 0, True)[0]] if len(args) > 1 else []
                        value = e.s.get(args[0], 0, True)
                        held[m] = maker.step(held[m], [value], places, [None])
            for m, maker in makers:
                for n, (ty, _) in enumerate(maker.slots()):
                    self.remember(("held", m, n), _element(ty), held[m][n])

        def trip_of(rows: int) -> Callable[[Position, list[str]], list[str]]:
            def trip(i: Position, _: list[str]) -> list[str]:
                self.lanes(lambda: step(i, rows), reads)
                return []

            return trip

        def finish() -> None:
            for m, maker in makers:
                types = [_element(ty) for ty, _ in maker.slots()]
                held = [self.recall(("held", m, n), t) for n, t in enumerate(types)]
                result, place = maker.finish(held)
                e.s.env[m] = result
                self.keep(m)
                if place is not None:
                    for v, i in enumerate(e.kernel.instructions):
                        if i.op == "state" and i.args == (m,):
                            self.remember(v, COMPUTE[i.dtype], place.at(0)[0])

        self.lanes(begin, set())
        whole = extent // ROWS * ROWS
        e.loop(0, whole, ROWS, (), trip_of(ROWS))
        e.loop(whole, extent, 1, (), trip_of(1))
        self.lanes(finish, set())


def _element(ty: str) -> str:
    assert lanes_of(ty) == LANES
    return ty.partition(" x ")[2][:-1]
