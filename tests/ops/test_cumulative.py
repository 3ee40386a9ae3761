"""Cumulative ops against a loop, and how large their graphs are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tenfold.graph import Builder
from tenfold.ops import TABLE
from tenfold.types import DTYPES, KIND, TensorType

STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
}


@pytest.mark.parametrize("name", STEPS)
def test_each_is_folded_with_those_before(name: str) -> None:
    op = TABLE[name]
    for sample in op.samples(np.random.default_rng(21)):
        (x,) = sample.inputs
        axis, reverse = sample.attributes["axis"], sample.attributes["reverse"]
        work = x.astype(np.float32) if x.dtype.itemsize == 2 and KIND[x.dtype] == "f" else x
        lines = np.moveaxis(work, axis, 0).copy()
        order = range(len(lines) - 2, -1, -1) if reverse else range(1, len(lines))
        for i in order:
            lines[i] = STEPS[name](lines[i + 1 if reverse else i - 1], lines[i])
        want = np.moveaxis(lines, 0, axis).astype(x.dtype)
        got = op.reference(x, **sample.attributes)
        assert got.dtype == x.dtype
        loose = 1e-6 if op.bound and x.dtype.kind == "c" else 0
        np.testing.assert_allclose(got.astype(complex), want.astype(complex), loose)


def test_the_graph_grows_with_the_logarithm() -> None:
    def nodes(extent: int) -> int:
        builder = Builder(TABLE)
        x = builder.parameter(TensorType(DTYPES["f32"], (extent,)))
        lowering: Any = TABLE["cumsum"].lowering
        made = lowering.compose(builder, [x], {"axis": 0, "reverse": False})
        return len(builder.finish(made).nodes)

    assert nodes(1 << 20) - nodes(1 << 16) == nodes(1 << 16) - nodes(1 << 12) <= 12
    assert nodes(1 << 20) < 65


@pytest.mark.parametrize("extent", [31, 32, 33, 256, 257, 1001])
def test_running_sums_of_many_stay_close(extent: int) -> None:
    x = np.random.default_rng(22).random((3, extent)).astype(np.float32)
    builder = Builder(TABLE)
    value = builder.parameter(TensorType(x.dtype, x.shape))
    lowering: Any = TABLE["cumsum"].lowering
    graph = builder.finish(lowering.compose(builder, [value], {"axis": 1, "reverse": True}))
    values: list[Any] = [x]
    for node in graph.nodes:
        row = TABLE[node.op]
        values.append(row.reference(*(values[v] for v in node.inputs), **dict(node.attributes)))
    want = np.flip(np.cumsum(np.flip(x.astype(float), 1), 1), 1)
    np.testing.assert_allclose(values[graph.outputs[0]], want, 1e-6)
