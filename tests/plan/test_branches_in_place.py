"""Branches that work in place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.graph import Builder
from tenfold.ops import TABLE
from tenfold.ops.samples import scope
from tenfold.reference import evaluate
from tenfold.types import DTYPES, TensorType

TYPE = TensorType(DTYPES["f64"], (50,))
X = np.linspace(-1, 1, 50)


def twice_and_squared(builder: Builder, values: Sequence[int]) -> list[int]:
    x, y = values[0], values[-1]
    return [*builder.node("add", [x, x]), *builder.node("mul", [y, y])]


def test_what_a_branch_is_given_once_is_written_over_and_what_it_is_given_twice_is_not() -> None:
    for count, shared in ((1, 1), (2, 0)):
        builder = Builder(TABLE)
        x, p = builder.parameter(TYPE), builder.parameter(TensorType(DTYPES["bool"], ()))
        (y,) = builder.node("tanh", [x])  # lies in the arena, and is read by the branch alone
        branches = [scope([TYPE] * count, twice_and_squared)] * 2
        results = builder.node("switch", [p, *[y] * count], {}, branches)
        graph = builder.finish(builder.node("sub", results))
        plan = BACKEND.plan(graph)
        (step,) = (s for s in plan.steps if s.kind == "branch")
        places = [
            {(plan.slots[s].place, plan.slots[s].offset) for s in part}
            for part in (step.inputs, step.outputs)
        ]
        assert len(places[0] & places[1]) == shared
        (got,) = CompiledProgram(plan)([X, np.array(True)])
        np.testing.assert_allclose(got, evaluate(graph, [X, np.array(True)])[0], atol=1e-15)
