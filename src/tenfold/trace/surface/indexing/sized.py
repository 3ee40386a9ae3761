"""Sized: what has a number of elements that only a running program knows, cut or filled to a
number that is given: nonzero, argwhere, compress, unique."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ShapeError
from tenfold.trace.array import Array
from tenfold.trace.surface.anywhere import anywhere
from tenfold.trace.surface.emit import axis_of, cast, emit, fail, static_int, traced
from tenfold.trace.surface.ufuncs.composed import filled
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import BOOL, I64, KIND


def _size(name: str, size: Any) -> int:
    count = static_int(size, f"{name}: the size")
    if count < 0:
        fail(ShapeError, f"{name}: size={count}", "give 0 or more")
    return count


def _places(mask: Array, size: int) -> tuple[Array, Array]:
    """The places where a flat mask holds, in order, then 0s; and how many there are."""
    seen = emit("cumsum", cast(mask, I64), axis=0, reverse=False)
    total = emit("reduce_sum", cast(mask, I64), axes=(0,))
    # Each goes to the place before how many were seen; the others to one behind the last.
    target = emit("select", mask, seen - 1, filled(size, I64, mask.shape))
    target = emit("min", target, filled(size, I64, mask.shape))
    room = filled(0, I64, (size + 1,))
    order = emit("iota", dtype=I64, shape=mask.shape, axis=0)
    found = emit("scatter", room, order, target, axes=(0,), at=0, mode="clip", kind="set")
    return emit("slice", found, starts=(0,), stops=(size,), steps=(1,)), total


def _within(total: Array, size: int) -> Array:
    """Which of the first `size` places are taken."""
    return emit("lt", emit("iota", dtype=I64, shape=(size,), axis=0), total)


def _fill(values: Array, total: Array, fill: Any) -> Array:
    """The values, and the fill behind the first `total` of the first axis."""
    inside = _within(total, values.shape[0])
    inside = emit("reshape", inside, shape=(values.shape[0], *[1] * (values.ndim - 1)))
    rest = emit("broadcast", traced(fill, values.dtype), shape=values.shape)
    return emit("select", inside, values, rest)


@anywhere
def nonzero(x: Any, *, size: int, fill_value: Any = 0) -> tuple[Array, ...]:
    """The positions of what is not zero, an array for each axis, as np.nonzero gives; cut or
    filled to `size` of them.

    >>> import numpy as np, tenfold as tn
    >>> tn.nonzero(np.array([0, 5, 0, 7]), size=3, fill_value=-1)
    (array([ 1,  3, -1]),)
    """
    array = traced(x)
    count = _size("nonzero", size)
    shape = array.shape or (1,)
    mask = emit("reshape", cast(array, BOOL), shape=(array.size,))
    if not array.size:
        return tuple(emit("broadcast", traced(fill_value, I64), shape=(count,)) for _ in shape)
    flat, total = _places(mask, count)
    made = []
    step = array.size
    for extent in shape:
        step //= extent
        made.append(_fill(flat // step % extent, total, fill_value))
    return tuple(made)


@anywhere
def flatnonzero(x: Any, *, size: int, fill_value: Any = 0) -> Array:
    """The positions in the flat array of what is not zero, cut or filled to `size` of them."""
    array = traced(x)
    found: Array = nonzero(
        emit("reshape", array, shape=(array.size,)), size=size, fill_value=fill_value
    )[0]
    return found


@anywhere
def argwhere(x: Any, *, size: int, fill_value: Any = 0) -> Array:
    """The positions of what is not zero, a row for each, cut or filled to `size` of them."""
    array = traced(x)
    if not array.ndim:
        return filled(0, I64, (_size("argwhere", size), 0))
    stacked: Array = FUNCTIONS[np.stack](nonzero(array, size=size, fill_value=fill_value), axis=-1)
    return stacked


@anywhere
def compress(condition: Any, x: Any, axis: Any = None, *, size: int, fill_value: Any = 0) -> Array:
    """The slices along an axis for which the condition holds, cut or filled to `size` of them.

    >>> import numpy as np, tenfold as tn
    >>> tn.compress(np.array([True, False, True]), np.array([1.5, 2.5, 3.5]), size=3)
    array([1.5, 3.5, 0. ])
    """
    array, mask = traced(x), traced(condition, BOOL)
    if axis is None:
        array = emit("reshape", array, shape=(array.size,))
    at = axis_of(0 if axis is None else axis, array.ndim)
    if mask.ndim != 1 or mask.size > array.shape[at]:
        fail(
            ShapeError,
            f"compress: a condition {mask.type} for axis {at} of {array.type}",
            "give a condition of one axis, no longer than that one",
        )
    count = _size("compress", size)
    lines = FUNCTIONS[np.moveaxis](array, at, 0)
    if not mask.size:
        made = emit("broadcast", traced(fill_value, array.dtype), shape=(count, *lines.shape[1:]))
    else:
        places, total = _places(mask, count)
        taken = emit("gather", lines, places, axes=(0,), at=0, mode="clip")
        made = _fill(taken, total, fill_value)
    back: Array = FUNCTIONS[np.moveaxis](made, 0, at)
    return back


@anywhere
def unique(
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    size: int,
    fill_value: Any = None,
) -> Any:
    """The distinct values of an array, sorted, as np.unique gives; cut or filled to `size`.

    The fill is the least value unless one is given; counts of what is filled are 0, indices are
    that of the least value. Values beyond `size` are cut, and their inverse is the last place.

    >>> import numpy as np, tenfold as tn
    >>> tn.unique(np.array([3, 1, 3, 2]), size=5, fill_value=0, return_counts=True)
    (array([1, 2, 3, 0, 0]), array([1, 1, 2, 0, 0]))
    """
    array = traced(x)
    count = _size("unique", size)
    if not array.size:
        return _of_nothing(array, count, fill_value, return_index, return_inverse, return_counts)
    flat = emit("reshape", array, shape=(array.size,))
    order = emit("argsort", flat, axis=0)
    line = emit("gather", flat, order, axes=(0,), at=0, mode="clip")
    first = firsts(line)
    places, total = _places(first, count)
    values = emit("gather", line, places, axes=(0,), at=0, mode="clip")
    least = emit("reshape", line[:1], shape=())
    made = [_fill(values, total, least if fill_value is None else fill_value)]
    if return_index:
        made.append(
            _fill(emit("gather", order, places, axes=(0,), at=0, mode="clip"), total, order[0])
        )
    if return_inverse:
        group = emit("cumsum", cast(first, I64), axis=0, reverse=False) - 1
        if count:
            group = emit("min", group, filled(count - 1, I64, group.shape))
        room = filled(0, I64, flat.shape)
        inverse = emit("scatter", room, group, order, axes=(0,), at=0, mode="clip", kind="set")
        made.append(emit("reshape", inverse, shape=array.shape))
    if return_counts:
        made.append(_counts(first, count))
    return made[0] if len(made) == 1 else tuple(made)


def firsts(line: Array, equal_nan: bool = True) -> Array:
    """Where a sorted line has a value, or a row, for the first time; NaNs count as equal."""
    before, here = line[:-1], line[1:]
    new = emit("ne", before, here)
    if line.ndim > 1:
        new = emit("reduce_any", new, axes=tuple(range(1, line.ndim)))
    elif KIND[line.dtype] in "fc" and equal_nan:
        both = emit("and", emit("isnan", before), emit("isnan", here))
        new = emit("and", new, emit("not", both))
    return emit("concatenate", filled(True, BOOL, (1,)), new, axis=0)


def _counts(first: Array, size: int) -> Array:
    """How often each of the first `size` values is there."""
    group = emit("cumsum", cast(first, I64), axis=0, reverse=False) - 1
    target = emit("min", group, filled(size, I64, group.shape))
    room, ones = filled(0, I64, (size + 1,)), filled(1, I64, group.shape)
    made = emit("scatter", room, ones, target, axes=(0,), at=0, mode="clip", kind="add")
    return emit("slice", made, starts=(0,), stops=(size,), steps=(1,))


def _of_nothing(
    array: Array, size: int, fill: Any, index: bool, inverse: bool, counts: bool
) -> Any:
    made = [emit("broadcast", traced(0 if fill is None else fill, array.dtype), shape=(size,))]
    if index:
        made.append(filled(0, I64, (size,)))
    if inverse:
        made.append(filled(0, I64, array.shape))
    if counts:
        made.append(filled(0, I64, (size,)))
    return made[0] if len(made) == 1 else tuple(made)
