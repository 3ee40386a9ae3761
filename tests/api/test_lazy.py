"""Lazy arrays: what is run, when, and what is kept."""

from __future__ import annotations

import copy
import gc
import operator
import pickle
import sys
import threading
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.api import policy
from tenfold.errors import IndexProblem, MutationError, ShapeError
from tenfold.graph import Graph
from tenfold.reference import evaluate
from tenfold.trace.lazy import realise
from tenfold.trace.lazy.lazy import DeferredNode, LazyValue


@pytest.fixture(autouse=True)
def deferred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have small operations wait too."""
    monkeypatch.setattr(tn.config, "direct", -1)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Graph]:
    """The graphs that are run, in order; equal ones are one. All are brought to the planner."""
    seen: list[Graph] = []
    built: dict[Any, Graph] = {}

    def planner(key: Any, build: Any, nodes: int, arrays: Any) -> list[Any]:
        graph = built.setdefault(key, build())
        assert len(graph.nodes) == nodes
        seen.append(graph)
        return evaluate(graph, arrays)

    monkeypatch.setattr(tn.config, "compile", "always")
    monkeypatch.setattr(realise, "_hooks", [(policy.run, planner)])
    return seen


def is_pending(x: tn.Array) -> bool:
    return x._value.node is not None


# -- when


def test_nothing_runs_before_a_value_is_needed(runs: list[Graph]) -> None:
    x = tn.asarray([1.0, 2.0, 3.0])
    y = (np.sin(x) * 2 + tn.ones(3))[1:].sum()
    assert y.shape == ()
    assert y.dtype == np.float64
    assert not runs
    assert float(y) == float((np.sin([1.0, 2.0, 3.0]) * 2 + 1)[1:].sum())
    assert len(runs) == 1
    assert float(y) == y.item()
    assert len(runs) == 1, "a realised value is a leaf"


@pytest.mark.parametrize(
    ("need", "expected"),
    [
        (lambda x: np.asarray(x).tolist(), [2.0]),
        (lambda x: bool(x), True),
        (lambda x: int(x[0]), 2),
        (lambda x: float(x[0]), 2.0),
        (lambda x: complex(x[0]), 2 + 0j),
        (lambda x: operator.index(tn.astype(x, tn.int64)[0]), 2),
        (lambda x: range(3)[tn.astype(x, tn.int8)[0]], 2),
        (lambda x: str(x), "[2.]"),
        (lambda x: repr(x), "Array([2.], dtype=float64)"),
        (lambda x: f"{x}", "Array([2.], dtype=float64)"),
        (lambda x: f"{x[0]:.2f}", "2.00"),
        (lambda x: x.item(), 2.0),
        (lambda x: x.tolist(), [2.0]),
        (lambda x: x.tobytes(), np.array([2.0]).tobytes()),
        (lambda x: np.from_dlpack(x).tolist(), [2.0]),
        (lambda x: list(map(float, x)), [2.0]),
        (lambda x: pickle.loads(pickle.dumps(x)).tolist(), [2.0]),
        (lambda x: np.array([5.0, 6.0, 7.0])[tn.astype(x, tn.int64)].tolist(), [7.0]),
    ],
)
def test_what_needs_a_value(need: Any, expected: Any) -> None:
    x = tn.asarray([1.0]) + 1
    assert is_pending(x)
    assert need(x) == expected


def test_buffers() -> None:
    x = tn.asarray([1.0, 2.0]) * 2
    view = x.__buffer__(0)
    assert view.readonly
    assert view.tolist() == [2.0, 4.0]


def test_values_are_read_only_and_copies_are_not() -> None:
    x = tn.asarray([1.0, 2.0])
    host = np.asarray(x)
    with pytest.raises(ValueError, match="read-only"):
        host[0] = 5
    own = np.array(x, copy=True)
    own[0] = 5
    assert x.tolist() == [1.0, 2.0]


def test_shapes_that_depend_on_values_run_what_they_need(runs: list[Graph]) -> None:
    x = tn.asarray([3, 0, 3, 1]) * 2
    assert x[x > 2].tolist() == [6, 6]
    assert [i.tolist() for i in np.nonzero(x)] == [[0, 2, 3]]
    assert [i.tolist() for i in x.nonzero()] == [[0, 2, 3]]
    assert [i.tolist() for i in np.where(x)] == [[0, 2, 3]]
    assert np.unique(x).tolist() == [0, 2, 6]
    assert tn.unique_counts(x).counts.tolist() == [1, 1, 2]
    assert np.argwhere(x).tolist() == [[0], [2], [3]]
    assert isinstance(np.unique(x), tn.Array)


# -- what is kept


def test_ancestors_alive_are_kept_and_dead_ones_are_not(runs: list[Graph]) -> None:
    x = tn.asarray(np.arange(8.0))
    alive = np.exp(x)
    z = np.sqrt(alive + 1) * 3
    z.tolist()
    assert not is_pending(alive)
    assert len(runs[0].outputs) == 2
    alive.tolist()
    assert len(runs) == 1


def test_a_value_read_by_another_pending_node_is_kept(runs: list[Graph]) -> None:
    x = tn.asarray(np.arange(8.0))
    shared = np.exp(x)
    one, other = shared + 1, shared * 2
    del shared
    one.tolist()
    other.tolist()
    assert [node.op for node in runs[1].nodes if node.op != "constant"] == ["mul"]


def test_results_of_one_node_come_together(runs: list[Graph]) -> None:
    q, r = np.linalg.qr(tn.asarray(np.random.default_rng(0).normal(size=(4, 4))))
    (q @ r).tolist()
    assert not is_pending(q)
    assert not is_pending(r)
    q, r = np.linalg.qr(tn.asarray(np.eye(3)))
    q.tolist()
    assert not is_pending(r)
    assert len(runs) == 2


def test_memory_is_freed_when_handles_die() -> None:
    x = tn.asarray(np.ones(4))
    float((x * 1.5 + 1).sum())  # constants that the scope remembers
    before = _alive()
    y = x
    for _ in range(50):
        y = np.sin(y) * 1.5
    assert _alive() > before + 50
    y.tolist()
    assert _alive() <= before + 1
    del y
    assert _alive() <= before


def _alive() -> int:
    """How many nodes and values there are."""
    gc.collect()
    return sum(type(o) in (DeferredNode, LazyValue) for o in gc.get_objects())


def test_equal_nodes_are_run_once(runs: list[Graph]) -> None:
    x = tn.asarray(np.arange(3.0))
    y = np.exp(x) + np.exp(x)
    y.tolist()
    assert [node.op for node in runs[0].nodes] == ["exp", "add"]


def test_equal_programs_are_one_graph(runs: list[Graph]) -> None:
    for value in (1.0, 2.0, 3.0):
        x = tn.asarray(np.full(3, value))
        (np.exp(x) @ x).item()
    assert runs[0] is runs[1] is runs[2]


def test_a_long_loop_neither_overflows_nor_hoards() -> None:
    x = tn.zeros(())
    most = 0
    for i in range(100_000):
        x = x + 1
        if i % 5000 == 4999:
            most = max(most, _alive())
    assert float(x) == 100_000
    assert most < 3 * tn.config.pending


def test_doubling_does_not_count_as_doubling(runs: list[Graph]) -> None:
    x = tn.asarray(1.0)
    for _ in range(500):
        x = (x + x) / 2
    assert not runs
    assert float(x) == 1.0


def test_the_number_of_pending_nodes_can_be_set(
    runs: list[Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tn.config, "pending", 10)
    x = tn.asarray([1.0])
    for _ in range(100):
        x = x + 1
    assert 8 <= len(runs) <= 10
    assert x.tolist() == [101.0]


def test_depth_does_not_recurse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tn.config, "pending", 10**9)
    x = tn.asarray(0.0)
    for _ in range(20_000):
        x = x + 1
    assert float(x) == 20_000
    y = tn.asarray(0.0)
    for _ in range(20_000):
        y = y + 1
    del y  # a deep chain dies without recursion too


# -- errors


def test_an_error_when_running_names_the_line_that_wrote_it() -> None:
    x = tn.asarray([1.0, 2.0])
    i = tn.asarray(5)
    picked = x[i]  # this line
    later = picked * 2 + 1
    with pytest.raises(IndexProblem) as caught:
        later.tolist()
    assert f":{_line('picked = x[i]')}" in str(caught.value)


def test_the_line_is_its_own_also_where_an_equal_graph_ran_before() -> None:
    x = tn.asarray([1.0, 2.0])
    (x[tn.asarray(1)] * 2).item()
    bad = x[tn.asarray(7)] * 2  # bad line
    with pytest.raises(IndexProblem, match=f":{_line('# bad line')}"):
        bad.item()


def _line(text: str) -> int:
    with open(__file__) as file:
        return next(i for i, line in enumerate(file, 1) if text in line)


def test_errors_of_types_come_at_once() -> None:
    with pytest.raises(ShapeError, match="do not broadcast"):
        tn.ones(3) + tn.ones(4)


# -- in place


def test_updates_are_seen_by_aliases() -> None:
    x = tn.zeros((2, 3))
    y = x
    x += 1
    x[0, 1:] = 5
    x[1] *= 3
    assert y is x
    assert y.tolist() == [[1, 5, 5], [3, 3, 3]]


def test_updates_do_not_reach_values_taken_before() -> None:
    x = tn.asarray([1.0, 2.0])
    y = x * 2
    z = x.copy()
    x += 10
    assert y.tolist() == [2.0, 4.0]
    assert z.tolist() == [1.0, 2.0]


def test_later_changes_of_a_numpy_array_are_not_seen() -> None:
    a = np.ones(3)
    x = tn.asarray(a)
    y = tn.zeros(3) + a
    a[:] = 9
    assert x.tolist() == [1, 1, 1]
    assert y.tolist() == [1, 1, 1]


def test_views() -> None:
    x = tn.asarray(np.arange(4.0))
    view = x[1:]
    assert view.tolist() == [1, 2, 3]
    x[1] = 5
    assert view.tolist() == [5, 2, 3]
    tail = view[1:]
    tail[0] = 7
    tail += 1
    assert x.tolist() == [0, 5, 8, 4]
    assert view.tolist() == [5, 8, 4]
    x.getfield(np.float64)[1:][-1] = 9  # a view that only NumPy makes
    assert tail.tolist() == [8, 9]


def test_masks_and_index_arrays_are_assigned_to() -> None:
    x = tn.asarray(np.arange(6.0))
    x[x > 3] = 0
    x[np.array([0, 1])] = tn.asarray([7.0, 8.0])
    x[tn.asarray([True, False, True, False, False, False])] += 1
    assert x.tolist() == [8, 8, 3, 3, 0, 0]


# -- with NumPy, jit and threads


def test_with_numpy() -> None:
    x = tn.asarray([1.0, 2.0])
    a = np.array([10.0, 20.0])
    assert isinstance(a + x, tn.Array)
    assert isinstance(np.float32(2) * x, tn.Array)
    assert (a + x).tolist() == [11.0, 22.0]
    assert isinstance(np.concatenate([a, x]), tn.Array)
    a += x
    assert a.tolist() == [11.0, 22.0]
    np.multiply(x, 2, out=a)
    assert a.tolist() == [2.0, 4.0]
    assert float(np.median(x)) == 1.5  # which runs on the host
    assert np.asarray([x, x]).tolist() == [[1.0, 2.0], [1.0, 2.0]]
    assert copy.deepcopy(x).tolist() == [1.0, 2.0]


def test_promotion_is_numpys() -> None:
    x = tn.asarray([1, 2], dtype=tn.int8)
    assert (x + 1).dtype == np.int8
    assert (x + 1.0).dtype == np.float64
    assert (x + np.int32(1)).dtype == np.int32
    assert (tn.ones(2, tn.float32) * 2.5).dtype == np.float32


def test_jit_of_lazy_arguments_gives_lazy_arrays() -> None:
    f = tn.jit(lambda x, y: {"sum": x + y, "total": x.sum()})
    given = f(tn.asarray([1.0, 2.0]) + 1, np.ones(2))
    assert isinstance(given["sum"], tn.Array)
    assert not is_pending(given["sum"])
    assert given["sum"].tolist() == [3.0, 4.0]
    assert isinstance(given["total"], tn.Array)
    assert isinstance(f(np.ones(2), np.ones(2))["sum"], np.ndarray)
    assert isinstance(f(np.ones(2), tn.ones(2))["sum"], tn.Array)
    g = tn.jit(lambda x: x + 1)
    for _ in range(3):
        assert isinstance(g(np.ones(2)), np.ndarray)
        assert isinstance(g(tn.ones(2)), tn.Array)
    assert f.traces == g.traces == 1


def test_a_lazy_array_in_jit_is_a_named_capture() -> None:
    w = tn.asarray(np.arange(20.0)) * 2
    f = tn.jit(lambda x: (x * w).sum())
    x = np.ones(20)
    assert float(f(x)) == 380.0
    assert list(f.captures(x)) == ["w"]
    w += 1  # the handle moves to a new value, which is seen
    assert float(f(x)) == 400.0
    w = tn.asarray(np.zeros(20))
    assert float(f(x)) == 0.0
    assert f.traces == 1
    w = tn.asarray(np.zeros(1))
    f(x)
    assert f.traces == 2


def test_a_lazy_array_is_not_updated_in_jit() -> None:
    w = tn.asarray(np.arange(20.0))

    @tn.jit
    def f(x: Any) -> Any:
        w[0] = x
        return w

    with pytest.raises(MutationError, match="from outside is updated"):
        f(1.0)


def test_a_lazy_mask_in_jit_is_part_of_the_graph() -> None:
    mask = tn.asarray([True, False, True])
    f = tn.jit(lambda x: x[mask])
    assert f(np.arange(3)).tolist() == [0, 2]


def test_control_flow_outside_jit() -> None:
    x = tn.asarray([1.0, 2.0])
    carry, rows = tn.scan(lambda c, v: (c + v, c), tn.asarray(0.0), x)
    assert isinstance(carry, tn.Array)
    assert float(carry) == 3.0
    assert rows.tolist() == [0.0, 1.0]
    assert tn.cond(x.sum() > 2, lambda y: y + 1, lambda y: y, x).tolist() == [2.0, 3.0]
    seen: list[Any] = []
    assert tn.hook("here", x, seen.append) is x
    assert seen[0].tolist() == [1.0, 2.0]


def test_arrays_go_from_thread_to_thread() -> None:
    x = tn.asarray(np.arange(1000.0))
    y = np.sin(x) * 2
    expected = (np.sin(np.arange(1000.0)) * 2).sum()
    found: list[float] = []

    def work() -> None:
        for i in range(20):
            z = y + i
            found.append(float((z - i).sum()))

    threads = [threading.Thread(target=work) for _ in range(8)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert len(found) == 160
    assert np.allclose(found, expected)
