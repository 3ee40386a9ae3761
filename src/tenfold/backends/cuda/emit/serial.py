"""A thread that does by itself whatever stands below its position: reductions in the order of the
kernel's fold, axes whose positions come one after the other, loops in loops.

It is right for every kernel, and fast for those with short loops: whatever has long ones and a
plain form is laid over many threads elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold.backends.cuda.emit.control import least, loop, total
from tenfold.backends.cuda.emit.counter import counter_for
from tenfold.backends.cuda.emit.joining import Held, Joining
from tenfold.backends.cuda.emit.memory import both, guard, guarded, load, store
from tenfold.backends.cuda.emit.thread import Position, Text, Thread
from tenfold.kernel.analyse.nest import Compute, Guard, Item, Loop, Write
from tenfold.kernel.ir.kernel import Instruction

_ALL = "all"  # lanes
_UNKNOWN = 1 << 40
Make = Callable[[], Held]


class SerialEmitter:
    """Walks a nest, with all loops written as loops."""

    def __init__(self, t: Thread, along: dict[int, int | None]) -> None:
        """`along` has for each reduction the axis that its rounds lie along, if any."""
        self.t, self.w, self.along = t, t.w, along
        self.kernel = t.kernel
        self.memory: list[str] = []  # lines that reserve it where the function begins
        self.alone: Text | None = None  # whether this thread stores what others compute, too

    def block(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Compute):
                self.compute(item.value)
            elif isinstance(item, Write):
                store(self.t, item.store, self.alone)
            elif isinstance(item, Guard):
                guard(self.t, item.check)
            elif item.members:
                self.reduce(item)
            else:
                self.around(item)

    def compute(self, value: int) -> None:
        if (value, 0) in self.t.env:  # a reduction's further states are there already
            return
        if self.kernel.instructions[value].op == "load":
            load(self.t, value)
        else:
            self.t.compute(value)

    def around(self, item: Loop) -> None:
        """A loop over a parallel or sequential axis."""
        extent = self.kernel.axes[item.axis].extent

        def body(i: Position, _: list[Text]) -> list[Text]:
            with self.t.inside(item.axis, i):
                self.block(item.body)
            return []

        loop(self.w, self.t.position, 0, extent, 1, (), body)

    # Reductions.

    def reduce(self, item: Loop) -> None:
        """The loops of some reductions: one for each, so that each has the shape of its own."""
        quiet = item
        for number, member in enumerate(item.members):
            made = self._reduced(item if number == 0 else quiet, member)
            self.t.put(member, 0, made[0])
            for n, i in enumerate(self.kernel.instructions):
                if i.op == "state" and i.args == (member,):
                    self.t.put(n, 0, made[1])
            quiet = _without_effects(item)

    def _reduced(self, item: Loop, member: int) -> Held:
        joining = Joining.of(self.kernel, member)
        i = self.kernel.instructions[member]
        levels = levels_of(item)
        crossing = self.along[member] if joining.shaped else None
        if not joining.shaped:
            return self._plainly(item, i, joining)
        if crossing is None:
            return self._elsewhere(levels, 0, i, joining, None)
        fold = self.kernel.fold
        inner = self.kernel.axes[levels[-1].axis].extent
        if inner <= fold.stretch:
            return self._by_halves(
                joining, lambda lane: self._elsewhere(levels, 0, i, joining, lane)
            )
        return self._elsewhere(levels, 0, i, joining, _ALL)

    def _plainly(self, item: Loop, i: Instruction, joining: Joining) -> Held:
        """One value after the other, in whatever order."""
        levels = levels_of(item)

        def level(at: int, held: list[Text]) -> list[Text]:
            one = levels[at]

            def body(position: Position, held: list[Text]) -> list[Text]:
                with self.t.inside(one.axis, position):
                    if at + 1 < len(levels):
                        self.block(one.body[:-1])
                        return level(at + 1, held)
                    self.block(one.body)
                    return joining.step(self.w, held, [self.t.get(a) for a in i.args])

            extent = self.kernel.axes[one.axis].extent
            slots = list(zip(joining.types, held, strict=True))
            return loop(self.w, self.t.position, 0, extent, 1, slots, body)

        return level(0, joining.identity)

    def _elsewhere(
        self,
        levels: Sequence[Loop],
        at: int,
        i: Instruction,
        joining: Joining,
        lane: Text | None,
    ) -> Held:
        """The fold over an axis, a round being one position: runs of some rounds one after the
        other, and a balanced tree over runs. Of the last axis, where rounds lie along that, what
        one `lane` has of it, or all of it."""
        one, last = levels[at], at + 1 == len(levels)
        if last and lane is not None:
            if lane == _ALL:
                return self._chunks(one, i, joining)
            return self._lane(one, i, joining, lane)

        def step(position: Position, held: list[Text]) -> list[Text]:
            with self.t.inside(one.axis, position):
                if last:
                    self.block(one.body)
                    return joining.step(self.w, held, [self.t.get(a) for a in i.args])
                self.block(one.body[:-1])
                return joining.merge(
                    self.w, held, self._elsewhere(levels, at + 1, i, joining, lane)
                )

        extent = self.kernel.axes[one.axis].extent
        return self._runs(0, extent, joining, step)

    def _runs(
        self,
        low: Position,
        high: Position,
        joining: Joining,
        step: Callable[[Position, list[Text]], list[Text]],
    ) -> Held:
        """Positions in runs, these in a balanced tree."""
        w, ty, size = self.w, self.t.position, self.kernel.fold.run

        def run(start: Position) -> Held:
            end = least(w, ty, total(w, ty, start, size), high)
            slots = list(zip(joining.types, joining.identity, strict=True))
            return loop(w, ty, start, end, 1, slots, step)

        return self._tree(joining, low, high, size, run)

    def _unless(self, none: Text, joining: Joining, make: Make) -> Held:
        """What is made, or the identity where there is nothing."""
        w = self.w
        some = w.op(f"xor i1 {none}, true")
        made = guarded(w, some, make, joining.types)
        return [
            w.op(f"select i1 {none}, {ty} {first}, {ty} {x}")
            for ty, first, x in zip(joining.types, joining.identity, made, strict=True)
        ]

    def _lane(
        self, one: Loop, i: Instruction, joining: Joining, lane: Text, start: Position = 0
    ) -> Held:
        """What one lane has of a chunk: of each run its copies as a balanced tree, each of them
        some rounds one after the other."""
        fold, w, ty = self.kernel.fold, self.w, self.t.position
        extent = self.kernel.axes[one.axis].extent
        size = fold.round * fold.run
        end = least(w, ty, total(w, ty, start, fold.stretch), extent)

        def step(position: Position, held: list[Text]) -> list[Text]:
            with self.t.inside(one.axis, position):
                self.block(one.body)
                return joining.step(w, held, [self.t.get(a) for a in i.args])

        def run(begin: Position) -> Held:
            stop = least(w, ty, total(w, ty, begin, size), end)
            from_lane = w.op(f"add {ty} {begin}, {lane}")

            def copy(number: Position) -> Held:
                first = w.op(f"add {ty} {from_lane}, {w.op(f'mul {ty} {number}, {fold.lanes}')}")
                slots = list(zip(joining.types, joining.identity, strict=True))
                return loop(w, ty, first, stop, fold.round, slots, step)

            return self._tree(joining, 0, fold.copies, 1, copy)

        return self._tree(joining, start, end, size, run, fold.chunk)

    def _tree(
        self,
        joining: Joining,
        low: Position,
        high: Position,
        size: int,
        part: Callable[[Position], Held],
        most: int | None = None,
    ) -> Held:
        """A balanced tree over parts of so many positions, `most` of them if that is known."""
        w, ty = self.w, self.t.position
        counter = counter_for(w, joining, ty, _most(low, high, size, most))
        self.memory += counter.declared

        def one(start: Position, held: list[Text]) -> list[Text]:
            state = counter.join(held[0], part(start), held[1:])
            return [w.op(f"add {ty} {held[0]}, 1"), *state]

        number, *state = loop(w, ty, low, high, size, [(ty, "0"), *counter.first], one)
        if isinstance(low, int) and isinstance(high, int):
            return counter.total(number, state) if high > low else joining.identity
        none = w.op(f"icmp eq {ty} {number}, 0")
        return self._unless(none, joining, lambda: counter.total(number, state))

    def _by_halves(self, joining: Joining, lane: Callable[[Text], Held]) -> Held:
        """The lanes folded by halves: a balanced tree over them in the order of their numbers'
        bits turned round."""
        w, ty, count = self.w, self.t.position, self.kernel.fold.lanes
        bits = int(ty[1:]) - (count.bit_length() - 1)

        def one(number: Position) -> Held:
            turned = w.intrinsic("bitreverse", ty, str(number))
            return lane(w.op(f"lshr {ty} {turned}, {bits}"))

        return self._tree(joining, 0, count, 1, one)

    def _chunks(self, one: Loop, i: Instruction, joining: Joining) -> Held:
        """A long axis that rounds lie along: chunks in a balanced tree, of each its lanes."""
        extent = self.kernel.axes[one.axis].extent

        def chunk(start: Position) -> Held:
            return self._by_halves(joining, lambda lane: self._lane(one, i, joining, lane, start))

        return self._tree(joining, 0, extent, self.kernel.fold.stretch, chunk)

    def only(self, test: Text | None) -> None:
        """Have stores carried out only where a test holds."""
        self.alone = both(self.w, self.alone, test)


def _most(low: Position, high: Position, size: int, most: int | None) -> Any:
    """How many parts there are at most."""
    if most is not None or isinstance(low, str) or isinstance(high, str):
        return _UNKNOWN if most is None else most
    return (high - low + size - 1) // size


def levels_of(item: Loop) -> list[Loop]:
    """The loops of a reduction, the outermost first."""
    found = [item]
    while (inner := found[-1].inner) is not None:
        found.append(inner)
    return found


def _without_effects(item: Loop) -> Loop:
    """A loop that is gone through once more, for another of its reductions."""
    body = tuple(
        _without_effects(one) if isinstance(one, Loop) else one
        for one in item.body
        if not isinstance(one, (Write, Guard))
    )
    return Loop(item.axis, item.members, body)
