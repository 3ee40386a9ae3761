"""Rows that read nothing: constant and iota."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, ValueProblem
from tenfold.graph.node import Graph
from tenfold.graph.op import Element, Op, Sample, Types
from tenfold.ops import attributes as attribute
from tenfold.ops import elements, rules, samples
from tenfold.ops.batching import rules as batching
from tenfold.ops.reference import Array
from tenfold.ops.rows.casts import converted
from tenfold.types import DTYPES, SHORT, TensorType, parse_type


def _infer_constant(types: Types, given: Mapping[str, Any], scopes: tuple[Graph, ...]) -> Types:
    made = parse_type(given["type"])
    data = given["data"]
    if len(data) != made.nbytes:
        raise ShapeError(
            f"constant: {made} takes {made.nbytes} bytes, {len(data)} given",
            fix="give the array's bytes in C order: array.tobytes()",
        )
    if made.kind == "b" and data.strip(b"\0\1"):
        raise ValueProblem("constant: a byte of a bool is 0 or 1", fix="cast the array to bool")
    return (made,)


def _constant(data: bytes, type: str) -> Array:
    made = parse_type(type)
    return np.frombuffer(data, made.dtype).reshape(made.shape)


def _constant_samples(random: samples.Random) -> list[Sample]:
    return [
        Sample(
            (),
            {
                "data": samples.anything(random, dtype, shape).tobytes(),
                "type": repr(TensorType(dtype, shape)),
            },
        )
        for dtype in SHORT
        for shape in samples.SHAPES
    ]


def _infer_iota(types: Types, given: Mapping[str, Any], scopes: tuple[Graph, ...]) -> Types:
    made = TensorType(DTYPES[given["dtype"]], given["shape"])
    rules.require("iota", "iuf", made)
    rules.has_axes("iota", made, (given["axis"],))
    return (made,)


def _iota(dtype: str, shape: tuple[int, ...], axis: int) -> Array:
    if 0 in shape:  # nothing is counted, however long the axis
        return np.empty(shape, DTYPES[dtype])
    along = converted(np.arange(shape[axis]), DTYPES[dtype])
    return np.broadcast_to(along.reshape(-1, *[1] * (len(shape) - axis - 1)), shape)


def _iota_samples(random: samples.Random) -> list[Sample]:
    return [
        Sample((), {"dtype": SHORT[dtype], "shape": shape, "axis": axis})
        for dtype in rules.taken("iuf")
        for shape, axis in (((5,), 0), ((2, 3), 1), ((2, 3), 0), ((0, 2), 0), ((0, 2), 1))
    ] + [Sample((), {"dtype": "i8", "shape": (300,), "axis": 0})]


ROWS = (
    Op(
        name="constant",
        arity=0,
        infer=_infer_constant,
        reference=_constant,
        lowering=Element(elements.constant),
        edges="none: raw bits, so that -0.0 and NaN's payload are kept",
        bound=0,
        batch=batching.shifted("constant", batching.unchanged),
        samples=_constant_samples,
        attributes=(attribute.raw("data"), attribute.type("type")),
        literal=True,
    ),
    Op(
        name="iota",
        arity=0,
        infer=_infer_iota,
        reference=_iota,
        lowering=Element(elements.iota),
        edges="counts as i64 and is cast: a small integer dtype wraps",
        bound=0,
        batch=batching.shifted("iota", batching.unchanged),
        samples=_iota_samples,
        attributes=(attribute.dtype("dtype"), attribute.extents("shape"), attribute.axis("axis")),
    ),
)
