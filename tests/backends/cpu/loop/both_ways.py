"""A program by its loops' functions, by the interpreter and by the evaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.run import compiled
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.plan import Plan
from tenfold.reference import evaluate

Array = np.ndarray[Any, Any]
MANY = 40  # rounds: enough for a function


def interpreted(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> CompiledProgram:
    with monkeypatch.context() as patch:
        patch.setattr(compiled, "loop_functions", lambda *_: {})
        return CompiledProgram(plan)


def run_both(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    monkeypatch: pytest.MonkeyPatch,
    functions: int = 1,
) -> list[Array]:
    """What a function's plan gives with native loops: as many as stated, with the bits that the
    interpreter gives, near what the evaluator gives."""
    arrays = [np.asarray(a) for a in arguments]
    graph = tn.trace(function, *arguments)
    plan = BACKEND.plan(graph)
    program = CompiledProgram(plan)
    assert len(program.functions) == functions, plan.explain()
    made = program([a.copy() for a in arrays])
    other = interpreted(plan, monkeypatch)([a.copy() for a in arrays])
    for one, two, wanted in zip(made, other, evaluate(graph, arrays), strict=True):
        assert one.tobytes() == two.tobytes()
        np.testing.assert_allclose(one, wanted, rtol=1e-9)
    return made
