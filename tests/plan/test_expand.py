"""Compositions and user ops become the ops they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.graph.op import Composition
from tenfold.ops import TABLE
from tenfold.plan.passes.expand import expand
from tenfold.reference import evaluate


def test_no_composition_is_left() -> None:
    inner = tn.custom("inner", lambda x: np.clip(x, -1, 1) * 2)
    outer = tn.custom("outer", lambda x: inner(x) + inner(x * 3))

    def function(x: Any) -> Any:
        return outer(x) + tn.fori_loop(0, 3, lambda i, c: inner(c) + i, x)

    x = np.linspace(-2, 2, 9)
    graph = tn.trace(function, x)
    expanded = expand(graph, TABLE)
    for node in expanded.nodes:
        assert node.op != "custom"
        assert not isinstance(TABLE[node.op].lowering, Composition)
    assert all(node.source is not None for node in expanded.nodes if node.op != "constant")
    np.testing.assert_allclose(evaluate(expanded, [x])[0], evaluate(graph, [x])[0])
    np.testing.assert_allclose(BACKEND.compile(graph)([x])[0], evaluate(graph, [x])[0])


def test_a_graph_without_any_is_left_alone() -> None:
    graph = tn.trace(lambda x: x + 1, np.ones(3))
    assert expand(graph, TABLE) is graph
