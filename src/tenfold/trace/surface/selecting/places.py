"""Places: selections indexed, arrays indexed by selections, and the places where a mask holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ConcreteError, IndexProblem, ShapeError, TypeMismatch, Unsupported
from tenfold.trace.array import Array
from tenfold.trace.operand import dtype_key
from tenfold.trace.surface.emit import (
    axis_of,
    cast,
    emit,
    fail,
    is_array,
    is_traced,
    on,
    traced,
    update,
)
from tenfold.trace.surface.indexing.indexing import getitem, placement, updatable
from tenfold.trace.surface.indexing.key import ArrayIndex, IndexKey, bake, read_key
from tenfold.trace.surface.indexing.parts import indices_of, place, sliced
from tenfold.trace.surface.selecting.reducing import merged
from tenfold.trace.surface.selecting.selection import (
    SELECTED,
    Selection,
    aligned,
    assigned,
    choose,
    laid,
    on_selections,
    same_mask,
)
from tenfold.trace.surface.shaping.joining import stack
from tenfold.trace.surface.ufuncs.composed import filled, number
from tenfold.trace.surface.ufuncs.methods import AT
from tenfold.trace.surface.ufuncs.promotion import dtypes_for, same_kind
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import BOOL, I64, KIND

# x[mask][key]


def _items(s: Selection, key: Any) -> list[Any]:
    """The items of a key, one for each axis of a selection and each new one."""
    items = list(key) if isinstance(key, tuple) else [key]
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > s.ndim:
        fail(IndexProblem, f"{used} indices for {s!r}", "give at most one index an axis")
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    spot = dots[0] if dots else len(items)
    items[spot : spot + 1] = [slice(None)] * (s.ndim - used)
    return items


def _spot(s: Selection, items: list[Any]) -> int:
    """Which item is that of the axis of unknown length."""
    return [i for i, item in enumerate(items) if item is not None][s._at]


def _is_place(item: Any) -> bool:
    if isinstance(item, Array):
        return not isinstance(item, Selection) and not item.ndim and KIND[item.dtype] in "iu"
    return isinstance(item, (int, np.integer)) and not isinstance(item, bool)


def _dense_key(s: Selection, key: Any) -> tuple[Any, int]:
    """A key that leaves the axis of unknown length whole as one of the dense array; and where that
    axis is in what it takes."""
    items = _items(s, key)
    spot = _spot(s, items)
    whole = isinstance(items[spot], slice) and items[spot] == slice(None)
    if not whole or not all(i is None or isinstance(i, slice) or _is_place(i) for i in items):
        s.needs_size("an index of the axis that a mask chose")
    at = sum(item is None or isinstance(item, slice) for item in items[:spot])
    return (*items[:spot], *[slice(None)] * s._mask.ndim, *items[spot + 1 :]), at


def _one(s: Selection, place: Any) -> Array:
    """The element at one place of the axis of unknown length."""
    flags = emit("reshape", cast(s._mask, I64), shape=(s._mask.size,))
    seen = emit("cumsum", flags, axis=0, reverse=False)
    count = emit("reduce_sum", flags, axes=(0,))
    turn = traced(place, I64)
    turn = emit("select", emit("lt", turn, number(0, I64)), emit("add", turn, count), turn)
    there = emit("and", emit("ge", turn, number(0, I64)), emit("lt", turn, count))
    found = emit("eq", seen, emit("add", turn, number(1, I64)))
    last = number(s._mask.size, I64)  # no place: an error of the running program
    index = emit("select", there, emit("argmax", found, axis=0), last)
    return emit("gather", merged(s, s._dense), index, axes=(s._at,), at=s._at, mode="raise")


def _narrowed(s: Selection, key: Selection) -> Array:
    """The mask of s[key] with bools beside s: it covers the first axes of the dense array."""
    if key.dtype != BOOL:
        s.needs_size("an index of the axis that a mask chose")
    if key._at != s._at or not same_mask(s._mask, key._mask):
        s.needs_size("a selection indexed by bools that were chosen otherwise")
    shape = s._dense.shape[: key._dense.ndim]
    if shape != key._dense.shape:
        fail(
            IndexProblem,
            f"a mask of shape {key._dense.shape} over axes of shape {shape}",
            "give a mask with the shape of the axes it covers",
        )
    return emit("and", key.chosen, key._dense)


def _read(s: Selection, key: Any) -> Any:
    if isinstance(key, Selection):
        return choose(s._dense, _narrowed(s, key), 0)
    items = _items(s, key)
    spot = _spot(s, items)
    if _is_place(items[spot]) and s._mask.size:
        one = _one(s, items[spot])
        one._readonly = bool(one.ndim)  # in NumPy a view, and what is written to it reaches s
        rest = (*items[:spot], *items[spot + 1 :])
        return one[rest] if rest else one
    dense, at = _dense_key(s, key)
    return s.like(s._dense[dense], at)


def _write(s: Selection, key: Any, value: Any) -> None:
    if isinstance(key, Selection):
        s._dense[...] = assigned(s._dense, _narrowed(s, key), 0, value)
        return
    dense, at = _dense_key(s, key)
    part = s._dense[dense]
    made, wrong = laid(value, s._mask, at, part.shape, part.dtype)
    s._dense[dense] = made if wrong is None else emit("select", wrong, part, made)


SELECTED["getitem"] = _read
SELECTED["setitem"] = _write


# x[places] where the places are selections


def _as_mask(x: Array, key: tuple[Any, ...]) -> Any:
    """The key with the mask where all the places of one stand, as np.nonzero gives them."""
    first = next(i for i, item in enumerate(key) if isinstance(item, Selection))
    mask = key[first]._mask
    run = key[first : first + mask.ndim]
    whole = len(run) == mask.ndim and all(
        isinstance(item, Selection) and item._place == n and same_mask(mask, item._mask)
        for n, item in enumerate(run)
    )
    made = (*key[:first], mask, *key[first + mask.ndim :])
    axis = sum(item is not None and item is not Ellipsis for item in key[:first])
    if not whole or x.shape[axis : axis + mask.ndim] != mask.shape or Ellipsis in key[:first]:
        return None
    return made if not any(isinstance(item, Selection) for item in made) else None


def _by_places(x: Array, key: tuple[Any, ...]) -> tuple[Selection, IndexKey]:
    """One of the selections in a key, and the key with those that are not chosen at 0."""
    first = next(item for item in key if isinstance(item, Selection))
    made = []
    for item in key:
        if isinstance(item, Selection):
            aligned((first, item))
            if item.ndim != 1 or KIND[item.dtype] not in "iu":
                item.needs_size("an index that a mask chose")
            item = item.filled(0)
        made.append(item)
    read = read_key(x.type, tuple(made))
    indices = [e for e in read.entries if isinstance(e, ArrayIndex)]
    if len(indices) != sum(isinstance(item, Selection) for item in key):
        first.needs_size("an index that a mask chose beside another index array")
    return first, read


def _gather(x: Array, key: Any) -> Any:
    items = key if isinstance(key, tuple) else (key,)
    known = _as_mask(x, items)
    if known is not None:
        return getitem(x, known)
    first, read = _by_places(x, items)
    part = sliced(x, read.entries)
    axes, indices = indices_of(part, read.entries)
    at = placement(read)
    return first.like(emit("gather", part, *indices, axes=axes, at=at, mode="raise"), at)


def _scatter(x: Array, key: Any, value: Any, kind: str = "set") -> Array:
    """x with a value written to, or joined with, the chosen places: the others go to a place of
    their own, behind the last of an axis."""
    items = key if isinstance(key, tuple) else (key,)
    known = _as_mask(x, items) if kind == "set" else None
    if known is not None:
        copied: Array = FUNCTIONS[np.copy](x)
        copied[known] = value
        return copied
    first, read = _by_places(x, items)
    part = sliced(x, read.entries)
    axes, indices = indices_of(part, read.entries)
    at = placement(read)
    found = [
        emit(
            "gather",
            emit("iota", dtype=I64, shape=(part.shape[a],), axis=0),
            i,
            axes=(0,),
            at=0,
            mode="raise",
        )
        for a, i in zip(axes, indices, strict=True)
    ]  # from 0 up, and an error where there is no such place
    spare = part.shape[axes[0]]
    found[0] = emit("select", first._mask, found[0], number(spare, I64))
    row = tuple(1 if a == axes[0] else n for a, n in enumerate(part.shape))
    room = emit("concatenate", part, filled(0, x.dtype, row), axis=axes[0])
    rest = [n for a, n in enumerate(part.shape) if a not in axes]
    frame = (*rest[:at], *first._mask.shape, *rest[at:])
    made, wrong = laid(value, first._mask, at, frame, x.dtype)
    done = emit("scatter", room, made, *found, axes=axes, at=at, mode="clip", kind=kind)
    done = emit("slice", done, starts=(0,) * part.ndim, stops=part.shape, steps=(1,) * part.ndim)
    if wrong is not None:
        done = emit("select", wrong, part, done)
    return place(x, read.entries, done, may_raise=True)


SELECTED["gather"] = _gather
SELECTED["scatter"] = _scatter


@on_selections("at")
def at_places(ufunc: np.ufunc, a: Any, indices: Any, b: Any = None, /) -> None:
    kind = AT.get(ufunc)
    if kind is None or b is None:
        names = ", ".join(u.__name__ for u in AT)
        fail(Unsupported, f"np.{ufunc.__name__}.at", f"there is at of {names}")
    x = updatable(a)
    other = b.dtype if isinstance(b, Selection) else dtype_key(b if is_array(b) else traced(b))
    made = dtypes_for(ufunc, (x.dtype, other))[-1]
    if not same_kind(made, x.dtype):
        fail(
            TypeMismatch,
            f"np.{ufunc.__name__}.at can't turn {made} into {x.dtype}",
            "cast the values first with .astype",
        )
    if x.dtype == BOOL:
        kind = {"add": "max", "mul": "min"}.get(kind, kind)
    update(x, _scatter(x, indices, b, kind))


# Where a mask holds.


def _places(mask: Array) -> tuple[Selection, ...]:
    """What np.nonzero gives: the place of each chosen element, axis by axis."""
    made = []
    for axis in range(mask.ndim):
        found = choose(emit("iota", dtype=I64, shape=mask.shape, axis=axis), mask, 0)
        found._place, found._remedy = axis, "tn.nonzero(x, size=n)"
        made.append(found)
    return tuple(made)


def _flags(x: Any) -> Array:
    if isinstance(x, Selection):
        x.needs_size("the places of x[mask]")
    return cast(x, BOOL)


@on_selections(np.nonzero)
def nonzero(x: Any) -> tuple[Selection, ...]:
    if not x.ndim:
        fail(TypeMismatch, "nonzero of a 0-d array", "write np.atleast_1d(x).nonzero()")
    return _places(_flags(x))


@on_selections(np.flatnonzero)
def flatnonzero(x: Any) -> Selection:
    flags = _flags(x)
    return _places(emit("reshape", flags, shape=(flags.size,)))[0]


@on_selections(np.argwhere)
def argwhere(x: Any) -> Selection:
    mask = _flags(x)
    if not mask.ndim:  # a place without coordinates, or none
        return choose(filled(0, I64, (0,)), mask, 0)
    places = [emit("iota", dtype=I64, shape=mask.shape, axis=a) for a in range(mask.ndim)]
    return choose(stack(places, axis=-1), mask, 0)


def _known(condition: Any) -> Any:
    """A condition whose values are known, which the graph hangs on."""
    bake(condition)
    return np.asarray(condition)


@on(np.extract)
@on_selections(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    x = traced(arr)
    flat = emit("reshape", x, shape=(x.size,))
    if not is_traced(condition):
        return flat[np.flatnonzero(_known(condition))]
    mask = cast(condition, BOOL)
    return flat[emit("reshape", mask, shape=(mask.size,))]


@on(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    x = traced(a)
    if axis is None or not x.ndim:
        x, axis = emit("reshape", x, shape=(x.size,)), 0 if axis is None else axis
    where = axis_of(axis, x.ndim)
    if out is not None:
        fail(ConcreteError, "np.compress with out=", "write out[...] = np.compress(c, x)")
    key: tuple[Any, ...] = (slice(None),) * where
    if not is_traced(condition):
        return x[(*key, np.flatnonzero(_known(condition)))]
    mask = cast(condition, BOOL)
    if mask.ndim != 1 or mask.size > x.shape[where]:
        fail(
            ShapeError,
            f"compress: a condition {mask.type} for axis {where} of {x.type}",
            "give a condition of one axis, no longer than that one",
        )
    rest = filled(False, BOOL, (x.shape[where] - mask.size,))
    return x[(*key, emit("concatenate", mask, rest, axis=0) if rest.size else mask)]
