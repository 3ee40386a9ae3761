"""The row of windows, which moves elements.

Reductions over windows are reductions of `windows`: pad, windows and reduce fuse into one loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.errors import ShapeError
from tenfold.graph.build import Builder
from tenfold.graph.node import Graph
from tenfold.graph.op import Element, Op, Types
from tenfold.ops import attributes as attribute
from tenfold.ops import elements, rules, samples
from tenfold.ops.batching import rules as batching
from tenfold.ops.reference import Array, direct
from tenfold.types import Shape, TensorType

Given = Mapping[str, Any]


def counts(name: str, shape: Shape, window: Shape, strides: Shape, dilation: Shape) -> Shape:
    """How many windows fit along each axis."""
    for key, values in (("window", window), ("strides", strides), ("dilation", dilation)):
        if any(v < 1 for v in values):
            raise ShapeError(f"{name}: {key} {values} has an entry below 1", fix="1 is the least")
    made = []
    for n, w, s, d in zip(shape, window, strides, dilation, strict=True):
        span = (w - 1) * d + 1
        made.append((n - span) // s + 1 if n >= span else 0)
    return tuple(made)


# Windows.


def _infer_windows(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    (x,) = types
    window, strides, dilation = given["window"], given["strides"], given["dilation"]
    rules.ranks("windows", x, window=window, strides=strides, dilation=dilation)
    return (TensorType(x.dtype, (*counts("windows", x.shape, window, strides, dilation), *window)),)


def _windows(x: Array, window: Shape, strides: Shape, dilation: Shape) -> Array:
    shape = counts("windows", x.shape, window, strides, dilation)
    if 0 in shape:
        return np.empty((*shape, *window), x.dtype)
    steps = (
        *(n * s for n, s in zip(x.strides, strides, strict=True)),
        *(n * d for n, d in zip(x.strides, dilation, strict=True)),
    )
    return np.lib.stride_tricks.as_strided(x, (*shape, *window), steps, writeable=False)


def _batch_windows(
    builder: Builder,
    inputs: Sequence[int],
    batched: Sequence[bool],
    size: int,
    window: Shape,
    strides: Shape,
    dilation: Shape,
) -> batching.Values:
    (x,) = inputs
    given = {"window": (1, *window), "strides": (1, *strides), "dilation": (1, *dilation)}
    made = batching.make(builder, "windows", x, **given)
    shape = batching.shape_of(builder, made)
    at = len(window) + 1  # the window of one element along the leading axis
    return (batching.reshape(builder, made, (*shape[:at], *shape[at + 1 :])),)


ROWS = (
    Op(
        name="windows",
        arity=1,
        infer=_infer_windows,
        reference=direct(_windows),
        lowering=Element(elements.windows),
        edges="a window that does not fit is left out; an axis too short for one has none",
        bound=0,
        batch=batching.unless_none(_batch_windows, "windows"),
        samples=samples.listed(
            rules.ANY,
            (((),), {"window": (), "strides": (), "dilation": ()}),
            (((6,),), {"window": (3,), "strides": (1,), "dilation": (1,)}),
            (((7,),), {"window": (2,), "strides": (2,), "dilation": (3,)}),
            (((4, 5),), {"window": (2, 1), "strides": (1, 2), "dilation": (2, 1)}),
            (((2,),), {"window": (3,), "strides": (1,), "dilation": (1,)}),
            (((0, 3),), {"window": (1, 2), "strides": (1, 1), "dilation": (1, 1)}),
        ),
        attributes=tuple(attribute.extents(n) for n in ("window", "strides", "dilation")),
    ),
)
