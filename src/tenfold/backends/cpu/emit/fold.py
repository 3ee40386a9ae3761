"""Sums and products of floats in the shape of the kernel's fold: runs of rounds, and a balanced
tree over runs. `kernel/analyse/reduction` says which; it is the same on every target.

A tree of few runs is a nest of loops of two trips each; more are joined as a binary counter
carries, which gives the same tree. Reductions of no shape that share a loop with one go through it
unbroken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tenfold.backends.cpu.emit.loops import Body
from tenfold.backends.cpu.emit.reductions import Reduction, Slot
from tenfold.backends.cpu.emit.state import Position
from tenfold.backends.llvm.writer import LANES, Writer, size_of
from tenfold.frozen import frozen
from tenfold.kernel.analyse.nest import Compute, Loop

if TYPE_CHECKING:
    from tenfold.backends.cpu.emit.emit import Emitter

Accumulators = Sequence[Reduction]
_NEST = 8  # runs joined by loops alone, which take the compiler long where they are deep
_PLACES = 40  # of a counter: for more runs than there is memory
_SHORT = 16  # vector instructions of a trip, of which a run is written out
_PAIR = 256  # bytes of accumulators of which two runs are: LLVM reads them both at once, and where
# they are larger the prefetcher of the processor loses its way (f64 rows: 20 %)


@frozen
class AccumulatorLevels:
    """What reductions hold in a run, in a chunk's tree and in the tree over chunks: where lanes lie
    along the axis all copies, one vector, one number; else the same."""

    run: Accumulators
    chunk: Accumulators
    whole: Accumulators

    @classmethod
    def along(cls, makers: Accumulators, alone: bool) -> AccumulatorLevels:
        """Those of an axis that lanes lie along; one chunk may be alone."""
        chunk = [replace(m, copies=1) if m.shaped else m for m in makers]
        if alone:
            return cls(makers, chunk, chunk)
        one = [replace(m, wide=False, crossing=False) if m.shaped else m for m in chunk]
        return cls(makers, chunk, one)


def folded(
    e: Emitter,
    extent: int,
    step: int,
    forms: AccumulatorLevels,
    held: list[str],
    body: Body,
    rest: Body | None = None,
    trips: int = 0,
    multiple: int = 1,
    part: tuple[Position, Position] | None = None,
) -> list[str]:
    """The loop over an axis, or over a part of it, whose every trip is a round, and the `rest` less
    than one. What has a shape begins anew, all else goes on from what is held; the answer is in the
    form of the whole.
    A run takes so many `trips`, where it is not as many as it has rounds. The extent is known to
    be a `multiple` of something."""
    fold, full = e.kernel.fold, extent // step * step
    begin, end = part or (0, extent)
    unit = step * (trips or fold.run)
    held_bytes = sum(size_of(ty) for m in forms.run for ty, _ in m.slots())
    paired = trips == 1 and held_bytes <= _PAIR and multiple % (2 * unit) == 0

    def rounds(low: Position, high: Position, slots: list[Slot], most: int) -> list[str]:
        if rest is None and most == step:
            return body(low, [x for _, x in slots])
        if rest is None:
            return e.loop(low, high, step, slots, body, most, empty=False)
        stop = e.least(high, full)
        # The last run of an extent that is known has some whole round, or no run is short.
        empty = not isinstance(full, int) or full % unit == 0
        made = e.loop(low, stop, step, slots, body, most, empty=empty)
        more = [(ty, x) for (ty, _), x in zip(slots, made, strict=True)]
        return e.loop(stop, high, step, more, lambda _, held: rest(full, held), step)

    if not any(m.shaped for m in forms.run):
        return rounds(begin, end, begun(forms.run, forms.run, held), extent)

    def run(low: Position, high: Position, held: list[str]) -> list[str]:
        made = rounds(low, high, begun(forms.chunk, forms.run, held), unit)
        return narrowed(forms.run, forms.chunk, made)

    def nest(level: int, low: Position, high: Position, held: list[str]) -> list[str]:
        """Up to 2**level runs, by loops of two trips."""
        if level == 0:
            return run(low, high, held)
        size = unit << level - 1
        if level == 1 and paired:  # written out as well
            middle = e.sum(low, size)
            made = run(low, middle, held)
            return merged(forms.chunk, made, run(middle, high, made))

        def half(i: Position, held: list[str]) -> list[str]:
            made = nest(level - 1, i, _ending(e, i, size, high, multiple % size == 0), held)
            return merged(forms.chunk, held, made)

        return e.loop(low, high, size, begun(forms.chunk, forms.chunk, held), half, 2 * size)

    def chunk(low: Position, high: Position, most: int | None, held: list[str]) -> list[str]:
        """Up to so many runs, or as many as there are: a few by loops, more by a counter."""
        level = _levels(extent, unit) if most is None and not e.schedule.small else None
        if level is not None:
            return nest(level, low, high, held)
        # A run of vectors is long enough; of single elements several go to the counter at once.
        level = 0 if forms.run[0].crossing else 2
        size = unit << level
        places = _PLACES if most is None else (most >> level).bit_length()
        if most is None and isinstance(extent, int):
            places = (-(-extent // size)).bit_length()
        counter = PartialCounter(e, forms.chunk, places)

        def one(i: Position, held: list[str]) -> list[str]:
            made = nest(level, i, _ending(e, i, size, high, multiple % size == 0), held)
            return counter.join(_count(e, low, i, size), made)

        slots = begun(forms.chunk, forms.chunk, held)
        reach = extent if most is None else most * unit
        if trips != 1 or level or rest is None:
            made = e.loop(low, high, size, slots, one, reach, empty=False)
            return counter.total(_count(e, low, high, size), made)

        def joined(written: Body) -> Body:
            def one(i: Position, held: list[str]) -> list[str]:
                made = written(i, [x for _, x in begun(forms.chunk, forms.run, held)])
                return counter.join(_count(e, low, i, size), narrowed(forms.run, forms.chunk, made))

            return one

        # Whole runs that are written out have a loop of their own: beside the last one, which is
        # not whole, they would not keep their registers.
        stop = e.least(high, full)
        made = e.loop(low, stop, size, slots, joined(body), reach)
        more = [(ty, x) for (ty, _), x in zip(slots, made, strict=True)]
        made = e.loop(stop, high, size, more, joined(rest), size)
        return counter.total(_count(e, low, high, size), made)

    if forms.whole is forms.chunk:
        return chunk(begin, end, None, held)
    size = unit * fold.chunk
    many = -(-extent // size)
    counter = PartialCounter(
        e, forms.whole, many.bit_length() if isinstance(many, int) else _PLACES
    )

    def one(i: Position, held: list[str]) -> list[str]:
        stop = _ending(e, i, size, end, multiple % size == 0)
        made = chunk(i, stop, fold.chunk, [x for _, x in begun(forms.whole, forms.chunk, held)])
        return counter.join(_count(e, begin, i, size), narrowed(forms.chunk, forms.whole, made))

    made = e.loop(begin, end, size, begun(forms.whole, forms.whole, held), one)
    return counter.total(many if part is None else _count(e, begin, end, size), made)


def _levels(extent: int, unit: int) -> int | None:
    """How deep loops of two trips have to nest for so many runs, if those are few."""
    return next((n for n in range(_NEST.bit_length()) if extent <= unit << n), None)


class PartialCounter:
    """Partial sums joined as a binary counter carries: that of 2**n waits in place n."""

    def __init__(self, e: Emitter, form: Accumulators, places: int) -> None:
        self.e, self.form, self.most = e, form, places
        self.slots = [(ty, m.shaped) for m in form for ty, _ in m.slots()]
        self.row = sum(size_of(ty) for ty, shaped in self.slots if shaped)
        self.memory = e.private(places * self.row)

    def join(self, number: Position, made: list[str]) -> list[str]:
        """The sum of this number with as many as wait for it."""
        w = self.e.w
        following = w.op(f"add i64 {number}, 1")
        place = w.call("i64", "llvm.cttz.i64", ("i64", following), ("i1", "true"))
        first = [(ty, x) for (ty, _), x in zip(self.slots, made, strict=True)]
        made = self.e.loop(0, place, 1, first, self.carried, self.most)
        for at, (ty, _), x in zip(self.places(place), self.slots, made, strict=True):
            if at:
                w.put(f"store {ty} {x}, ptr {at}, align 8")
        return made

    def total(self, count: Position, made: list[str]) -> list[str]:
        """All that waits after so many, the smallest first."""
        w = self.e.w
        if isinstance(count, int):
            waiting = [place for place in range(count.bit_length()) if count >> place & 1]
            made = self.recalled(waiting[0], made)
            for place in waiting[1:]:
                made = self.carried(place, made)
            return made

        def next_place(_: Position, held: list[str]) -> list[str]:
            place, left = least_bit(w, held[0])
            return [left, *self.carried(place, held[1:])]

        slots = [("i64", str(count)), *begun(self.form, self.form, made)]
        places = w.intrinsic("ctpop", "i64", str(count))
        return self.e.loop(0, places, 1, slots, next_place, self.most, empty=False)[1:]

    def carried(self, place: Position, held: list[str]) -> list[str]:
        return merged(self.form, self.recalled(place, held), held)

    def recalled(self, place: Position, held: list[str]) -> list[str]:
        """What waits in a place; what has no shape as it is."""
        trio = zip(self.places(place), self.slots, held, strict=True)
        return [
            self.e.w.op(f"load {ty}, ptr {at}, align 8") if at else x for at, (ty, _), x in trio
        ]

    def places(self, place: Position) -> list[str]:
        w = self.e.w
        row = w.op(f"mul i64 {place}, {self.row}")
        row = w.op(f"getelementptr i8, ptr {self.memory}, i64 {row}")
        out, offset = list[str](), 0
        for ty, shaped in self.slots:
            out.append(w.op(f"getelementptr i8, ptr {row}, i64 {offset}") if shaped else "")
            offset += size_of(ty) * shaped
        return out


def least_bit(w: Writer, number: str) -> tuple[str, str]:
    """The place of the least bit of a number, and the number without it."""
    place = w.call("i64", "llvm.cttz.i64", ("i64", number), ("i1", "true"))
    return place, w.op(f"and i64 {number}, {w.op(f'add i64 {number}, -1')}")


def _ending(e: Emitter, start: Position, size: int, high: Position, whole: bool) -> Position:
    """Where a part that starts here ends."""
    end = e.sum(start, size)
    return end if whole else e.least(end, high)


def _count(e: Emitter, low: Position, high: Position, size: int) -> Position:
    """How many parts there are, the last one perhaps shorter."""
    if isinstance(low, int) and isinstance(high, int):
        return -(-(high - low) // size)
    length = e.w.op(f"sub i64 {high}, {low}") if low else high
    return e.w.op(f"udiv i64 {e.w.op(f'add i64 {length}, {size - 1}')}, {size}")


def short(e: Emitter, loop: Loop, copies: int = 1) -> bool:
    """Whether the trips of a run had better be written out than be a loop."""
    return _length(e, loop) * copies <= _SHORT


def _length(e: Emitter, loop: Loop) -> int:
    """About how many vector instructions a trip has, of one copy."""
    inner = loop.inner
    if inner is not None:
        extent = e.kernel.axes[inner.axis].extent
        rounds = -(-extent // LANES) if isinstance(extent, int) else _SHORT
        return len(loop.body) - 1 + _length(e, inner) * rounds
    ops = [e.kernel.instructions[i.value].op for i in loop.body if isinstance(i, Compute)]
    return sum(1 + 9 * (op == "call") for op in ops if op != "const") + len(loop.members)


def begun(old: Accumulators, new: Accumulators, held: list[str]) -> list[Slot]:
    """Where partial sums of another form begin: from nothing, and all else where it is."""
    out: list[Slot] = []
    at = 0
    for before, after in zip(old, new, strict=True):
        width, slots = len(before.slots()), after.slots()
        now = held[at : at + width]
        at += width
        kept = [(ty, x) for (ty, _), x in zip(slots, now, strict=False)]
        out += slots if after.shaped else kept
    return out


def as_slots(form: Accumulators, held: list[str]) -> list[Slot]:
    """What is held, to be carried on by a loop."""
    types = [ty for maker in form for ty, _ in maker.slots()]
    return list(zip(types, held, strict=True))


def merged(form: Accumulators, held: list[str], more: list[str]) -> list[str]:
    """Two partial sums as one; all else as it was left."""
    out: list[str] = []
    for maker in form:
        here = slice(len(out), len(out) + len(maker.slots()))
        out += maker.merge(held[here], more[here]) if maker.shaped else more[here]
    return out


def narrowed(old: Accumulators, new: Accumulators, held: list[str]) -> list[str]:
    """Partial sums in another form: copies joined, lanes folded."""
    out: list[str] = []
    at = 0
    for before, after in zip(old, new, strict=True):
        width = len(before.slots())
        part = held[at : at + width]
        at += width
        if before.copies > after.copies:
            part = before.joined(part)
        if before.wide and not after.wide:
            part = before.across(part)
        out += part
    return out
