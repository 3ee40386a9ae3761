"""Counting: bincount and histogram, with a number of bins that is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenfold.errors import ConcreteError, ShapeError, TypeMismatch, Unsupported, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.lazy.host import on_host
from tenfold.trace.scope import current
from tenfold.trace.surface.anywhere import anywhere
from tenfold.trace.surface.emit import cast, emit, fail, on, plain, static_int, traced
from tenfold.trace.surface.searching.searching import searchsorted
from tenfold.trace.surface.ufuncs.composed import filled, number
from tenfold.trace.tables import FUNCTIONS, UFUNCS
from tenfold.types import BOOL, F64, I64, KIND


@anywhere
def bincount(x: Any, weights: Any = None, *, length: int) -> Array:
    """How often each of 0, 1, …, length - 1 is in x, or the sum of their weights.

    A negative number, or one of `length` and more, is out of range.

    >>> import numpy as np, tenfold as tn
    >>> tn.bincount(np.array([0, 1, 1, 3]), length=5)
    array([1, 2, 0, 1, 0])
    """
    array, count = traced(x), static_int(length, "bincount: the length")
    if array.ndim != 1 or KIND[array.dtype] not in "biu":
        fail(TypeMismatch, f"bincount of {array.type}", "give integers along one axis")
    if weights is None:
        amounts = filled(1, I64, array.shape)
    else:
        amounts = traced(weights, F64)
        if amounts.shape != array.shape:
            fail(ShapeError, f"bincount: weights {amounts.type} for {array.type}", "one for each")
    room = filled(0, amounts.dtype, (count,))
    if not array.size:
        return room
    index = cast(array, I64) if array.dtype == BOOL else array
    # Counting from the end is not meant here: a negative number goes out of range.
    if KIND[index.dtype] == "i":
        index = cast(index, I64)
        outside = filled(count, I64, index.shape)
        index = emit("select", emit("lt", index, number(0, I64)), outside, index)
    return emit("scatter", room, amounts, index, axes=(0,), at=0, mode="raise", kind="add")


@on(np.bincount)
def _bincount(x: Any, weights: Any = None, minlength: Any = 0) -> Array:
    if current() is None:  # a lazy array is run
        return on_host(np.bincount, (x, weights, minlength), {})  # type: ignore[no-any-return]
    count, some = static_int(minlength, "bincount: minlength"), traced(x).size
    if not count and some:
        fail(
            ConcreteError,
            "np.bincount: the greatest number is known only to a running program",
            "say how many bins there are: np.bincount(x, minlength=n), where a number of n and "
            "more is an error, or tn.bincount(x, length=n)",
        )
    # NumPy does not look at the weights of nothing.
    return bincount(x, weights if some else None, length=count)


def rising(name: str, bins: Any) -> Array:
    """Edges that are given; those known while tracing have to rise."""
    bins = plain(bins)
    edges = traced(bins)
    if edges.ndim != 1:
        fail(ShapeError, f"{name}: the edges are {edges.type}", "give one axis")
    if not isinstance(bins, Array) and np.any(np.diff(np.asarray(bins)) < 0):
        fail(ValueProblem, f"{name}: the edges do not rise", "sort them")
    return edges


def spanned(name: str, span: Any) -> tuple[Any, Any]:
    """The ends of a range; numbers known while tracing have to be finite and in order."""
    low, high = span
    for end in (low, high):
        if isinstance(end, float) and not math.isfinite(end):
            fail(ValueProblem, f"{name}: the range {span} is not finite", "give finite ends")
    if not isinstance(low, Array) and not isinstance(high, Array) and low > high:
        fail(ValueProblem, f"{name}: the range {span} falls", "put the lesser end first")
    return low, high


@on(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Array:
    x = traced(a)
    if isinstance(bins, str):
        fail(
            Unsupported,
            f"np.histogram with bins={bins!r}, whose number only a running program knows",
            "give a number of bins, or their edges",
        )
    if np.ndim(bins):  # NumPy too takes an array without axes for a number of bins
        return rising("histogram", bins)
    count = static_int(bins, "histogram: the number of bins")
    if count < 1:
        fail(ValueProblem, f"histogram with {count} bins", "give at least one")
    return _edges(x, count, *_ends(x, range))


def _ends(x: Array, range: Any) -> tuple[Array, Array]:
    """The outer edges of even bins."""
    x = cast(x, F64) if KIND[x.dtype] in "biu" else x
    if range is not None:
        first, last = (traced(end) for end in spanned("histogram", range))
    elif not x.size:
        first, last = number(0.0, x.dtype), number(1.0, x.dtype)
    else:
        axes = tuple(np.arange(x.ndim).tolist())
        first, last = emit("reduce_min", x, axes=axes), emit("reduce_max", x, axes=axes)
    equal = first == last
    first = FUNCTIONS[np.where](equal, first - 0.5, first)
    last = FUNCTIONS[np.where](equal, last + 0.5, last)
    floats = [end if KIND[end.dtype] == "f" else cast(end, F64) for end in (first, last)]
    first, last = (emit("finite", end) for end in floats)
    return first, last


def _edges(x: Array, count: int, first: Array, last: Array) -> Array:
    """The edges of even bins, in the dtype of what is counted if that is a float."""
    steps = emit("iota", dtype=first.dtype, shape=(count + 1,), axis=0)
    inner = steps * ((last - first) / float(count)) + first
    made = FUNCTIONS[np.where](steps == float(count), last, inner)
    return cast(made, x.dtype if KIND[x.dtype] == "f" else F64)


def _even(x: Array, edges: Array, first: Array, last: Array) -> Array:
    """The bin of each number between the ends of even bins: worked out, and put right by one where
    rounding has it on the wrong side of an edge, as NumPy does."""
    count = edges.size - 1
    share = (x - first) / (last - first)
    guess = cast(share * float(count), I64)
    place = UFUNCS[np.minimum](UFUNCS[np.maximum](guess, 0), count - 1)
    below, above = x < edges[place], (x >= edges[1:][place]) & (place != count - 1)
    found: Array = place - cast(below, I64) + cast(above, I64)
    return found


@on(np.histogram)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Array, Array]:
    x = traced(a)
    edges = histogram_bin_edges(x, bins, range)
    count = edges.size - 1
    flat = emit("reshape", x, shape=(x.size,))
    inside: Array | None  # all are, where the bins are made for them
    # Bins are closed on the left; the last one also on the right.
    if np.ndim(bins):
        right = searchsorted(edges, flat, side="right")
        ends = searchsorted(edges[-1:], flat, side="right")  # 1 where at or beyond the last edge
        last = UFUNCS[np.equal](flat, edges[-1])
        place = emit("select", last, number(count, I64), right) - 1
        inside = (place >= 0) & ((ends == 0) | last)
    else:
        flat = cast(flat, edges.dtype)
        first, last = (cast(end, edges.dtype) for end in _ends(x, range))
        place = _even(flat, edges, first, last)
        inside = None if range is None else (flat >= first) & (flat <= last)
    if weights is None:
        amounts = filled(1, I64, flat.shape) if inside is None else cast(inside, I64)
    else:
        w = traced(weights)
        if w.shape != x.shape:
            fail(ShapeError, f"histogram: weights {w.type} for {x.type}", "give one for each")
        amounts = emit("reshape", w, shape=(w.size,))
        if inside is not None:
            amounts = emit("select", inside, amounts, filled(0, w.dtype, amounts.shape))
    room = filled(0, amounts.dtype, (count,))
    made = room
    if x.size and count:
        made = emit("scatter", room, amounts, place, axes=(0,), at=0, mode="clip", kind="add")
    if density:
        widths = edges[1:] - edges[:-1]
        made = made / widths / made.sum()
    return made, edges
