"""Rows that change the dtype: cast and bitcast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tenfold.errors import TypeMismatch
from tenfold.graph.node import Graph
from tenfold.graph.op import Element, Op, Sample, Types
from tenfold.ops import attributes as attribute
from tenfold.ops import elements, rules, samples
from tenfold.ops.agreement.named import errors, spreads
from tenfold.ops.batching import rules as batching
from tenfold.ops.reference import Array
from tenfold.types import BFLOAT16, DTYPES, KIND, SHORT, DType, TensorType


def converted(x: Array, dtype: DType) -> Array:
    """The array in another dtype, by the rules of `cast`."""
    source, target = KIND[x.dtype], KIND[dtype]
    if source == "c" and target != "c":
        if target == "b":
            return np.asarray(x != 0)
        x, source = np.real(x), "f"
    if source == "f" and target in "iu":
        return _saturated(x.astype(np.float64), dtype)
    if source == "f" and target == "b":
        return np.asarray(x != 0)
    if dtype == BFLOAT16 and source != "c":
        x = x.astype(np.float32)  # every way to bfloat16 goes through float32
    return np.asarray(x).astype(dtype)


def _saturated(x: Array, dtype: DType) -> Array:
    limits = np.iinfo(dtype)
    over, under = x >= float(limits.max), x <= float(limits.min)
    made = np.where(over | under | np.isnan(x), 0.0, x).astype(dtype)
    return np.asarray(
        np.where(over, dtype.type(limits.max), np.where(under, dtype.type(limits.min), made)),
        dtype,
    )


def _cast(x: Array, dtype: str) -> Array:
    return converted(x, DTYPES[dtype])


def _infer_cast(types: Types, given: Mapping[str, Any], scopes: tuple[Graph, ...]) -> Types:
    return (TensorType(DTYPES[given["dtype"]], types[0].shape),)


def _cast_samples(random: samples.Random) -> list[Sample]:
    return [
        Sample((samples.anything(random, source, shape),), {"dtype": target})
        for source in SHORT
        for target in DTYPES
        for shape in ((7,), ())
    ] + [Sample((samples.anything(random, DTYPES["f32"], (2, 0)),), {"dtype": "i32"})]


def _bitcast(x: Array, dtype: str) -> Array:
    return x.view(DTYPES[dtype])


def _infer_bitcast(types: Types, given: Mapping[str, Any], scopes: tuple[Graph, ...]) -> Types:
    (type,) = types
    made = TensorType(DTYPES[given["dtype"]], type.shape)
    rules.require("bitcast", "iuf", type, made)
    if made.dtype.itemsize != type.dtype.itemsize:
        raise TypeMismatch(
            f"bitcast: {type} to {given['dtype']}: elements of {type.dtype.itemsize} bytes are "
            f"not elements of {made.dtype.itemsize}",
            fix="bitcast between dtypes of one size",
        )
    return (made,)


def _bitcast_samples(random: samples.Random) -> list[Sample]:
    return [
        Sample((samples.anything(random, source, shape),), {"dtype": SHORT[target]})
        for source in rules.taken("iuf")
        for target in rules.taken("iuf")
        if source.itemsize == target.itemsize
        for shape in ((), (0,), (2, 3))
    ]


ROWS = (
    Op(
        name="cast",
        arity=1,
        infer=_infer_cast,
        reference=_cast,
        lowering=Element(elements.cast),
        edges=(
            "float to integer truncates and saturates, NaN gives 0; integer to integer wraps; "
            "to bool: whether it is not 0; complex to real keeps the real part; to bf16 by way "
            "of f32"
        ),
        bound=0,
        batch=batching.shifted("cast", batching.unchanged),
        samples=_cast_samples,
        attributes=(attribute.dtype("dtype"),),
        error=errors.CONVERTED,
        spread=spreads.CAST,
        elementwise=True,
    ),
    Op(
        name="bitcast",
        arity=1,
        infer=_infer_bitcast,
        reference=_bitcast,
        lowering=Element(elements.bitcast),
        edges="none: every pattern of bits is kept, NaN's payload too",
        bound=0,
        batch=batching.shifted("bitcast", batching.unchanged),
        samples=_bitcast_samples,
        attributes=(attribute.dtype("dtype"),),
        error=errors.BITS,
        spread=spreads.BITCAST,
        elementwise=True,
    ),
)
