"""Sorting: sort and argsort, stable, NaNs last."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import Unsupported
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import axis_of, emit, fail, on, traced
from tenfold.trace.surface.into import write


def _flat(a: Any, axis: Any) -> tuple[Array, int]:
    x = traced(a)
    if axis is None:
        return emit("reshape", x, shape=(x.size,)), 0
    return x, axis_of(axis, x.ndim)


def _no_fields(order: Any) -> None:
    if order is not None:
        fail(Unsupported, "sorting by the fields of a record dtype", "sort plain arrays")


@on(np.sort)
def sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Array:
    _no_fields(order)
    x, at = _flat(a, axis)
    return emit("sort", x, axis=at)


@on(np.argsort)
def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Array:
    _no_fields(order)
    if traced(a).ndim == 0 and axis in (0, -1):  # as NumPy has it, though sort has not
        axis = None
    x, at = _flat(a, axis)
    return emit("argsort", x, axis=at)


def sort_in_place(
    self: Array, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> None:
    """x.sort()"""
    write(self, sort(self, axis, kind, order, stable=stable))
