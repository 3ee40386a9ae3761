"""Where an extreme lies: argmax and argmin of a long row, by two loops.

The first finds the extreme as max and min do, and keeps no positions: these take twice as many
registers as values do, and as many instructions again. It keeps the round in which each lane met
its extreme, one comparison for all vectors of a round. The second loop begins with the round that
was first to meet the extreme of all lanes, and ends there; only after a NaN, or where numbers of
rounds do not fit into a lane, does it go through the row from its beginning.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tenfold.backends.cpu.emit.reductions import Reduction, Slot
from tenfold.backends.cpu.emit.state import Parts, Position, Val
from tenfold.backends.llvm.writer import BITS, COMPUTE, LANES, kind, vector
from tenfold.frozen import frozen
from tenfold.kernel.analyse.cost import work
from tenfold.kernel.analyse.nest import Compute, Loop
from tenfold.kernel.ir.index import AXIS, Index

if TYPE_CHECKING:
    from tenfold.backends.cpu.emit.emit import Emitter

_LIGHT = 4.0  # work that is done again sooner than positions are kept


def is_sought(e: Emitter, loop: Loop, member: int) -> bool:
    """Whether the position of a reduction's result is looked for afterwards."""
    i, axis = e.kernel.instructions[member], loop.axis
    if i.attr[0] not in ("argmax", "argmin") or e.schedule.small or loop.inner is not None:
        return False
    if axis not in e.schedule.lanes or e.s.lane is not None or axis == e.schedule.folded:
        return False
    extent, place = e.kernel.axes[axis].extent, e.kernel.instructions[i.args[1]]
    if isinstance(extent, int) and extent <= e.kernel.fold.round:
        return False  # all of it stays in registers
    if place.op != "index" or place.index is None or not _is_axis(place.index, axis):
        return False
    items = [item for item in loop.body if isinstance(item, Compute)]
    light = sum(work(e.kernel.instructions[item.value].op) for item in items) <= _LIGHT
    return light and len(items) == len(loop.body)


def is_tracked(dtype: str) -> bool:
    """Whether lanes have room for the numbers of rounds."""
    return BITS[COMPUTE[dtype]] >= 32


def extreme(e: Emitter, loop: Loop, member: int) -> int:
    """The reduction of the same loop that finds the extreme: it may be there beside."""
    own = e.kernel.instructions[member]
    wanted = own.attr[0].removeprefix("arg"), *own.attr[1:]
    for m in loop.members:
        i = e.kernel.instructions[m]
        if i.attr == wanted and i.args == own.args[:1]:
            return m
    return member


def _is_axis(index: Index, axis: int) -> bool:
    ones = [
        a.kind == AXIS and a.of == axis and isinstance(k, int) and k == 1 for a, k in index.terms
    ]
    return ones == [True] and isinstance(index.const, int) and index.const == 0


@frozen
class Tracked(Reduction):
    """An extreme, and for each lane of one register the round in which it was met first."""

    @property
    def _lanes(self) -> int:
        return min(LANES, self.w.target.lanes(BITS[self.element] // 8))

    @property
    def _number(self) -> str:
        """An integer as wide as an element."""
        return f"i{BITS[self.element]}"

    def slots(self) -> list[Slot]:
        best, met = (vector(t, True, self._lanes) for t in (self.element, self._number))
        watch = [(self._watch, self._zero())] if self._watches else []
        return [(best, self.identity()[0]), (met, "zeroinitializer"), *watch]

    def step(
        self, held: list[str], values: list[Parts], masks: list[str | None], at: Position = 0
    ) -> list[str]:
        w = self.w
        (held_type, _), (numbers, _), *_ = self.slots()
        best, met, *seen = held
        living = [self._alive(v, m)[0] for v, m in zip(values, masks, strict=True)]
        top = living
        while len(top) > 1:
            pairs = [top[n : n + 2] for n in range(0, len(top), 2)]
            top = [self._join((p[0],), (p[1],))[0] if len(p) == 2 else p[0] for p in pairs]
        most = self._narrowed(top[0], self._lanes)
        number = w.op(f"udiv i64 {at}, {LANES * self.copies}")
        if self._number != "i64":
            number = w.op(f"trunc i64 {number} to {self._number}")
        ahead = self._ahead(most, best, held_type)
        out = [
            w.select(ahead, held_type, most, best),
            w.select(ahead, numbers, w.splat(self._number, number, self._lanes), met),
        ]
        for watch in seen:
            for n in range(0, len(living), 2):
                found = self._unordered(living[n], living[min(n + 1, len(living) - 1)])
                watch = w.op(f"or {self._watch} {watch}, {found}")
            out.append(watch)
        return out

    def finish(self, held: list[str]) -> tuple[Val, Val | None]:
        """The extreme, and where the first round begins that may have it."""
        w, lanes = self.w, self._lanes
        (held_type, _), (numbers, _), *_ = self.slots()
        best, met, *seen = held
        result = self._last(best, lanes)
        test = "fcmp oeq" if self.floating else "icmp eq"
        equal = w.op(f"{test} {held_type} {best}, {w.splat(self.element, result, lanes)}")
        candidate = w.select(equal, numbers, met, w.const(self._number, -1, True))
        first = w.call(
            self._number, f"llvm.vector.reduce.umin.v{lanes}{self._number}", (numbers, candidate)
        )
        if self._number != "i64":
            first = w.op(f"zext {self._number} {first} to i64")
        first = w.op(f"mul i64 {first}, {LANES * self.copies}")
        for watch in seen:
            nan = self._any_lane(watch)
            result = w.select(nan, self.element, w.const(self.element, math.nan, False), result)
            first = w.select(nan, "i64", "0", first)
        return Val((result,), False), Val((first,), False)


def seek(e: Emitter, loop: Loop, member: int, begin: Position) -> Val:
    """The first position, from one on, of what a reduction found, or of a NaN, if that is what it
    found."""
    s, w, axis = e.s, e.w, loop.axis
    i = e.kernel.instructions[member]
    value = i.args[0]
    extent, copies = e.kernel.axes[axis].extent, e.kernel.fold.copies
    dtype = e.kernel.instructions[value].dtype
    ty, truth = vector(COMPUTE[dtype]), vector("i1")
    best = w.splat(COMPUTE[dtype], s.env[member].at(0))

    def equal(copy: int) -> str:
        x = s.get(value, copy, True)
        if kind(dtype) != "f":
            return w.op(f"icmp eq {ty} {x}, {best}")
        # Where there is a NaN, that is what was found, and nothing is equal to it.
        nan = w.op(f"fcmp uno {ty} {x}, {x}")
        return w.op(f"or {truth} {w.op(f'fcmp oeq {ty} {x}, {best}')}, {nan}")

    def here(position: Position) -> str:
        with s.inside(axis, position, 0, extent):
            s.lane, s.copies, s.aligned, s.masks = axis, copies, True, [None] * copies
            e.block(loop.body)
            some = equal(0)
            for copy in range(1, copies):
                some = w.op(f"or {truth} {some}, {equal(copy)}")
            return w.some(some)

    reach = LANES * copies
    at = e.first(begin, extent // reach * reach, reach, here, extent)
    lanes = ""
    with s.inside(axis, at, 0, extent):
        s.lane, s.copies, s.aligned, s.masks = axis, copies, True, e.live(at, extent, copies)
        e.block(loop.body)
        for copy in range(copies):
            living = w.op(f"and {truth} {equal(copy)}, {s.mask(copy)}")
            bits = w.op(
                f"zext i{LANES} {w.op(f'bitcast {truth} {living} to i{LANES}')} to i{reach}"
            )
            moved = w.op(f"shl i{reach} {bits}, {copy * LANES}")
            lanes = w.op(f"or i{reach} {lanes}, {moved}") if lanes else moved
    lane = w.call(f"i{reach}", f"llvm.cttz.i{reach}", (f"i{reach}", lanes), ("i1", "true"))
    found = w.op(f"add nsw i64 {at}, {lane}")
    element = COMPUTE[e.kernel.instructions[i.args[1]].dtype]
    return Val((found if element == "i64" else w.op(f"trunc i64 {found} to {element}"),), False)
