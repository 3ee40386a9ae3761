"""The loops of reductions: accumulators carried from trip to trip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from tenfold.backends.cpu.emit.division import invert
from tenfold.backends.cpu.emit.fold import (
    AccumulatorLevels,
    Accumulators,
    as_slots,
    begun,
    folded,
    merged,
    short,
)
from tenfold.backends.cpu.emit.loops import Body
from tenfold.backends.cpu.emit.memory import element_size
from tenfold.backends.cpu.emit.partial import fold_in_parts
from tenfold.backends.cpu.emit.prefetch import prefetch_gathered_rows, prefetch_next_row
from tenfold.backends.cpu.emit.reductions import Reduction
from tenfold.backends.cpu.emit.seeking import Tracked, extreme, is_sought, is_tracked, seek
from tenfold.backends.cpu.emit.state import Position, Val
from tenfold.backends.llvm.writer import LANES
from tenfold.kernel.analyse.nest import Loop, Write
from tenfold.kernel.analyse.uses import loads

if TYPE_CHECKING:
    from tenfold.backends.cpu.emit.emit import Emitter

Part = tuple[Position, Position]  # of a reduced axis


class Run(Protocol):
    """Some trips of a loop, one after the other."""

    def __call__(self, i: Position, held: list[str], trips: int = 1, /) -> list[str]: ...


def reduce(e: Emitter, loop: Loop) -> None:
    """The loop of some reductions, and their results."""
    s, fold = e.s, e.kernel.fold
    crossing = _crossing(e, loop)
    extent = 0 if crossing is None else e.kernel.axes[crossing.axis].extent
    nothing = crossing is not None and not extent  # then there is nothing across the lanes, either
    if nothing:
        crossing = None
    makers = []
    sought = [m for m in loop.members if is_sought(e, loop, m)]
    found_by = {m: extreme(e, loop, m) for m in sought}
    members = tuple(m for m in loop.members if found_by.get(m, m) == m)
    loop = replace(loop, members=members)
    for m in loop.members:
        i = e.kernel.instructions[m]
        kind, dtype = i.attr[0], e.kernel.instructions[i.args[0]].dtype
        place = e.kernel.instructions[i.args[1]].dtype if len(i.args) > 1 else ""
        if m in sought:
            kind, place = kind.removeprefix("arg"), ""
        # Lanes that only the operand's own loops bind make the result a vector.
        wide = crossing is not None or (s.lane is not None and s.lane in e.kernel.free[m])
        copies = fold.copies if crossing is not None else s.copies if wide else 1
        tracked = crossing is not None and m in found_by.values() and is_tracked(dtype)
        form = Tracked if tracked else Reduction
        maker = form(e.w, kind, dtype, place, copies, wide, crossing is not None)
        if crossing is not None and isinstance(extent, int) and not maker.pairs:
            # What begins copies that nothing joins changes no result, but of complex products.
            maker = replace(maker, copies=min(copies, -(-extent // LANES)))
        makers.append(maker)
    forms = AccumulatorLevels(makers, makers, makers)
    if crossing is not None:
        forms = AccumulatorLevels.along(makers, extent <= fold.stretch)
    held = [x for maker in forms.whole for _, x in maker.slots()]
    if loop.axis == e.schedule.folded:
        begin = held
        held = fold_in_parts(
            e,
            forms.whole,
            e.kernel.axes[loop.axis].extent,
            lambda *part: _accumulate(e, loop, forms, begin, part),
        )
    elif not nothing:
        held = _accumulate(e, loop, forms, held)
    at, begins = 0, dict[int, Position]()
    for m, maker in zip(loop.members, forms.whole, strict=True):
        width = len(maker.slots())
        result, place_val = maker.finish(held[at : at + width])
        at += width
        s.env[m] = result
        if isinstance(maker, Tracked) and place_val is not None:
            begins[m] = place_val.at(0)
        elif place_val is not None:
            _tell(e, m, place_val)
    for m in sought:
        s.env[m] = s.env[found_by[m]]
        _tell(e, m, seek(e, loop, m, begins.get(found_by[m], 0)))


def _tell(e: Emitter, member: int, second: Val) -> None:
    """Keep what a reduction gives beside its result."""
    for n, i in enumerate(e.kernel.instructions):
        if i.op == "state" and i.args == (member,):
            e.s.env[n] = second


def _crossing(e: Emitter, loop: Loop) -> Loop | None:
    """The loop, of those that a reduction runs over, along which lanes lie."""
    inner: Loop | None = loop if e.s.lane is None else None
    while inner is not None and inner.axis not in e.schedule.lanes:
        inner = inner.inner
    return inner


def _accumulate(
    e: Emitter, loop: Loop, forms: AccumulatorLevels, held: list[str], part: Part | None = None
) -> list[str]:
    """Run the loop, or the loops, over the reduced axes; what they hold in the end."""
    extent = e.kernel.axes[loop.axis].extent
    if loop.axis in e.schedule.lanes and e.s.lane is None:
        return _accumulate_lanes(e, loop, forms, held, extent, part)
    form = forms.whole if e.s.lane is None else forms.run

    def run(i: Position, held: list[str], trips: int = 1) -> list[str]:
        prefetch_gathered_rows(e, loop, i, trips)
        for n in range(trips):
            with e.s.inside(loop.axis, e.sum(i, n), 0, extent):
                held = _trip(e, loop, forms, form, held)
        return held

    return _folded(e, loop, extent, 1, AccumulatorLevels(form, form, form), held, run, None, part)


def _folded(
    e: Emitter,
    loop: Loop,
    extent: int,
    step: int,
    forms: AccumulatorLevels,
    held: list[str],
    run: Run,
    rest: Body | None,
    part: Part | None,
) -> list[str]:
    """The loop in its shape. Where a trip is short, those of a run are written out; of what has no
    shape that would only ask for more registers."""
    trips, shaped = e.kernel.fold.run, any(m.shaped for m in forms.run)
    most = max(m.copies for m in forms.run)
    written = shaped and not e.schedule.small and short(e, loop, most) and extent >= step * trips
    multiple = _multiple(e, extent, step)
    if multiple % step == 0:
        rest = None
    if not written:
        return folded(e, extent, step, forms, held, run, rest, multiple=multiple, part=part)
    full = extent // step * step

    def whole(i: Position, held: list[str]) -> list[str]:
        return run(i, held, trips)

    def short_run(i: Position, held: list[str]) -> list[str]:
        """The rounds of a run that is not whole."""
        if isinstance(extent, int):
            held = run(i, held, extent // step % trips)
        else:
            held = e.loop(i, full, step, as_slots(forms.run, held), run, step * trips)
        return held if rest is None else rest(full, held)

    left = short_run if multiple % (step * trips) else None
    return folded(e, extent, step * trips, forms, held, whole, left, 1, multiple, part)


def _multiple(e: Emitter, extent: int, step: int) -> int:
    """What an extent is a multiple of. For any size that is asked where it pays: no run is left
    over, or no round is short."""
    if isinstance(extent, int):
        return extent
    if e.schedule.small:
        return 1
    known = (2 * step * e.kernel.fold.run, step)
    return next((n for n in known if extent % n == 0), 1)


def _trip(
    e: Emitter,
    loop: Loop,
    forms: AccumulatorLevels,
    form: Accumulators,
    held: list[str],
    turns: Sequence[str | None] = (),
) -> list[str]:
    """One trip: the body, then the next axis or the joining of values. The values of one vector
    join all copies, each in the lanes of its mask, where there are `turns` for the copies."""
    inner = loop.inner
    if inner is not None:
        e.block(loop.body[:-1])
        more = [x for _, x in begun(form, form, held)]
        return merged(form, held, _accumulate(e, inner, forms, more))
    e.block(loop.body)
    s, out, at = e.s, list[str](), 0
    for m, maker in zip(loop.members, form, strict=True):
        args = e.kernel.instructions[m].args[: 1 if maker.kind in ("max", "min") else None]
        width = len(maker.slots())
        copies = range(min(s.copies, maker.copies) if maker.wide else 1)
        values = [tuple(s.get(a, c, maker.wide) for a in args) for c in copies]
        masks = [s.mask(c) if maker.wide else None for c in copies]
        if turns:
            values, masks = values * len(turns), list(turns)
        mine = held[at : at + width]
        if isinstance(maker, Tracked):
            out += maker.step(mine, values, masks, s.base[loop.axis])
        else:
            out += maker.step(mine, values, masks)
        at += width
    return out


def _accumulate_lanes(
    e: Emitter,
    loop: Loop,
    forms: AccumulatorLevels,
    held: list[str],
    extent: int,
    part: Part | None,
) -> list[str]:
    copies = max((m.copies for m in forms.run), default=1)
    reach = LANES * copies
    invert(e, loop.body, loop.axis)

    def body_of(count: int, masks: Callable[[Position], list[str | None]]) -> Body:
        def body(i: Position, held: list[str]) -> list[str]:
            with e.s.inside(loop.axis, i, 0, extent):
                e.s.lane, e.s.copies, e.s.aligned = loop.axis, count, True
                e.s.masks = masks(i)
                prefetch_next_row(e, loop)
                return _trip(e, loop, forms, forms.run, held)

        return body

    def known(_: Position) -> list[str | None]:
        masks: list[str | None] = [None] * -(-(extent % reach) // LANES)
        if extent % LANES:
            masks[-1] = e.first_lanes(extent % LANES)
        return masks

    if isinstance(extent, int):
        last = body_of(-(-(extent % reach) // LANES), known)
    elif e.heavy:
        count = e.last_round(extent, reach)
        last = body_of(count, lambda i: e.last_lanes(i, extent, count))
    elif not e.schedule.small and _masks_well(e, loop):
        last = body_of(copies, lambda i: e.live(i, extent, copies))
    else:
        last = _by_vectors(e, loop, forms, copies, extent)
    whole = body_of(copies, lambda _: [None] * copies)

    def run(i: Position, held: list[str], trips: int = 1) -> list[str]:
        for n in range(trips):
            held = whole(e.sum(i, n * reach), held)
        return held

    return _folded(e, loop, extent, reach, forms, held, run, last, part)


def _masks_well(e: Emitter, loop: Loop) -> bool:
    """Whether the target has masked moves for all that a loop reads and writes."""
    if e.w.masked or not e.w.target.moves:
        return e.w.masked
    buffers = {i.attr[0] for i in loads(e.kernel, loop.body)}
    buffers |= {e.kernel.stores[i.store].buffer for i in loop.body if isinstance(i, Write)}
    return all(element_size(e.kernel.buffers[b].dtype) >= 4 for b in buffers)


def _by_vectors(e: Emitter, loop: Loop, forms: AccumulatorLevels, copies: int, extent: int) -> Body:
    """The last round, where it is not whole, vector by vector: each joins the accumulators of its
    own copy. Where there are no masks the whole vectors do without."""

    def rest(first: Position, held: list[str]) -> list[str]:
        def vector_of(masked: bool) -> Body:
            def body(i: Position, held: list[str]) -> list[str]:
                with e.s.inside(loop.axis, i, 0, extent):
                    e.s.lane, e.s.copies, e.s.aligned = loop.axis, 1, True
                    e.s.masks = e.live(i, extent, 1) if masked else [None]
                    turns: list[str | None] = []
                    for copy in range(copies):
                        own = e.w.op(f"icmp eq i64 {i}, {e.sum(str(first), copy * LANES)}")
                        turns += e.live(i, e.w.select(own, "i64", str(extent), str(i)), 1)
                    return _trip(e, loop, forms, forms.run, held, turns)

            return body

        start = first
        if not e.w.masked:
            start = extent // LANES * LANES
            slots = as_slots(forms.run, held)
            held = e.loop(first, start, LANES, slots, vector_of(False), LANES * copies)
        slots = as_slots(forms.run, held)
        return e.loop(start, extent, LANES, slots, vector_of(True), LANES * copies)

    return rest
