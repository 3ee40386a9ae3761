"""The loops of reductions: accumulators carried from trip to trip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.backends.cpu.emit.division import invert
from tenfold.backends.cpu.emit.fold import folded, fresh, merged
from tenfold.backends.cpu.emit.loops import Body, Position
from tenfold.backends.cpu.emit.prefetch import ask_for_next, look_ahead
from tenfold.backends.cpu.emit.reductions import Reduction, Slot
from tenfold.backends.llvm.writer import LANES
from tenfold.kernel.analyse.nest import Loop

if TYPE_CHECKING:
    from tenfold.backends.cpu.emit.emit import Emitter


def reduce(e: Emitter, loop: Loop) -> None:
    """The loop of some reductions, and their results."""
    s = e.s
    crossing = _crossing(e, loop)
    makers = []
    for m in loop.members:
        i = e.kernel.instructions[m]
        dtype = e.kernel.instructions[i.args[0]].dtype
        place = e.kernel.instructions[i.args[1]].dtype if len(i.args) > 1 else ""
        # Lanes that only the operand's own loops bind make the result a vector.
        wide = crossing or (s.lane is not None and s.lane in e.kernel.free[m])
        copies = _fold_copies(e, loop) if crossing else s.copies if wide else 1
        makers.append(Reduction(e.w, i.attr[0], dtype, place, copies, wide, crossing))
    slots = [slot for maker in makers for slot in maker.slots()]
    held = _accumulate(e, loop, makers, slots)
    at = 0
    for m, maker in zip(loop.members, makers, strict=True):
        width = len(maker.slots())
        result, place_val = maker.finish(held[at : at + width])
        at += width
        s.env[m] = result
        if place_val is not None:
            for n, i in enumerate(e.kernel.instructions):
                if i.op == "state" and i.args == (m,):
                    s.env[n] = place_val


def _crossing(e: Emitter, loop: Loop) -> bool:
    """Whether lanes lie along one of the axes that a reduction runs over."""
    inner: Loop | None = loop
    while inner is not None:
        if inner.axis in e.schedule.lanes and e.s.lane is None:
            return True
        inner = inner.inner
    return False


def _fold_copies(e: Emitter, loop: Loop) -> int:
    inner = loop
    while inner.inner is not None:
        inner = inner.inner
    extent = e.kernel.axes[inner.axis].extent
    return max(1, min(e.kernel.fold.copies, -(-extent // LANES)))


def _accumulate(e: Emitter, loop: Loop, makers: list[Reduction], slots: list[Slot]) -> list[str]:
    """Run the loop, or the loops, over the reduced axes; what they hold in the end."""
    extent = e.kernel.axes[loop.axis].extent
    if loop.axis in e.schedule.lanes and e.s.lane is None:
        return _accumulate_lanes(e, loop, makers, slots, extent)

    def body(i: Position, held: list[str]) -> list[str]:
        look_ahead(e, loop, i)
        with e.s.inside(loop.axis, i, 0, extent):
            return _trip(e, loop, makers, slots, held)

    return folded(e, extent, 1, makers, slots, body)


def _trip(
    e: Emitter, loop: Loop, makers: list[Reduction], slots: list[Slot], held: list[str]
) -> list[str]:
    """One trip: the body, then the next axis or the joining of values."""
    inner = loop.inner
    if inner is not None:
        e.block(loop.body[:-1])
        return merged(makers, held, _accumulate(e, inner, makers, fresh(makers, held)))
    e.block(loop.body)
    s, out, at = e.s, list[str](), 0
    for m, maker in zip(loop.members, makers, strict=True):
        args = e.kernel.instructions[m].args
        width = len(maker.slots())
        copies = range(min(s.copies, maker.copies) if maker.wide else 1)
        values = [s.get(args[0], c, maker.wide) for c in copies]
        places = [s.get(args[1], c, maker.wide)[0] for c in copies] if len(args) > 1 else []
        masks = [s.mask(c) if maker.wide else None for c in copies]
        out += maker.step(held[at : at + width], values, places, masks)
        at += width
    return out


def _accumulate_lanes(
    e: Emitter, loop: Loop, makers: list[Reduction], slots: list[Slot], extent: int
) -> list[str]:
    copies = max((m.copies for m in makers), default=1)
    reach = LANES * copies
    rest = extent % reach
    invert(e, loop.body, loop.axis)

    def body_of(count: int, masked: bool) -> Body:
        def body(i: Position, held: list[str]) -> list[str]:
            with e.s.inside(loop.axis, i, 0, extent):
                e.s.lane, e.s.copies, e.s.aligned = loop.axis, count, True
                e.s.masks = [None] * count
                if masked:
                    e.s.masks[-1] = e.first_lanes(extent % LANES)
                ask_for_next(e, loop)
                return _trip(e, loop, makers, slots, held)

        return body

    held = folded(e, extent - rest, reach, makers, slots, body_of(copies, False))
    if rest:
        body = body_of(-(-rest // LANES), extent % LANES != 0)
        held = body(extent - rest, held)
    return held
