"""Rows of cumulative ops: each element is folded with all those before it along an axis.

They compile by pairing neighbours: the running results of the pairs, half as many, are taken
the same way, and give those of the elements between them. That is twice the work of a plain
loop, every part of it parallel, and a graph of a few nodes for each doubling of the extent.
The bound is as of a reduction over the same axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.graph.build import Builder
from tenfold.graph.node import Graph
from tenfold.graph.op import Composition, Op, Types
from tenfold.ops import attributes as attribute
from tenfold.ops import batching, rules, samples
from tenfold.ops.expression import Expression
from tenfold.ops.reference import NARROW, Array, widened
from tenfold.types import F32, KIND

Given = Mapping[str, Any]


def row(
    name: str,
    step: str,
    ufunc: np.ufunc,
    kinds: str,
    *,
    edges: str,
    bound: float = 0,
    draw: samples.Draw = samples.anything,
) -> Op:
    """A row of a running fold by an associative ufunc, which is the op `step`."""

    def infer(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
        rules.require(name, kinds, *types)
        rules.has_axes(name, types[0], (given["axis"],))
        return types

    def reference(x: Array, axis: int, reverse: bool) -> Any:
        if not reverse:
            return ufunc.accumulate(x, axis, dtype=x.dtype)
        return np.flip(ufunc.accumulate(np.flip(x, axis), axis, dtype=x.dtype), axis)

    def compose(builder: Builder, inputs: Sequence[int], given: Given) -> tuple[int, ...]:
        axis, reverse = given["axis"], given["reverse"]
        given_x = x = Expression(builder, inputs[0])
        if x.dtype in NARROW and bound:
            x = x.cast(F32)
        if reverse:
            x = x.op("reverse", axes=(axis,))
        made = running(x, axis, _on_bool(step, x))
        if reverse:
            made = made.op("reverse", axes=(axis,))
        return (made.cast(given_x.dtype).value,)

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
        lowering=Composition(compose),
        edges=edges,
        bound=bound,
        batch=batching.shifted(name, batching.axis_up),
        samples=samples.listed(kinds, *forms, draw=draw),
        attributes=(attribute.axis("axis"), attribute.flag("reverse")),
    )


def _on_bool(step: str, x: Expression) -> str:
    return {"max": "or", "min": "and"}[step] if KIND[x.dtype] == "b" else step


def running(x: Expression, axis: int, step: str) -> Expression:
    """The running fold of x along an axis."""
    levels = []
    while (extent := x.shape[axis]) > 1:
        levels.append(x)
        half = extent // 2 * 2
        x = x.part(axis, 0, half, 2).op(step, x.part(axis, 1, half, 2))
    made = x
    while levels:
        x = levels.pop()
        extent, pairs = x.shape[axis], made.shape[axis]
        firsts = x.part(axis, 0, 1)  # the running results at even places
        if extent > 2:
            before = made.part(axis, 0, (extent - 1) // 2)
            firsts = firsts.op(
                "concatenate", before.op(step, x.part(axis, 2, extent, 2)), axis=axis
            )
        made = _between(firsts.part(axis, 0, pairs), made, axis)
        if extent % 2:
            last = firsts.part(axis, pairs, pairs + 1)
            made = made.op("concatenate", last, axis=axis)
    return made


def _between(evens: Expression, odds: Expression, axis: int) -> Expression:
    """Two arrays of one shape with their elements in turns along an axis."""
    shape = evens.shape
    tall = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    both = evens.reshape(*tall).op("concatenate", odds.reshape(*tall), axis=axis + 1)
    return both.reshape(*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])


_ORDER = "the order of {} is free within the bound; sixteen-bit floats in f32, rounded at the end"

ROWS = (
    row(
        "cumsum",
        "add",
        np.add,
        "iufc",
        edges=f"integers wrap; {_ORDER.format('adding')}",
        bound=2,
        draw=samples.ordinary,
    ),
    row(
        "cumprod",
        "mul",
        np.multiply,
        "iufc",
        edges=f"integers wrap; {_ORDER.format('multiplying')}",
        bound=2,
        draw=samples.ordinary,
    ),
    row("cummax", "max", np.maximum, "biuf", edges="NaN from the first NaN on; bool: or"),
    row("cummin", "min", np.minimum, "biuf", edges="NaN from the first NaN on; bool: and"),
)
