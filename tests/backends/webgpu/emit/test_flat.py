"""Kernels without loops on a WebGPU adapter: the CPU's bits, whatever the shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.kernel import Builder, Kernel
from tenfold.types import DTYPES
from tests.backends.cpu.running import at, mapped, position
from tests.backends.webgpu.beside import beside, launched, values
from tests.backends.webgpu.here import needs_adapter

pytestmark = [needs_adapter, pytest.mark.filterwarnings("ignore::RuntimeWarning")]
FOUR = "four elements an invocation"


def added(dtype: str, *shape: int) -> Kernel:
    return mapped("add" if dtype != "bool" else "xor", dtype, dtype, 2, shape)


def run(dtype: str, *shape: int) -> str:
    out = np.zeros(shape, DTYPES[dtype])
    done = beside(added(dtype, *shape), values(shape, dtype), values(shape, dtype, 1), out)
    return done.shader.schedule


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype: str) -> None:
    schedules = [run(dtype, 300), run(dtype, 301), run(dtype, 5, 12), run(dtype, 3, 20, 7)]
    assert (schedules[0] == FOUR) == (dtype[0] != "c")
    assert schedules[1] != FOUR


@pytest.mark.parametrize("extent", [0, 1, 3, 4, 255, 256, 257, 1023, 1024, 1025, 300_000])
def test_around_workgroups(extent: int) -> None:
    run("f32", extent)
    run("u8", extent)


@pytest.mark.parametrize("dtype", ["f32", "i8", "f64", "bool", "bf16"])
def test_truths_fill_words(dtype: str) -> None:
    """Four bools are one word, whatever they are made of."""
    kernel = mapped("eq", dtype, "bool", 2, (1000,))
    done = beside(kernel, values(1000, dtype), values(1000, dtype, 1), np.zeros(1000, bool))
    assert done.shader.schedule == FOUR
    assert "atomic" not in done.shader.text


def moved(kernel: tuple[int, ...], order: tuple[int, ...], dtype: str) -> Kernel:
    """A copy with axes in another order."""
    b = Builder()
    size = int(np.prod(kernel))
    x, out = b.buffer(dtype, size), b.buffer(dtype, size, "write")
    shape = [kernel[a] for a in order]
    places = position(b, shape)
    back = [places[order.index(a)] for a in range(len(kernel))]
    b.store(out, at(places, shape), b.load(x, at(back, kernel)))
    return b.finish()


@pytest.mark.parametrize("dtype", ["f32", "bf16", "bool", "f64", "c64", "i8"])
@pytest.mark.parametrize(("shape", "order"), [((5, 7), (1, 0)), ((64, 100), (1, 0)),
                                          ((33, 40), (1, 0)), ((4, 30, 50), (2, 0, 1)),
                                          ((40, 3, 36), (0, 2, 1)),
                                          ((2, 70, 5, 66), (0, 3, 2, 1))])  # fmt: skip
def test_axes_in_another_order(dtype: str, shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    x = values(shape, dtype)
    out = np.zeros([shape[a] for a in order], x.dtype)
    done = beside(moved(shape, order, dtype), x, out)
    if shape == (64, 100):
        assert done.shader.schedule == "tiles of 32 by 32 elements"


@pytest.mark.parametrize("dtype", ["f32", "i16"])
def test_backwards_and_with_steps(dtype: str) -> None:
    b = Builder()
    x, out = b.buffer(dtype, 200), b.buffer(dtype, 100, "write")
    i = b.axis(100)
    b.store(out, i, b.load(x, i * -2 + 198))
    beside(b.finish(), values(200, dtype), np.zeros(100, DTYPES[dtype]))


@pytest.mark.parametrize("dtype", ["f32", "u8", "f16"])
def test_gathers_and_conditions(dtype: str) -> None:
    """Rows of a table where a condition holds, zeros elsewhere; wrong rows are faults."""
    b = Builder()
    table, rows = b.buffer(dtype, 50 * 8), b.buffer("i64", 30)
    out = b.buffer(dtype, 30 * 8, "write")
    i, j = b.axis(30), b.axis(8)
    row = b.load(rows, i)
    low, high = b.const("i64", 0), b.const("i64", 50)
    inside = b.both(b.op("ge", "i64", row, low), b.op("lt", "i64", row, high))
    b.check(inside, 3)
    zero = b.select(inside, row, low)
    b.store(out, i * 8 + j, b.load(table, b.as_index(zero, 50) * 8 + j, inside))
    kernel, x = b.finish(), values((50, 8), dtype)
    drawn = np.random.default_rng(0).integers(0, 50, 30)
    assert not beside(kernel, x, drawn, np.zeros((30, 8), x.dtype)).fault
    drawn[7] = 50
    assert beside(kernel, x, drawn, np.zeros((30, 8), x.dtype)).fault == 8


def test_code_for_some_sizes_serves_others() -> None:
    texts = {_text(added("f32", extent)) for extent in (400, 800, 4444)}
    assert len(texts) == 1


def _text(kernel: Kernel) -> str:
    arrays: list[Any] = [np.zeros(b.size, DTYPES[b.dtype]) for b in kernel.buffers]
    return launched(kernel, arrays).shader.text
