"""Row blocking: several short rows at once.

A row that fits the registers is one long chain: a reduction across lanes, what depends on it, the
next reduction. The processor holds too few waiting instructions to begin the next row meanwhile,
so the items of a few rows are written in turn. Their stores come last: a load is taken for the
same as an earlier one only if nothing is stored between. In the last trip the last row may be
computed several times.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tenfold.backends.cpu.emit.state import Position
from tenfold.kernel.analyse.nest import Loop

if TYPE_CHECKING:
    from tenfold.backends.cpu.emit.emit import Emitter


def block_rows(e: Emitter, loop: Loop) -> None:
    """The loop over rows, as many at once as the schedule says."""
    w, axis, outside = e.w, loop.axis, e.s
    extent = e.kernel.axes[axis].extent
    begin, end = e.part(axis, 0, extent)
    last: Position = end - 1 if isinstance(end, int) else w.op(f"sub nsw i64 {end}, 1")

    def body(i: Position, _: list[str]) -> list[str]:
        states = []
        for n in range(e.schedule.rows):
            here = i
            if n:
                here = w.op(f"add nsw i64 {i}, {n}")
                here = w.intrinsic("smin", "i64", here, str(last))
            bound = {axis: here}, {axis: (0, extent - 1)}
            base, bounds = outside.base | bound[0], outside.bounds | bound[1]
            states.append(replace(outside, env=dict(outside.env), base=base, bounds=bounds))
        with w.stores_last():
            for item in loop.body:
                for e.s in states:
                    e.block((item,))
        e.s = outside
        return []

    e.loop(begin, end, e.schedule.rows, (), body, extent)
