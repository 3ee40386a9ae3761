"""Reductions over several axes on a simulated GPU: a block for each position, the CPU's bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND as CPU
from tests.backends.cpu.running import reduction
from tests.backends.cuda.beside import EVERY, beside, values
from tests.backends.cuda.simulated import SimulatedGpu, simulated

RNG = np.random.default_rng(0)
# The axes that are reduced: both and one between them that is not, with few and with many positions
# of the outermost, and inner rows of some lanes, of a chunk, and of more.
SHAPES = [(5, 2, 70), (33, 3, 64), (3, 2, 9000), (1, 2, 700), (40, 2, 16), (600, 2, 3)]


def batchnorm(x: Any) -> Any:
    mean = x.mean((0, 2), keepdims=True)
    var = ((x - mean) ** 2).mean((0, 2), keepdims=True)
    return (x - mean) / np.sqrt(var + np.float32(1e-5))


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "batchnorm": (batchnorm, (12, 3, 50)),
    "stored in between": (lambda x: (x.sum((0, 2)), x - x.max((0, 2), keepdims=True)), (9, 4, 30)),
    "three axes": (lambda x: x.sum((0, 2, 4)), (5, 2, 6, 3, 20)),
    "a position each": (lambda x: x.transpose(1, 0, 2).reshape(4, -1).argmax(1), (9, 4, 30)),
    "rows of two lengths": (
        lambda x: ((x[0, 0] * x[0, 0]).sum() - x.sum((0, 2))[:, None] + x[0]).argmin(1),
        (9, 4, 130),
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["sum", "max", "argmin"])
def test_every_length(kind: str, shape: tuple[int, int, int]) -> None:
    kernel = reduction(kind, "f32", shape, (0, 2))
    out = np.zeros(shape[1], "f4"), np.zeros(shape[1], "i8")
    done = beside(kernel, values(int(np.prod(shape))), *out)
    assert done.schedules == ["nested"]
    assert done.launches == [(shape[1], 256)]


@pytest.mark.parametrize("dtype", EVERY)
def test_every_dtype(dtype: str) -> None:
    kinds = {"bool": ["max"], "c64": ["sum"], "c128": ["sum"]}
    for kind in kinds.get(dtype, ["sum", "prod", "max"]):
        kernel = reduction(kind, dtype, (7, 3, 40), (0, 2))
        out = np.zeros(3, values(1, dtype).dtype)
        done = beside(kernel, values(840, dtype), out, np.zeros(3, "i8"))
        assert done.schedules == ["nested"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    f, shape = PROGRAMS[name]
    x = RNG.standard_normal(shape, np.float32)
    graph = tn.trace(f, x)
    program = simulated(SimulatedGpu()).compile(graph)
    for got, wanted in zip(program([x]), CPU.compile(graph)([x]), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_short_ones_are_a_threads() -> None:
    kernel = reduction("max", "f32", (2, 300, 2), (0, 2))
    done = beside(kernel, values(1200), np.zeros(300, "f4"), np.zeros(300, "i8"))
    assert done.schedules == ["serial"]


def test_rows_of_two_lengths_are_two_kernels() -> None:
    """What rows come to is stored before it is spread over others that are reduced: a team has rows
    of one length."""

    def nearest(x: Any, c: Any) -> Any:
        far = (x * x).sum(1)[:, None] - 2 * (x @ c.T) + (c * c).sum(1)
        return far.argmin(1)[:, None] == np.arange(len(c))

    x, c = RNG.standard_normal((300, 64), np.float32), RNG.standard_normal((20, 64), np.float32)
    graph = tn.trace(nearest, x, c)
    program: Any = simulated(SimulatedGpu()).compile(graph)
    names = {program.code_name(call) for call in program.plan.calls}
    assert {name.rstrip("0123456789abcdef_").rstrip("0123456789") for name in names} == {"tn_rows"}
    np.testing.assert_array_equal(program([x, c])[0], nearest(x, c))
