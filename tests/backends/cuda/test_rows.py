"""Reductions along rows on a simulated GPU: rows that a team keeps, long ones in chunks, whole
arrays in parts. Each gives the CPU's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cuda.emit import phases
from tenfold.backends.cuda.emit.layout import layout_of
from tenfold.kernel import Builder, Kernel
from tenfold.kernel.ir.kernel import Fold
from tests.backends.cpu.running import reduction
from tests.backends.cpu.test_kernels import layernorm, softmax
from tests.backends.cuda.beside import CPU, Launched, beside, equal, values
from tests.backends.cuda.simulated import SimulatedGpu, simulated

CHUNK = Fold().stretch
FLOATS = ("f16", "bf16", "f32", "f64")
ORDERED = ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", *FLOATS)


def reduced(kind: str, dtype: str, shape: tuple[int, ...], axes: tuple[int, ...],
            x: Any = None, **options: Any) -> Launched:  # fmt: skip
    kept = tuple(n for k, n in enumerate(shape) if k not in axes)
    x = values(shape, dtype) if x is None else x
    out, places = np.zeros(kept, x.dtype), np.zeros(kept, np.int64)
    return beside(reduction(kind, dtype, shape, axes), x, out, places, **options)


LENGTHS = [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 128, 130, 255, 256, 257, 512, 1000, 1024, 1025]


@pytest.mark.parametrize("length", LENGTHS)
def test_sums_around_rounds_and_runs(length: int) -> None:
    rng = np.random.default_rng(length)
    x = rng.standard_normal((5, length)).astype(np.float32)
    reduced("sum", "f32", (5, length), (1,), x)


@pytest.mark.parametrize("length", [2048, 4095, 4096, 4100, 8191, 8192, 8193, 16384, 16400, 40000])
def test_sums_of_long_rows(length: int) -> None:
    """Up to a chunk stays in registers; longer ones are gone through."""
    x = np.random.default_rng(length).standard_normal((2, length)).astype(np.float32)
    reduced("sum", "f32", (2, length), (1,), x)


def test_layouts_reach_as_far_as_they_say() -> None:
    for packed in (False, True):
        for extent in range(1, CHUNK + 1):
            layout = layout_of(extent, packed and extent % 4 == 0)
            assert layout is not None
            assert layout.reach >= extent
        assert layout_of(CHUNK + 1, packed) is None


@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.parametrize("kind", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("length", [33, 700])
def test_extremes_of_every_dtype(kind: str, dtype: str, length: int) -> None:
    reduced(kind, dtype, (6, length), (1,))


@pytest.mark.parametrize("dtype", [*ORDERED[1:], "c64", "c128"])
@pytest.mark.parametrize("length", [40, 520])
def test_sums_of_every_dtype(dtype: str, length: int) -> None:
    reduced("sum", dtype, (3, length), (1,))


@pytest.mark.parametrize("dtype", ORDERED[1:])
def test_products_of_every_dtype(dtype: str) -> None:
    reduced("prod", dtype, (3, 70), (1,))


@pytest.mark.parametrize("kind", ["any", "all"])
@pytest.mark.parametrize("length", [1, 33, 300, 20000])
def test_any_and_all(kind: str, length: int) -> None:
    x = np.random.default_rng(1).random((4, length)) < (0.02 if kind == "any" else 0.98)
    reduced(kind, "bool", (4, length), (1,), x)


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_the_first_of_equals_and_of_nans(kind: str) -> None:
    x = np.zeros((4, 3000), np.float32)
    x[1, 777] = x[1, 2500] = np.nan
    x[2, ::2], x[3, 5:] = -0.0, np.inf
    reduced(kind, "f32", x.shape, (1,), x)


def places(kind: str, dtype: str, shape: tuple[int, int], axis: int, also: bool = False) -> Kernel:
    """Where an extreme lies, and with `also` what it is, by a reduction of its own."""
    b = Builder()
    rows, length = shape if axis else shape[::-1]
    x, out = b.buffer(dtype, rows * length), b.buffer("i64", rows, "write")
    tops = b.buffer(dtype, rows, "write")
    i = b.axis(rows)
    over, k = b.reduced(length, 1)
    value = b.load(x, i * length + k if axis else k * rows + i)
    b.store(out, i, b.state(b.reduce(kind, (over,), value, b.index(k)), 1))
    if also:
        b.store(tops, i, b.reduce(kind.removeprefix("arg"), (over,), value))
    return b.finish()


@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.parametrize("kind", ["argmax", "argmin"])
@pytest.mark.parametrize("shape", [(6, 13), (6, 33), (4, 64), (3, 700), (2, 1024), (2, 4096)])
def test_places_alone(kind: str, dtype: str, shape: tuple[int, int]) -> None:
    """They are looked for once the extreme is known, which is joined once for all that ask."""
    out, tops = np.zeros(shape[0], np.int64), np.zeros(shape[0], values(1, dtype).dtype)
    for seed in range(2):
        beside(places(kind, dtype, shape, 1), values(shape, dtype, seed), out, tops)
    # Of zeros of both signs, which one the greatest is depends on the order of joining.
    x = values(shape, dtype) if dtype[0] in "iu" else np.arange(np.prod(shape)).reshape(shape) % 5
    beside(places(kind, dtype, shape, 1, also=True), x.astype(tops.dtype), out, tops)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_places_among_equals_and_nans(kind: str, axis: int) -> None:
    for length in (5, 40, 300, 1000):
        x = np.zeros((5, length), np.float32)
        x[1, length // 2] = x[1, length - 1] = np.nan
        x[2, ::2], x[3, 3:], x[4] = -0.0, np.inf, -np.inf
        x = np.ascontiguousarray(np.repeat(x, 7, 0) if axis else np.repeat(x, 7, 0).T)
        out, tops = np.zeros(35, np.int64), np.zeros(35, np.float32)
        beside(places(kind, "f32", x.shape, axis), x, out, tops)


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((2, 3 * CHUNK + 5), 1), ((300, 35), 0), ((5000, 3), 0)]
)
def test_places_where_no_element_is_farther_than_none(
    kind: str, shape: tuple[int, int], axis: int
) -> None:
    """All infinite, or the ends of integers: the first of them."""
    sign = 1 if kind == "argmin" else -1
    ends = np.iinfo(np.int32)
    for dtype, end in (("f32", sign * np.inf), ("i32", ends.max if sign > 0 else ends.min)):
        x = np.full(shape, end, values(1, dtype).dtype)
        out, tops = np.zeros(shape[1 - axis], np.int64), np.zeros(shape[1 - axis], x.dtype)
        beside(places(kind, dtype, shape, axis), x, out, tops)
        reduced(kind, dtype, shape, (axis,), x)


@pytest.mark.parametrize("shape", [(3, 5), (4, 64), (7, 65), (9, 256), (3, 1003), (2, 1024)])
def test_softmax(shape: tuple[int, int]) -> None:
    """One kernel for all: three stages over a row that is read once."""
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    done = beside(softmax(*shape, 1), x, np.zeros_like(x))
    assert len(done.launches) == 1
    special = values(shape, "f32", 4)
    beside(softmax(*shape, 1), special, np.zeros_like(x))


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax_of_every_float(dtype: str) -> None:
    x = np.random.default_rng(3).standard_normal((5, 260)).astype(values(1, dtype).dtype)
    beside(softmax(5, 260, 1, dtype), x, np.zeros_like(x))


@pytest.mark.parametrize("length", [CHUNK, CHUNK + 4, 5 * CHUNK + 1])
def test_softmax_of_long_rows(length: int) -> None:
    """In parts: a function for each stage, whose blocks leave partial results."""
    x = np.random.default_rng(5).standard_normal((2, length)).astype(np.float32)
    done = beside(softmax(2, length, 1), x, np.zeros_like(x))
    assert len(done.launches) == (1 if length <= CHUNK else 3)


def test_long_rows_of_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough rows keep a chip busy: each is one block's, from the first stage to the last."""
    monkeypatch.setattr(phases, "BUSY", 1)
    rows, length = 2, 8 * CHUNK + 4
    x = np.random.default_rng(6).standard_normal((rows, length)).astype(np.float32)
    done = beside(softmax(rows, length, 1), x, np.zeros_like(x))
    assert done.launches == [(rows, 256)]


@pytest.mark.parametrize("shape", [(3, 7), (5, 64), (4, 1003), (2, 4096)])
def test_layernorm(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    kernel, literals = layernorm(*shape)
    params = [literals[n] for n in range(len(literals))]
    g, out, spread = values(shape[1]), np.zeros_like(x), np.zeros(shape[0], np.float32)
    beside(kernel, x, g, out, spread, params=params)


@pytest.mark.parametrize("kind", ["sum", "max", "argmax"])
@pytest.mark.parametrize("length", [1, 100, CHUNK, 3 * CHUNK + 17, 9 * CHUNK])
def test_whole_arrays(kind: str, length: int) -> None:
    x = np.random.default_rng(8).standard_normal(length).astype(np.float32)
    reduced(kind, "f32", (length,), (0,), x)


@pytest.mark.parametrize("odd", [0, 1])
def test_odd_places(odd: int) -> None:
    x = np.random.default_rng(9).standard_normal((4, 1024)).astype(np.float32)
    even = beside(softmax(4, 1024, 1), x, np.zeros_like(x))
    assert "load <4 x float>" in even.text
    done = beside(softmax(4, 1024, 1), x, np.zeros_like(x), odd=frozenset({odd}))
    assert "load <4 x float>" not in done.text


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 31, 33])
def test_rows_that_do_not_fill_a_block(rows: int) -> None:
    reduced("sum", "f32", (rows, 20), (1,), values((rows, 20), "f32", rows))


def spread_rows(rows: int, columns: int, length: int) -> Kernel:
    """What each row of one array comes to, beside all elements of another's."""
    b = Builder()
    x, y = b.buffer("f32", rows * length), b.buffer("f32", rows * columns)
    out = b.buffer("f32", rows * columns, "write")
    i, j = b.axis(rows), b.axis(columns)
    over, k = b.reduced(length, 1)
    total = b.reduce("sum", (over,), b.load(x, i * length + k))
    b.store(out, i * columns + j, b.op("mul", "f32", b.load(y, i * columns + j), total))
    return b.finish()


@pytest.mark.parametrize("length", [20, 700, 3 * CHUNK])
def test_results_spread_over_other_axes(length: int) -> None:
    x = np.random.default_rng(2).standard_normal((5, length)).astype(np.float32)
    y = np.random.default_rng(3).standard_normal((5, 77)).astype(np.float32)
    beside(spread_rows(5, 77, length), x, y, np.zeros_like(y))


@pytest.mark.parametrize("strict", [False, True])
def test_dots(strict: bool) -> None:
    """A product that goes into a sum is fused with it, but in strict mode."""
    b = Builder()
    x, y, out = b.buffer("f32", 5 * 300), b.buffer("f32", 300), b.buffer("f32", 5, "write")
    i = b.axis(5)
    over, k = b.reduced(300, 1)
    product = b.op("mul", "f32", b.load(x, i * 300 + k), b.load(y, k))
    b.store(out, i, b.reduce("sum", (over,), product))
    rng = np.random.default_rng(4)
    xs, ys = (rng.standard_normal(s).astype(np.float32) for s in ((5, 300), 300))
    beside(b.finish(), xs, ys, np.zeros(5, np.float32), strict=strict)


def test_counts_of_blocks_begin_anew() -> None:
    """Arrays summed by parts again and again, with a scatter in the same memory between them."""

    def program(x: Any, places: Any) -> Any:
        out = np.zeros(100, np.float32)
        np.add.at(out, places, x[:3000])
        return x.sum(), out, (x * out[3]).sum()

    rng = np.random.default_rng(3)
    x = rng.standard_normal(3 * CHUNK + 5).astype(np.float32)
    given = [x, rng.integers(0, 100, 3000)]
    graph, gpu = tn.trace(program, *given), SimulatedGpu()
    made, want = simulated(gpu).compile(graph), CPU.compile(graph)
    for _ in range(3):
        got = made([a.copy() for a in given])
        for one, other in zip(got, want([a.copy() for a in given]), strict=True):
            assert equal(np.asarray(one), np.asarray(other))
    assert sum(blocks == 4 for _, blocks, _ in gpu.launches) == 6
