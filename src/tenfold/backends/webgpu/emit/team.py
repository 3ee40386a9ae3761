"""Teams: some invocations of a workgroup that go through a row together.

A row-level loop is shared out among the team. Reductions have the order of the kernel's fold: an
invocation joins what it has of a few neighbouring runs, then the team what its members have, in
the memory of the workgroup, as a balanced tree by position; what is missing at the end of a row is
the identity, which changes nothing. Longer rows go by chunks, joined by a counter.

All invocations of a workgroup pass all barriers, those of no row as well: they compute what the
last row comes to, and store nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from tenfold.backends.webgpu.emit.abreast import abreast, is_short
from tenfold.backends.webgpu.emit.counter import Counter
from tenfold.backends.webgpu.emit.joining import Held, Joining
from tenfold.backends.webgpu.emit.module import ModuleWriter
from tenfold.backends.webgpu.emit.serial import SerialEmitter, levels_of, without_effects
from tenfold.backends.webgpu.wgsl.invocation import Invocation, number
from tenfold.backends.webgpu.wgsl.memory import guard, store
from tenfold.backends.webgpu.wgsl.types import of_shared, to_shared
from tenfold.frozen import frozen
from tenfold.kernel.analyse.nest import Compute, Guard, Item, Loop, Write
from tenfold.kernel.ir.number import prefers_less

WORKGROUP = 256


@frozen
class Team:
    """So many invocations a row. Members stand next to each other, or rows do."""

    size: int
    beside: bool = True

    @property
    def rows(self) -> int:
        """Rows of a workgroup."""
        return WORKGROUP // self.size

    @property
    def step(self) -> int:
        """How far members are apart in their workgroup."""
        return 1 if self.beside else self.rows


@frozen
class Layout:
    """How positions of a reduction lie over a team: in lanes, so many positions a leaf, so many
    leaves a member in one go."""

    lanes: int
    leaf: int
    leaves: int

    def chunk(self, team: Team) -> int:
        """Positions that a team takes in one go."""
        return self.leaf * self.leaves * (team.size // self.lanes)


class TeamEmitter(SerialEmitter):
    """Walks a nest; loops at the level of a row are shared out."""

    def __init__(
        self, m: ModuleWriter, v: Invocation, along: dict[int, int | None], team: Team
    ) -> None:
        super().__init__(v, along)
        self.m, self.team = m, team
        self.memory: dict[str, str] = {}  # of the workgroup, by type and number
        self.live = ""  # whether there is a row
        self.alone = False  # whether this invocation is inside of a loop that is shared out
        self.me = self.row = ""  # the number of this member, and of its row in the workgroup
        self.number = ""  # of its row among all
        self.leaf = "0"  # which of a member's leaves it is at
        self.short = False  # whether copies of runs go side by side
        self.part: tuple[str, str] | None = None  # the positions of a row that this team has

    def begin(self) -> None:
        w, team = self.w, self.team
        if team.beside:
            self.me = w.let("i32", f"i32(lid % {team.size}u)")
            self.row = w.let("i32", f"i32(lid / {team.size}u)")
        else:
            self.me = w.let("i32", f"i32(lid / {team.rows}u)")
            self.row = w.let("i32", f"i32(lid % {team.rows}u)")

    # Items.

    def block(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Compute):
                self.compute(item.value)
            elif isinstance(item, Write):
                store(self.v, item.store, self.tests())
            elif isinstance(item, Guard):
                guard(self.v, item.check, self.live)
            elif item.members:
                self.reduce(item)
            else:
                self.around(item)

    def tests(self) -> str:
        """Whether this invocation stores what it has."""
        own = [] if self.alone else [f"{self.me} == 0"]
        return " && ".join([self.live, *own, *([self.test] if self.test else [])])

    def around(self, item: Loop) -> None:
        if self.alone:
            super().around(item)
            return
        self.alone = True
        with self.positions(item.axis):
            self.block(item.body)
        self.alone = False

    def positions(self, axis: int) -> AbstractContextManager[None]:
        """A loop over what this member has of an axis, wherever it lies."""
        low, end = self.part or ("0", number(self.kernel.axes[axis].extent))
        first = self.me if low == "0" else self.w.let("i32", f"{low} + {self.me}")
        return self.over_range(axis, first, end, self.team.size)

    def copies(self, axis: int, lane: str, copy: str, stop: str) -> AbstractContextManager[None]:
        """A loop over what this member has of a copy in a run."""
        fold = self.kernel.fold
        begin = self.w.let("i32", f"{lane} + {copy} * {fold.lanes}")
        return self.over_range(axis, begin, stop, fold.round)

    def reduce(self, item: Loop) -> None:
        if self.alone:
            super().reduce(item)
            return
        self.alone = True
        self.found(self._shared_out(item))
        self.alone = False

    def may_be_abreast(self, item: Loop) -> bool:
        """Whether the copies of its runs may go side by side."""
        return is_short(self, item)

    # Reductions of a row.

    def layout(self, item: Loop) -> Layout:
        """How the positions of a loop lie over the team."""
        fold, team = self.kernel.fold, self.team
        shaped = [m for m in item.members if Joining.of(self.kernel, m).shaped]
        extent = self.kernel.axes[item.axis].extent
        if shaped and self.along[shaped[0]] is not None:
            groups = team.size // fold.lanes
            leaf = fold.round * fold.run
            few = extent <= leaf * groups
            return Layout(fold.lanes, leaf, 1 if few else fold.chunk // groups)
        if shaped:
            few = extent <= fold.run * team.size
            return Layout(1, fold.run, 1 if few else 8)
        return Layout(1, 1, 1)

    def _shared_out(self, item: Loop) -> dict[int, Held]:
        """The loop of some reductions, and what they came to for all of the team."""
        levels = levels_of(item)
        if len(levels) > 1 and any(Joining.of(self.kernel, m).shaped for m in item.members):
            return self._over_several(item)
        layout, self.short = self.layout(item), self.may_be_abreast(item)
        joinings = {m: Joining.of(self.kernel, m) for m in item.members}
        shaped = {m: j for m, j in joinings.items() if j.shaped}
        plain = {m: j for m, j in joinings.items() if not j.shaped}
        held = {m: self.variables(j) for m, j in plain.items()}
        low, end = self.part or ("0", number(self.kernel.axes[item.axis].extent))

        def visit(accumulators: dict[int, Held]) -> None:
            """One position: a value for each reduction."""
            if len(levels) > 1:
                self.block(levels[0].body[:-1])
                self._deeper(levels[1:], held)
                return
            self.block(item.body)
            for m, joining in joinings.items():
                into = accumulators[m] if m in accumulators else held[m]
                self.step(joining, into, self.kernel.instructions[m])

        if not shaped:
            with self.positions(item.axis):
                visit({})
            made: dict[int, Held] = {}
        else:
            made = self._in_chunks(item, layout, shaped, visit, low, end)
        return made | {m: self.together(j, held[m], 1) for m, j in plain.items()}

    def _deeper(self, levels: Sequence[Loop], held: dict[int, Held]) -> None:
        """The inner loops of reductions without shape over several axes."""
        one, *more = levels
        with self.over(one.axis):
            if more:
                self.block(one.body[:-1])
                self._deeper(more, held)
                return
            self.block(one.body)
            for m, into in held.items():
                joining = Joining.of(self.kernel, m)
                self.step(joining, into, self.kernel.instructions[m])

    def _over_several(self, item: Loop) -> dict[int, Held]:
        """Reductions over several axes, one after the other: so that each has the shape of its
        own."""
        made: dict[int, Held] = {}
        quiet = item
        for m in item.members:
            if Joining.of(self.kernel, m).shaped:
                made[m] = self._folded(quiet, m)
            else:
                made |= self._shared_out(_members(quiet, (m,)))
            quiet = without_effects(item)
        return made

    def _folded(self, item: Loop, member: int) -> Held:
        """A fold over several axes: each member of the team has neighbouring runs of the outermost
        one, or what a lane of the last has of these."""
        w, fold = self.w, self.kernel.fold
        joining, (one, *deeper) = Joining.of(self.kernel, member), levels_of(item)
        i = self.kernel.instructions[member]
        lanes, last = 1, None
        if self.along[member] is not None:
            last = self._chunks
            if self.kernel.axes[deeper[-1].axis].extent <= fold.stretch:
                lanes = fold.lanes
                lane = w.let("i32", f"{self.me} % {lanes}")
                last = partial(self._lane, lane=lane, start="0")
        per = fold.run * (self.team.size // lanes)
        outer: Any = self.kernel.axes[one.axis].extent
        leaves = 1 << ((outer + per - 1) // per - 1).bit_length()
        each = number(leaves * fold.run)
        first = w.let("i32", f"{self.me} / {lanes} * {each}")
        stop = w.let("i32", f"min({first} + {each}, {number(outer)})")

        def run(start: str) -> str:
            (held,) = self.variables(joining)
            end = w.let("i32", f"min({start} + {fold.run}, {stop})")
            with self.over_range(one.axis, start, end, 1):
                self.block(one.body[:-1])
                inner = self._elsewhere(deeper, i, joining, last)
                w.computed.add(inner)
                w.put(f"{held} = {joining.merge(w, [held], [inner])[0]};")
            return held

        return self.together(joining, [self.tree(joining, first, stop, fold.run, run)], lanes)

    def _in_chunks(
        self,
        item: Loop,
        layout: Layout,
        shaped: dict[int, Joining],
        visit: Callable[[dict[int, Held]], None],
        low: str,
        end: str,
    ) -> dict[int, Held]:
        chunk = layout.chunk(self.team)
        if self.kernel.axes[item.axis].extent <= chunk:
            return self.one_chunk(item.axis, layout, shaped, visit, low, end)
        counters = {m: Counter(self.w, j) for m, j in shaped.items()}
        start = self.w.fresh("i")
        with self.w.block(f"for (var {start} = {low}; {start} < {end}; {start} += {chunk})"):
            made = self.one_chunk(item.axis, layout, shaped, visit, start, end)
            for m, counter in counters.items():
                counter.join(made[m][0])
        return {m: [counter.total()] for m, counter in counters.items()}

    def one_chunk(
        self,
        axis: int,
        layout: Layout,
        shaped: dict[int, Joining],
        visit: Callable[[dict[int, Held]], None],
        start: str,
        end: str,
    ) -> dict[int, Held]:
        """What a team has of a chunk that begins somewhere: each member of its leaves, then all
        of them."""
        w, lanes = self.w, layout.lanes
        group = self.me if lanes == 1 else w.let("i32", f"{self.me} / {lanes}")
        first = w.let("i32", f"{start} + {group} * {layout.leaf * layout.leaves}")
        if layout.leaves == 1:
            self.leaf = "0"
            mine = self._leaf(axis, layout, shaped, visit, first, end)
        else:
            counters = {m: Counter(w, j, 8) for m, j in shaped.items()}
            last = w.let("i32", f"min({first} + {layout.leaf * layout.leaves}, {end})")
            at = w.fresh("i")
            with w.block(f"for (var {at} = {first}; {at} < {last}; {at} += {layout.leaf})"):
                self.leaf = f"({at} - {first}) / {layout.leaf}"
                one = self._leaf(axis, layout, shaped, visit, at, end)
                for m, counter in counters.items():
                    counter.join(one[m][0])
            mine = {m: [counter.total()] for m, counter in counters.items()}
        return {m: self.together(j, mine[m], lanes) for m, j in shaped.items()}

    def _leaf(
        self,
        axis: int,
        layout: Layout,
        shaped: dict[int, Joining],
        visit: Callable[[dict[int, Held]], None],
        first: str,
        end: str,
    ) -> dict[int, Held]:
        """A run, or what a lane has of one: its copies as a balanced tree."""
        w, fold = self.w, self.kernel.fold
        stop = w.let("i32", f"min({first} + {layout.leaf}, {end})")
        if layout.lanes == 1:
            held = {m: self.variables(j) for m, j in shaped.items()}
            with self.over_range(axis, first, stop, 1):
                visit(held)
            return held
        lane = w.let("i32", f"{first} + {self.me} % {layout.lanes}")
        if self.short:
            return abreast(self, axis, shaped, visit, lane, stop)
        counters = {m: Counter(w, j, 4) for m, j in shaped.items()}
        copy = w.fresh("i")
        with w.block(f"for (var {copy} = 0; {copy} < {fold.copies}; {copy}++)"):
            held = {m: self.variables(j) for m, j in shaped.items()}
            with self.copies(axis, lane, copy, stop):
                visit(held)
            for m, counter in counters.items():
                counter.join(held[m][0])
        return {m: [counter.total()] for m, counter in counters.items()}

    # What members have, joined.

    def together(self, joining: Joining, held: Held, lanes: int) -> Held:
        """What all of the team have, for each of them: neighbours joined, then neighbouring pairs;
        then lanes by halves."""
        w, team, types = self.w, self.team, joining.types
        places = [self._place(ty, n) for n, ty in enumerate(types)]
        mine = [w.var(ty, x) for ty, x in zip(types, held, strict=True)]
        w.computed.update(mine)
        self._share(types, places, mine)
        w.put("workgroupBarrier();")
        size = 1
        while lanes * size < team.size:
            test = f"({self.me} & {lanes * (2 * size - 1)}) == 0"
            self._join(joining, places, mine, lanes * size, test)
            size *= 2
        half = lanes // 2
        while half:
            self._join(joining, places, mine, half, f"{self.me} < {half}")
            half //= 2
        found = self._shared_by(types, places, f"lid - u32({self.me} * {team.step})")
        w.put("workgroupBarrier();")
        return found

    def _join(self, joining: Joining, places: Held, mine: Held, far: int, test: str) -> None:
        """Some members take what others so far away have."""
        w, types = self.w, joining.types
        with w.block(f"if ({test})"):
            other = self._shared_by(types, places, f"lid + {far * self.team.step}u")
            for name, x in zip(mine, joining.merge(w, list(mine), other), strict=True):
                w.put(f"{name} = {x};")
            self._share(types, places, mine)
        w.put("workgroupBarrier();")

    def _share(self, types: Held, places: Held, mine: Held) -> None:
        """Have the workgroup see what this invocation has."""
        for ty, place, x in zip(types, places, mine, strict=True):
            self.w.put(f"{place}[lid] = {to_shared(ty, x)};")

    def _shared_by(self, types: Held, places: Held, which: str) -> Held:
        """What one of the workgroup had it see."""
        w, both = self.w, zip(types, places, strict=True)
        found = [w.let(ty, of_shared(ty, f"{place}[{which}]")) for ty, place in both]
        w.computed.update(found)
        return found

    def _place(self, ty: str, n: int) -> str:
        """Memory of the workgroup for a value of each invocation."""
        key = f"{ty} {n}"
        if key not in self.memory:
            self.memory[key] = self.m.reserve(ty, WORKGROUP)
        return self.memory[key]


def _members(item: Loop, members: tuple[int, ...]) -> Loop:
    """A loop that reduces some members alone."""
    made: Loop | None = None
    for one in reversed(levels_of(item)):
        body = (*one.body[:-1], made) if made is not None else one.body
        made = Loop(one.axis, members, body)
    assert made is not None
    return made


def team_for(extent: Any, run: int) -> int:
    """Members of a team for rows so long: one for each run or what a lane has of one."""
    size = 16
    while size < WORKGROUP and prefers_less(run * size // 16, extent):
        size *= 2
    return size
