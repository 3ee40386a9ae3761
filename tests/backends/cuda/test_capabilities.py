"""What a GPU lacks is done on the host, and the plan says why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.plan.steps.explain import explain
from tests.backends.cuda.against import alike, graph_of
from tests.backends.cuda.simulated import SimulatedGpu, simulated


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (
            lambda x: np.fft.rfft(x),
            "on the host: rfft: Fourier transforms are cuFFT's, and there is ",
        ),
        (lambda x: np.linalg.eigvalsh(x), "on the host: eigh: LAPACK factors and solves matrices"),
        (lambda x: np.sort(x + 1j), "on the host: sort: complex numbers are sorted by NumPy"),
    ],
)
def test_why_it_is_done_on_the_host(function: Any, reason: str) -> None:
    x = np.eye(5) + 0.25
    plan = simulated(SimulatedGpu()).compile(tn.trace(function, x)).plan
    assert reason in explain(plan)


def test_what_has_no_elements() -> None:
    x = np.zeros((2, 0), np.float32)
    _, program = alike(graph_of("cumsum", [x], axis=1, reverse=False), [x])
    assert not program.plan.host_steps


def test_sorts_and_running_folds_are_done_there() -> None:
    x = np.random.default_rng(0).standard_normal((40, 12)).astype(np.float32)

    def lines(x: Any) -> Any:
        return np.sort(x, 0), np.argsort(x, 1), np.cumsum(x, 0), tn.top_k(x.reshape(-1), 3)

    made, program = alike(tn.trace(lines, x), [x])
    assert not program.plan.host_steps
    np.testing.assert_array_equal(made[0], np.sort(x, 0))


def test_rows_between_products_are_worked_on_all_at_once() -> None:
    """By blocks, as on the CPU, one would wait for the other."""

    def attention(q: Any, k: Any, v: Any) -> Any:
        e = np.exp(q @ np.transpose(k, (0, 2, 1)))
        return e / e.sum(axis=-1, keepdims=True) @ v

    specs = [tn.spec((12, 1024, 64), "float32")] * 3
    kinds = [s.kind for s in tn.jit(attention, backend="cuda", target="sm_90").plan(*specs).steps]
    assert "loop" not in kinds
    assert kinds.count("routine") == 2
    assert "loop" in [s.kind for s in tn.jit(attention).plan(*specs).steps]
