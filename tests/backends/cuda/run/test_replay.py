"""Plans as graphs on a simulated GPU, whose nodes run in any order that their dependences allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND as CPU
from tenfold.backends.cuda.recording import ConditionalNode
from tenfold.backends.cuda.run import record
from tenfold.backends.cuda.run.program import CudaProgram
from tenfold.backends.cuda.run.replay import Replay
from tenfold.parity.check import check
from tenfold.reference import Callbacks
from tests.backends.cuda.simulated import SimulatedGpu, simulated

X = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)


def replayed(function: Callable[..., Any], *arrays: Any) -> tuple[Replay, CudaProgram]:
    """How a function is replayed, after two calls that gave the CPU's bits."""
    graph = tn.trace(function, *arrays)
    program = simulated(SimulatedGpu()).compile(graph)
    assert isinstance(program, CudaProgram)
    wanted = CPU.compile(graph)([np.asarray(a) for a in arrays])
    for _ in range(2):
        for got, expected in zip(program([np.asarray(a) for a in arrays]), wanted, strict=True):
            np.testing.assert_array_equal(got, expected)
    (room,) = program._rooms
    assert room.replay is not None
    return room.replay, program


def recurrence(reverse: bool) -> Callable[[Any], Any]:
    def step(c: Any, row: Any) -> Any:
        return c * 0.5 + row, c.sum()

    return lambda x: tn.scan(step, np.zeros(8, np.float32), x, reverse=reverse)


WAYS = ("unrolled", "repeated", "one block")


def go(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have loops recorded in this way."""
    monkeypatch.setattr(record, "FEW", 10**6 if way == "unrolled" else 0)
    monkeypatch.setattr(record, "UNROLLED", 0)
    monkeypatch.setattr(record, "recorded_by_threads", lambda *_: False)
    if way == "repeated":
        monkeypatch.setattr(record, "recorded_by_block", lambda *_: False)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_counted_loops_are_unrolled_repeated_or_done_by_one_block(
    reverse: bool, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(way, monkeypatch)
    replay, _ = replayed(recurrence(reverse), X)
    (recording,) = replay.recordings
    loops = [n for n in recording.nodes if isinstance(n, ConditionalNode)]
    assert len(loops) == recording.handles == (way == "repeated")
    assert (recording.kernels > len(X)) == (way == "unrolled")


@pytest.mark.parametrize("way", WAYS)
def test_a_loop_of_no_rounds_gives_what_it_was_given(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(way, monkeypatch)
    replayed(recurrence(False), X[:0])
    replayed(lambda x: tn.while_loop(lambda c: c.sum() < -1e9, lambda c: c + 1, x), X)


def test_whiles_and_branches_are_nodes() -> None:
    def f(x: Any) -> Any:
        def body(c: Any) -> Any:
            return tn.cond(c.max() > 3, lambda v: v * 1.5, lambda v: v + 1, c)

        return tn.while_loop(lambda c: c.sum() < 900, body, x)

    replay, _ = replayed(f, X)
    (recording,) = replay.recordings
    assert recording.handles == 2
    assert len(replay.items) == 1


def test_loops_nest() -> None:
    def inner(i: Any, c: Any) -> Any:
        return tn.while_loop(lambda d: d.sum() < i * 3.0, lambda d: d + 1.0, c * 0)

    replayed(lambda x: tn.fori_loop(0, 5, inner, x[0]), X)


@pytest.mark.parametrize("way", WAYS)
def test_carries_change_places(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    go(way, monkeypatch)
    replayed(lambda x: tn.fori_loop(0, 7, lambda i, c: (c[1], c[0]), (x, x * 2)), X)
    replayed(lambda x: tn.fori_loop(0, 7, lambda i, c: (c[1] + i, c[0]), (x[0], x[1])), X)


def test_a_fault_ends_a_loop_of_one_block_and_names_its_line() -> None:
    def f(x: Any) -> Any:
        def body(c: Any) -> Any:
            i, v = c
            return i + 7, v + np.take(x, i, axis=0)

        return tn.while_loop(lambda c: c[0] < 10**6, body, (np.int64(0), x[0]))

    graph = tn.trace(f, X)
    program = simulated(SimulatedGpu(races=False)).compile(graph)
    with pytest.raises(IndexError, match="40"):
        program([X])


def test_rounds_over_many_elements_are_not_for_one_block() -> None:
    x = np.random.default_rng(0).standard_normal(40_000).astype(np.float32)
    replay, _ = replayed(lambda x: tn.fori_loop(0, 40, lambda i, c: c[::-1] * 0.5 + 1, x), x)
    (recording,) = replay.recordings
    assert recording.kernels >= 40


def test_an_index_of_any_kind_chooses_a_branch() -> None:
    def f(n: Any, x: Any) -> Any:
        return tn.switch(n, [lambda v: v, lambda v: v * 2, lambda v: v - 1], x)

    for dtype in ("i1", "u1", "i2", "i8", "u8"):
        for n in (-5, 0, 1, 2, 9):
            if n >= 0 or dtype.startswith("i"):
                replayed(f, np.array(n, dtype), X[:2])
    replayed(lambda b, x: tn.cond(b, lambda v: v, lambda v: -v, x), np.array(True), X[:2])


def test_what_is_independent_does_not_wait() -> None:
    replay, _ = replayed(lambda x: (np.exp(x).sum(axis=0), np.sin(x).sum(axis=1)), X)
    (recording,) = replay.recordings
    assert any(not node.after for node in recording.nodes[1:])


def test_the_host_works_between_graphs() -> None:
    def f(x: Any) -> Any:
        return np.linalg.qr(x * 2)[1] + 1

    graph = tn.trace(f, X)
    program = simulated(SimulatedGpu()).compile(graph)
    (got,) = program([X])
    np.testing.assert_allclose(abs(got - 1), abs(f(X) - 1), rtol=1e-4, atol=1e-4)
    (room,) = program._rooms  # type: ignore[attr-defined]
    kinds = [isinstance(item, int) for item in room.replay.items]
    assert kinds == [False, True, False]


def test_a_fault_is_told_with_its_line_and_forgotten() -> None:
    def f(x: Any, i: Any) -> Any:
        return np.take(x * 2, i, axis=0) + 1

    index = np.array([0, 3, 7])
    graph = tn.trace(f, X, index)
    program = simulated(SimulatedGpu()).compile(graph)
    with pytest.raises(IndexError, match="40") as told:
        program([X, np.array([0, 99, 1])])
    assert "test_replay.py" in str(told.value)
    (got,) = program([X, index])
    np.testing.assert_array_equal(got, f(X, index))


def test_small_arguments_come_with_the_graph_and_large_ones_do_not() -> None:
    for rows, staged in ((4, True), (40_000, False)):
        x = np.zeros((rows, 8), np.float32)
        _, program = replayed(lambda x: x * 2 + 1, x)
        (room,) = program._rooms
        assert (room.staged[1] is not None) == staged


def test_captured_arrays_are_brought_once(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = SimulatedGpu()
    graph = tn.trace(lambda x, w: x @ w + 1, X, X.T.copy())
    program = simulated(gpu).compile(graph)
    uploads: list[int] = []
    upload = gpu.upload

    def counted(address: int, array: Any, stream: Any) -> None:
        uploads.append(array.nbytes)
        upload(address, array, stream)

    monkeypatch.setattr(gpu, "upload", counted)
    for n in range(2):  # whoever is bound with others brings his own
        w = X.T * np.float32(n + 1)
        bound = program.bind(lambda *_: None, [w])
        for _ in range(3):
            np.testing.assert_allclose(bound.call(X), X @ w + 1, rtol=1e-4, atol=1e-4)
    assert uploads == [X.nbytes, X.nbytes]


def test_a_call_that_brings_everything_leaves_nothing_captured() -> None:
    program = simulated(SimulatedGpu()).compile(tn.trace(lambda x, w: x + w, X, X))
    bound = program.bind(lambda *_: None, [X * 2])
    for _ in range(2):
        np.testing.assert_array_equal(bound.call(X), X + X * 2)
        np.testing.assert_array_equal(program([X, X * 5])[0], X + X * 5)


def test_what_is_called_before_a_fault_is_called_once() -> None:
    seen: list[float] = []

    def f(x: Any, i: Any) -> Any:
        y = tn.hook("seen", x * 2, lambda v: seen.append(float(v.sum())))
        return np.take(y, i, axis=0)

    g = tn.trace(f, X, np.array([0, 1]))
    program = simulated(SimulatedGpu()).compile(g)
    calls = Callbacks(overrides={"seen": lambda v: seen.append(1.0)})
    with pytest.raises(IndexError):
        program([X, np.array([0, 99])], calls)
    assert len(seen) == 1


def test_plans_are_judged_as_they_are_replayed() -> None:
    def f(x: Any) -> Any:
        last, sums = recurrence(False)(x)
        return np.tanh(last), sums

    graph = tn.trace(f, X)
    program = simulated(SimulatedGpu(races=False)).compile(graph)
    found = check(program, graph, [X], limit=None)
    assert found.agrees, found.verdict
    assert found.verdict.complete
