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
from tenfold.trace.surface.selecting.selection import (
    SELECTED,
    Selection,
    assigned,
    choose,
    with_axis,
)
from tenfold.trace.surface.shaping.shapes import fit, together
from tenfold.trace.surface.steps import BasicIndex, holds, view
from tenfold.trace.surface.ufuncs.composed import same
from tenfold.trace.tables import FUNCTIONS
from tenfold.trace.view import View
from tenfold.types import I64, KIND

_INDICES = (ScalarIndex, ArrayIndex, Mask)


def getitem(x: Array, key: Any) -> Array:
    """x[key]: a view for basic keys, a fresh array for advanced ones."""
    step, dots = BasicIndex.plain(x.shape, key), False
    if step is None:
        if by_selection(key):
            return SELECTED["gather"](x, key)  # type: ignore[no-any-return]
        read = read_key(x.type, key)
        if any(isinstance(e, Mask) for e in read.entries):
            return _chosen(x, read)
        if read.advanced:
            part = sliced(x, read.entries)
            axes, indices = indices_of(part, read.entries)
            return gather(part, axes, placement(read), indices)
        step, dots = BasicIndex.of(read.entries), read.ellipsis is not None
    if not step.axes and not dots:  # NumPy gives a number, which is no view
        found = step.read(x)
        return same(x) if found is x else found
    return view(x, step)


def by_selection(key: Any) -> bool:
    """Whether a key is or has a selection."""
    return isinstance(key, Selection) or (
        type(key) is tuple and any(isinstance(item, Selection) for item in key)
    )


def _parted(key: IndexKey) -> tuple[Array, BasicIndex, int, tuple[int, ...] | None]:
    """A key with a traced mask: the mask, what the key takes with whole axes in its place, which
    axis of that is the mask's first, and the order of axes that brings the mask's to the front,
    where NumPy has them there."""
    if any(isinstance(e, ArrayIndex) for e in key.entries) or (
        sum(isinstance(e, Mask) for e in key.entries) > 1
    ):
        fail(
            ConcreteError,
            "a traced mask together with an index array: whether they have as many elements, only "
            "a running program knows",
            "index by the mask alone, or say how many it chooses at most: tn.nonzero(mask, size=n)",
        )
    spot, mask = next((i, e.mask) for i, e in enumerate(key.entries) if isinstance(e, Mask))
    whole = tuple(SliceRange(0, 1, n, n) for n in mask.shape)
    rest = (*key.entries[:spot], *whole, *key.entries[spot + 1 :])
    at = sum(not isinstance(e, ScalarIndex) for e in key.entries[:spot])
    if not at or placement(key) == at:
        return mask, BasicIndex.of(rest), at, None
    rank = sum(not isinstance(e, ScalarIndex) for e in rest)
    own = tuple(range(at, at + mask.ndim))
    order = (*own, *(a for a in range(rank) if a not in own))
    return mask, BasicIndex.of(rest), at, order


def _chosen(x: Array, key: IndexKey) -> Array:
    """x[key] with a traced mask in the key."""
    mask, step, at, order = _parted(key)
    part = step.read(x)
    if order is not None:
        part, at = emit("transpose", part, axes=order), 0
    return choose(part, mask, at)


def placement(key: IndexKey) -> int:
    """Before which remaining axis the axes of the indices come, as NumPy places them.

    Single places count as indices where there are index arrays: side by side the indices'
    axes stand where the first of them stood, else in front.
    """
    spots = [i for i, e in enumerate(key.entries) if isinstance(e, _INDICES)]
    if not any(isinstance(e, (ArrayIndex, Mask)) for e in key.entries):
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
    step, dots = BasicIndex.plain(x.shape, key), False
    if step is None:
        if by_selection(key):
            update(x, SELECTED["scatter"](x, key, value))
            return
        read = read_key(x.type, key)
        if read.advanced:
            update(x, _set(x, read, _source(x, value)))
            return
        step, dots = BasicIndex.of(read.entries), read.ellipsis is not None
    target = View.of(x, step) if x._view is None else x._view.then(step)
    if holds(target, value):  # x[1:] += v has been done when the view is assigned
        return
    made = _source(x, value)
    if not step.axes and not dots and step.entries and made.ndim:
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
    made = value if isinstance(value, Selection) else traced(value, x.dtype)
    if isinstance(value, (list, tuple)) and made.ndim > x.ndim:
        fail(ShapeError, f"lists {made.ndim} deep are assigned to {x.type}", "flatten them")
    return made


FUNCTIONS["getitem"] = getitem
FUNCTIONS["setitem"] = setitem


def _set(x: Array, key: IndexKey, value: Array) -> Array:
    """x with the value written to what a key with index arrays or masks names."""
    if any(isinstance(e, Mask) for e in key.entries):
        return _set_chosen(x, key, value)
    part = sliced(x, key.entries)
    axes, indices = indices_of(part, key.entries)
    at = placement(key)
    spread = together(*indices)
    rest = [n for i, n in enumerate(part.shape) if i not in axes]
    value = fit(value, (*rest[:at], *spread, *rest[at:]))
    done = emit("scatter", part, value, *indices, axes=axes, at=at, mode="raise", kind="set")
    return place(x, key.entries, done, may_raise=True)


def _set_chosen(x: Array, key: IndexKey, value: Any) -> Array:
    """x with a value where a traced mask holds."""
    mask, step, at, order = _parted(key)
    part = step.read(x)
    if order is not None:
        part, at = emit("transpose", part, axes=order), 0
    lined, mask = with_axis(part, mask, at)
    done = emit("reshape", assigned(lined, mask, at, value), shape=part.shape)
    if order is not None:
        done = emit("transpose", done, axes=tuple(order.index(a) for a in range(len(order))))
    return step.write(x, done)


def updatable(array: Any) -> Array:
    if not isinstance(array, Array):
        fail(
            MutationError,
            f"a traced value is written into a {type(array).__name__} that is not traced",
            "copy it in the function and write to the copy: w = np.array(w)",
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
