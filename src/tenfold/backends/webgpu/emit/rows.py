"""Kernels that go through rows: a team of invocations for each."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.webgpu.emit.joining import Joining
from tenfold.backends.webgpu.emit.keptrows import KeptEmitter, kept_loads
from tenfold.backends.webgpu.emit.longrows import emit_long, is_long
from tenfold.backends.webgpu.emit.module import ModuleWriter, scattered, total
from tenfold.backends.webgpu.emit.rounds import check_rounds
from tenfold.backends.webgpu.emit.rownest import Rows, begin_rows, rows_of
from tenfold.backends.webgpu.emit.serial import levels_of
from tenfold.backends.webgpu.emit.team import WORKGROUP, Team, TeamEmitter, team_for
from tenfold.backends.webgpu.shader import Shader
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.kernel.analyse.nest import Loop
from tenfold.kernel.ir.kernel import Free, Kernel
from tenfold.kernel.ir.number import prefers_less

_SHORT = 8  # positions of a row that one invocation goes through by itself
_COLUMNS = 8  # members of a team whose rows lie side by side


def emit_rows(
    kernel: Kernel,
    target: WebGPUTarget,
    order: Sequence[int],
    along: dict[int, int | None],
    lanes: Free,
) -> Shader | None:
    """A legal kernel with reductions, row by row; None where an invocation a row is as good, or
    where sums have a shape that a team has not."""
    rows = rows_of(kernel, order, along)
    team = _team(kernel, rows, along, lanes)
    if team is None or target.workgroup_invocations < WORKGROUP:
        return None
    if is_long(kernel, target, rows, team):
        return emit_long(kernel, target, rows, along, team)
    m = ModuleWriter(kernel, target, WORKGROUP)
    v = m.invocation(scattered(kernel))
    kept = kept_loads(kernel, rows, along, team)
    if kept:
        loop = next(item for item in rows.items if isinstance(item, Loop))
        emitter: TeamEmitter = KeptEmitter(m, v, along, team, kept, kernel.axes[loop.axis].extent)
    else:
        emitter = TeamEmitter(m, v, along, team)
    count = begin_rows(emitter, rows)
    check_rounds(kernel, target, rows.items, team.size)
    emitter.block(rows.items)
    m.entry(v.w, (count + team.rows - 1) // team.rows)
    held = ", which keep what they read" if kept else ""
    side = "" if team.beside else ", rows side by side"
    return m.finish(f"{team.size} invocations a row, {team.rows} rows a workgroup{side}{held}")


def _team(kernel: Kernel, rows: Rows, along: dict[int, int | None], lanes: Free) -> Team | None:
    """Who goes through a row: as many as its longest loop keeps busy."""
    loops = [item for item in rows.items if isinstance(item, Loop)]
    for item in loops:
        shaped = [m for m in item.members if Joining.of(kernel, m).shaped]
        axes = {along[m] for m in shaped}
        if len(axes) > 1:
            return None
    extents = [total([kernel.axes[one.axis].extent for one in levels_of(i)]) for i in loops]
    if all(prefers_less(extent, _SHORT) for extent in extents):
        return None
    if any(axis in lanes for axis in rows.outer):
        if all(prefers_less(extent, 4 * _COLUMNS) for extent in extents):
            return None
        return Team(_COLUMNS, False)
    longest = extents[0]
    for extent in extents[1:]:
        if prefers_less(longest, extent):
            longest = extent
    return Team(team_for(longest, kernel.fold.round * kernel.fold.run))
