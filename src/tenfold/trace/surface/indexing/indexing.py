"""Indexing: x[key] read and written, and the functions that do the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ConcreteError, MutationError, ShapeError, TypeMismatch
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import cast, emit, fail, shape_of, traced, update
from tenfold.trace.surface.indexing.key import (
    ArrayIndex,
    IndexKey,
    Mask,
    NewAxis,
    ScalarIndex,
    SliceRange,
    read_key,
)
from tenfold.trace.surface.indexing.parts import gather, indices_of, place, sliced
from tenfold.trace.surface.shaping.shapes import together
from tenfold.trace.surface.steps import BasicIndex, holds, view
from tenfold.trace.surface.ufuncs.composed import same
from tenfold.trace.tables import FUNCTIONS
from tenfold.trace.view import View
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
    if read.advanced:
        part = sliced(x, read.entries)
        axes, indices = indices_of(part, read.entries)
        return gather(part, axes, placement(read), indices)
    step = BasicIndex.of(read.entries)
    if not step.axes and read.ellipsis is None:  # NumPy gives a number, which is no view
        found = step.read(x)
        return same(x) if found is x else found
    return view(x, step)


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


# Writing.


def setitem(x: Array, key: Any, value: Any) -> None:
    """x[key] = value."""
    x._check_writable()  # before anything else is found wrong
    read = read_key(x.type, key)
    if read.advanced:
        update(x, _set(x, read, _source(x, value)))
        return
    step = BasicIndex.of(read.entries)
    target = (x._view or View(x)).then(step)
    if holds(target, value):  # x[1:] += v has been done when the view is assigned
        return
    made = _source(x, value)
    if not step.axes and read.ellipsis is None and read.entries and made.ndim:
        fail(
            ShapeError,
            f"a value of type {made.type} is assigned to one element",
            "give a number, or a 0-d array: v[0]",
        )
    made = fit(made, step.shape)
    if x._view is None or step.trivial or len(target.steps) > len(x._view.steps):
        update(x, step.write(x, made))
    else:  # the part is found in the root at once, without a look at x
        update(target.root, target.write(made))


def _source(x: Array, value: Any) -> Array:
    """A value that is assigned to a part of an array, in its dtype."""
    made = traced(value, x.dtype)
    if isinstance(value, (list, tuple)) and made.ndim > x.ndim:
        fail(ShapeError, f"lists {made.ndim} deep are assigned to {x.type}", "flatten them")
    return made


FUNCTIONS["getitem"] = getitem
FUNCTIONS["setitem"] = setitem


def _set(x: Array, key: IndexKey, value: Array) -> Array:
    """x with the value written to what a key with index arrays or masks names."""
    if any(isinstance(e, Mask) for e in key.entries):
        return _set_masked(x, key, value)
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
