"""What unsettled integers among many make of sums, products and positions: rules of `spread`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.graph.op import ErrorSpread
from tenfold.ops.agreement.evaluation import joined
from tenfold.ops.agreement.intervals import Intervals, Rule, discrete_only, on_arc, reach
from tenfold.ops.agreement.units import size_of
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
LEAST, MOST = ErrorSpread(_position(least=True)), ErrorSpread(_position(least=False))
SCATTER = ErrorSpread(_of_scatter)
