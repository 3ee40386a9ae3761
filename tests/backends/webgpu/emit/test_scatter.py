"""Scatters on a WebGPU adapter: the bits of one that takes updates in their order."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold.kernel import Builder, Kernel
from tenfold.kernel.ir.kernel import SEQUENTIAL
from tenfold.types import DTYPES
from tests.backends.webgpu.beside import adapter, beside, values
from tests.backends.webgpu.here import needs_adapter

pytestmark = [needs_adapter, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


def scattered(dtype: str, update: str, count: int, places: int, width: int) -> Kernel:
    b = Builder()
    at, x = b.buffer("i64", count), b.buffer(dtype, count * width)
    out = b.buffer(dtype, places * width, "both")
    i, j = b.axis(count, SEQUENTIAL), b.axis(width)
    row = b.as_index(b.load(at, i), places)
    b.store(out, row * width + j, b.load(x, i * width + j), update=update)
    return b.finish()


def schedule_of(dtype: str, update: str, count: int, places: int, width: int) -> str:
    drawn = np.random.default_rng(1).integers(0, places, count)
    begun = values((places, width), dtype, 5)
    kernel = scattered(dtype, update, count, places, width)
    return beside(kernel, drawn, values((count, width), dtype), begun).shader.schedule


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("update", ["", "add", "mul", "max", "min"])
def test_every_dtype(dtype: str, update: str) -> None:
    if update and (dtype == "bool" or (dtype[0] == "c" and update in ("max", "min"))):
        pytest.skip("no such update")
    for shape in ((20, 6, 5), (100, 20, 5), (700, 50, 1), (64, 1, 3)):
        schedule = schedule_of(dtype, update, *shape)
        if shape[0] == 100 and update == "":
            assert schedule == "updates leave their numbers, the last ones store"
        if shape[0] == 100 and dtype in ("i32", "u32") and update in ("add", "max", "min"):
            assert schedule == "an atomic operation for each update"


def test_more_updates_than_loops_have_rounds() -> None:
    drawn = np.random.default_rng(1).integers(0, 50, 150_000)
    x = np.random.default_rng(2).standard_normal((150_000, 2)).astype(np.float32)
    kernel = scattered("f32", "add", 150_000, 50, 2)
    done = beside(kernel, drawn, x, np.zeros((50, 2), np.float32))
    if adapter().target.loop_limit:
        assert "turn" in done.shader.text


def test_an_axis_in_order_that_carries_state() -> None:
    """Each position reads what the one before has written."""
    b = Builder()
    x, out = b.buffer("f32", 100 * 7), b.buffer("f32", 101 * 7, "both")
    i, j = b.axis(100, SEQUENTIAL), b.axis(7)
    before = b.load(out, i * 7 + j)
    b.store(out, (i + 1) * 7 + j, b.op("add", "f32", before, b.load(x, i * 7 + j)))
    drawn = np.random.default_rng(2).standard_normal((100, 7)).astype(np.float32)
    beside(b.finish(), drawn, np.zeros((101, 7), np.float32))
