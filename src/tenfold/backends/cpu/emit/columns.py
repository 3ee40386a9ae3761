"""Column accumulators: reductions over rows with one accumulator a column, in memory.

Where lanes lie along a parallel axis and the reduced axis is long, walking down a few columns at
a time wastes the memory's bandwidth. Instead the lane loop goes innermost: a chunk of columns at
a time, each row adds to accumulators that stay in the nearest cache, and every value over the
lane axis that a later loop reads is kept there too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tenfold.backends.cpu.emit.fold import least_bit, merged
from tenfold.backends.cpu.emit.positions import multiply_before
from tenfold.backends.cpu.emit.prefetch import prefetch_later_rows
from tenfold.backends.cpu.emit.reductions import Reduction, Slot
from tenfold.backends.cpu.emit.state import Position, Val
from tenfold.backends.cpu.emit.stores import store
from tenfold.backends.cpu.schedule.schedule import row_places
from tenfold.backends.llvm.writer import BITS, COMPUTE, LANES, element_of, vector
from tenfold.kernel.analyse.nest import Compute, Item, Loop, Write
from tenfold.kernel.analyse.uses import loads, read_later, used

if TYPE_CHECKING:
    from tenfold.backends.cpu.emit.emit import Emitter


_APART = 256  # bytes between what is kept: loads that lie alike in a page wait for stores


def accumulate_columns(e: Emitter, loop: Loop) -> None:
    """The outermost loop, over the lane axis, chunk by chunk."""
    extent = e.kernel.axes[loop.axis].extent
    begin, end = e.part(loop.axis, 0, extent)
    work = _ColumnAccumulators(e, loop, read_later(e.kernel, loop.body))

    def chunk(start: Position, _: list[str]) -> list[str]:
        size = e.schedule.chunk
        if isinstance(start, int) and isinstance(end, int):
            work.run(start, min(start + size, end))
        else:
            stop = e.w.op(f"add nsw i64 {start}, {size}")
            work.run(start, e.w.intrinsic("smin", "i64", stop, str(end)))
        return []

    e.loop(begin, end, e.schedule.chunk, (), chunk, extent)


class _ColumnAccumulators:
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
                    element = COMPUTE[e.kernel.instructions[v].dtype]
                    e.s.env[v] = Val((self.recall(v, element),), True)
            body()

        extent, chunk = e.kernel.axes[axis].extent, e.schedule.chunk
        exact = extent % LANES == 0 or None
        e.lane_range(axis, 0, extent, self.start, self.stop, inner, exact, chunk)

    def place(self, key: object, element: str, row: Position = 0, rows: int = 1) -> str:
        """Where the vector of this position is kept, in one of several rows."""
        e, size = self.e, max(1, BITS[element] // 8)
        if key not in self.memory:
            self.memory[key] = e.private(rows * (e.schedule.chunk * size + _APART))
        at = e.w.op(f"sub nsw i64 {e.s.base[self.loop.axis]}, {self.start}")
        if row != 0:
            step = e.schedule.chunk + _APART // size
            at = e.w.op(f"add i64 {at}, {e.w.op(f'mul i64 {row}, {step}')}")
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
            self.remember(value, element, self.e.s.get(value, 0, True))

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

        self.lanes(body, (used(e.kernel, items) - made) | states)

    def inner(self, loop: Loop) -> None:
        """A parallel loop inside: the lanes go inside it."""
        e = self.e
        extent = e.kernel.axes[loop.axis].extent
        reads = used(e.kernel, loop.body)

        def body() -> None:
            prefetch_later_rows(e, loop, 2)
            e.block(loop.body)

        def trip(i: Position, _: list[str]) -> list[str]:
            with e.s.inside(loop.axis, i, 0, extent):
                self.lanes(body, reads)
            return []

        e.loop(0, extent, 1, (), trip)

    def reduction(self, loop: Loop) -> None:
        _RowReduction(self, loop).run()


class _RowReduction:
    """Reductions over rows, of which a run at once joins what is held.

    Of what has a shape runs are joined as a binary counter carries: 2**n of them wait in place n.
    """

    def __init__(self, columns: _ColumnAccumulators, loop: Loop) -> None:
        e = self.e = columns.e
        self.columns, self.loop, self.size = columns, loop, e.kernel.fold.run
        self.extent = e.kernel.axes[loop.axis].extent
        self.makers: list[Reduction] = []
        for m in loop.members:
            i = e.kernel.instructions[m]
            place = e.kernel.instructions[i.args[1]].dtype if len(i.args) > 1 else ""
            dtype = e.kernel.instructions[i.args[0]].dtype
            self.makers.append(Reduction(e.w, i.attr[0], dtype, place, 1, True, False, True))
        self.slots = [slot for maker in self.makers for slot in maker.slots()]
        self.shaped = [m.shaped for m in self.makers for _ in m.slots()]
        self.whole = self.extent // self.size * self.size  # the rows of whole runs
        self.places = row_places(e.kernel, loop.axis)
        self.indices = [i.index for i in loads(e.kernel, loop.body) if i.index is not None]

    def run(self) -> None:
        e, columns = self.e, self.columns
        reads = used(e.kernel, [self.loop])

        def rows(i: Position, _: list[str]) -> list[str]:
            number = e.w.op(f"udiv i64 {i}, {self.size}")
            number = e.w.op(f"add i64 {number}, 1")
            place = e.w.call("i64", "llvm.cttz.i64", ("i64", number), ("i1", "true"))
            positions = [e.sum(i, n) for n in range(self.size)]
            with e.s.inside(self.loop.axis, i, 0, self.extent):
                for position in positions:
                    multiply_before(e.s, position, self.indices, self.loop.axis)
                columns.lanes(lambda: self.join(positions, place), reads)
            return []

        if not all(self.shaped):
            columns.lanes(lambda: self.hold([first for _, first in self.slots]), set())
        e.loop(0, self.whole, self.size, (), rows)
        columns.lanes(self.finish, reads)

    def join(self, positions: list[Position], place: str) -> None:
        """A run, with as many as wait for it."""
        made = self.begun()
        for position in positions:
            made = self.row(position, made)
        if any(self.shaped):
            made = self.e.loop(0, place, 1, self.as_slots(made), self.carried, self.places)
        for n, ((ty, _), x) in enumerate(zip(self.slots, made, strict=True)):
            if self.shaped[n]:
                self.e.w.put(f"store {ty} {x}, ptr {self.waits(n, place)}, align 8")
        self.hold(made)

    def finish(self) -> None:
        """The rows that are left, then all that waits, and the results."""
        e = self.e
        slots = self.as_slots(self.begun())
        made = e.loop(self.whole, self.extent, 1, slots, self.row, self.size)
        if any(self.shaped):
            made = self.total(made)
        for m, maker in zip(self.loop.members, self.makers, strict=True):
            result, where = maker.finish(made[: len(maker.slots())])
            del made[: len(maker.slots())]
            e.s.env[m] = result
            self.columns.keep(m)
            if where is not None:
                for v, i in enumerate(e.kernel.instructions):
                    if i.op == "state" and i.args == (m,):
                        self.columns.remember(v, COMPUTE[i.dtype], where.at(0))

    def total(self, made: list[str]) -> list[str]:
        """All that waits, the smallest first."""
        w, runs = self.e.w, self.extent // self.size

        def next_place(_: Position, held: list[str]) -> list[str]:
            place, left = least_bit(w, held[0])
            return [left, *self.carried(place, held[1:])]

        slots = [("i64", str(runs)), *self.as_slots(made)]
        count = w.intrinsic("ctpop", "i64", str(runs))
        return self.e.loop(0, count, 1, slots, next_place, self.places)[1:]

    def begun(self) -> list[str]:
        """What rows join: nothing, or what has no shape as it is kept."""
        return [
            x if shaped else self.columns.recall((self.loop, n), element_of(ty))
            for n, ((ty, x), shaped) in enumerate(zip(self.slots, self.shaped, strict=True))
        ]

    def as_slots(self, held: list[str]) -> list[Slot]:
        return [(ty, x) for (ty, _), x in zip(self.slots, held, strict=True)]

    def row(self, i: Position, held: list[str]) -> list[str]:
        e, loop, made = self.e, self.loop, list[str]()
        with e.s.inside(loop.axis, i, 0, self.extent):
            prefetch_later_rows(e, loop, self.size)
            e.block(loop.body)
            for m, maker in zip(loop.members, self.makers, strict=True):
                value = tuple(e.s.get(a, 0, True) for a in e.kernel.instructions[m].args)
                mine = held[len(made) : len(made) + len(maker.slots())]
                made += maker.step(mine, [value], [None])
        return made

    def hold(self, values: list[str]) -> None:
        """Keep what has no shape."""
        for n, ((ty, _), x) in enumerate(zip(self.slots, values, strict=True)):
            if not self.shaped[n]:
                self.columns.remember((self.loop, n), element_of(ty), x)

    def carried(self, place: Position, held: list[str]) -> list[str]:
        """A run, or several, with as many that waited."""
        others = [
            self.e.w.op(f"load {ty}, ptr {self.waits(n, place)}, align 8") if shaped else x
            for n, ((ty, _), x, shaped) in enumerate(
                zip(self.slots, held, self.shaped, strict=True)
            )
        ]
        return merged(self.makers, others, held)

    def waits(self, slot: int, place: Position) -> str:
        element = element_of(self.slots[slot][0])
        return self.columns.place((self.loop, slot), element, place, self.places)
