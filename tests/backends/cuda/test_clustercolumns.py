"""Columns that clusters keep, on a simulated GPU: the CPU's bits."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold.backends.cuda.emit import clustercolumns
from tenfold.backends.cuda.target import named
from tenfold.backends.llvm.target import llvmlite_version
from tests.backends.cpu.running import Program
from tests.backends.cpu.test_kernels import softmax
from tests.backends.cuda.beside import beside, launched, values


@pytest.fixture(autouse=True)
def _few_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustercolumns, "BUSY", 1)


@pytest.mark.parametrize("columns", [17, 32, 45])
@pytest.mark.parametrize("rows", [2049, 4095, 4096, 4100, 8192])
def test_softmax(rows: int, columns: int) -> None:
    """One function: each element is read once."""
    x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
    done = beside(softmax(rows, columns, 0), x, np.zeros_like(x))
    blocks = 4 if rows <= 4096 else 8
    assert done.launches == [(-(-columns // 16) * blocks, 512)]
    assert f'"nvvm.cluster_dim"="{blocks},1,1"' in done.text


def test_special_values() -> None:
    beside(softmax(2100, 40, 0), values((2100, 40)), np.zeros((2100, 40), np.float32))


@pytest.mark.parametrize("dtype", ["bf16", "f64"])
def test_other_floats(dtype: str) -> None:
    """Of wider ones a thread keeps fewer."""
    rows = 2100 if dtype == "f64" else 4100
    x = values((rows, 33), dtype)
    done = beside(softmax(rows, 33, 0, dtype), x, np.zeros_like(x))
    assert len(done.launches) == 1


def test_longer_columns_are_gone_through() -> None:
    x = np.random.default_rng(1).standard_normal((8193, 20)).astype(np.float32)
    done = launched(Program(softmax(*x.shape, 0)).kernel, [x, np.zeros_like(x)])
    assert "cluster" not in done.text


def test_few_columns_and_older_chips_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).standard_normal((2100, 40)).astype(np.float32)
    kernel, older = Program(softmax(*x.shape, 0)).kernel, named("sm_80", llvmlite_version())
    assert "cluster" not in launched(kernel, [x, np.zeros_like(x)], target=older).text
    monkeypatch.setattr(clustercolumns, "BUSY", 264)
    assert "cluster" not in launched(kernel, [x, np.zeros_like(x)]).text
