"""Rows of cumulative ops: each element is folded with all those before it along an axis.

The bound is as of a reduction over the same axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.graph.node import Graph
from tenfold.graph.op import ErrorRule, ErrorSpread, Op, Routine, Types
from tenfold.ops import attributes as attribute
from tenfold.ops import reads, rules, samples
from tenfold.ops.agreement.named import errors, many, sums
from tenfold.ops.batching import rules as batching
from tenfold.ops.reference import Array, widened

Given = Mapping[str, Any]


def row(
    name: str,
    ufunc: np.ufunc,
    kinds: str,
    *,
    edges: str,
    bound: float = 0,
    draw: samples.Draw = samples.anything,
    error: Callable[[], ErrorRule],
    spread: Callable[[], ErrorSpread] | None = None,
) -> Op:
    """A row of a running fold by an associative ufunc."""

    def infer(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
        rules.require(name, kinds, *types)
        rules.has_axes(name, types[0], (given["axis"],))
        return types

    def reference(x: Array, axis: int, reverse: bool) -> Any:
        if not reverse:
            return ufunc.accumulate(x, axis, dtype=x.dtype)
        return np.flip(ufunc.accumulate(np.flip(x, axis), axis, dtype=x.dtype), axis)

    forms: tuple[tuple[Sequence[Any], Given], ...] = tuple(
        ((shape,), {"axis": axis, "reverse": reverse})
        for shape, axis in (
            ((7,), 0),
            ((2, 3), 1),
            ((4, 3), 0),
            ((1,), 0),
            ((0, 2), 0),
            ((2, 0), 0),
        )
        for reverse in (False, True)
    )
    return Op(
        name=name,
        arity=1,
        infer=infer,
        reference=widened(reference),
        lowering=Routine(name),
        edges=edges,
        bound=bound,
        batch=batching.shifted(name, batching.axis_up),
        samples=samples.listed(kinds, *forms, draw=draw),
        attributes=(attribute.axis("axis"), attribute.flag("reverse")),
        reads=reads.along,
        error=error,
        spread=spread,
    )


_ORDER = "the order of {} is free within the bound; sixteen-bit floats in f32, rounded at the end"

ROWS = (
    row(
        "cumsum",
        np.add,
        "iufc",
        edges=f"integers wrap; {_ORDER.format('adding')}",
        bound=2,
        draw=samples.ordinary,
        error=sums.RUNNING_SUM,
        spread=many.SUMS,
    ),
    row(
        "cumprod",
        np.multiply,
        "iufc",
        edges=f"integers wrap; {_ORDER.format('multiplying')}",
        bound=2,
        draw=samples.ordinary,
        error=sums.RUNNING_FACTORS,
        spread=many.RUNNING_FACTORS,
    ),
    row(
        "cummax",
        np.maximum,
        "biuf",
        edges="NaN from the first NaN on; bool: or",
        error=errors.EXTREME,
    ),
    row(
        "cummin",
        np.minimum,
        "biuf",
        edges="NaN from the first NaN on; bool: and",
        error=errors.EXTREME,
    ),
)
