"""Rows that only move elements: reshape, transpose, broadcast, pad, slice, reverse, concatenate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tenfold.errors import ShapeError
from tenfold.graph.build import Builder
from tenfold.graph.node import Graph
from tenfold.graph.op import Attribute, Element, Lowering, Op, Ranges, TypeRule, Types
from tenfold.ops import attributes as attribute
from tenfold.ops import elements, ranges, rules, samples
from tenfold.ops.batching import rules as batching
from tenfold.ops.reference import Array, direct
from tenfold.types import BOOL, Shape, TensorType

Given = Mapping[str, Any]


def row(
    name: str,
    infer: TypeRule,
    reference: Any,
    lowering: Lowering,
    batch: batching.Batch,
    *forms: tuple[Sequence[Shape], Given],
    attributes: Sequence[Attribute],
    arity: int | None = 1,
    edges: str = "none",
    permutes: bool = False,
    cuts: bool = False,
    joins: bool = False,
) -> Op:
    """A row of an op that takes every dtype and moves elements, bit for bit."""
    return Op(
        name=name,
        arity=arity,
        infer=infer,
        reference=direct(reference),
        lowering=lowering,
        edges=edges,
        bound=0,
        batch=batch,
        samples=samples.listed(rules.ANY, *forms),
        attributes=tuple(attributes),
        permutes=permutes,
        cuts=cuts,
        joins=joins,
    )


def _of(type: TensorType, shape: Shape) -> Types:
    return (TensorType(type.dtype, shape),)


# Reshape.


def _infer_reshape(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    (type,) = types
    if prod(given["shape"]) != type.size:
        raise ShapeError(
            f"reshape: {type} has {type.size} elements, shape {given['shape']} has "
            f"{prod(given['shape'])}",
            fix="give a shape with as many elements",
        )
    return _of(type, given["shape"])


def _batch_reshape(given: Given, size: int, type: TensorType) -> Given:
    return {"shape": (size, *given["shape"])}


# Transpose.


def _infer_transpose(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    (type,) = types
    rules.ranks("transpose", type, axes=given["axes"])
    rules.has_axes("transpose", type, given["axes"])
    return _of(type, tuple([type.shape[a] for a in given["axes"]]))


def _batch_transpose(given: Given, size: int, type: TensorType) -> Given:
    return {"axes": (0, *(a + 1 for a in given["axes"]))}


# Broadcast.


def _infer_broadcast(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    (type,) = types
    shape = given["shape"]
    behind = shape[len(shape) - type.rank :]
    if type.rank > len(shape) or any(
        n not in (1, m) for n, m in zip(type.shape, behind, strict=True)
    ):
        raise ShapeError(
            f"broadcast: {type} does not broadcast to {shape}",
            fix="its axes, from the last, must be 1 or those of the shape",
        )
    return _of(type, shape)


def _batch_broadcast(
    builder: Builder, inputs: Sequence[int], batched: Sequence[bool], size: int, shape: Shape
) -> batching.Values:
    (x,) = inputs
    deep = batching.deepened(builder, x, batched[0], len(shape))
    return builder.node("broadcast", [deep], {"shape": (size, *shape)})


# Pad.


def _padded(type: TensorType, given: Given) -> Shape:
    return tuple(
        low + high + extent + max(extent - 1, 0) * interior
        for extent, low, high, interior in zip(
            type.shape, given["low"], given["high"], given["interior"], strict=True
        )
    )


def _infer_pad(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    type, value = types
    rules.ranks("pad", type, low=given["low"], high=given["high"], interior=given["interior"])
    rules.alike("pad", type, value)
    rules.scalar("pad", "the value", value, rules.ANY)
    shape = _padded(type, given)
    for axis, extent in enumerate(shape):
        if extent < 0:
            raise ShapeError(
                f"pad: axis {axis} of {type} would have the extent {extent}",
                fix="crop less: make low or high of that axis greater",
            )
    return _of(type, shape)


def padded(x: Array, value: Array, low: Shape, high: Shape, interior: Shape) -> Array:
    spaced = tuple(n + max(n - 1, 0) * k for n, k in zip(x.shape, interior, strict=True))
    wide = np.full(spaced, value, x.dtype)
    wide[tuple(slice(None, None, k + 1) for k in interior)] = x
    grown = [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)]
    shape = tuple(n + a + b for n, (a, b) in zip(spaced, grown, strict=True))
    made = np.full(shape, value, x.dtype)
    made[tuple(slice(a, a + n) for n, (a, _) in zip(spaced, grown, strict=True))] = wide
    return made[
        tuple(slice(max(-a, 0), n - max(-b, 0)) for n, a, b in zip(shape, low, high, strict=True))
    ]


def _batch_pad(
    builder: Builder,
    inputs: Sequence[int],
    batched: Sequence[bool],
    size: int,
    low: Shape,
    high: Shape,
    interior: Shape,
) -> batching.Values:
    x, value = inputs
    given = {"low": (0, *low), "high": (0, *high), "interior": (0, *interior)}
    if not batched[0]:
        x = batching.spread(builder, x, size)
    if not batched[1]:
        return builder.node("pad", [x, value], given)
    # A value for each element of the batch: pad with anything, then choose by a padded mask.
    type = builder.types[x]
    zero = batching.constant(builder, type.dtype, 0)
    inside = batching.make(
        builder, "broadcast", batching.constant(builder, BOOL, True), shape=type.shape
    )
    outside = batching.constant(builder, BOOL, False)
    mask = batching.make(builder, "pad", inside, outside, **given)
    padded = batching.make(builder, "pad", x, zero, **given)
    value = batching.deepened(builder, value, True, type.rank - 1)
    return builder.node("select", [mask, padded, value])


# Slice.


def _infer_slice(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    (type,) = types
    starts, stops, steps = given["starts"], given["stops"], given["steps"]
    if not len(type.shape) == len(starts) == len(stops) == len(steps):
        rules.ranks("slice", type, starts=starts, stops=stops, steps=steps)
    shape = []
    for axis, (n, start, stop, step) in enumerate(
        zip(type.shape, starts, stops, steps, strict=True)
    ):
        if not 0 <= start <= stop <= n or step < 1:
            raise ShapeError(
                f"slice: {start}:{stop}:{step} of axis {axis} of {type}",
                fix=f"keep 0 <= start <= stop <= {n} and the step at least 1",
            )
        shape.append(-((start - stop) // step))
    return _of(type, tuple(shape))


def _slice(x: Array, starts: Shape, stops: Shape, steps: Shape) -> Array:
    return np.asarray(x[tuple(map(slice, starts, stops, steps))])


def _batch_slice(given: Given, size: int, type: TensorType) -> Given:
    return {
        "starts": (0, *given["starts"]),
        "stops": (size, *given["stops"]),
        "steps": (1, *given["steps"]),
    }


# Reverse.


def _infer_reverse(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    rules.has_axes("reverse", types[0], given["axes"])
    return types


# Concatenate.


def _infer_concatenate(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    if not types:
        raise ShapeError("concatenate: no arrays", fix="give at least one")
    first, axis = types[0], given["axis"]
    rules.has_axes("concatenate", first, (axis,))
    rules.alike("concatenate", *types)
    for type in types[1:]:
        if type.rank != first.rank or any(
            a != axis and n != first.shape[a] for a, n in enumerate(type.shape)
        ):
            raise ShapeError(
                f"concatenate: {first} and {type} do not fit along axis {axis}",
                fix="all other axes must have equal extents",
            )
    total = sum(t.shape[axis] for t in types)
    return _of(first, (*first.shape[:axis], total, *first.shape[axis + 1 :]))


def _concatenate(*arrays: Array, axis: int) -> Array:
    return np.concatenate(arrays, axis)


ROWS = (
    row(
        "reshape",
        _infer_reshape,
        lambda x, shape: np.reshape(x, shape),
        Element(elements.reshape),
        batching.shifted("reshape", _batch_reshape),
        (((),), {"shape": (1, 1)}),
        (((2, 6),), {"shape": (3, 4)}),
        (((0, 3),), {"shape": (2, 0)}),
        (((1,),), {"shape": ()}),
        attributes=[attribute.extents("shape")],
        edges="elements keep their row-major order",
    ),
    row(
        "transpose",
        _infer_transpose,
        lambda x, axes: np.transpose(x, axes),
        Element(elements.transpose),
        batching.shifted("transpose", _batch_transpose),
        (((),), {"axes": ()}),
        (((2, 3),), {"axes": (1, 0)}),
        (((2, 0, 3),), {"axes": (2, 0, 1)}),
        (((2, 3, 4),), {"axes": (2, 0, 1)}),
        attributes=[attribute.ordered_axes("axes")],
        permutes=True,
    ),
    row(
        "broadcast",
        _infer_broadcast,
        lambda x, shape: np.broadcast_to(x, shape),
        Element(elements.broadcast),
        batching.unless_none(_batch_broadcast, "broadcast"),
        (((),), {"shape": (2, 3)}),
        (((),), {"shape": ()}),
        (((3,),), {"shape": (2, 3)}),
        (((2, 1),), {"shape": (4, 2, 0)}),
        attributes=[attribute.extents("shape")],
    ),
    row(
        "pad",
        _infer_pad,
        padded,
        Element(elements.pad),
        batching.unless_none(_batch_pad, "pad"),
        (((), ()), {"low": (), "high": (), "interior": ()}),
        (((3,), ()), {"low": (1,), "high": (2,), "interior": (0,)}),
        (((3,), ()), {"low": (-1,), "high": (1,), "interior": (2,)}),
        (((5,), ()), {"low": (-2,), "high": (-2,), "interior": (0,)}),
        (((4,), ()), {"low": (3,), "high": (-5,), "interior": (0,)}),
        (((0,), ()), {"low": (1,), "high": (1,), "interior": (3,)}),
        (((2, 3), ()), {"low": (0, -1), "high": (1, 2), "interior": (1, 0)}),
        arity=2,
        attributes=[
            attribute.integers("low"),
            attribute.integers("high"),
            attribute.extents("interior"),
        ],
        edges="negative low or high crops, after the interior is spaced out",
    ),
    row(
        "slice",
        _infer_slice,
        _slice,
        Element(elements.slice),
        batching.shifted("slice", _batch_slice),
        (((),), {"starts": (), "stops": (), "steps": ()}),
        (((7,),), {"starts": (1,), "stops": (7,), "steps": (3,)}),
        (((4,),), {"starts": (2,), "stops": (2,), "steps": (1,)}),
        (((2, 5),), {"starts": (0, 1), "stops": (2, 4), "steps": (1, 2)}),
        (((0, 5),), {"starts": (0, 0), "stops": (0, 5), "steps": (1, 1)}),
        attributes=[
            attribute.integers("starts"),
            attribute.integers("stops"),
            attribute.integers("steps"),
        ],
        edges="out of range raises ShapeError; an empty range is empty",
        cuts=True,
    ),
    row(
        "reverse",
        _infer_reverse,
        lambda x, axes: np.flip(x, axes),
        Element(elements.reverse),
        batching.shifted("reverse", batching.axes_up),
        (((),), {"axes": ()}),
        (((3,),), {"axes": (0,)}),
        (((2, 3, 2),), {"axes": (0, 2)}),
        (((0, 3),), {"axes": (0, 1)}),
        attributes=[attribute.axes("axes")],
    ),
    row(
        "concatenate",
        _infer_concatenate,
        _concatenate,
        Ranges(ranges.concatenate),
        batching.shifted("concatenate", batching.axis_up),
        (((3,), (2,)), {"axis": 0}),
        (((2, 3), (2, 0), (2, 2)), {"axis": 1}),
        (((0, 3), (1, 3)), {"axis": 0}),
        (((4,),), {"axis": 0}),
        arity=None,
        attributes=[attribute.axis("axis")],
        joins=True,
    ),
)
