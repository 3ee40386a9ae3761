"""Rows that several loops read: a team reads them once, and keeps them.

All loops have the positions of a row in the layout of the fold: each member has the same ones in
each of them, so many that they are known when code is made. A load of the first loop leaves what it
read in variables of the invocation, and equal loads of later loops take it from there.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from tenfold.backends.webgpu.emit.joining import Joining
from tenfold.backends.webgpu.emit.module import ModuleWriter
from tenfold.backends.webgpu.emit.rownest import Rows
from tenfold.backends.webgpu.emit.serial import levels_of
from tenfold.backends.webgpu.emit.team import Layout, Team, TeamEmitter
from tenfold.backends.webgpu.wgsl.invocation import Invocation, number
from tenfold.backends.webgpu.wgsl.types import REGISTER
from tenfold.kernel.analyse.access import affine
from tenfold.kernel.analyse.nest import Loop
from tenfold.kernel.ir.kernel import READ, Instruction, Kernel
from tenfold.kernel.ir.number import Number

Key = tuple[Any, ...]
_MOST = 2  # arrays whose elements are kept


def kept_loads(
    kernel: Kernel, rows: Rows, along: dict[int, int | None], team: Team
) -> dict[int, Key]:
    """The loads that stand in several loops over rows, by what they read; none where rows are not
    gone through in one go, or where loops differ."""
    loops = [item for item in rows.items if isinstance(item, Loop)]
    first = kernel.axes[loops[0].axis].extent
    for item in loops:
        shaped = [m for m in item.members if Joining.of(kernel, m).shaped]
        if len(levels_of(item)) > 1 or any(along[m] is None for m in shaped):
            return {}
        if not _same(kernel.axes[item.axis].extent, first):
            return {}
    if not team.beside or len(loops) < 2 or not first <= _layout(kernel, first, team).chunk(team):
        return {}
    found: dict[Key, list[int]] = {}
    for item in loops:
        for n, i in enumerate(kernel.instructions):
            if _is_kept(kernel, i, item.axis, rows):
                found.setdefault(_key(i, item.axis), []).append(n)
    several = [key for key, loads in found.items() if len(set(loads)) > 1][:_MOST]
    return {n: key for key in several for n in found[key]}


def _is_kept(kernel: Kernel, i: Instruction, axis: int, rows: Rows) -> bool:
    """Whether a load is of the rows' memory, at places that are sums of axes."""
    if i.op != "load" or i.index is None or i.args or not affine(i.index):
        return False
    axes = i.index.axes()
    return kernel.buffers[i.attr[0]].role == READ and axis in axes and axes <= {axis, *rows.outer}


def _key(i: Instruction, axis: int) -> Key:
    """What a load reads along any axis of a row."""
    assert i.index is not None
    terms = sorted((-1 if a.of == axis else a.of, _known(k)) for a, k in i.index.terms)
    return i.attr, tuple(terms), _known(i.index.const)


def _known(n: Any) -> tuple[bool, int]:
    return (True, n.at) if isinstance(n, Number) else (False, n)


def _same(a: Any, b: Any) -> bool:
    """Whether two extents are known to be one: by the kernel, not by what they happen to be."""
    return _known(a) == _known(b)


def _layout(kernel: Kernel, extent: Any, team: Team) -> Layout:
    """The layout of the fold for rows that are gone through in one go."""
    fold = kernel.fold
    groups, leaf = team.size // fold.lanes, fold.round * fold.run
    few = extent <= leaf * groups
    return Layout(fold.lanes, leaf, 1 if few else fold.chunk // groups)


def _rounds(kernel: Kernel, extent: Any, team: Team) -> int:
    """How many rounds of a run there are in any row: short ones do not fill the first."""
    fold, rounds = kernel.fold, 1
    if team.size > fold.lanes:
        return fold.run
    while rounds < fold.run and not extent <= rounds * fold.round:
        rounds *= 2
    return min(rounds, fold.run)


class KeptEmitter(TeamEmitter):
    """Walks a nest; what some loads read stays in variables."""

    def __init__(
        self,
        m: ModuleWriter,
        v: Invocation,
        along: dict[int, int | None],
        team: Team,
        loads: dict[int, Key],
        extent: Any,
    ) -> None:
        """`extent` is that of rows."""
        super().__init__(m, v, along, team)
        self.loads = loads
        self.grid, fold = _layout(self.kernel, extent, team), self.kernel.fold
        self.run = _rounds(self.kernel, extent, team)
        self.count = self.grid.leaves * fold.copies * self.run  # positions of a member
        self.slot = ""  # which of its positions this member is at
        self.kept: dict[Key, str] = {}
        self.start = 0  # the line where variables are declared

    def begin(self) -> None:
        super().begin()
        self.start = len(self.w.lines)

    def compute(self, value: int) -> None:
        key = self.loads.get(value)
        if key is None:
            super().compute(value)
            return
        ty = REGISTER[self.kernel.instructions[value].dtype]
        if key in self.kept:
            self.v.put(value, 0, self.w.let(ty, f"{self.kept[key]}[{self.slot}]"))
            return
        super().compute(value)
        name = self.kept[key] = self.w.fresh("kept")
        self.w.lines.insert(self.start, f"  var {name}: array<{ty}, {self.count}>;")
        self.w.put(f"{name}[{self.slot}] = {self.v.get(value)};")

    def may_be_abreast(self, item: Loop) -> bool:
        return False  # all is read by then

    def positions(self, axis: int) -> AbstractContextManager[None]:
        w, fold, layout = self.w, self.kernel.fold, self.grid
        first = w.let("i32", f"{self.me} / {fold.lanes} * {layout.leaf * layout.leaves}")
        lane = w.let("i32", f"{first} + {self.me} % {fold.lanes}")
        each = fold.copies * self.run
        slot = w.fresh("i")
        at = (
            f"{lane} + {slot} / {each} * {layout.leaf} + {slot} % {each} / {self.run} * "
            f"{fold.lanes} + {slot} % {self.run} * {fold.round}"
        )
        end = number(self.kernel.axes[axis].extent)
        return _Slots(self, axis, slot, self.count, slot, at, end)

    def copies(self, axis: int, lane: str, copy: str, stop: str) -> AbstractContextManager[None]:
        fold, turn = self.kernel.fold, self.w.fresh("i")
        slot = f"{self.leaf} * {fold.copies * self.run} + {copy} * {self.run} + {turn}"
        at = f"{lane} + {copy} * {fold.lanes} + {turn} * {fold.round}"
        return _Slots(self, axis, turn, self.run, slot, at, stop)


class _Slots(AbstractContextManager[None]):
    """A loop over so many slots, each at a position of an axis if there is one."""

    def __init__(
        self, e: KeptEmitter, axis: int, turn: str, count: int, slot: str, at: str, end: str
    ) -> None:
        w = e.w
        self.e, self.axis, self.slot, self.at, self.end = e, axis, slot, at, end
        self.loop = w.block(f"for (var {turn} = 0; {turn} < {count}; {turn}++)")

    def __enter__(self) -> None:
        e, w = self.e, self.e.w
        self.loop.__enter__()
        e.slot = w.let("i32", self.slot)
        at = w.let("i32", self.at)
        self.there = w.block(f"if ({at} < {self.end})")
        self.there.__enter__()
        self.inside = e.v.inside(self.axis, at)
        self.inside.__enter__()

    def __exit__(self, *why: object) -> None:
        self.inside.__exit__(None, None, None)
        self.there.__exit__(None, None, None)
        self.loop.__exit__(None, None, None)
        self.e.slot = ""
