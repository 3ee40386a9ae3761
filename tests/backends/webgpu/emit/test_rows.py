"""Reductions on a WebGPU adapter: rows by teams, side by side, in parts, and by one invocation
each. Each gives the CPU's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.types import DTYPES
from tests.backends.cpu.running import reduction
from tests.backends.cpu.test_kernels import layernorm, softmax
from tests.backends.webgpu.beside import Launched, beside, values
from tests.backends.webgpu.here import needs_adapter

pytestmark = [needs_adapter, pytest.mark.filterwarnings("ignore::RuntimeWarning")]
FLOATS = ("f16", "bf16", "f32", "f64")
ORDERED = ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", *FLOATS)
KINDS = ("max", "min", "argmax", "argmin")


def reduced(
    kind: str, dtype: str, shape: tuple[int, ...], axes: tuple[int, ...], x: Any = None
) -> Launched:
    kept = tuple(n for k, n in enumerate(shape) if k not in axes)
    x = values(shape, dtype) if x is None else x
    out, places = np.zeros(kept, x.dtype), np.zeros(kept, np.int64)
    return beside(reduction(kind, dtype, shape, axes), x, out, places)


def ordinary(shape: tuple[int, ...], seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("length", [0, 1, 7, 8, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1000, 4095,
                                    4096, 4100, 8191, 8192, 8193, 16400, 40_000])  # fmt: skip
def test_sums_along_rows(length: int) -> None:
    reduced("sum", "f32", (5, length), (1,), ordinary((5, length), length))


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 16, 31, 32, 33, 64, 257, 1030, 5000])
def test_sums_of_columns(rows: int) -> None:
    for columns in (1, 31, 32, 33, 100):
        reduced("sum", "f32", (rows, columns), (0,), ordinary((rows, columns), rows))


@pytest.mark.parametrize("length", [40_000, 100_003, 1_000_003])
def test_whole_arrays(length: int) -> None:
    for kind in ("sum", "max", "argmax"):
        x = ordinary((length,), length)
        done = reduced(kind, "f32", (length,), (0,), x)
        assert len(done.shader.dispatches) == 2
    truths = np.random.default_rng(0).random(length) > 1 / length
    for kind in ("any", "all"):
        reduced(kind, "bool", (length,), (0,), truths)


FEW = [((3, 70_000), 1), ((300_000, 5), 0), ((70_000, 40), 0)]


@pytest.mark.parametrize(("shape", "axis"), FEW)
def test_few_long_rows(shape: tuple[int, int], axis: int) -> None:
    for kind in ("sum", "argmin"):
        done = reduced(kind, "f32", shape, (axis,), ordinary(shape))
        assert len(done.shader.dispatches) == 2


@pytest.mark.parametrize("dtype", ORDERED)
def test_extremes_of_every_dtype(dtype: str) -> None:
    for kind in KINDS:
        for shape, axis in (((3, 33), 1), ((3, 700), 1), ((700, 3), 0)):
            reduced(kind, dtype, shape, (axis,))


@pytest.mark.parametrize("dtype", ["c64", "c128", *ORDERED[1:]])
def test_sums_and_products_of_every_dtype(dtype: str) -> None:
    x = np.random.default_rng(4).standard_normal((3, 300)) * 2
    with np.errstate(all="ignore"):
        x = (
            x.astype(np.int64).astype(DTYPES[dtype])
            if dtype[0] in "iu"
            else x.astype(DTYPES[dtype])
        )
    reduced("sum", dtype, (3, 300), (1,), x)
    if dtype[0] != "c":  # which each backend multiplies in an order of its own
        reduced("prod", dtype, (3, 300), (1,), x)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_of_equals_and_of_nans(kind: str) -> None:
    x = np.random.default_rng(6).integers(0, 3, (40, 300)).astype(np.float32)
    x[::2][np.random.default_rng(7).random((20, 300)) < 0.02] = np.nan
    reduced(kind, "f32", x.shape, (1,), x)
    reduced(kind, "f32", x.shape, (0,), x)


@pytest.mark.parametrize("axes", [(0, 2), (1, 2), (0, 1), (0, 1, 2), (2,), (1,), (0,)])
@pytest.mark.parametrize("shape", [(3, 5, 40), (20, 1, 17), (2, 70, 3)])
def test_over_some_axes(axes: tuple[int, ...], shape: tuple[int, int, int]) -> None:
    for kind in ("sum", "max", "argmax"):
        reduced(kind, "f32", shape, axes, ordinary(shape))


@pytest.mark.parametrize("shape", [(300, 5, 300), (3, 2, 9000), (600, 3, 40), (70, 33, 70)])
def test_over_several_long_axes(shape: tuple[int, int, int]) -> None:
    """More positions than the loops of one invocation may have rounds."""
    for kind in ("sum", "max", "argmax"):
        reduced(kind, "f32", shape, (0, 2), ordinary(shape))


@pytest.mark.parametrize("shape", [(3, 5), (4, 64), (33, 64), (7, 65), (9, 256), (3, 1003),
                                   (2, 1024), (2, 8192), (3, 8196), (1, 40_961)])  # fmt: skip
def test_softmax(shape: tuple[int, int]) -> None:
    x = ordinary(shape)
    beside(softmax(*shape, 1), x, np.zeros_like(x))
    beside(softmax(*shape, 0), x, np.zeros_like(x))


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax_of_every_float(dtype: str) -> None:
    x = ordinary((6, 100)).astype(DTYPES[dtype])
    beside(softmax(6, 100, 1, dtype), x, np.zeros_like(x))


@pytest.mark.parametrize("shape", [(3, 40), (5, 1000), (2, 4096)])
def test_layernorm(shape: tuple[int, int]) -> None:
    kernel, literals = layernorm(*shape)
    x = ordinary(shape)
    arrays = [x, *(np.ones(b.size, np.float32) for b in kernel.buffers[1:])]
    given = [literals[n] for n in range(len(kernel.params))]
    beside(kernel, *arrays, params=given)
