"""Threads with loops of their own on a simulated GPU: reductions over several axes, in one another,
and axes whose positions come one after the other. Each gives the CPU's bits."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold.kernel import Builder
from tenfold.kernel.ir.kernel import SEQUENTIAL
from tests.backends.cuda.beside import beside, values
from tests.backends.cuda.test_rows import reduced


@pytest.mark.parametrize("kind", ["sum", "max", "argmax"])
@pytest.mark.parametrize("axes", [(0, 2), (1, 2), (0, 1), (0, 1, 2), (2,), (1,), (0,)])
@pytest.mark.parametrize("shape", [(3, 5, 40), (20, 1, 17), (2, 70, 3)])
def test_reductions_over_some_axes(
    kind: str, axes: tuple[int, ...], shape: tuple[int, int, int]
) -> None:
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    reduced(kind, "f32", shape, axes, x)


def test_a_long_axis_inside_another() -> None:
    x = np.random.default_rng(5).standard_normal((1, 2, 8200)).astype(np.float32)
    reduced("sum", "f32", x.shape, (0, 2), x)


@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "bf16"])
@pytest.mark.parametrize("update", ["", "add", "max"])
def test_scatters_in_the_order_of_indices(dtype: str, update: str) -> None:
    b = Builder()
    count, places, width = 90, 20, 5
    at, x = b.buffer("i64", count), b.buffer(dtype, count * width)
    out = b.buffer(dtype, places * width, "both")
    i, j = b.axis(count, SEQUENTIAL), b.axis(width)
    row = b.as_index(b.load(at, i), places)
    b.store(out, row * width + j, b.load(x, i * width + j), update=update)
    drawn = np.random.default_rng(1).integers(0, places, count)
    begun = np.zeros((places, width), values(1, dtype).dtype)
    beside(b.finish(), drawn, values((count, width), dtype), begun)
