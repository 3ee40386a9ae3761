"""Reductions down columns on a simulated GPU: neighbouring threads have neighbouring columns. Each
gives the CPU's bits."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold.backends.cuda.emit import phases
from tenfold.backends.cuda.emit.keptcolumns import ColumnLayout, column_layout
from tests.backends.cpu.test_kernels import softmax
from tests.backends.cuda.beside import beside, values
from tests.backends.cuda.test_rows import ORDERED, reduced


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 31, 32, 33, 64, 127, 128, 129, 257, 300])
def test_sums_around_runs_and_warps(rows: int) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, 45)).astype(np.float32)
    reduced("sum", "f32", (rows, 45), (0,), x)


@pytest.mark.parametrize("rows", [1024, 1030, 5000])
@pytest.mark.parametrize("columns", [33, 256])
def test_long_columns(rows: int, columns: int) -> None:
    """In parts: each block leaves what its part comes to, the last of them joins them."""
    x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
    done = reduced("sum", "f32", (rows, columns), (0,), x)
    assert len(done.launches) == 1


@pytest.mark.parametrize("columns", [17, 31, 32, 33, 63, 255, 256, 257])
def test_around_warps_of_columns(columns: int) -> None:
    x = np.random.default_rng(columns).standard_normal((70, columns)).astype(np.float32)
    reduced("sum", "f32", (70, columns), (0,), x)


def test_columns_of_one_part() -> None:
    """Enough columns keep a chip busy."""
    rows, columns = 130, 264 * 32 + 5
    x = np.random.default_rng(1).standard_normal((rows, columns)).astype(np.float32)
    done = reduced("sum", "f32", (rows, columns), (0,), x)
    assert len(done.launches) == 1


@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.parametrize("kind", ["max", "argmin"])
def test_extremes_of_every_dtype(kind: str, dtype: str) -> None:
    reduced(kind, dtype, (150, 40), (0,))


@pytest.mark.parametrize("dtype", [*ORDERED[1:], "c64", "c128"])
def test_sums_of_every_dtype(dtype: str) -> None:
    reduced("sum", dtype, (90, 40), (0,))


@pytest.mark.parametrize("shape", [(5, 40), (70, 33), (300, 64), (2000, 40)])
def test_softmax_down_columns(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    beside(softmax(*shape, 0), x, np.zeros_like(x))
    beside(softmax(*shape, 0), values(shape), np.zeros_like(x))


@pytest.mark.parametrize("odd", [{0}, {1}, {0, 1}])
def test_odd_places(odd: set[int]) -> None:
    reduced("sum", "f32", (200, 64), (0,), odd=frozenset(odd))


@pytest.mark.parametrize("many", [3, 5, 9, 30])
@pytest.mark.parametrize(("shape", "axis"), [((5000, 33), 0), ((1, 150_000), 1)])
def test_parts_of_several_units(
    many: int, shape: tuple[int, int], axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a part comes to is a balanced tree over its units, which wait in registers."""
    monkeypatch.setattr(phases, "most", lambda threads: many)
    x = np.random.default_rng(many).standard_normal(shape).astype(np.float32)
    done = reduced("sum", "f32", shape, (axis,), x)
    assert done.launches[0][0] < 2 * many
    assert "alloca" not in done.text


def test_columns_of_many_runs_in_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """More units than registers are kept for wait in memory."""
    monkeypatch.setattr(phases, "BUSY", 0)
    for rows, memory in ((2000, False), (300 * 256, True)):
        x = np.random.default_rng(1).standard_normal((rows, 17)).astype(np.float32)
        done = reduced("sum", "f32", x.shape, (0,), x)
        assert len(done.launches) == 1
        assert ("alloca" in done.text) == memory


@pytest.mark.parametrize("columns", [7, 33])
@pytest.mark.parametrize("rows", [4, 5, 33, 256, 257, 1024, 2048])
def test_kept_columns(rows: int, columns: int) -> None:
    """One function: each element is read once."""
    x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
    kernel = softmax(rows, columns, 0)
    done = beside(kernel, x, np.zeros_like(x))
    if columns > 16:  # else rows lie across lanes
        assert len(done.launches) == 1


def test_layouts_of_columns() -> None:
    """Few threads a column where there are many, more where there are few; none for long ones."""
    for extent in (1, 4, 33, 128, 129, 256, 257, 1024, 1025, 2048):
        for columns in (1, 300, 5000, 10**6):
            layout = column_layout(extent, columns)
            assert layout is not None
            assert layout.reach >= extent
            assert layout.rows <= 32
    assert column_layout(2049, 1000) is None
    assert column_layout(256, 10**6) == ColumnLayout(8, 32)
    assert column_layout(256, 1000) == ColumnLayout(32, 8)
    assert column_layout(1024, 1024) == ColumnLayout(32, 32)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_kept_columns_of_every_float(dtype: str) -> None:
    x = values((130, 40), dtype)
    beside(softmax(130, 40, 0, dtype), x, np.zeros_like(x))


def test_kept_columns_of_many() -> None:
    x = np.random.default_rng(1).standard_normal((70, 9000)).astype(np.float32)
    done = beside(softmax(70, 9000, 0), x, np.zeros_like(x))
    assert done.launches == [(-(-9000 // 32), 256)]
