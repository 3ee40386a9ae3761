"""Code made for large arrays on a simulated GPU, judged at few elements: it is the very code, and
gives the CPU's bits there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND as CPU
from tenfold.parity.replay.drawn import kernels
from tenfold.parity.replay.smaller import LARGE, smaller
from tenfold.parity.replay.state import PlanFacts
from tests.backends.cuda.simulated import SimulatedGpu, simulated

RNG = np.random.default_rng(0)


def softmax(axis: int) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    return run


CASES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "pointwise": (lambda x: np.tanh(x) * x, (LARGE,)),
    "comparison": (lambda x: x > 1, (LARGE + 3,)),
    "rows": (softmax(1), (4096, 64)),
    "columns": (softmax(0), (512, 640)),
    "sum": (lambda x: x.sum(), (LARGE,)),
    "column sums": (lambda x: x.sum(0), (1024, 256)),
    "transposed": (lambda x: x.T * 2 + 1, (512, 640)),
    "argmax": (lambda x: x.argmax(1), (256, 1024)),
    "reversed": (lambda x: x[::-1] + x, (LARGE,)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_very_code_at_few_elements(name: str) -> None:
    f, shape = CASES[name]
    x = RNG.standard_normal(shape, np.float32)
    graph = tn.trace(f, x)
    program = simulated(SimulatedGpu(races=False)).compile(graph)
    facts, found = PlanFacts(program.plan, program.plan.graph, 0), 0
    for kernel, about, at in kernels(program, {0: facts}):
        small = smaller(program, about, at, kernel, lambda: None)
        if small is None:
            continue
        found += 1
        lent = small.replay._stepper.program  # type: ignore[attr-defined]
        step = about.plan.steps[at]
        assert lent.code_name(*lent.plan.calls) == program.code_name(about.plan.call(step))
        shapes = [p.type.shape for p in lent.plan.graph.parameters]
        assert sum(map(np.prod, shapes)) < np.prod(shape)
        given = [
            RNG.standard_normal(p.type.shape).astype(p.type.dtype)
            for p in lent.plan.graph.parameters
        ]
        for got, wanted in zip(lent(given), CPU.compile(lent.plan.graph)(given), strict=True):
            np.testing.assert_array_equal(got, wanted)
    assert found
