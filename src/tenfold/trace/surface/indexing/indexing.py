"""Indexing: x[key] read and written, and the functions that do the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.errors import ConcreteError, MutationError, ShapeError, TypeMismatch
from tenfold.trace.array import Array
from tenfold.trace.operand import scope_of, value_of
from tenfold.trace.surface.emit import (
    cast,
    emit,
    fail,
    shape_of,
    traced,
    viewed,
)
from tenfold.trace.surface.indexing.key import (
    ArrayIndex,
    IndexEntry,
    IndexKey,
    Mask,
    NewAxis,
    ScalarIndex,
    SliceRange,
    read_key,
)
from tenfold.trace.surface.shaping.shapes import together
from tenfold.trace.surface.ufuncs.composed import number, same
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import I64, KIND


def getitem(x: Array, key: Any) -> Array:
    """x[key]: a view for basic keys, a fresh array for advanced ones."""
    read = read_key(x.type, key)
    if any(isinstance(e, Mask) for e in read.entries):
        fail(
            ConcreteError,
            f"x[mask] with a traced mask: how many elements of {x.type} it chooses, only a "
            "running program knows",
            "write np.where(mask, x, other), or reduce with where=mask; x[mask] = v works; for "
            "x[mask] += v write x[:] = np.where(mask, x + v, x)",
        )
    found = _get(x, read)
    scalar = not found.shape and read.ellipsis is None  # NumPy gives a number, which is no view
    if read.advanced or scalar:
        return found if found._value != x._value else same(found)
    return viewed(found, x)


def _get(x: Array, key: IndexKey) -> Array:
    x = sliced(x, key.entries)
    axes, indices = indices_of(x, key.entries)
    if axes:
        return gather(x, axes, placement(key), indices)
    return x


def sliced(x: Array, entries: Sequence[IndexEntry]) -> Array:
    """The ranges and fixed places of a key taken, and its new axes made.

    The result has one axis for each entry but those of fixed places.
    """
    starts, stops, steps, flips, shape = [], [], [], [], []
    axis = 0
    for entry in entries:
        match entry:
            case NewAxis() | ArrayIndex(new=True):
                shape.append(1)
                continue
            case SliceRange(start, step, count, _):
                if count == 0:
                    start, step = 0, 1
                first, last = start, start + (count - 1) * step
                if step < 0:
                    flips.append(axis)
                    first, last = last, first
                starts.append(first)
                stops.append(last + 1 if count else first)
                steps.append(abs(step) if count else 1)
                shape.append(count)
            case ScalarIndex(int() as place):
                starts.append(place)
                stops.append(place + 1)
                steps.append(1)
            case _:
                starts.append(0)
                stops.append(x.shape[axis])
                steps.append(1)
                shape.append(x.shape[axis])
        axis += 1
    if any(starts) or tuple(stops) != x.shape or any(s != 1 for s in steps):
        x = emit("slice", x, starts=tuple(starts), stops=tuple(stops), steps=tuple(steps))
    if flips:
        x = emit("reverse", x, axes=tuple(flips))
    if tuple(shape) != x.shape or len(shape) != x.ndim:
        x = emit("reshape", x, shape=tuple(shape))
    return x


def _is_fixed(entry: IndexEntry) -> bool:
    """Whether an entry is one place known while tracing, so that `sliced` takes its axis away."""
    return isinstance(entry, ScalarIndex) and isinstance(entry.place, int)


def _kept(entries: Sequence[IndexEntry]) -> list[IndexEntry]:
    """The entries that still have an axis after `sliced`."""
    return [e for e in entries if not _is_fixed(e)]


def indices_of(x: Array, entries: Sequence[IndexEntry]) -> tuple[tuple[int, ...], list[Array]]:
    """The axes of a sliced array that are indexed, with their indices."""
    axes, indices = [], []
    for axis, entry in enumerate(_kept(entries)):
        if isinstance(entry, (ScalarIndex, ArrayIndex)):
            axes.append(axis)
            indices.append(traced(entry.place if isinstance(entry, ScalarIndex) else entry.index))
    return tuple(axes), indices


def placement(key: IndexKey) -> int:
    """Before which remaining axis the axes of the indices come, as NumPy places them.

    Single places count as indices where there are index arrays: side by side the indices'
    axes stand where the first of them stood, else in front.
    """
    spots = [i for i, e in enumerate(key.entries) if isinstance(e, (ScalarIndex, ArrayIndex))]
    if not any(isinstance(e, ArrayIndex) for e in key.entries):
        return 0
    first, last = spots[0], spots[-1]
    parted = key.ellipsis is not None and first < key.ellipsis <= last
    if parted or last - first + 1 != len(spots):
        return 0
    return sum(isinstance(e, (NewAxis, SliceRange)) for e in key.entries[:first])


def gather(
    x: Array, axes: tuple[int, ...], at: int, indices: Sequence[Array], mode: str = "raise"
) -> Array:
    return emit("gather", x, *indices, axes=axes, at=at, mode=mode)


# Writing.


def setitem(x: Array, key: Any, value: Any) -> None:
    """x[key] = value."""
    scope = scope_of(x)
    if x._argument is not None or x._base is not None or x._readonly:
        x._update(x._value)  # raises, before anything else is found wrong
    read = read_key(x.type, key)
    made = traced(value, x.dtype)
    if isinstance(value, (list, tuple)) and made.ndim > x.ndim:
        fail(ShapeError, f"lists {made.ndim} deep are assigned to {x.type}", "flatten them")
    x._update(value_of(_set(x, read, made), scope))


FUNCTIONS["getitem"] = getitem
FUNCTIONS["setitem"] = setitem


def _set(x: Array, key: IndexKey, value: Array) -> Array:
    """x with the value written to what the key names."""
    one = (
        key.ellipsis is None
        and key.entries
        and all(isinstance(e, ScalarIndex) for e in key.entries)
    )
    if one and value.ndim:
        fail(
            ShapeError,
            f"a value of type {value.type} is assigned to one element",
            "give a number, or a 0-d array: v[0]",
        )
    masks = [e for e in key.entries if isinstance(e, Mask)]
    if masks:
        return _set_masked(x, key, value)
    if all(isinstance(e, (SliceRange, NewAxis)) or _is_fixed(e) for e in key.entries):
        shape = tuple(
            e.count if isinstance(e, SliceRange) else 1
            for e in key.entries
            if not isinstance(e, ScalarIndex)
        )
        return place(x, key.entries, fit(value, shape))
    part = sliced(x, key.entries)
    axes, indices = indices_of(part, key.entries)
    at = placement(key)
    spread = together(*indices)
    rest = [n for i, n in enumerate(part.shape) if i not in axes]
    value = fit(value, (*rest[:at], *spread, *rest[at:]))
    done = emit("scatter", part, value, *indices, axes=axes, at=at, mode="raise", kind="set")
    return place(x, key.entries, done, may_raise=True)


def fit(value: Array, shape: tuple[int, ...]) -> Array:
    """A value broadcast to the place it is written to; leading axes of extent 1 fall away."""
    extra = value.ndim - len(shape)
    if extra > 0 and all(n == 1 for n in value.shape[:extra]):
        value = emit("reshape", value, shape=value.shape[extra:])
    if value.shape == shape:
        return value
    if value.ndim > len(shape) or any(
        n not in (1, m) for n, m in zip(reversed(value.shape), reversed(shape), strict=False)
    ):
        fail(
            ShapeError,
            f"a value of type {value.type} does not broadcast to the shape {shape} it is "
            "assigned to",
            "give a value of that shape, or one that broadcasts to it",
        )
    return emit("broadcast", value, shape=shape)


def place(x: Array, entries: Sequence[IndexEntry], part: Array, may_raise: bool = False) -> Array:
    """x with its sliced part replaced. A part that may raise is kept even where it is empty."""
    own = [e for e in entries if not isinstance(e, NewAxis) and not getattr(e, "new", False)]
    shape, steps = [], []
    for axis, entry in enumerate(own):
        match entry:
            case SliceRange(_, step, count, _):
                shape.append(count)
                if step not in (1, -1) and count > 1:
                    steps.append(axis)
            case ScalarIndex(int()):
                shape.append(1)
            case _:
                shape.append(x.shape[axis])
    if part.shape != tuple(shape):
        part = emit("reshape", part, shape=tuple(shape))
    flips = tuple(
        a for a, e in enumerate(own) if isinstance(e, SliceRange) and e.step < 0 and e.count > 1
    )
    if flips:
        part = emit("reverse", part, axes=flips)
    if not part.size and not may_raise:
        return same(x)
    if steps:
        return _place_strided(x, own, part)
    if part.shape == x.shape:
        return part
    starts = [_first(e) for e in own]
    return emit("dynamic_update", x, part, *(number(s, I64) for s in starts))


def _first(entry: IndexEntry) -> int:
    """The lowest place an entry takes."""
    match entry:
        case SliceRange(start, step, count, _):
            return min(start, start + (count - 1) * step) if count else 0
        case ScalarIndex(int() as place):
            return place
        case _:
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


def _set_masked(x: Array, key: IndexKey, value: Array) -> Array:
    """x with a value where a traced mask holds: the value has no axis for the chosen ones."""
    if len([e for e in key.entries if isinstance(e, (Mask, ArrayIndex, ScalarIndex))]) > 1 or any(
        isinstance(e, NewAxis) or (isinstance(e, SliceRange) and not e.whole) for e in key.entries
    ):
        fail(
            TypeMismatch,
            "a traced mask together with other indices",
            "write x[mask] = v with the mask alone, or x = np.where(mask, v, x)",
        )
    before = [e for e in key.entries if isinstance(e, (Mask, SliceRange))]
    spot = next(i for i, e in enumerate(before) if isinstance(e, Mask))
    mask = next(e.mask for e in before if isinstance(e, Mask))
    after = x.ndim - spot - mask.ndim
    extent = value.shape[-after - 1] if value.ndim > after else 1
    if extent != 1:
        fail(
            ConcreteError,
            f"x[mask] = v with a v of type {value.type}: a traced mask chooses a number of "
            "elements that only a running program knows",
            "give a v that broadcasts over the chosen elements, or write np.where(mask, v, x)",
        )
    if value.ndim > after:
        lead = value.shape[: value.ndim - after - 1]
        tail = value.shape[value.ndim - after :]
        value = emit("reshape", value, shape=(*lead, *(1,) * mask.ndim, *tail))
    value = fit(value, x.shape)
    chosen = emit("reshape", mask, shape=(*mask.shape, *(1,) * after))
    return emit("select", emit("broadcast", chosen, shape=x.shape), value, x)


def updatable(array: Any) -> Array:
    if not isinstance(array, Array):
        fail(
            MutationError,
            f"a traced value is written into a {type(array).__name__} that is not traced",
            "make the array with tn.zeros(shape, dtype), or pass it in as an argument",
        )
    return array


# Slices whose starts are traced.


def dynamic_slice(x: Any, starts: Any, sizes: Any) -> Array:
    """A part of an array: `sizes` are fixed, `starts` may be traced, one for each axis.

    A start is moved so that the part lies inside the array.
    """
    array = traced(x)
    extents = shape_of(sizes, "a size")
    return emit("dynamic_slice", array, *_starts(array, starts), sizes=extents)


def dynamic_update(x: Any, update: Any, starts: Any) -> Array:
    """An array with a part of it replaced; a start is moved so that the part lies inside."""
    array = traced(x)
    part = traced(update, array.dtype)
    return emit("dynamic_update", array, part, *_starts(array, starts))


def _starts(x: Array, starts: Any) -> list[Array]:
    if isinstance(starts, Array) and starts.ndim == 1:
        starts = [starts[i] for i in range(starts.shape[0])]
    elif not isinstance(starts, (tuple, list, np.ndarray)):
        starts = [starts]
    if len(starts) != x.ndim:
        fail(
            ShapeError,
            f"{len(starts)} starts for an array of type {x.type}",
            f"give one start for each of its {x.ndim} axes",
        )
    made = [traced(int(s) if isinstance(s, np.integer) else s) for s in starts]
    for start in made:
        if start.ndim or KIND[start.dtype] not in "iu":
            fail(
                TypeMismatch, f"a start of type {start.type}", "give integers or 0-d integer arrays"
            )
    return [cast(start, I64) for start in made]
