"""An invocation that does by itself whatever stands below its position: reductions in the order of
the kernel's fold, axes whose positions come one after the other, loops in loops.

It is right for every kernel, and fast for those with short loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from tenfold.backends.webgpu.emit.counter import Counter
from tenfold.backends.webgpu.emit.joining import Held, Joining
from tenfold.backends.webgpu.wgsl.invocation import Invocation, number
from tenfold.backends.webgpu.wgsl.memory import guard, load, store
from tenfold.kernel.analyse.nest import Compute, Guard, Item, Loop, Write
from tenfold.kernel.ir.kernel import Instruction


class SerialEmitter:
    """Walks a nest, with all loops written as loops."""

    def __init__(self, v: Invocation, along: dict[int, int | None]) -> None:
        """`along` has for each reduction the axis that its rounds lie along, if any."""
        self.v, self.w, self.along = v, v.w, along
        self.kernel = v.kernel
        self.test = ""  # whether this invocation stores what others compute, too
        self.ranges: dict[int, tuple[str, str]] = {}  # where loops over some axes begin and end

    def block(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Compute):
                self.compute(item.value)
            elif isinstance(item, Write):
                store(self.v, item.store, self.test)
            elif isinstance(item, Guard):
                guard(self.v, item.check)
            elif item.members:
                self.reduce(item)
            else:
                self.around(item)

    def compute(self, value: int) -> None:
        if (value, 0) in self.v.env:  # a reduction's further states are there already
            return
        if self.kernel.instructions[value].op == "load":
            load(self.v, value)
        else:
            self.v.compute(value)

    def around(self, item: Loop) -> None:
        """A loop over a parallel or sequential axis."""
        with self.over(item.axis):
            self.block(item.body)

    def over(self, axis: int) -> _Over:
        low, high = self.ranges.get(axis, ("0", number(self.kernel.axes[axis].extent)))
        return _Over(self.v, axis, low, high)

    def over_range(self, axis: int, low: str, high: str, step: int) -> _Over:
        return _Over(self.v, axis, low, high, step)

    # Reductions.

    def reduce(self, item: Loop) -> None:
        """The loops of some reductions: one for all that have no shape, and one for each that has,
        so that each has the shape of its own."""
        shaped = [m for m in item.members if Joining.of(self.kernel, m).shaped]
        plain = [m for m in item.members if m not in shaped]
        made: dict[int, Held] = {}
        quiet = item
        if plain:
            made.update(self._plainly(item, plain))
            quiet = without_effects(item)
        for m in shaped:
            made[m] = [self._shaped(quiet, m)]
            quiet = without_effects(item)
        self.found(made)

    def found(self, made: dict[int, Held]) -> None:
        """What reductions came to."""
        for m, held in made.items():
            self.v.put(m, 0, held[0])
            for n, i in enumerate(self.kernel.instructions):
                if i.op == "state" and i.args == (m,):
                    self.v.put(n, 0, held[1])

    def variables(self, joining: Joining) -> Held:
        """What a reduction holds, in variables that begin with nothing."""
        held = [
            self.w.var(ty, text) for ty, text in zip(joining.types, joining.identity, strict=True)
        ]
        self.w.computed.update(held)
        return held

    def step(self, joining: Joining, held: Held, i: Instruction) -> None:
        """One more value for variables."""
        new = joining.step(self.w, held, [self.v.get(a) for a in i.args])
        for name, x in zip(held, new, strict=True):
            self.w.put(f"{name} = {x};")

    def _plainly(self, item: Loop, members: Sequence[int]) -> dict[int, Held]:
        """One value after the other, in whatever order."""
        joinings = {m: Joining.of(self.kernel, m) for m in members}
        held = {m: self.variables(joining) for m, joining in joinings.items()}
        levels = levels_of(item)

        def level(at: int) -> None:
            one = levels[at]
            with self.over(one.axis):
                if at + 1 < len(levels):
                    self.block(one.body[:-1])
                    level(at + 1)
                    return
                self.block(one.body)
                for m, joining in joinings.items():
                    self.step(joining, held[m], self.kernel.instructions[m])

        level(0)
        return held

    def _shaped(self, item: Loop, member: int) -> str:
        joining, levels = Joining.of(self.kernel, member), levels_of(item)
        i = self.kernel.instructions[member]
        if self.along[member] is None:
            return self._elsewhere(levels, i, joining, None)
        if not self.kernel.axes[levels[-1].axis].extent <= self.kernel.fold.stretch:
            return self._elsewhere(levels, i, joining, self._chunks)
        return self._by_halves(
            joining,
            lambda lane: self._elsewhere(
                levels, i, joining, lambda one, i, joining: self._lane(one, i, joining, lane, "0")
            ),
        )

    def _elsewhere(
        self,
        levels: Sequence[Loop],
        i: Instruction,
        joining: Joining,
        last: Callable[[Loop, Instruction, Joining], str] | None,
    ) -> str:
        """The fold over an axis, a round being one position: runs of some rounds one after the
        other, and a balanced tree over runs. The last axis is folded by itself where `last` says
        how."""
        one, *deeper = levels
        if not deeper and last is not None:
            return last(one, i, joining)
        end = number(self.kernel.axes[one.axis].extent)

        def run(start: str) -> str:
            (held,) = self.variables(joining)
            stop = self.w.let("i32", f"min({start} + {self.kernel.fold.run}, {end})")
            with _Over(self.v, one.axis, start, stop):
                if deeper:
                    self.block(one.body[:-1])
                    inner = self._elsewhere(deeper, i, joining, last)
                    self.w.computed.add(inner)
                    self.w.put(f"{held} = {joining.merge(self.w, [held], [inner])[0]};")
                else:
                    self.block(one.body)
                    self.step(joining, [held], i)
            return held

        return self.tree(joining, "0", end, self.kernel.fold.run, run)

    def tree(
        self, joining: Joining, low: str, high: str, size: int, part: Callable[[str], str]
    ) -> str:
        """A balanced tree over parts of so many positions."""
        counter, at = Counter(self.w, joining), self.w.fresh("i")
        with self.w.block(f"for (var {at} = {low}; {at} < {high}; {at} += {size})"):
            counter.join(part(at))
        return counter.total()

    def _chunks(self, one: Loop, i: Instruction, joining: Joining) -> str:
        end = number(self.kernel.axes[one.axis].extent)
        return self.tree(
            joining, "0", end, self.kernel.fold.stretch,
            lambda start: self._by_halves(
                joining, lambda lane: self._lane(one, i, joining, lane, start)
            ),
        )  # fmt: skip

    def _by_halves(self, joining: Joining, lane: Callable[[str], str]) -> str:
        """The lanes one after the other, then folded by halves."""
        w, lanes = self.w, self.kernel.fold.lanes
        memory, at = w.fresh("l"), w.fresh("i")
        w.put(f"var {memory}: array<{joining.types[0]}, {lanes}>;")
        with w.block(f"for (var {at} = 0; {at} < {lanes}; {at}++)"):
            w.put(f"{memory}[{at}] = {lane(at)};")
        half, other = w.fresh("h"), w.fresh("i")
        head = f"for (var {half} = {lanes // 2}; {half} > 0; {half} /= 2)"
        with w.block(head), w.block(f"for (var {other} = 0; {other} < {half}; {other}++)"):
            two = [
                w.let(joining.types[0], f"{memory}[{place}]")
                for place in (other, f"{other} + {half}")
            ]
            w.computed.update(two)
            w.put(f"{memory}[{other}] = {joining.merge(w, two[:1], two[1:])[0]};")
        return f"{memory}[0]"

    def _lane(self, one: Loop, i: Instruction, joining: Joining, lane: str, start: str) -> str:
        """What one lane has of a chunk: of each run its copies as a balanced tree, each of them
        some rounds one after the other."""
        fold, w = self.kernel.fold, self.w
        extent = number(self.kernel.axes[one.axis].extent)
        end = w.let("i32", f"min({start} + {fold.stretch}, {extent})")
        size = fold.round * fold.run

        def run(begin: str) -> str:
            stop = w.let("i32", f"min({begin} + {size}, {end})")

            def copy(number_: str) -> str:
                (held,) = self.variables(joining)
                first = w.let("i32", f"{begin} + {lane} + {number_} * {fold.lanes}")
                with _Over(self.v, one.axis, first, stop, fold.round):
                    self.block(one.body)
                    self.step(joining, [held], i)
                return held

            return self.tree(joining, "0", str(fold.copies), 1, copy)

        return self.tree(joining, start, end, size, run)


class _Over(AbstractContextManager[None]):
    """A loop over an axis, from one position up to another."""

    def __init__(self, v: Invocation, axis: int, low: str, high: str, step: int = 1) -> None:
        self.v, self.axis = v, axis
        self.name = v.w.fresh("a")
        by = f"{self.name} += {step}"
        self.block = v.w.block(f"for (var {self.name} = {low}; {self.name} < {high}; {by})")
        self.inside = v.inside(axis, self.name)

    def __enter__(self) -> None:
        self.block.__enter__()
        self.inside.__enter__()

    def __exit__(self, *why: object) -> None:
        self.inside.__exit__(None, None, None)
        self.block.__exit__(None, None, None)


def levels_of(item: Loop) -> list[Loop]:
    """The loops over the axes of one reduction, outermost first."""
    levels = [item]
    while (inner := levels[-1].inner) is not None:
        levels.append(inner)
    return levels


def without_effects(item: Loop) -> Loop:
    """A loop without stores and checks."""
    levels = levels_of(item)
    made: Loop | None = None
    for one in reversed(levels):
        body = [x for x in one.body if isinstance(x, (Compute, Loop))]
        if made is not None:
            body[-1] = made
        made = Loop(one.axis, one.members, tuple(body))
    assert made is not None
    return made
