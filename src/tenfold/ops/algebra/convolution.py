"""Rows of convolutions: conv, and conv_valid, which lacks padding and spaces in the input.

Which way one goes stands in `ways`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tenfold.errors import ShapeError
from tenfold.graph.build import Builder
from tenfold.graph.node import Graph
from tenfold.graph.op import CONVOLUTION, Composition, Op, Routine, Sample, TypeRule, Types
from tenfold.ops import attributes as attribute
from tenfold.ops import elements, rules, samples
from tenfold.ops.agreement.named import many, sums
from tenfold.ops.algebra import ways
from tenfold.ops.algebra.windows import counts
from tenfold.ops.batching import rules as batching
from tenfold.ops.expression import Expression
from tenfold.ops.reference import Array, widened
from tenfold.ops.rows.shapes import padded as padded_with
from tenfold.types import DTYPES, Shape, TensorType

Given = Mapping[str, Any]


def _grown(extent: int, dilation: int) -> int:
    return extent + max(extent - 1, 0) * (dilation - 1)


_SPATIAL = ("strides", "low", "high", "x_dilation", "dilation")


def _infer_conv(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    x, w = types
    rules.require("conv", "iufc", x, w)
    dtype = rules.alike("conv", x, w)
    groups = given["groups"]
    if x.rank < 2 or x.rank != w.rank:
        raise ShapeError(
            f"conv: {x} and {w} do not have the same number of spatial axes",
            fix="give (batch, channels, *space) and (out channels, channels, *space)",
        )
    strides, low, high, x_dilation, dilation = (given[key] for key in _SPATIAL)
    for key in _SPATIAL:
        if len(given[key]) != x.rank - 2:
            raise ShapeError(
                f"conv: {x} has {x.rank - 2} spatial axes and {key} has {len(given[key])} entries",
                fix=f"give {key} one entry for each spatial axis",
            )
    if groups < 1 or w.shape[0] % groups or x.shape[1] != w.shape[1] * groups:
        raise ShapeError(
            f"conv: {x} and {w} do not meet in {groups} groups ({x.shape[1]} channels against "
            f"{groups} times {w.shape[1]}, {w.shape[0]} out channels)",
            fix="channels must be groups times those of the kernel, and groups divide its first "
            "axis",
        )
    if any(d < 1 for d in x_dilation):
        raise ShapeError(
            f"conv: x_dilation {x_dilation} has an entry below 1", fix="1 is the least"
        )
    space = tuple(
        _grown(n, d) + a + b for n, d, a, b in zip(x.shape[2:], x_dilation, low, high, strict=True)
    )
    if any(n < 0 for n in space):
        raise ShapeError(f"conv: the padding leaves {space} of {x}", fix="crop less")
    out = counts("conv", space, w.shape[2:], strides, dilation)
    return (TensorType(dtype, (x.shape[0], w.shape[0], *out)),)


def _conv(
    x: Array,
    w: Array,
    strides: Shape,
    low: Shape,
    high: Shape,
    x_dilation: Shape,
    dilation: Shape,
    groups: int,
) -> Array:
    edge = (0, 0)
    inner = (*edge, *(d - 1 for d in x_dilation))
    padded = padded_with(x, np.zeros((), x.dtype), (*edge, *low), (*edge, *high), inner)
    return _conv_valid(padded, w, strides, dilation, groups)


def _conv_valid(x: Array, w: Array, strides: Shape, dilation: Shape, groups: int) -> Array:
    """A sum over the places of the kernel, each a contraction of channels."""
    out = counts("conv", x.shape[2:], w.shape[2:], strides, dilation)
    n, o, c = x.shape[0], w.shape[0], w.shape[1]
    made = np.zeros((n, groups, o // groups, *out), x.dtype)
    kernel = w.reshape(groups, o // groups, c, *w.shape[2:])
    for at in np.ndindex(*w.shape[2:]):
        places = tuple(
            slice(k * d, k * d + m * s, s)
            for k, d, m, s in zip(at, dilation, out, strides, strict=True)
        )
        seen = x[(slice(None), slice(None), *places)].reshape(n, groups, c, *out)
        made += np.einsum("ngc...,goc->ngo...", seen, kernel[(..., *at)])
    return made.reshape(n, o, *out)


def _infer_valid(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    rank = types[0].rank - 2
    none, one = (0,) * rank, (1,) * rank
    return _infer_conv(types, {**given, "low": none, "high": none, "x_dilation": one}, scopes)


def _batch(
    op: str,
    infer: TypeRule,
    builder: Builder,
    inputs: Sequence[int],
    batched: Sequence[bool],
    size: int,
    **given: Any,
) -> batching.Values:
    x, w = (Expression(builder, v) for v in inputs)
    groups = given["groups"]

    def conv(x: Expression, w: Expression, groups: int) -> Expression:
        return x.op(op, w, **{**given, "groups": groups})

    if not batched[1]:  # more images
        _, n, *image = x.shape
        made = conv(x.reshape(size * n, *image), w, groups)
        return (made.reshape(size, n, *made.shape[1:]).value,)
    if not size:
        bare = TensorType(w.dtype, w.shape[1:])
        each = TensorType(x.dtype, x.shape[1:]) if batched[0] else x.type
        (type,) = infer((each, bare), given, ())
        return (x.number(0).broadcast(0, *type.shape).value,)
    # More out channels; where both are batched, also more groups, which come first.
    _, o, *kernel = w.shape
    if batched[0]:
        _, n, c, *space = x.shape
        order = (1, 0, *range(2, len(x.shape)))
        x = x.op("transpose", axes=order).reshape(n, size * c, *space)
        made = conv(x, w.reshape(size * o, *kernel), groups * size)
        split = made.reshape(n, size, o, *made.shape[2:])
        return (batching.move(builder, split.value, 1, 0),)
    share = o // groups
    inside = w.reshape(size, groups, share, *kernel)
    inside = Expression(builder, batching.move(builder, inside.value, 0, 1))
    made = conv(x, inside.reshape(groups * size * share, *kernel), groups)
    n, _, *space = made.shape
    split = made.reshape(n, groups, size, share, *space)
    front = Expression(builder, batching.move(builder, split.value, 2, 0))
    return (front.reshape(size, n, o, *space).value,)


def _conv_given(rank: int, groups: int = 1, **given: Shape) -> Given:
    full = {
        "strides": (1,) * rank,
        "low": (0,) * rank,
        "high": (0,) * rank,
        "x_dilation": (1,) * rank,
        "dilation": (1,) * rank,
    }
    return {**full, **given, "groups": groups}


_CONVS: tuple[tuple[tuple[Shape, Shape], Given], ...] = (
    (((2, 3, 7), (4, 3, 3)), _conv_given(1)),
    (((1, 4, 6, 5), (6, 2, 3, 2)), _conv_given(2, 2, strides=(2, 1), low=(1, 0), high=(1, 2))),
    (((2, 1, 8), (2, 1, 3)), _conv_given(1, dilation=(2,), x_dilation=(3,), low=(-1,))),
    (((2, 3), (4, 3)), _conv_given(0)),
    (((1, 2, 3, 3, 4), (2, 1, 2, 2, 1)), _conv_given(3, 2)),
    (((0, 2, 4), (3, 2, 2)), _conv_given(1)),
    (((1, 2, 2), (3, 2, 4)), _conv_given(1)),
)


_VALID = ("strides", "dilation", "groups")


def _valid_samples(random: samples.Random) -> list[Sample]:
    plain = [
        (shapes, {key: given[key] for key in _VALID})
        for shapes, given in _CONVS
        if not any((*given["low"], *given["high"]))
    ]
    return [
        Sample(tuple(samples.ordinary(random, DTYPES[n], s) for s in shapes), given)
        for n in ways.DTYPES
        for shapes, given in plain
        if ways.has_routine(TensorType(DTYPES[n], shapes[0]))
    ]


def _conv_samples(random: samples.Random) -> list[Sample]:
    return [
        Sample(tuple(samples.ordinary(random, dtype, s) for s in shapes), given)
        for dtype in (DTYPES[n] for n in ("i16", "u32", "f16", "f32", "f64", "c64"))
        for shapes, given in _CONVS
    ]


ROWS = (
    Op(
        name="conv",
        arity=2,
        infer=_infer_conv,
        reference=widened(_conv),
        lowering=Composition(ways.compose),
        edges=(
            "the kernel is not turned round; outside of x there is 0; integers wrap; sixteen-bit "
            "floats add up in f32; the order of adding is free within the bound"
        ),
        bound=2,  # as of a contraction
        batch=batching.unless_none(partial(_batch, "conv", _infer_conv), "conv"),
        samples=_conv_samples,
        error=sums.CONVOLUTION,
        spread=many.CONTRACTION,
        attributes=(
            attribute.extents("strides"),
            attribute.integers("low"),
            attribute.integers("high"),
            attribute.extents("x_dilation"),
            attribute.extents("dilation"),
            attribute.count("groups"),
        ),
    ),
    Op(
        name="conv_valid",
        arity=2,
        infer=_infer_valid,
        reference=widened(_conv_valid),
        lowering=Routine(CONVOLUTION, elements.conv, ways.inline, words=ways.words),
        edges="as of conv",
        bound=2,
        batch=batching.unless_none(partial(_batch, "conv_valid", _infer_valid), "conv_valid"),
        samples=_valid_samples,
        reads=elements.conv,
        error=sums.CONVOLUTION,
        spread=many.CONTRACTION,
        attributes=(
            attribute.extents("strides"),
            attribute.extents("dilation"),
            attribute.count("groups"),
        ),
    ),
)
