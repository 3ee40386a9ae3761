"""Choosing: elements, classes and orders at random."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tenfold.api.random.draws import bits, integers, shape_from, unit, wide
from tenfold.api.random.transforms import extreme
from tenfold.errors import ShapeError, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.surface.anywhere import anywhere
from tenfold.trace.surface.emit import axis_of, cast, emit, emit_all, fail, static_int, traced
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import F64, I64, KIND


@anywhere
def permutation(key: Any, x: Any, axis: int = 0) -> Array:
    """An array with the places along an axis in a random order; or 0, 1, …, x - 1 in one.

    >>> import numpy as np, tenfold as tn
    >>> sorted(tn.random.permutation(tn.random.key(0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    if isinstance(x, (int, np.integer)):
        return _order(key, static_int(x, "random.permutation: the number"))
    array = traced(x)
    at = axis_of(axis, array.ndim)
    order = _order(key, array.shape[at])
    if not array.shape[at]:
        return array
    return emit("gather", array, order, axes=(at,), at=at, mode="clip")


def _order(key: Any, count: int) -> Array:
    if count < 0:
        fail(ShapeError, f"random.permutation of {count}", "give 0 or more")
    # Of 64 bits each: that two are equal is next to never.
    return emit("argsort", bits(key, (count,), np.uint64), axis=0)


@anywhere
def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0
) -> Array:
    """Places of an array along an axis, or of 0, 1, …, a - 1, chosen at random; with the
    probabilities p where they are given, and each at most once unless `replace`.

    >>> import numpy as np, tenfold as tn
    >>> tn.random.choice(tn.random.key(3), np.array([2, 3, 5]), (4,)).shape
    (4,)
    """
    extents = shape_from(shape)
    array = None if isinstance(a, (int, np.integer)) else traced(a)
    if array is None:
        count = static_int(a, "random.choice: the number")
    else:
        count = array.shape[axis_of(axis, array.ndim)]
    wanted = prod(extents)
    if count < 1 and wanted:
        fail(ValueProblem, "random.choice from nothing", "give at least one element")
    if not replace and wanted > count:
        fail(
            ValueProblem,
            f"random.choice of {wanted} from {count} without replacing",
            "choose fewer, or replace",
        )
    places = _places(key, count, extents, replace, p)
    if array is None:
        return places
    at = axis_of(axis, array.ndim)
    return emit("gather", array, places, axes=(at,), at=at, mode="clip")


def _places(key: Any, count: int, shape: tuple[int, ...], replace: bool, p: Any) -> Array:
    wanted = prod(shape)
    if p is None:
        if replace:
            made: Array = integers(key, 0, max(count, 1), shape)
            return made
        order = _order(key, count)
        few = emit("slice", order, starts=(0,), stops=(wanted,), steps=(1,))
        return emit("reshape", few, shape=shape)
    weights = cast(traced(p), F64)
    if weights.shape != (count,):
        fail(ShapeError, f"random.choice: p is {weights.type} for {count}", "give one for each")
    if replace:
        sums = emit("cumsum", weights, axis=0, reverse=False)
        at = emit("mul", unit("choice", key, (wanted,), F64), sums[-1])
        found = emit("searchsorted", sums, at, side="right")
        # Rounding may reach the last sum, which belongs to no place.
        last = emit("min", found, number(count - 1, I64))
        return emit("reshape", last, shape=shape)
    scores = emit("add", emit("log", weights), extreme("choice", key, (count,), F64))
    _, best = emit_all("top_k", scores, k=wanted)
    return emit("reshape", best, shape=shape)


@anywhere
def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Array:
    """Classes along an axis of logits (logarithms of weights), chosen at random; `shape`, if
    given, stands for the other axes and may repeat them by broadcasting.

    >>> import numpy as np, tenfold as tn
    >>> tn.random.categorical(tn.random.key(0), np.log([[0.0001, 0.9999], [1.0, 0.0001]]))
    array([1, 0])
    """
    scores = traced(logits)
    scores = scores if KIND[scores.dtype] == "f" else cast(scores, F64)
    scores = cast(scores, wide(scores.dtype))
    at = axis_of(axis, scores.ndim)
    scores = FUNCTIONS[np.moveaxis](scores, at, -1)
    if not scores.shape[-1]:
        fail(ValueProblem, "random.categorical of no classes", "give at least one")
    extents = scores.shape[:-1] if shape is None else shape_from(shape)
    noise = extreme("categorical", key, (*extents, scores.shape[-1]), scores.dtype)
    return emit("argmax", emit("add", scores, noise), axis=len(extents))
