"""Rows of searching: searchsorted, top_k and top_few, of few among many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tenfold.errors import ShapeError
from tenfold.graph.build import Builder
from tenfold.graph.node import Graph
from tenfold.graph.op import Composition, Lowering, Op, Routine, Sample, Types
from tenfold.ops import attributes as attribute
from tenfold.ops import reads, rules, samples
from tenfold.ops.agreement.named import many
from tenfold.ops.batching import rules as batching
from tenfold.ops.expression import Expression, select
from tenfold.ops.reference import F32, NARROW, Array
from tenfold.types import I64, KIND, TensorType

Given = Mapping[str, Any]

# Searchsorted.


def _infer_search(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    line, values = types
    rules.require("searchsorted", "biuf", line, values)
    rules.alike("searchsorted", line, values)
    if not line.rank or line.rank != values.rank or line.shape[:-1] != values.shape[:-1]:
        raise ShapeError(
            f"searchsorted: {line} and {values} do not have the same leading axes",
            fix="give a sorted line and a line of values, or as many of both",
        )
    return (TensorType(I64, values.shape),)


def _search(line: Array, values: Array, side: Any) -> Array:
    made = np.empty(values.shape, np.int64)
    if not made.size:
        return made
    if line.dtype in NARROW:
        line, values = line.astype(F32), values.astype(F32)
    for at in np.ndindex(*line.shape[:-1]):
        made[at] = np.searchsorted(line[at], values[at], side)
    return made


def _before(a: Expression, b: Expression) -> Expression:
    """Whether a sorts before b, NaN last."""
    less = a < b
    return less | (b.op("isnan") & ~a.op("isnan")) if KIND[a.dtype] == "f" else less


def _compose_search(builder: Builder, inputs: Sequence[int], given: Given) -> tuple[int, ...]:
    """Binary search, a step for each bit of the position, every value at once."""
    line, values = (Expression(builder, v) for v in inputs)
    shape, n = values.shape, line.shape[-1]
    lines = prod(shape[:-1])
    flat, wanted = line.reshape(lines * n), values.reshape(lines, shape[-1])
    starts = batching.make(builder, "iota", dtype="i64", shape=(lines, 1), axis=0)
    base = Expression(builder, starts) * n - 1
    zero = Expression(builder, batching.constant(builder, I64, 0))
    found = zero.broadcast(*wanted.shape)
    if n and 0 not in wanted.shape:
        for bit in reversed(range(n.bit_length())):
            further = found + (1 << bit)
            seen = flat.op("gather", base + further, axes=(0,), at=0, mode="clip")
            if given["side"] == "left":
                goes = _before(seen, wanted)
            else:
                goes = ~_before(wanted, seen)
            found = select((further <= n) & goes, further, found)
    return (found.reshape(*shape).value,)


def _search_samples(random: samples.Random) -> list[Sample]:
    made: list[Sample] = []
    for dtype in rules.taken("biuf"):
        for line, values in (
            ((5,), (4,)),
            ((1,), (3,)),
            ((0,), (2,)),
            ((2, 8), (2, 3)),
            ((3,), (0,)),
        ):
            sorted_ = samples.anything(random, dtype, line)
            wide = sorted_.astype(F32) if dtype in NARROW else sorted_
            sorted_ = np.take_along_axis(sorted_, np.argsort(wide, -1), -1)
            wanted = samples.anything(random, dtype, values)
            pair = (sorted_, wanted)
            made.extend(Sample(pair, {"side": side}) for side in ("left", "right"))
    return made


# Top k.

FEW, MANY = 32, 8  # the greatest that are kept in order, and how many elements there are for each


def _infer_top(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    (x,) = types
    rules.require("top_k", "biuf", x)
    if not x.rank or given["k"] > x.shape[-1]:
        raise ShapeError(
            f"top_k: k={given['k']} of {x}", fix="the last axis must have at least k elements"
        )
    shape = (*x.shape[:-1], given["k"])
    return TensorType(x.dtype, shape), TensorType(I64, shape)


def _top(x: Array, k: int) -> tuple[Array, Array]:
    n = x.shape[-1]
    if not k or not x.size:
        return x[..., :k], np.empty((*x.shape[:-1], k), np.int64)
    wide = x.astype(F32) if x.dtype in NARROW else x
    # Sorted from the far end, so that of equals the first comes first when turned round.
    order = n - 1 - np.argsort(wide[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    places = np.ascontiguousarray(order[..., :k], np.int64)
    return np.take_along_axis(x, places, -1), places


def _compose_top(builder: Builder, inputs: Sequence[int], given: Given) -> tuple[int, ...]:
    x = Expression(builder, inputs[0])
    last, k = len(x.shape) - 1, given["k"]
    n = x.shape[last]
    if 0 < k <= FEW and MANY * k <= n and 0 not in x.shape:
        return builder.node("top_few", (x.value,), {"k": k})
    order = x.op("reverse", axes=(last,)).op("argsort", axis=last).op("reverse", axes=(last,))
    places = order.part(last, 0, k)
    places = places.number(n - 1) - places
    if 0 in places.shape:
        return x.part(last, 0, k).value, places.value
    lines = prod(x.shape[:-1])
    starts = batching.make(builder, "iota", dtype="i64", shape=(lines, 1), axis=0)
    at = Expression(builder, starts) * n + places.reshape(lines, k)
    taken = x.reshape(lines * n).op("gather", at, axes=(0,), at=0, mode="clip")
    return taken.reshape(*places.shape).value, places.value


def _top_row(name: str, lowering: Lowering, edges: str, *forms: Any) -> Op:
    return Op(
        name=name,
        arity=1,
        infer=_infer_top,
        reference=_top,
        lowering=lowering,
        edges=edges,
        bound=0,
        batch=batching.shifted(name, batching.unchanged),
        samples=samples.listed("biuf", *forms),
        attributes=(attribute.count("k"),),
        reads=reads.lines,
        spread=many.GREATEST,
    )


ROWS = (
    Op(
        name="searchsorted",
        arity=2,
        infer=_infer_search,
        reference=_search,
        lowering=Composition(_compose_search),
        edges="NaN counts as the greatest; what is not sorted gives positions without a meaning",
        bound=0,
        batch=batching.shifted("searchsorted", batching.unchanged),
        samples=_search_samples,
        attributes=(attribute.choice("side", "left", "right"),),
        reads=reads.lines,
    ),
    _top_row(
        "top_k",
        Composition(_compose_top),
        "the greatest first; of equals the first comes first; NaN counts as the greatest",
        (((5,),), {"k": 3}),
        (((3, 4),), {"k": 1}),
        (((2, 3),), {"k": 3}),
        (((2, 3),), {"k": 0}),
        (((0, 3),), {"k": 2}),
    ),
    _top_row(
        "top_few",
        Routine("top_few"),
        "as top_k; what is made of it where few of many are asked for",
        (((40,),), {"k": 3}),
        (((3, 17),), {"k": 1}),
        (((0, 30),), {"k": 2}),
    ),
)
