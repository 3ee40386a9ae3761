"""Searching, sets, sorting and taking."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.api.namespace.dispatch import apply
from tenfold.trace.surface.emit import axis_of, traced
from tenfold.trace.surface.indexing import sized


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Where the largest stands, the first of several."""
    return apply(np.argmax, x, axis, keepdims=keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Where the smallest stands, the first of several."""
    return apply(np.argmin, x, axis, keepdims=keepdims)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """How many elements are not zero."""
    return apply(np.count_nonzero, x, axis, keepdims=keepdims)


def nonzero(x: Any, /, *, size: int | None = None, fill_value: Any = 0) -> tuple[Any, ...]:
    """Where elements are not zero: an array of places for each axis.

    How many there are only a running program knows: a lazy array is run, and inside `jit` say
    with `size` to how many they are cut or filled.
    """
    if size is not None:
        return tuple(sized.nonzero(x, size=size, fill_value=fill_value))
    return tuple(apply(np.nonzero, x))


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Where elements would have to be put in a sorted array."""
    return apply(np.searchsorted, x1, x2, side=side, sorter=sorter)


def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """The first where the condition holds, else the second."""
    return apply(np.where, condition, x1, x2)


def unique_all(x: Any, /) -> Any:
    """The distinct values, where each first stands, the way back, and how often each comes."""
    return apply(np.unique_all, x)


def unique_counts(x: Any, /) -> Any:
    """The distinct values, and how often each comes."""
    return apply(np.unique_counts, x)


def unique_inverse(x: Any, /) -> Any:
    """The distinct values, and the way back."""
    return apply(np.unique_inverse, x)


def unique_values(x: Any, /) -> Any:
    """The distinct values."""
    return apply(np.unique_values, x)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """An array sorted along an axis, NaNs last."""
    made = apply(np.sort, x, axis)
    return apply(np.flip, made, axis) if descending else made


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The places that would sort an array along an axis; equal elements keep their order."""
    if not descending:
        return apply(np.argsort, x, axis)
    array = traced(x)
    at = axis_of(axis, array.ndim)
    back = apply(np.argsort, apply(np.flip, array, at), at)
    return (array.shape[at] - 1) - apply(np.flip, back, at)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """The elements at some places of an axis."""
    return apply(np.take, x, indices, axis)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """The elements at places given for each line along an axis."""
    return apply(np.take_along_axis, x, indices, axis)
