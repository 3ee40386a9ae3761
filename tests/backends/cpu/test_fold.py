"""Long sums: their bits are the fold's on every target, and their errors at most NumPy's."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.llvm.target import LLVMTarget
from tenfold.kernel import Builder, Fold, Kernel
from tenfold.kernel.analyse.reduction import along, elsewhere
from tenfold.kernel.ir.index import Index
from tenfold.types import DTYPES, SHORT
from tests.backends.cpu.running import TARGETS, Program, every_target, random, reduction
from tests.kernel.folding import (
    across_lanes,
    additions,
    additions_across,
    balanced,
    by_lanes,
    depth,
    down,
    halved,
    interpreted,
    leaves,
)

Array = np.ndarray[Any, Any]
FOLD = Fold()
# Around every level: lanes, copies, rounds, runs, pairs and nests of them, chunks, pairs of chunks.
LENGTHS = [1, 3, 15, 16, 17, 40, 63, 64, 65, 128, 130, 200, 255, 256, 257, 300, 320, 511, 512, 513]
LENGTHS += [1000, 1024, 1025, 2047, 2048, 2049, 2304, 4097, 8191, 8192, 8193, 8256, 9000, 16384]
LENGTHS += [16385, 24_576, 24_577, 32_768, 50_000, 180_001]
ROWS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 35, 36, 64, 65, 100, 127, 128, 129, 256]
ROWS += [257, 513, 1030, 2051]


def summed(x: Array, axis: int, target: LLVMTarget) -> Array:
    out = np.full(x.shape[:axis] + x.shape[axis + 1 :], 5, x.dtype)
    places = np.empty(out.shape, np.int64)
    Program(reduction("sum", SHORT[x.dtype], x.shape, (axis,)), target)(x, out, places)
    return out


@pytest.mark.parametrize("extent", [*range(1, 70), 100, 255, 256, 257, 513, 1000, 8200, 24_577])
def test_the_interpreter_adds_in_the_order_of_the_tree(extent: int) -> None:
    x = random((extent,), "f32", extent)
    for tree, fast in ((along(extent, FOLD), across_lanes), (elsewhere(extent, FOLD), down)):
        assert interpreted(x, tree) == fast(x, FOLD)
        assert sorted(leaves(tree)) == list(range(extent))
    assert depth(along(extent, FOLD)) == additions_across(extent, FOLD)
    assert depth(elsewhere(extent, FOLD)) == additions(extent, FOLD)


@pytest.mark.parametrize("parts", [1, 2, 8, 264])
@pytest.mark.parametrize("extent", [8192, 8193, 50_000, 180_001])
def test_partial_sums_of_chunks_join_in_any_grouping_by_position(extent: int, parts: int) -> None:
    """As threads or blocks do: each has stretches of a power of two of chunks."""
    x = random((extent,), "f32", extent)
    chunks = -(-extent // FOLD.stretch)
    share = 1 << max(0, -(-chunks // parts) - 1).bit_length()
    size = FOLD.stretch * share
    partial = [across_lanes(x[n : n + size], FOLD) for n in range(0, extent, size)]
    assert balanced(partial) == across_lanes(x, FOLD)


@every_target
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_a_sum_across_lanes_has_the_bits_of_the_fold(dtype: str, target: LLVMTarget) -> None:
    for length in LENGTHS if dtype == "f32" else LENGTHS[::4]:
        x = random((length,), dtype, length)
        assert summed(x, 0, target) == across_lanes(x, FOLD), length
        rows = random((3, length), dtype, length)
        # Of the shortest rows several lie side by side.
        want = across_lanes(rows, FOLD) if length > 3 else down(rows.T, FOLD)
        np.testing.assert_array_equal(summed(rows, 1, target), want, str(length))


@every_target
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("width", [3, 20, 64, 300])  # in registers, and in memory
def test_a_sum_down_columns_has_the_bits_of_the_fold(
    dtype: str, width: int, target: LLVMTarget
) -> None:
    for length in ROWS if dtype == "f32" else ROWS[::4]:
        x = random((length, width), dtype, length)
        np.testing.assert_array_equal(summed(x, 0, target), down(x, FOLD), str(length))


def of_both(outer: int, inner: int, packed: bool) -> Kernel:
    """The sum over two axes that are no single one, for a row in memory is longer than what is
    read of it; the inner axis is packed, or the outer one."""
    b = Builder()
    rows, step = (outer, inner + 5) if packed else (inner, outer + 5)
    x, out = b.buffer("f32", rows * step), b.buffer("f32", 1, "write")
    (first, i), (second, j) = b.reduced(outer, 1, 0), b.reduced(inner, 1, 1)
    at = i * step + j if packed else j * step + i
    b.store(out, Index(), b.reduce("sum", [first, second], b.load(x, at)))
    return b.finish()


@every_target
@pytest.mark.parametrize("inner", [5, 20, 64, 100, 300, 8200])
@pytest.mark.parametrize("outer", [2, 4, 7, 33])
@pytest.mark.parametrize("packed", [True, False])
def test_a_sum_over_two_axes_keeps_lanes_to_the_end(
    outer: int, inner: int, packed: bool, target: LLVMTarget
) -> None:
    kernel = of_both(outer, inner, packed)
    x = random((kernel.buffers[0].size,), "f32", outer)
    out = np.full(1, 5, np.float32)
    Program(kernel, target)(x, out)
    rows = x.reshape(outer if packed else inner, -1)[:, :-5]
    if rows.shape[1] > FOLD.stretch:
        want = down(across_lanes(rows, FOLD), FOLD)
    else:
        want = halved(down(by_lanes(rows, FOLD), FOLD))
    assert out[0] == want


@every_target
@pytest.mark.parametrize(("shape", "axis"), [((3000,), 0), ((70, 40), 0), ((300, 300), 0)])
def test_products_have_the_tree_of_sums(
    shape: tuple[int, ...], axis: int, target: LLVMTarget
) -> None:
    x = (1 + random(shape, "f32", 3) / 100).astype(np.float32)
    out = np.zeros(shape[1:], np.float32)
    places = np.empty(out.shape, np.int64)
    Program(reduction("prod", "f32", shape, (axis,)), target)(x, out, places)
    tree = (elsewhere if len(shape) > 1 else along)(shape[0], FOLD)
    np.testing.assert_array_equal(out, interpreted(x, tree, np.multiply))


def product(rows: int, columns: int) -> Kernel:
    """A vector times a matrix."""
    b = Builder()
    v, m = b.buffer("f32", rows), b.buffer("f32", rows * columns)
    out = b.buffer("f32", columns, "write")
    j, (axis, i) = b.axis(columns), b.reduced(rows, 1, 0)
    value = b.op("mul", "f32", b.load(v, i), b.load(m, i * columns + j))
    b.store(out, j, b.reduce("sum", [axis], value))
    return b.finish()


@pytest.mark.parametrize(("rows", "columns"), [(3001, 1), (70, 5), (1000, 40), (1030, 300)])
def test_products_have_the_same_bits_on_every_level_with_fma(rows: int, columns: int) -> None:
    v, m = random((rows,)), random((rows, columns), seed=1)
    found = []
    for target in (t for t in TARGETS.values() if t.fma):
        found.append(np.zeros(columns, np.float32))
        Program(product(rows, columns), target)(v, m, found[-1])
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])


@cache
def pairwise_depth(n: int) -> int:
    """The most additions that a term goes through in NumPy's sum of so many."""
    if n < 8:
        return max(n - 1, 0)
    if n <= 128:
        return n // 8 - 1 + 3 + n % 8
    half = n // 2 - n // 2 % 8
    return 1 + max(pairwise_depth(half), pairwise_depth(n - half))


def test_no_term_goes_through_more_additions_than_in_numpys_sum() -> None:
    lengths = {*range(1, 20_000), *(n >> k for k in range(15) for n in (10**9, 2**30 - 1, 3**18))}
    for n in lengths:
        assert additions_across(n, FOLD) <= pairwise_depth(n), n
        # Down columns NumPy adds one after the other; of so few, we are one or two beyond pairs.
        assert additions(n, FOLD) <= pairwise_depth(n) + 2 * (n <= 40), n


def inputs(n: int, dtype: str) -> dict[str, Array]:
    rng = np.random.default_rng(n)
    normal = rng.standard_normal(n)
    kinds = {"constant": np.full(n, 0.1), "uniform": rng.random(n), "cancelling": normal}
    return {name: x.astype(DTYPES[dtype]) for name, x in kinds.items()}


SCHEDULES: dict[str, tuple[Callable[[Array], Array], Callable[[Any], Any]]] = {
    "whole": (lambda x: x, lambda x: x.sum()),
    "rows": (lambda x: np.stack([x, x]), lambda x: x.sum(1)),
    "columns": (lambda x: np.repeat(x[:, None], 20, 1), lambda x: x.sum(0)),
    "wide columns": (lambda x: np.repeat(x[:, None], 300, 1), lambda x: x.sum(0)),
    "middle": (lambda x: np.repeat(x[None, :, None], 20, 2), lambda x: x.sum(1)),
    "strided": (lambda x: np.repeat(x, 2), lambda x: x[::2].sum()),
    "two axes": (lambda x: np.stack([x, x], 1), lambda x: np.sum(x[:, ::-1] * 0.5)),
    "product": (lambda x: x, lambda x: x @ np.ones(x.size, x.dtype)),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_errors_are_within_the_bound_of_numpys_sum(schedule: str, dtype: str) -> None:
    unit = float(np.finfo(DTYPES[dtype]).eps) / 2
    layout, f = SCHEDULES[schedule]
    for n in (1, 7, 100, 1000, 4097, 30_000):
        for name, x in inputs(n, dtype).items():
            got = np.ravel(tn.jit(f, verify="off")(layout(x)))[0]
            off = abs(math.fsum([float(got), *(-x).tolist()]))
            allowed = pairwise_depth(n) * unit * math.fsum(np.abs(x).tolist())
            assert off <= allowed, (n, name)


def test_a_constant_is_summed_as_well_as_by_numpy() -> None:
    """Of equal terms all roundings go one way, so nothing hides a poor order."""
    for n in (10_000, 1_000_000, 10_000_000):
        x = np.full(n, 0.1, np.float32)
        true = float(x[0]) * n
        off = abs(float(tn.jit(lambda x: x.sum(), verify="off")(x)) - true)
        assert off <= abs(float(x.sum()) - true)


def test_a_library_s_product_of_a_vector_is_summed_as_well_as_by_numpy() -> None:
    for dtype in (np.float32, np.float64):
        for n in (30_000, 1_000_000):
            x = np.full((n, 10), 0.1, dtype)
            ones, true = np.ones(n, dtype), float(x[0, 0]) * n
            off = np.abs(tn.jit(lambda a, x: a @ x, verify="off")(ones, x) - true).max()
            assert off <= np.abs(ones @ x - true).max()


def test_means_of_sixteen_bit_floats_add_up_in_f32() -> None:
    x = np.full(100_000, 0.1, np.float16)
    assert tn.jit(lambda x: x.mean(), verify="off")(x) == x[0]


@every_target
def test_sums_with_infinities_nan_and_zeros(target: LLVMTarget) -> None:
    x = np.ones(70_000, np.float32)
    x[65_000] = np.inf
    assert summed(x, 0, target) == np.inf
    x[3] = -np.inf
    assert np.isnan(summed(x, 0, target))
    columns = np.ones((600, 300), np.float32)
    columns[599, 7], columns[0, 8] = np.nan, -np.inf
    got = summed(columns, 0, target)
    assert np.isnan(got[7])
    assert got[8] == -np.inf
    assert got[9] == 600
    zeros = summed(np.full((600, 300), -0.0, np.float32), 0, target)
    assert not zeros.any()
    assert not np.signbit(zeros).any()
