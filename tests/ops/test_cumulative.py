"""Cumulative ops against a loop, and how large their graphs are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.graph import Builder
from tenfold.kernel import Fold
from tenfold.ops import TABLE
from tenfold.types import DTYPES, KIND, TensorType
from tests.kernel.folding import down

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


def within(x: Any) -> Any:
    """Each element of a block as the sum of all up to it."""
    places = np.arange(len(x))
    return np.stack([down(np.where(places <= n, x, x.dtype.type(0)), Fold()) for n in places])


def before(x: Any) -> Any:
    """The sum of what comes before each element."""
    if len(x) <= 32:
        return np.append(x.dtype.type(0), within(x)[:-1])
    blocks = [within(x[n : n + 16]) for n in range(0, len(x), 16)]
    above = before(np.array([b[-1] for b in blocks]))
    return np.concatenate(
        [a + np.append(x.dtype.type(0), b[:-1]) for a, b in zip(above, blocks, strict=True)]
    )


@pytest.mark.parametrize("extent", [2, 16, 17, 32, 33, 100, 511, 513, 5000])
def test_running_sums_have_the_bits_of_their_tiles(extent: int) -> None:
    x = np.random.default_rng(extent).standard_normal(extent).astype(np.float32)
    want = within(x)
    if extent > 32:
        blocks = [within(x[n : n + 16]) for n in range(0, extent, 16)]
        above = before(np.array([b[-1] for b in blocks]))
        want = np.concatenate([a + b for a, b in zip(above, blocks, strict=True)])
    whole = tn.jit(np.cumsum, verify="off")(x)
    np.testing.assert_array_equal(whole, want)
    down_columns = tn.jit(lambda x: np.cumsum(x, 0), verify="off")(np.stack([x, x], 1))
    np.testing.assert_array_equal(down_columns[:, 1], want)
