"""Key: what x[…] names, read into one entry for each axis of an array and each new axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ConcreteError, IndexProblem, ShapeError, TypeMismatch
from tenfold.frozen import frozen
from tenfold.trace.array import Array
from tenfold.trace.host.value import HOST
from tenfold.trace.lazy.lazy import LAZY
from tenfold.trace.operand import scope_of, value_of
from tenfold.trace.scope import Scope
from tenfold.trace.surface.emit import fail, is_traced, traced
from tenfold.types import BOOL, KIND, TensorType, base_array


@frozen
class SliceRange:
    """A slice of an axis: where it starts, its step (of either sign), how many elements."""

    start: int
    step: int
    count: int
    extent: int

    @property
    def whole(self) -> bool:
        return self.step == 1 and self.count == self.extent


@frozen
class NewAxis:
    """A new axis of extent 1."""


@frozen
class TracedPlace:
    """A place that only a running program knows, as it was when a key named it."""

    scope: Scope
    value: Any

    @property
    def array(self) -> Array:
        return Array(self.scope, self.value)


@frozen
class ScalarIndex:
    """One place of an axis: a number known while tracing (0 or more), or a traced one."""

    place: int | TracedPlace


@frozen
class ArrayIndex:
    """Places of an axis by an array of integers, known while tracing or traced.

    The axis may be a new one of extent 1: that is what a single bool indexes.
    """

    index: Any
    new: bool = False


@frozen
class Mask:
    """A traced array of bools over one or more axes."""

    mask: Array


IndexEntry = SliceRange | NewAxis | ScalarIndex | ArrayIndex | Mask


@frozen
class IndexKey:
    """The entries, and before which of them the key spelled out `...`, if it did.

    A spelled-out `...` makes even a 0-d result a view, and parts indices that stand around it,
    even where it stands for no axis.
    """

    entries: tuple[IndexEntry, ...]
    ellipsis: int | None

    @property
    def advanced(self) -> bool:
        return any(isinstance(e, (ArrayIndex, Mask)) for e in self.entries)


def read_key(type: TensorType, key: Any) -> IndexKey:
    """The entries of a key on an array of this type."""
    given = list(key) if isinstance(key, tuple) else [key]
    items = [_normalised(item) for item in given]
    used = sum(_width(item) for item in items)
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        fail(IndexProblem, "an index with more than one ellipsis (...)", "write ... once")
    if used > type.rank:
        fail(
            IndexProblem,
            f"{used} indices for an array of type {type} with {type.rank} axes",
            "give at most one index an axis",
        )
    at = dots[0] if dots else len(items)
    fill: list[Any] = [slice(None)] * (type.rank - used)
    items[at : at + 1] = fill
    entries: list[IndexEntry] = []
    axis, spelled = 0, None
    for i, item in enumerate(items):
        if i == at and dots:
            spelled = len(entries)
        entries.extend(_entries(item, type, axis))
        axis += _width(item)
    if dots and spelled is None:
        spelled = len(entries)
    return IndexKey(tuple(entries), spelled)


def _normalised(item: Any) -> Any:
    """An item of a key as None, Ellipsis, a slice, a bool, an int, a NumPy or a traced array."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, Array):
        if item._scope is HOST:
            placed = item.ndim and KIND[item.dtype] in "iu"
            return item if placed else _normalised(np.array(item._host()))
        # A lazy mask is run: what it chooses has a shape that depends on it. A lazy number is
        # not: most are computed, and an index that is in the program is checked when it runs.
        if is_traced(item) or item.dtype != BOOL:
            return item
        bake(item)
        return item._host()
    if isinstance(item, (bool, np.bool_)):
        return np.asarray(bool(item))
    if isinstance(item, (int, np.integer)):
        return int(item)
    if isinstance(item, (list, tuple, range)):
        if has_traced(item):
            return traced(item)
        item = np.asarray(item) if len(item) else np.zeros(np.shape(item), np.int64)
    if isinstance(item, np.ndarray):
        item = base_array(item)
        if item.dtype != BOOL and item.dtype.kind not in "iu":
            if item.size == 0:
                return item.astype(np.int64)
            fail(
                IndexProblem,
                f"an index array of dtype {item.dtype}",
                "index with integers or bools: idx.astype(int)",
            )
        return int(item) if item.ndim == 0 and item.dtype != BOOL else item
    if hasattr(item, "__index__"):
        return int(item.__index__())
    return fail(
        IndexProblem,
        f"an index of type {type(item).__name__}",
        "index with integers, slices, None, ... or arrays of integers or bools",
    )


def has_traced(item: Any) -> bool:
    """Whether this is an Array or a nested list with one in it."""
    if isinstance(item, (list, tuple)):
        return any(has_traced(part) for part in item)
    return isinstance(item, Array)


def _width(item: Any) -> int:
    """How many axes an item takes."""
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, (np.ndarray, Array)) and item.dtype == BOOL:
        return item.ndim
    return 1


def _entries(item: Any, type: TensorType, axis: int) -> list[IndexEntry]:
    if item is None:
        return [NewAxis()]
    if isinstance(item, slice):
        return [_range(item, axis, type.shape[axis])]
    if isinstance(item, int):
        extent = type.shape[axis]
        if not -extent <= item < extent:
            fail(
                IndexProblem,
                f"index {item} is out of range for axis {axis} of {type}, of extent {extent}",
                f"give an index from {-extent} to {extent - 1}" if extent else "the axis is empty",
            )
        return [ScalarIndex(item % extent)]
    if item.dtype == BOOL:
        return _masks(item, type, axis)
    known = item._host() if isinstance(item, Array) and item._scope is HOST else item
    if isinstance(known, Array):
        if KIND[item.dtype] not in "iu":
            fail(
                IndexProblem,
                f"a traced index of dtype {item.dtype}",
                "index with integers or bools: idx.astype(int)",
            )
        if item.ndim:
            return [ArrayIndex(item)]
        scope = scope_of(item)
        return [ScalarIndex(TracedPlace(scope, value_of(item, scope)))]
    extent = type.shape[axis]
    bad = known[(known < -extent) | (known >= extent)]
    if bad.size:
        fail(
            IndexProblem,
            f"index {bad.flat[0]} is out of range for axis {axis} of {type}, of extent {extent}",
            f"give indices from {-extent} to {extent - 1}" if extent else "the axis is empty",
        )
    return [ArrayIndex(item)]


def _masks(item: Any, type: TensorType, axis: int) -> list[IndexEntry]:
    covered = type.shape[axis : axis + item.ndim]
    if item.shape != covered:
        fail(
            IndexProblem,
            f"a mask of shape {item.shape} over axes of shape {covered} of {type}",
            "give a mask with the shape of the axes it covers",
        )
    if isinstance(item, Array):
        return [Mask(item)]
    bake(item)
    if item.ndim == 0:
        return [ArrayIndex(np.zeros(int(item), np.int64), new=True)]
    return [ArrayIndex(index) for index in np.nonzero(item)]


def bake(mask: Any) -> None:
    """Say that how many a mask chooses is part of the graph."""
    scope = scope_of()
    if scope is not LAZY:
        scope.trace.baked[id(mask)] = mask


def _range(item: slice, axis: int, extent: int) -> SliceRange:
    for bound in (item.start, item.stop, item.step):
        if is_traced(bound):
            fail(
                ConcreteError,
                f"a slice of axis {axis} with a traced bound has a shape that only a running "
                "program knows",
                "write tn.dynamic_slice(x, starts, sizes): traced starts, fixed sizes",
            )
    try:
        start, stop, step = item.indices(extent)
    except TypeError:
        fail(
            TypeMismatch,
            f"a slice of axis {axis} with bounds that are no integers: {item}",
            "give integers",
        )
    except ValueError:
        fail(ShapeError, f"a slice of axis {axis} with the step 0", "give a step other than 0")
    return SliceRange(start, step, len(range(start, stop, step)), extent)
