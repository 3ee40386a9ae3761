"""Histograms of more than one dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ShapeError, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import cast, emit, fail, on, static_int, traced
from tenfold.trace.surface.reducing.counting import rising, spanned
from tenfold.trace.surface.reducing.reductions import total
from tenfold.trace.surface.searching.searching import searchsorted
from tenfold.trace.surface.shaping.creation import linspace
from tenfold.trace.surface.ufuncs.composed import filled, number
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import F64, I64, KIND


def _edges(x: Array, bins: Any, span: Any) -> Array:
    """The edges of the bins along one axis: given, or evenly spaced."""
    if np.ndim(bins) == 1:
        return rising("histogramdd", bins)
    if np.ndim(bins):
        fail(ShapeError, f"histogramdd: edges of shape {np.shape(bins)}", "give one axis")
    count = static_int(bins, "histogramdd: a number of bins")
    if count < 1:
        fail(ValueProblem, f"histogramdd with {count} bins", "give at least one")
    low: Any
    high: Any
    if span is not None:
        low, high = spanned("histogramdd", span)
        if not isinstance(low, Array) and not isinstance(high, Array):
            if low == high:
                low, high = low - 0.5, high + 0.5
            return traced(linspace(low, high, count + 1))
    elif not x.size:
        return traced(linspace(0, 1, count + 1))
    else:
        low, high = emit("reduce_min", x, axes=(0,)), emit("reduce_max", x, axes=(0,))
    low, high = (_finite(traced(end)) for end in (low, high))
    flat = low == high
    where = FUNCTIONS[np.where]
    made = linspace(where(flat, low - 0.5, low), where(flat, high + 0.5, high), count + 1)
    return traced(made)


def _finite(end: Array) -> Array:
    """An end of a range, which in the running program has to be finite."""
    return emit("finite", end) if KIND[end.dtype] == "f" else end


@on(np.histogramdd)
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Array, list[Array]]:
    points = traced(sample)
    if not isinstance(sample, (Array, np.ndarray)):  # a sequence of the coordinates
        points = emit("transpose", points, axes=(1, 0)) if points.ndim == 2 else points
    if points.ndim == 1:
        points = emit("reshape", points, shape=(points.size, 1))
    if points.ndim != 2:
        fail(ShapeError, f"histogramdd of {points.type}", "give a row for each point")
    n, rank = points.shape
    each = [bins] * rank if np.ndim(bins) == 0 and not isinstance(bins, list) else list(bins)
    spans = [None] * rank if range is None else list(range)
    if len(each) != rank or len(spans) != rank:
        fail(ShapeError, f"histogramdd: bins or ranges for {rank} axes", "give one for each")
    edges, place, inside = [], number(0, I64), None
    for i, (b, span) in enumerate(zip(each, spans, strict=True)):
        x = points[:, i]
        edge = _edges(x, b, span)
        edges.append(edge)
        count = edge.size - 1
        # bins are closed on the left; the last one also on the right
        at = searchsorted(edge, x, side="right") - cast(x == edge[-1], I64) - 1
        here = (at >= 0) & (at < count)
        inside = here if inside is None else inside & here
        place = place * count + at
    shape = tuple(e.size - 1 for e in edges)
    amounts = filled(1, F64, (n,)) if weights is None else traced(weights, F64)
    if amounts.shape != (n,):
        fail(ShapeError, f"histogramdd: weights {amounts.type}", f"give {n} of them")
    made = filled(0, F64, (int(np.prod(shape)),))
    if n and made.size and inside is not None:
        amounts = emit("select", inside, amounts, number(0, F64))
        place = emit("select", inside, place, number(0, I64))
        made = emit("scatter", made, amounts, place, axes=(0,), at=0, mode="clip", kind="add")
    made = emit("reshape", made, shape=shape)
    if density:
        whole = total(made)
        for i, edge in enumerate(edges):
            widths = edge[1:] - edge[:-1]
            made = made / widths.reshape([-1 if k == i else 1 for k in np.arange(rank).tolist()])
        made = made / whole
    return made, edges


@on(np.histogram2d)
def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    density: Any = None,
    weights: Any = None,
) -> tuple[Array, Array, Array]:
    first, second = traced(x), traced(y)
    if first.ndim != 1 or first.shape != second.shape:
        fail(ShapeError, f"histogram2d of {first.type} and {second.type}", "give two vectors")
    if np.ndim(bins) == 1 and len(bins) not in (1, 2):
        bins = [bins, bins]
    elif isinstance(bins, (list, tuple)) and len(bins) == 1:
        bins = [bins[0], bins[0]]
    points = FUNCTIONS[np.stack]([first, second], -1)
    made, (across, down) = histogramdd(points, bins, range, density, weights)
    return made, across, down
