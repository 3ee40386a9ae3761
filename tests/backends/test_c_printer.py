"""Kernels printed as C give what the CPU's code gives; all tests of kernels say so, too, by the
fixture of `cpu/conftest`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tenfold.backends.llvm.target import named
from tests.backends import c_printer
from tests.backends.as_c import COMPILER, Runs, differences
from tests.backends.cpu import running
from tests.backends.cpu.running import HOST, LEVELS, Program, mapped, random, reduction

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="there is no C compiler"),
    pytest.mark.skipif("x86-64-v3" not in LEVELS, reason="the processor has no fma"),
]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    found = Runs()
    monkeypatch.setattr(running, "runs", found)
    return found


def test_the_printer_is_short() -> None:
    assert len(Path(c_printer.__file__).read_text().splitlines()) < 300


def test_what_differs_is_found(runs: Runs, tmp_path: Path) -> None:
    target = named("x86-64-v3", HOST)
    for kind, shape in (("sum", (40, 300)), ("max", (300,))):
        x = random(shape)
        out, places = np.zeros(shape[:-1], "f4"), np.zeros(shape[:-1], "i8")
        Program(reduction(kind, "f32", shape, (len(shape) - 1,)), target)(x, out, places)
    x, out = random((100,)), np.zeros(100, "f4")
    Program(mapped("tanh", "f32", "f32", 1, x.shape), target)(x, out)
    assert len(runs.every) == 3
    assert differences(runs.every, tmp_path) == []
    for run in runs.every:
        run.made[1].flat[-1] = np.nextafter(run.made[1].flat[-1], np.float32(9))
    found = differences(runs.every, tmp_path)
    assert len(found) == 3
    assert all("differ in all" in wrong for wrong in found)


def test_any_nan_is_any_other(runs: Runs, tmp_path: Path) -> None:
    x, out = np.array([0x7FC00001], "u4").view("f4"), np.zeros(1, "f4")
    Program(mapped("neg", "f32", "f32", 1, (1,)), named("x86-64-v3", HOST))(x, out)
    runs.every[0].made[1] = np.array([np.nan], "f4")
    assert differences(runs.every, tmp_path) == []


@pytest.mark.parametrize("kind", ["sum", "prod"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_sums_of_more_than_a_chunk(kind: str, dtype: str, runs: Runs, tmp_path: Path) -> None:
    """Along one axis, and along the last of two."""
    for shape, axes in (((20_000,), (0,)), ((3, 2, 9_000), (0, 2)), ((6, 2, 300), (0, 2))):
        kept = tuple(n for k, n in enumerate(shape) if k not in axes)
        x = random(shape, dtype)
        given = [x, np.zeros(kept, x.dtype), np.zeros(kept, "i8")]
        Program(reduction(kind, dtype, shape, axes), named("x86-64-v3", HOST))(*given)
    assert len(runs.every) == 3
    assert differences(runs.every, tmp_path) == []
