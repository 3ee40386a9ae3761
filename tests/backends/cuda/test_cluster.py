"""Rows that clusters of two blocks keep, on a simulated GPU: the CPU's bits."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold.backends.cuda.compile import to_ptx
from tenfold.backends.cuda.emit import rows
from tenfold.backends.cuda.emit.cluster import cluster_layout
from tenfold.backends.cuda.target import named
from tenfold.backends.llvm.target import llvmlite_version
from tenfold.kernel import Builder, Kernel
from tests.backends.cpu.running import Program
from tests.backends.cpu.test_kernels import layernorm, softmax
from tests.backends.cuda.beside import GPU, beside, launched, values
from tests.backends.cuda.test_compile import assembled

LENGTHS = [8193, 9000, 16384, 16388, 32768, 32772, 50001, 65536]


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_ENOUGH", 1)


@pytest.mark.parametrize("length", LENGTHS)
def test_softmax(length: int) -> None:
    x = np.random.default_rng(length).standard_normal((2, length)).astype(np.float32)
    done = beside(softmax(2, length, 1), x, np.zeros_like(x))
    assert done.launches == [(4, 512 if length <= 32768 else 1024)]
    assert '"nvvm.cluster_dim"="2,1,1"' in done.text


def test_layernorm() -> None:
    shape = (3, 20000)
    x = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    kernel, literals = layernorm(*shape)
    params = [literals[n] for n in range(len(literals))]
    g, out, spread = values(shape[1]), np.zeros_like(x), np.zeros(shape[0], np.float32)
    done = beside(kernel, x, g, out, spread, params=params)
    assert done.launches == [(6, 512)]


def farthest(count: int, length: int, dtype: str) -> Kernel:
    """Where the greatest of a row lies, the greatest, and what is farther from it than the sum."""
    b = Builder()
    x, out = b.buffer(dtype, count * length), b.buffer("bool", count * length, "write")
    places, tops = b.buffer("i64", count, "write"), b.buffer(dtype, count, "write")
    i, j = b.axis(count), b.axis(length)
    first, k = b.reduced(length, 1)
    second, m = b.reduced(length, 2)
    top = b.reduce("argmax", (first,), b.load(x, i * length + k), b.index(k))
    total = b.reduce("sum", (second,), b.load(x, i * length + m))
    b.store(places, i, b.state(top, 1))
    b.store(tops, i, top)
    away = b.op("sub", dtype, b.load(x, i * length + j), top)
    b.store(out, i * length + j, b.op("gt", "bool", away, total))
    return b.finish()


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "i8", "i64"])
def test_two_results_of_every_width(dtype: str) -> None:
    x = values((2, 9001), dtype)
    out = np.zeros(x.shape, bool)
    done = beside(farthest(2, 9001, dtype), x, out, np.zeros(2, np.int64), np.zeros(2, x.dtype))
    assert done.launches == [(4, 512)]


@pytest.mark.parametrize("dtype", ["f32", "f64", "i64"])
def test_places_alone(dtype: str) -> None:
    """Where the greatest of a row lies, in a row that is read again."""
    b = Builder()
    x, out = b.buffer(dtype, 2 * 9001), b.buffer("bool", 2 * 9001, "write")
    i, j = b.axis(2), b.axis(9001)
    over, k = b.reduced(9001, 1)
    place = b.state(b.reduce("argmax", (over,), b.load(x, i * 9001 + k), b.index(k)), 1)
    b.store(out, i * 9001 + j, b.op("gt", "bool", b.index(j), place))
    given = values((2, 9001), dtype)
    given[1, ::3] = given[1].max()
    done = beside(b.finish(), given, np.zeros(given.shape, bool))
    assert done.launches == [(4, 512)]


def test_what_is_read_once_is_no_clusters() -> None:
    b = Builder()
    x, out = b.buffer("f32", 20000), b.buffer("f32", 2, "write")
    i = b.axis(2)
    over, k = b.reduced(10000, 1)
    b.store(out, i, b.reduce("sum", (over,), b.load(x, i * 10000 + k)))
    done = beside(b.finish(), values((2, 10000)), np.zeros(2, np.float32))
    assert "cluster" not in done.text


def test_older_chips_have_none() -> None:
    kernel = Program(softmax(2, 9000, 1)).kernel
    x = np.random.default_rng(1).standard_normal((2, 9000)).astype(np.float32)
    older = named("sm_80", llvmlite_version())
    assert "cluster" not in launched(kernel, [x, np.zeros_like(x)], target=older).text


@pytest.mark.parametrize("length", [16384, 32768])
def test_they_need_no_local_memory(length: int) -> None:
    x = np.random.default_rng(length).standard_normal((1, length)).astype(np.float32)
    done = launched(Program(softmax(1, length, 1)).kernel, [x, np.zeros_like(x)])
    said = assembled(to_ptx(done.text, GPU), GPU)
    assert "0 bytes stack frame, 0 bytes spill stores" in said


def test_layouts_of_clusters() -> None:
    for extent in (8193, 16384, 16385, 32768, 32769, 65536):
        layout = cluster_layout(extent, False)
        assert layout is not None
        assert layout.reach >= extent
    assert cluster_layout(65537, False) is None
