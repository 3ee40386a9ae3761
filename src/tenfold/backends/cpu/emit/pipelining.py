"""Software pipelining: the first reductions of a row, computed before the row above it is stored.

Non-temporal stores take a while to go, and loads that lie alike in a page wait for them: arrays
of whole pages do. So the loop that stores a row should not be followed by one that does nothing
but read the next. It is put before the stores instead, and its results are carried to the next
trip; the last row's are computed twice. What horizontal steps have to wait for is hidden too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.backends.cpu.emit.reductions import Slot
from tenfold.backends.cpu.emit.state import Position, Val
from tenfold.backends.llvm.writer import COMPUTE
from tenfold.kernel.analyse.nest import Loop
from tenfold.kernel.analyse.uses import made, used, writes

if TYPE_CHECKING:
    from tenfold.backends.cpu.emit.emit import Emitter


def pipeline_rows(e: Emitter, loop: Loop) -> bool:
    """Write the loop over rows that way, if the schedule says so and there is more than one
    reduction after another; whether that was done."""
    axis = loop.axis
    first = next((n for n, item in enumerate(loop.body) if isinstance(item, Loop)), None)
    if not e.schedule.pipelined or first is None or e.schedule.cuts_of(axis):
        return False
    head, middle, tail = loop.body[: first + 1], loop.body[first + 1 : -1], loop.body[-1]
    inside = [item for item in middle if isinstance(item, Loop)]
    if not isinstance(tail, Loop) or tail.members or tail.axis not in e.schedule.lanes:
        return False
    # A row's scratch is still wanted when the next row is begun: it must not be written then.
    if not inside or not all(item.members for item in inside) or writes(head):
        return False
    carried = sorted(made(e.kernel, head) & used(e.kernel, (*middle, tail)))
    extent = e.kernel.axes[axis].extent
    begin, end = e.part(axis, 0, extent)
    outside = e.s.env

    def reductions(at: Position) -> list[str]:
        """The results for one row."""
        here, e.s.env = e.s.env, outside
        with e.s.inside(axis, at, 0, extent):
            e.block(head)
            found = [e.s.env[v].copies[0] for v in carried]
        e.s.env = here
        return found

    def body(i: Position, held: list[str]) -> list[str]:
        with e.s.inside(axis, i, 0, extent):
            for v, text in zip(carried, held, strict=True):
                e.s.env[v] = Val((text,), False)
            e.block(middle)
            following = e.w.op(f"add nuw nsw i64 {i}, 1")
            following = e.w.intrinsic("smin", "i64", following, str(extent - 1))
            results = reductions(following)
            e.block((tail,))
        return results

    start: Position = begin
    if isinstance(begin, str):
        start = e.w.intrinsic("smin", "i64", begin, str(extent - 1))
    types = [COMPUTE[e.kernel.instructions[v].dtype] for v in carried]
    slots: list[Slot] = list(zip(types, reductions(start), strict=True))
    e.loop(begin, end, 1, slots, body, extent)
    return True
