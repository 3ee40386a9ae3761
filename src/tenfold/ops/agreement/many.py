"""What unsettled integers among many make of sums, products and positions: rules of `spread`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.graph.op import ErrorSpread
from tenfold.ops.agreement.evaluation import joined
from tenfold.ops.agreement.intervals import Intervals, Rule, discrete_only, on_arc, reach
from tenfold.ops.agreement.moved import distance
from tenfold.ops.agreement.units import SIGN, size_of
from tenfold.ops.reference import NARROW
from tenfold.types import KIND

Array = np.ndarray[Any, Any]


def _of_sums(case: Intervals) -> Array:
    (down,), (up,) = (case.ask(case.node, [far]) for far in reach(case, 0))
    return on_arc(case.result, down, up)


def _of_contraction(case: Intervals) -> Array:
    (a, b), (da, db) = (size_of(v) for v in case.values), case.errors
    (first,), (second,) = case.ask(case.node, [a, db]), case.ask(case.node, [da, b + db])
    return on_arc(case.result, first + second, first + second)


def _of_factors(case: Intervals) -> Array:
    found = np.any(case.errors[0] > 0, axis=case.node["axes"])
    return np.where(found, np.inf, 0.0)


def _of_running_factors(case: Intervals) -> Array:
    found = np.any(case.errors[0] > 0, axis=case.node["axis"], keepdims=True)
    return np.where(np.broadcast_to(found, case.result.shape), np.inf, 0.0)


def _position(*, least: bool) -> Rule:
    """Of the position of the least element of a line, or of the largest."""

    def found(case: Intervals) -> Array:
        """How far it may be from the one found: any element may be it that is within its bound of
        the others'. A few trials would miss one of many that are open."""
        (value,), (error,), axis = case.values, case.errors, case.node["axis"]
        key = value.astype(np.float64) * (1.0 if least else -1.0)
        key = np.where(np.isnan(key), -np.inf, key)  # the first NaN is the extreme
        off = np.where(np.isinf(error) | (np.isinf(key) & (error > 0)), np.inf, error)
        low = np.where(np.isinf(off), -np.inf, key - off)
        high = np.where(np.isinf(off), np.inf, key + off)
        nearest = high.min(axis=axis, keepdims=True, initial=np.inf)
        open_lines = np.any(error > 0, axis=axis, keepdims=True)
        shape = [-1 if a == axis else 1 for a in range(value.ndim)]
        places = np.arange(value.shape[axis]).reshape(shape)
        far = np.abs(places - np.expand_dims(case.result, axis))
        may = (low <= nearest) & open_lines
        return np.asarray(np.where(may, far, 0.0).max(axis=axis, initial=0.0))

    return found


def _of_order(case: Intervals) -> Array:
    """Of the positions of all elements of a line in their order."""
    axis = case.node["axis"]
    low, high = (np.moveaxis(end, axis, -1) for end in _ranks(case))
    return np.moveaxis(_places(low, high, np.moveaxis(case.result, axis, -1)), -1, axis)


def _of_greatest(case: Intervals) -> Array:
    """Of the greatest elements of a line, and of their positions."""
    if case.output == 0:  # each is between what the least and the largest values give
        given = [case.ask(case.node, [end])[0] for end in case.ends[0]]
        far = np.maximum(*(distance(one, case.result, signs=True) for one in given))
        return np.where(_is_unknown(case).any(axis=-1, keepdims=True), np.inf, far)
    low, high = _ranks(case)
    return _places(-high, -low, case.result)


def _ranks(case: Intervals) -> tuple[Array, Array]:
    """The least and the largest that elements may be, as ranks among all of these; NaN is last.
    Complex numbers are in no order that their bounds could tell of."""
    (low, high), error = case.ends[0], case.errors[0]
    both = np.stack([low, high])
    if both.dtype in NARROW:
        both = both.astype(np.float32)
    values, ranks = np.unique(both, return_inverse=True)
    first, last = ranks.reshape(2, *low.shape)
    unknown = _is_unknown(case)
    if KIND[low.dtype] == "c":
        unknown = unknown | np.any(error > SIGN)
    last = np.where(error <= SIGN, first, last)  # it moves past no other
    return np.where(unknown, -1, first), np.where(unknown, values.size, last)


def _is_unknown(case: Intervals) -> Array:
    """Which elements may be anything, NaN too: the ends of their ranges tell nothing."""
    value, error = case.values[0], case.errors[0]
    return np.asarray(np.isinf(error) | ((error > SIGN) & ~np.isfinite(value)))


def _places(low: Array, high: Array, result: Array) -> Array:
    """How far positions may be from those found, of elements in their order along the last axis,
    equals as they stand; the first of them alone where the result has no more.

    An element may have any rank from the number of those that are before it in any case. Where such
    ranges meet, any may be in the place of any other."""
    count = low.shape[-1]
    if not low.size or not result.size:
        return np.zeros(result.shape)
    low, high = (end.reshape(-1, count).astype(np.int64) for end in (low, high))
    span = int(high.max() - low.min() + 1) * count
    lines = np.arange(low.shape[0])[:, None]
    offset, place = lines * span - int(low.min()) * count, np.arange(count)
    least, most = low * count + place + offset, high * count + place + offset
    before = np.searchsorted(np.sort(most, axis=None), least) - lines * count
    until = np.searchsorted(np.sort(least, axis=None), most, side="right") - lines * count - 1
    order = np.argsort(before, axis=-1, kind="stable")
    reach = np.maximum.accumulate(np.take_along_axis(until, order, -1), axis=-1)
    begins = np.ones(low.shape, bool)
    begins[:, 1:] = np.take_along_axis(before, order, -1)[:, 1:] > reach[:, :-1]
    starts = np.flatnonzero(begins)
    group = np.cumsum(begins, axis=None).reshape(low.shape)[:, : result.shape[-1]] - 1
    first, last = (f.reduceat(order.reshape(-1), starts)[group] for f in (np.minimum, np.maximum))
    found = result.reshape(-1, result.shape[-1])
    far: Array = np.maximum(found - first, last - found)
    return far.reshape(result.shape).astype(np.float64)


def _of_scatter(case: Intervals) -> Array | None:
    """Of sums and products into places: known where the places are, and all factors."""
    node, places = case.node, case.values[2:]
    if not case.discrete or node["kind"] not in ("add", "mul"):
        return None
    if any(e.any() for e in case.errors[2:]):
        return np.full(case.result.shape, np.inf)
    adding = joined(node, "add")
    (below, down), (above, up) = zip(reach(case, 0), reach(case, 1), strict=True)
    (down,), (up,) = (
        case.ask(adding, [below, down, *places]),
        case.ask(adding, [above, up, *places]),
    )
    if node["kind"] == "mul" or KIND[case.result.dtype] == "b":
        return np.where((down > 0) | (up > 0), np.inf, 0.0)
    return on_arc(case.result, down, up)


SUMS = discrete_only(_of_sums)
CONTRACTION = discrete_only(_of_contraction)
FACTORS, RUNNING_FACTORS = discrete_only(_of_factors), discrete_only(_of_running_factors)
ORDER, GREATEST = ErrorSpread(_of_order), ErrorSpread(_of_greatest)
LEAST, MOST = ErrorSpread(_position(least=True)), ErrorSpread(_position(least=False))
SCATTER = ErrorSpread(_of_scatter)
