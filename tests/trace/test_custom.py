"""Ops of the user's own."""

from __future__ import annotations

from typing import Any

import numpy as np

import tenfold as tn
from tenfold.trace.control.custom import VERSIONS


def test_a_custom_op_is_one_node_with_its_fallback_as_scope() -> None:
    scaled = tn.custom("scaled", lambda x, by: {"y": x * by, "total": (x * by).sum()})
    x = np.array([1.0, 2.0])
    assert scaled(x, 3)["y"].tolist() == [3, 6]
    assert tn.jit(lambda x: scaled(x, 3)["total"] + 1)(x) == 10
    graph = tn.trace(lambda x: scaled(x, 3)["total"], x)
    (node,) = [n for n in graph.nodes if n.op == "custom"]
    assert node["name"] == "scaled"
    assert len(node.inputs) == len(node.scopes[0].parameters) == 2
    assert "sum" in str(node.scopes[0])


def test_arguments_come_first_and_captures_behind() -> None:
    def program(w: Any, x: Any, unused: Any) -> Any:
        return tn.custom("mine", lambda x, unused: x * w)(x, unused)

    one = np.ones(2)
    graph = tn.trace(program, one, one, one)
    (node,) = graph.nodes
    assert [graph.parameters[v].name for v in node.inputs] == ["x", "unused", "w"]
    assert tn.jit(program)(one * 2, one * 3, one).tolist() == [6, 6]


def test_python_numbers_stay_weak_in_the_fallback() -> None:
    double = tn.custom("double", lambda x, n: x * n)
    assert double(np.ones(2, "f4"), 2).dtype == np.float32
    assert double(2, 3) == 6


def test_effects_in_a_fallback_happen() -> None:
    seen: list[float] = []
    op = tn.custom("loud", lambda x: tn.hook("h", x + 1, lambda v: seen.append(float(v))))

    def program(x: Any) -> Any:
        op(x)
        return x

    tn.jit(program)(1.0)
    assert seen == [2]


def test_equal_uses_are_merged_and_other_fallbacks_are_not() -> None:
    one, two = tn.custom("same", lambda x: x + 1), tn.custom("same", lambda x: x + 2)
    x = np.ones(2)
    assert len(tn.trace(lambda x: (one(x), one(x)), x).nodes) == 1
    assert len(tn.trace(lambda x: (one(x), two(x)), x).nodes) == 2


def test_versions_are_kept_by_name_and_not_in_the_graph() -> None:
    fast = lambda x: x + 1  # noqa: E731
    op = tn.custom("fast", lambda x: x + 1, cpu=fast)
    assert VERSIONS["fast"]["cpu"] is fast
    with_version = tn.trace(op, np.ones(2)).digest
    plain = tn.trace(tn.custom("fast", lambda x: x + 1), np.ones(2)).digest
    assert with_version == plain
    assert VERSIONS["fast"] == {}


def test_inside_a_loop_and_a_branch() -> None:
    step = tn.custom("step", lambda s, i: s + i)
    f = tn.jit(
        lambda: tn.fori_loop(0, 4, lambda i, s: tn.cond(i > 1, step, lambda s, i: s, s, i), 0)
    )
    assert f() == 5
