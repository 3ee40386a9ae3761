"""Code for AVX2 and for AVX-512 of one kernel gives the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.backends.cpu.link.compile import prepare
from tenfold.backends.llvm.target import named
from tenfold.errors import Unsupported
from tenfold.kernel import Builder, Kernel
from tenfold.kernel.ir.kernel import COMPARISONS, ELEMENTWISE
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.types import DTYPES
from tests.backends.cpu.running import HOST, LEVELS, mapped, random, reduction, together
from tests.backends.cpu.test_elementwise import samples
from tests.backends.cpu.test_random import Draw

Array = np.ndarray[Any, Any]

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.skipif("x86-64-v4" not in LEVELS, reason="this machine runs no AVX-512"),
]


def alike(*pairs: tuple[Kernel, list[Array]]) -> None:
    """What both levels write, bit for bit, but that any NaN is as good as another."""
    kernels = [kernel for kernel, _ in pairs]
    levels = [together(kernels, named(level, HOST)) for level in ("x86-64-v3", "x86-64-v4")]
    for (kernel, arrays), *programs in zip(pairs, *levels, strict=True):
        results = [[a.copy() for a in arrays] for _ in programs]
        for program, own in zip(programs, results, strict=True):
            program(*own)
        for a, b in zip(*results, strict=True):
            a, b = (_floats(x) for x in (a, b))
            equal = a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}")
            if a.dtype.kind not in "iub":
                equal |= np.isnan(a) & np.isnan(b)
            assert equal.all(), f"{kernel}\n{a[~equal][:8]}\n{b[~equal][:8]}"


def _floats(x: Array) -> Array:
    return x.view(f"f{x.itemsize // 2}") if x.dtype.kind == "c" else x


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d[0] != "c"])
def test_elementwise_instructions(dtype: str) -> None:
    pairs = []
    for op, arity in ELEMENTWISE.items():
        if op == "complex":
            continue
        arrays = samples(dtype, arity)
        result = "bool" if op in COMPARISONS else "u8" if op == "popcount" else dtype
        kernel = mapped(op, dtype, result, arity, arrays[0].shape)
        try:
            prepare(SizedKernel(kernel), HOST)
        except Unsupported:
            continue
        pairs.append((kernel, [*arrays, np.zeros(arrays[0].shape, DTYPES[result])]))
    assert len(pairs) >= 20
    alike(*pairs)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "c64", "i32", "bool"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(3, 5000), (700, 33), (90, 300), (70, 1003)])
def test_reductions(shape: tuple[int, int], axis: int, dtype: str) -> None:
    kinds = ("sum", "prod") if dtype == "c64" else ("sum", "prod", "max", "argmin")
    x = random(shape, dtype) if dtype != "c64" else random(shape) + 1j * random(shape, seed=1)
    x = x.astype(DTYPES[dtype])
    size = shape[1 - axis]
    alike(
        *(
            (
                reduction(kind, dtype, shape, (axis,)),
                [x, np.zeros(size, x.dtype), np.zeros(size, np.int64)],
            )
            for kind in kinds
        )
    )


@pytest.mark.parametrize("dtype", ["f32", "f64", "c64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_sums_of_products(axis: int, dtype: str) -> None:
    """Products that go unrounded into sums do so at both levels."""
    shape = (130, 1003)
    b = Builder()
    size = shape[0] * shape[1]
    x, y, out = (
        b.buffer(dtype, size),
        b.buffer(dtype, size),
        b.buffer(dtype, shape[1 - axis], "write"),
    )
    number, inner = b.reduced(shape[axis], 1)
    outer = b.axis(shape[1 - axis])
    at = inner * shape[1] + outer if axis == 0 else outer * shape[1] + inner
    product = b.op("mul", dtype, b.load(x, at), b.load(y, at))
    both = b.op("sub", dtype, b.op("mul", dtype, product, b.load(x, at)), b.load(y, at))
    b.store(out, outer, b.reduce("sum", [number], both))
    arrays = [random(shape, "f64", n).astype(DTYPES[dtype]) for n in (1, 2)]
    alike((b.finish(), [*arrays, np.zeros(shape[1 - axis], DTYPES[dtype])]))


@pytest.mark.parametrize("start", range(1000, 1060, 20))
def test_random_kernels(start: int) -> None:
    scale = np.float32(1.1)  # so that sums are rounded
    pairs = []
    for seed in range(start, start + 20):
        kernel, arrays = Draw(seed).kernel()
        given = [(a * scale).astype(a.dtype) if a.dtype.kind == "f" else a for a in arrays]
        pairs.append((kernel, given))
    alike(*pairs)
