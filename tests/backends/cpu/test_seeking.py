"""Positions of extremes in rows so long that they are looked for afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.backends.llvm.target import LLVMTarget
from tests.backends.cpu.running import every_target

ROWS = 300
Array = np.ndarray[Any, Any]


def positions(x: Any) -> Any:
    return np.argmax(x, axis=1), np.argmin(x, axis=1)


def beside(x: Any) -> Any:
    return np.argmax(x, axis=1), np.max(x, axis=1), np.argmin(x * x, axis=1)


def rows(dtype: str, columns: int) -> Array:
    """With ties, zeros of both signs, infinities, and NaNs in some of them."""
    source = np.random.default_rng(columns)
    x = source.integers(-9, 9, (ROWS, columns)).astype(dtype)
    x[0], x[1, -1], x[2, 0], x[3, columns // 2] = 3, 99, 99, 99
    if np.dtype(dtype).kind == "f":
        x[4], x[5], x[6, ::2], x[6, 1::2] = -np.inf, np.inf, 0.0, -0.0
        x[7, 5:], x[8, -1], x[9, 64:66], x[9, 63] = np.nan, np.nan, np.nan, np.inf
    return x


@every_target
@pytest.mark.parametrize("columns", [128, 129, 257, 1003])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint16", "int64"])
@pytest.mark.parametrize("program", [positions, beside])
def test_positions_in_long_rows(program: Any, dtype: str, columns: int, target: LLVMTarget) -> None:
    x = rows(dtype, columns)
    graph = tn.trace(program, x)
    got = CompiledProgram(BACKEND.plan(graph, target=target), target=target)([x.copy()])
    for mine, theirs in zip(got, program(x), strict=True):
        np.testing.assert_array_equal(mine, theirs)
