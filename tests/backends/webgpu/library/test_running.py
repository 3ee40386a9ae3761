"""Running folds on a WebGPU adapter: the CPU's bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND as CPU
from tenfold.backends.webgpu.library.routine import RUNNING
from tenfold.backends.webgpu.library.running import running_routine
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.graph.build import Builder
from tenfold.ops import TABLE
from tenfold.types import DTYPES, TensorType
from tests.backends.webgpu.beside import Array, adapter, equal, first, run_shader, values
from tests.backends.webgpu.here import needs_adapter

pytestmark = [needs_adapter, pytest.mark.filterwarnings("ignore::RuntimeWarning")]
SHAPES = [((5,), 0), ((3, 40), 1), ((2, 16), 1), ((3, 300), 1), ((2, 5000), 1), ((20_000,), 0),
          ((8192,), 0), ((7, 5), 0), ((3, 50, 4), 1), ((1, 1), 0), ((30, 256), 1), ((9, 1000), 1),
          ((5, 1024), 1), ((3, 2000), 1), ((2, 4096), 1)]  # fmt: skip


def drawn(name: str, dtype: str, shape: tuple[int, ...]) -> Array:
    """Sums and products stay numbers."""
    if name in ("cummax", "cummin") or dtype[0] in "iu":
        return values(shape, dtype)
    x = np.random.default_rng(0).standard_normal(shape)
    return (x if name == "cumsum" else 1 + x / 9).astype(DTYPES[dtype])


def folded(
    name: str, x: Array, axis: int, reverse: bool, target: WebGPUTarget | None = None
) -> None:
    given = {"axis": axis, "reverse": reverse}
    type = TensorType(x.dtype, x.shape)
    b = Builder(TABLE)
    p = b.parameter(type)
    (want,) = CPU.compile(b.finish(b.node(name, [p], given), [p]))([x.copy()])
    routine = running_routine(name, type, given, target or adapter().target)
    assert routine is not None
    got = np.zeros_like(x)
    run_shader(routine.shader, routine.bound((0, 0)), [x, got])
    assert equal(got, np.asarray(want)), first(got, np.asarray(want))


@pytest.mark.parametrize("dtype", ["f32", "i64"])
@pytest.mark.parametrize("name", RUNNING)
def test_lines_and_columns(name: str, dtype: str) -> None:
    for shape, axis in SHAPES:
        folded(name, drawn(name, dtype, shape), axis, False)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d[0] != "c"])
def test_every_dtype(dtype: str) -> None:
    for name in RUNNING:
        if dtype != "bool" or name in ("cummax", "cummin"):
            for shape, axis in (((3, 40), 1), ((7, 5), 0)):
                folded(name, drawn(name, dtype, shape), axis, True)


@pytest.mark.parametrize("dtype", ["f32", "f16", "i64"])
def test_blocks_that_no_workgroup_shares(dtype: str) -> None:
    """Where an adapter has less memory for it, members read and write their own."""
    target = replace(adapter().target, workgroup_bytes=16384)
    for shape in ((3, 40), (9, 1000), (20_000,)):
        x = drawn("cumsum", dtype, shape)
        for reverse in (False, True):
            folded("cumsum", x, len(shape) - 1, reverse, target)
    type, given = TensorType(DTYPES["f32"], (3, 40)), {"axis": 1, "reverse": False}
    texts = [running_routine("cumsum", type, given, one) for one in (target, adapter().target)]
    assert ["blocks[" in one.shader.text for one in texts if one] == [False, True]


def test_in_a_program() -> None:
    x = np.random.default_rng(1).standard_normal((40, 70)).astype(np.float32)

    def f(x: Array) -> tuple[Array, ...]:
        return np.cumsum(x, axis=1), np.cumsum(x * 2, axis=0) + 1, np.maximum.accumulate(x, axis=1)

    g = tn.jit(f, backend="webgpu")
    for got, want in zip(g(x), f(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    certificate = g.certificate(x)
    assert certificate is not None
    assert certificate.complete
