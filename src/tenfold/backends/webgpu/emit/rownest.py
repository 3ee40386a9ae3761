"""Rows of a kernel with reductions: what stands outside of them, and inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.backends.webgpu.emit.grid import first_of
from tenfold.backends.webgpu.emit.module import spread_over, total
from tenfold.backends.webgpu.emit.team import TeamEmitter
from tenfold.backends.webgpu.wgsl.invocation import number
from tenfold.frozen import frozen
from tenfold.kernel.analyse.nest import Item, Loop, nest
from tenfold.kernel.ir.kernel import Kernel


@frozen
class Rows:
    """A nest in which some outer axes have rows inside."""

    outer: tuple[int, ...]
    items: tuple[Item, ...]  # at the level of a row
    straight: tuple[tuple[Item, ...], ...]  # and at those outside of it


def rows_of(kernel: Kernel, order: Sequence[int], along: dict[int, int | None]) -> Rows:
    """The rows of a kernel with reductions."""
    reduced = sorted(
        {a for r in along for a in kernel.instructions[r].attr[1:]},
        key=lambda a: (a in along.values(), a),
    )
    depth = min(
        max((order.index(a) + 1 for a in kernel.free[r] if a in order), default=0) for r in along
    )
    items = nest(kernel, order, reduced)
    straight = []
    for _ in range(depth):
        *some, last = items
        assert isinstance(last, Loop)
        straight.append(tuple(some))
        items = last.body
    return Rows(tuple(order[:depth]), items, tuple(straight))


def begin_rows(emitter: TeamEmitter, rows: Rows) -> Any:
    """Where the row of a team stands, and what is computed outside of it; how many there are."""
    v, w, kernel = emitter.v, emitter.w, emitter.kernel
    extents: list[Any] = [kernel.axes[a].extent for a in rows.outer]
    count = total(extents)
    emitter.begin()
    per = emitter.team.rows
    at = w.let("i32", f"i32(group.x + group.y * grid.x) * {per} + {emitter.row}")
    emitter.live = w.let("bool", f"{at} < {number(count)}")
    emitter.number = w.let("i32", f"min({at}, {number(count)} - 1)")
    spread_over(v, rows.outer, extents, emitter.number)
    for level, some in enumerate(rows.straight):
        emitter.test = first_of(v.axes, rows.outer[level:])
        emitter.block(some)
    emitter.test = ""
    return count
