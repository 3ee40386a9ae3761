"""Transposed reads by tiles on a simulated GPU: the CPU's bits, and shared memory where it pays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.kernel import Builder, Kernel
from tests.backends.cuda.beside import EVERY, beside, graph_of, program_beside, values


def transposed(rows: int, columns: int, dtype: str = "f32", beside: int = 1) -> Kernel:
    """x.T and some more such arrays, all added to z."""
    b = Builder()
    size = rows * columns
    read = [b.buffer(dtype, size) for _ in range(beside)]
    z, out = b.buffer(dtype, size), b.buffer(dtype, size, "write")
    i, j = b.axis(rows), b.axis(columns)
    total = b.load(z, i * columns + j)
    for x in read:
        total = b.op("xor" if dtype == "bool" else "add", dtype, total, b.load(x, j * rows + i))
    b.store(out, i * columns + j, total)
    return b.finish()


def run(
    kernel: Kernel, shape: tuple[int, int], dtype: str = "f32", many: int = 1, **how: Any
) -> Any:
    given = [values(shape[::-1], dtype, n) for n in range(many)]
    z = values(shape, dtype, many)
    return beside(kernel, *given, z, np.zeros_like(z), **how)


SHAPES = [(16, 16), (17, 40), (32, 32), (33, 31), (64, 32), (65, 127), (100, 20), (20, 300)]


@pytest.mark.parametrize("shape", SHAPES)
def test_around_tiles(shape: tuple[int, int]) -> None:
    done = run(transposed(*shape), shape)
    tiles = -(-shape[0] // 32) * -(-shape[1] // 32)
    assert done.launches == [(tiles, 256)]
    assert done.text.count("addrspace(3) global [1056 x float]") == 1


@pytest.mark.parametrize("shape", [(1472, 1472), (1473, 1471)])
def test_large_tiles(shape: tuple[int, int]) -> None:
    done = run(transposed(*shape), shape)
    tiles = -(-shape[0] // 64) * -(-shape[1] // 64)
    assert done.launches == [(tiles, 256)]


@pytest.mark.parametrize("shape", [(15, 400), (400, 15), (1, 40), (3, 3)])
def test_short_axes_are_read_as_they_lie(shape: tuple[int, int]) -> None:
    assert "addrspace(3)" not in run(transposed(*shape), shape).text


@pytest.mark.parametrize("dtype", EVERY)
def test_every_dtype(dtype: str) -> None:
    assert "addrspace(3)" in run(transposed(40, 70, dtype), (40, 70), dtype).text


@pytest.mark.parametrize(("many", "dtype", "tiles"), [(2, "f32", 2), (3, "i64", 3), (3, "c128", 4)])
def test_several_buffers(many: int, dtype: str, tiles: int) -> None:
    """As many as shared memory has room for go through it, parts of complex numbers each on its
    own; the others are read as they lie."""
    done = run(transposed(50, 45, dtype, many), (50, 45), dtype, many)
    assert done.text.count("addrspace(3) global") == tiles


@pytest.mark.parametrize("odd", [{0}, {1}, {2}])
def test_odd_places(odd: set[int]) -> None:
    run(transposed(40, 70), (40, 70), odd=frozenset(odd))


def test_a_batch_with_a_row_of_its_own() -> None:
    """An axis outside of the tile, what is the same along one side, and a store of one row."""
    b = Builder()
    x, row = b.buffer("f32", 3 * 40 * 50), b.buffer("f32", 50)
    out, first = b.buffer("f32", 3 * 40 * 50, "write"), b.buffer("f32", 3 * 50, "write")
    n, i, j = b.axis(3), b.axis(40), b.axis(50)
    scale = b.load(row, j)
    b.store(out, n * 2000 + i * 50 + j, b.op("mul", "f32", b.load(x, n * 2000 + j * 40 + i), scale))
    b.store(first, n * 50 + j, b.op("neg", "f32", scale))
    done = beside(
        b.finish(), values((3, 50, 40)), values(50), np.zeros((3, 40, 50), np.float32),
        np.zeros((3, 50), np.float32),
    )  # fmt: skip
    assert "addrspace(3)" in done.text


def test_a_check_beside_a_tile() -> None:
    b = Builder()
    x, out = b.buffer("i32", 40 * 50), b.buffer("i32", 40 * 50, "write")
    i, j = b.axis(40), b.axis(50)
    found = b.load(x, j * 40 + i)
    b.check(b.op("ge", "bool", found, b.const("i32", 0)), 2)
    b.store(out, i * 50 + j, found)
    kernel = b.finish()
    given = np.arange(2000, dtype=np.int32).reshape(50, 40)
    assert beside(kernel, given, np.zeros((40, 50), np.int32)).fault == 0
    given[49, 39] = -1
    assert beside(kernel, given, np.zeros((40, 50), np.int32)).fault == 4


def test_a_program_of_permuted_axes() -> None:
    x = values((20, 30, 40))
    graph = graph_of(lambda b, given: b.node("transpose", list(given), {"axes": (2, 0, 1)}), [x])
    program_beside(graph, [x])
