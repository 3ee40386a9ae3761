"""Chains of boolean matrices on a simulated GPU: the CPU's answer, whatever the inputs hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.backends.cuda.library import reach
from tenfold.ops import TABLE
from tests.backends.cuda.against import alike, graph_of, same, steps

OP = TABLE["reach"]
SAMPLES = OP.samples(np.random.default_rng(3))


def reached(sample: Any) -> list[np.ndarray]:
    arrays = [np.asarray(x, order="C") for x in sample.inputs]
    made, program = alike(graph_of("reach", arrays, **sample.attributes), arrays)
    assert steps(program) == ["RoutineStep"]
    return made


@pytest.mark.parametrize("number", range(len(SAMPLES)))
@pytest.mark.parametrize("words", [512, 0])
def test_samples(number: int, words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With sets in shared memory, and in memory of their own."""
    monkeypatch.setattr(reach, "_SHARED_WORDS", words)
    sample = SAMPLES[number]
    wanted = OP.reference(*sample.inputs, **sample.attributes)
    for ours, theirs in zip(reached(sample), wanted, strict=True):
        same(ours, theirs)
