"""Parts: what the ranges and single places of a key take of an array, and how it is put back."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.trace.array import Array
from tenfold.trace.surface.emit import emit, emit_normal, traced
from tenfold.trace.surface.indexing.key import (
    ArrayIndex,
    IndexEntry,
    NewAxis,
    ScalarIndex,
    SliceRange,
    TracedPlace,
)
from tenfold.trace.surface.ufuncs.composed import number, same
from tenfold.types import I64


def sliced(x: Array, entries: Sequence[IndexEntry]) -> Array:
    """The ranges and fixed places of a key taken, and its new axes made.

    The result has one axis for each entry but those of fixed places.
    """
    starts, stops, steps, flips = [], [], [], []
    cut: list[int] = []  # the extents after the cut, and then those of the result
    shape: list[int] = []
    before = x.shape
    for entry in entries:
        if isinstance(entry, SliceRange):
            start, step, count = entry.start, entry.step, entry.count
            if count == 0:
                start, stop, step = 0, 0, 1
            elif step > 0:
                stop = start + (count - 1) * step + 1
            else:
                flips.append(len(cut))
                start, stop, step = start + (count - 1) * step, start + 1, -step
            starts.append(start)
            stops.append(stop)
            steps.append(step)
            cut.append(count)
            shape.append(count)
        elif isinstance(entry, ScalarIndex) and isinstance(entry.place, int):
            starts.append(entry.place)
            stops.append(entry.place + 1)
            steps.append(1)
            cut.append(1)
        elif isinstance(entry, NewAxis) or (isinstance(entry, ArrayIndex) and entry.new):
            shape.append(1)
        else:
            count = before[len(cut)]
            starts.append(0)
            stops.append(count)
            steps.append(1)
            cut.append(count)
            shape.append(count)
    ends = tuple(stops)
    if ends != before or any(starts) or steps.count(1) != len(steps):
        ranges = ("starts", tuple(starts)), ("stops", ends), ("steps", tuple(steps))
        x = emit_normal("slice", ranges, x)
    if flips:
        x = emit_normal("reverse", (("axes", tuple(flips)),), x)
    if shape != cut:
        x = emit_normal("reshape", (("shape", tuple(shape)),), x)
    return x


def is_fixed(entry: IndexEntry) -> bool:
    """Whether an entry is one place known while tracing, so that `sliced` takes its axis away."""
    return isinstance(entry, ScalarIndex) and isinstance(entry.place, int)


def _kept(entries: Sequence[IndexEntry]) -> list[IndexEntry]:
    """The entries that still have an axis after `sliced`."""
    return [e for e in entries if not is_fixed(e)]


def indices_of(x: Array, entries: Sequence[IndexEntry]) -> tuple[tuple[int, ...], list[Array]]:
    """The axes of a sliced array that are indexed, with their indices."""
    axes, indices = [], []
    for axis, entry in enumerate(_kept(entries)):
        if isinstance(entry, (ScalarIndex, ArrayIndex)):
            axes.append(axis)
            index = entry.place if isinstance(entry, ScalarIndex) else entry.index
            indices.append(index.array if isinstance(index, TracedPlace) else traced(index))
    return tuple(axes), indices


def gather(
    x: Array, axes: tuple[int, ...], at: int, indices: Sequence[Array], mode: str = "raise"
) -> Array:
    return emit("gather", x, *indices, axes=axes, at=at, mode=mode)


def place(x: Array, entries: Sequence[IndexEntry], part: Array, may_raise: bool = False) -> Array:
    """x with its sliced part replaced. A part that may raise is kept even where it is empty."""
    own: list[IndexEntry] = []
    whole, shape, flips = x.shape, [], []
    apart = False  # whether elements of the part lie some steps apart
    for entry in entries:
        if isinstance(entry, SliceRange):
            shape.append(entry.count)
            if entry.step != 1 and entry.count > 1:
                apart = apart or entry.step != -1
                if entry.step < 0:
                    flips.append(len(own))
        elif isinstance(entry, NewAxis) or (isinstance(entry, ArrayIndex) and entry.new):
            continue
        else:
            shape.append(1 if is_fixed(entry) else whole[len(own)])
        own.append(entry)
    taken = tuple(shape)
    if part.shape != taken:
        part = emit("reshape", part, shape=taken)
    if flips:
        part = emit("reverse", part, axes=tuple(flips))
    if 0 in taken and not may_raise:
        return same(x)
    if apart:
        return _place_strided(x, own, part)
    if taken == whole:
        return part
    return emit("dynamic_update", x, part, *[number(_first(e), I64) for e in own])


def put(x: Array, entries: Sequence[SliceRange | ScalarIndex], part: Array) -> Array:
    """x with what ranges take at single places replaced, some of which are traced.

    Where a range is not a whole axis, all that lies at these places is read, and written with the
    part in it: that is little, where all that the ranges take at any place may be most of x."""
    axes, indices = [], []
    for axis, entry in enumerate(entries):
        if isinstance(entry, ScalarIndex):
            at = entry.place
            axes.append(axis)
            indices.append(number(at, I64) if isinstance(at, int) else at.array)
    ranges = [e for e in entries if isinstance(e, SliceRange)]
    if not all(e.whole for e in ranges):
        part = place(gather(x, tuple(axes), 0, indices, "clip"), ranges, part)
    rest = tuple([e.extent for e in ranges])
    if part.shape != rest:
        part = emit("reshape", part, shape=rest)
    return emit("scatter", x, part, *indices, axes=tuple(axes), at=0, mode="raise", kind="set")


def _first(entry: IndexEntry) -> int:
    """The lowest place an entry takes."""
    if isinstance(entry, SliceRange):
        last = entry.start + (entry.count - 1) * entry.step
        return min(entry.start, last) if entry.count else 0
    if isinstance(entry, ScalarIndex) and isinstance(entry.place, int):
        return entry.place
    return 0


def _place_strided(x: Array, own: Sequence[IndexEntry], part: Array) -> Array:
    """x with a part whose elements lie some steps apart replaced, by indices of those axes."""
    axes = tuple(
        a
        for a, e in enumerate(own)
        if not (isinstance(e, SliceRange) and e.whole) or part.shape[a] == 0
    )
    indices = []
    for position, axis in enumerate(axes):
        entry, count = own[axis], part.shape[axis]
        step = abs(entry.step) if isinstance(entry, SliceRange) else 1
        shape = [1] * len(axes)
        shape[position] = count
        places = emit("iota", dtype="i64", shape=(count,), axis=0)
        places = emit("mul", places, number(step, I64))
        places = emit("add", places, number(_first(entry), I64))
        indices.append(emit("reshape", places, shape=tuple(shape)))
    others = tuple(a for a in range(x.ndim) if a not in axes)
    moved = emit("transpose", part, axes=axes + others)
    return emit("scatter", x, moved, *indices, axes=axes, at=0, mode="clip", kind="set")
