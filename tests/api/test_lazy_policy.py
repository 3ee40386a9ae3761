"""Lazy arrays: which graphs are compiled, when and where, and what is kept of the others."""

from __future__ import annotations

import os
import threading
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.api import policy
from tenfold.errors import CompileWarning, ValueProblem
from tenfold.graph import Graph
from tenfold.promote.background import submit


@pytest.fixture(autouse=True)
def deferred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have small operations wait too."""
    monkeypatch.setattr(tn.config, "direct", -1)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Graph]:
    """The graphs for which a plan is asked; counting begins anew."""
    from tenfold.cache import plans

    asked: list[Graph] = []
    before = plans.get

    def get(graph: Graph, **options: Any) -> Any:
        asked.append(graph)
        return before(graph, **options)

    monkeypatch.setattr(plans, "get", get)
    monkeypatch.setattr(policy, "counts", policy.Counts())
    for name, value in {"compile": "auto", "compile_runs": 3, "compile_work": 1000}.items():
        monkeypatch.setattr(tn.config, name, value)
    return asked


def ones(count: int) -> tn.Array:
    """An array at hand: that of tn.ones would be a node."""
    return tn.asarray(np.ones(count))


def curve(x: tn.Array) -> Any:
    """Two nodes and a constant; nothing holds what is between (as an assertion would)."""
    return (np.cosh(x) - 0.125).tolist()


def settle_jobs() -> None:
    """Wait for the background."""
    submit(lambda: None).done.wait(60)


def test_what_comes_back_is_compiled_in_the_background(
    compiled: list[Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, answered = [], []
    get, answer = policy._made, policy._answer
    me = threading.current_thread()

    def noted(build: Any) -> Any:
        made.append(threading.current_thread() is me)
        return get(build)

    def counted(*args: Any, **names: Any) -> Any:
        answered.append(threading.current_thread() is me)
        return answer(*args, **names)

    monkeypatch.setattr(policy, "_made", noted)
    monkeypatch.setattr(policy, "_answer", counted)
    x = ones(1000)
    for i in range(5):
        assert len(compiled) == (i > 2)
        assert curve(x) == [np.cosh(1.0) - 0.125] * 1000
        settle_jobs()
    assert [len(graph.nodes) for graph in compiled] == [3]
    assert made == [False]
    assert sum(answered) == 2, "the last two, by the plan"


def test_what_comes_once_or_spares_little_is_not_compiled(compiled: list[Graph]) -> None:
    for i in range(20):
        curve(ones(1000 + i))  # shapes that never come back
        curve(ones(999))
        np.cosh(ones(100_000)).tolist()  # of a single node nothing is spared
        between = np.cosh(ones(5000))  # which is kept
        (between - 0.125).tolist()
    settle_jobs()
    assert not compiled
    assert len(policy.counts) == 20


def test_always_and_never(compiled: list[Graph], monkeypatch: pytest.MonkeyPatch) -> None:
    tn.config.compile = "always"
    np.cosh(ones(2)).tolist()
    assert len(compiled) == 1
    tn.config.compile = "never"
    for _ in range(5):
        curve(ones(3000))
    settle_jobs()
    assert len(compiled) == 1
    with pytest.raises(ValueProblem):
        tn.config.compile = "sometimes"


def test_counting_is_bounded(compiled: list[Graph], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "NODES", 100)
    for i in range(60):
        curve(ones(1000 + i))
    assert len(policy.counts) == 100 // 3
    monkeypatch.setattr(policy, "KEPT", 7)
    curve(ones(1000))
    assert len(policy.counts) == 7


def test_compiling_that_fails_is_told_once(
    compiled: list[Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tenfold.cache import plans

    def get(graph: Graph) -> Any:
        raise MemoryError("none left")

    monkeypatch.setattr(plans, "get", get)
    x = ones(1000)
    for i in range(6):
        warned = i == 3  # the job is asked for by the third, and looked at by the next
        with pytest.warns(CompileWarning) if warned else nullcontext():
            assert curve(x)[0] == np.cosh(1.0) - 0.125
        settle_jobs()


def test_a_plan_gives_what_is_held_on_the_way(compiled: list[Graph]) -> None:
    tn.config.compile_runs = 1
    for i in range(3):
        x = tn.asarray(np.arange(1000.0))
        alive = np.exp(x * 0.001)
        total = (alive + 1).sum()
        assert np.isclose(float(total), (np.exp(np.arange(1000.0) * 0.001) + 1).sum())
        assert alive._value.node is None
        settle_jobs()
        assert len(compiled) == 1, i
    assert len(compiled[0].outputs) == 2


def test_a_child_compiles_for_itself(compiled: list[Graph]) -> None:
    x = ones(1000)
    for _ in range(4):
        curve(x)
    child = os.fork()
    if not child:
        for _ in range(5):
            right = curve(x) == [np.cosh(1.0) - 0.125] * 1000
            settle_jobs()
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
