"""Large arrays are judged by a sample of their rows, once kernels are judged."""

from typing import Any

import numpy as np
import pytest
from faults import plant
from fresh import forget_code

import tenfold as tn
from tenfold.api import checking
from tenfold.backends.cpu.backend import BACKEND
from tenfold.parity import check as checks
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import check
from tenfold.parity.replay import sample
from tenfold.parity.replay.sample import ELEMENTS, check_sample

X = np.random.default_rng(1).normal(size=1 << 20)
ROWS = X.reshape(-1, 64)
SQUARE = np.random.default_rng(2).normal(size=(1100, 1100)).astype("f4")

APART: dict[str, Any] = {
    "chain": (lambda x: np.tanh(x) * 2 + x, (X,)),
    "rows": (lambda x, w: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True) * w, (ROWS, X[:64])),
    "square": (lambda x: x - x.mean(axis=1, keepdims=True), (SQUARE,)),
    "two": (lambda x: (x + 1, x.max(axis=1)), (ROWS,)),
    "integers": (lambda x: (x * 10).astype("i8") // 3, (ROWS,)),
    "donated": (lambda x: np.sqrt(x * x + 1), (ROWS,)),
}
TOGETHER: dict[str, Any] = {
    "sum": (lambda x: x.sum(), (X,)),
    "both": (lambda x: (x * 2, x.sum()), (X,)),
    "along": (lambda x: np.cumsum(x), (X,)),
    "backwards": (lambda x: x[::-1] + x, (X,)),
    "numbered": (lambda x: x + np.arange(x.size), (X,)),
}


@pytest.mark.parametrize("case", APART)
def test_rows_that_are_apart_are_sampled(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arrays = APART[case]
    graph = tn.trace(function, *arrays)
    program = BACKEND.compile(graph)
    computed = []
    evaluate = sample.evaluate

    def counted(graph: Any, arrays: Any) -> Any:
        computed.append(sum(type.size for type in graph.types))
        return evaluate(graph, arrays)

    monkeypatch.setattr(sample, "evaluate", counted)
    found = check_sample(program, graph, arrays, len(program.plan.steps))
    assert found is not None
    (size,) = computed
    assert size <= 1.01 * ELEMENTS
    for made, wanted in zip(found.made, program(arrays), strict=True):
        np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("case", TOGETHER)
def test_rows_that_meet_are_not(case: str) -> None:
    function, arrays = TOGETHER[case]
    graph = tn.trace(function, *arrays)
    assert check_sample(BACKEND.compile(graph), graph, arrays, 1) is None


def test_the_first_call_is_certified_by_it_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_code(monkeypatch)
    monkeypatch.setattr(checking, "OWN", X.nbytes - 1)
    monkeypatch.setattr(checking, "LEAST", 5.0)
    monkeypatch.setattr(checking, "MOST", 5.0)
    f = tn.jit(lambda x: np.tanh(x * 3) - x, verify="first")
    np.testing.assert_allclose(f(X), np.tanh(X * 3) - X)
    certificate = f.certificate(X)
    assert certificate.complete
    (note,) = certificate.notes
    assert note.startswith("by a sample: its kernels were judged, and ")
    assert "of 1,048,576 rows" in note


def test_smaller_arguments_are_judged_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "LEAST", 5.0)
    monkeypatch.setattr(checking, "MOST", 5.0)
    few = X[:5000]
    f = tn.jit(lambda x: np.tanh(x * 5) - x, verify="first")
    f(few)
    assert f.certificate(few).checked
    assert not any("by a sample" in note for note in f.certificate(few).notes)


def test_a_wrong_plan_is_left_to_the_full_check_which_refutes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget_code(monkeypatch)
    function, arrays = APART["chain"]
    graph = tn.trace(function, *arrays)

    with plant("instruction", "tanh>exp"):
        program = BACKEND.compile(graph)
    assert check_sample(program, graph, arrays, 1) is None
    assert not check(program, graph, arrays, sampled=True).agrees


def test_a_plan_of_which_nothing_was_judged_is_looked_at_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No call begins a reference that can't end in time, unless it would answer unseen."""
    forget_code(monkeypatch)
    monkeypatch.setattr(checks, "PACE", 0)  # no kernel is judged
    monkeypatch.setattr(checks, "_EVALUATED", 1)
    graph = tn.trace(lambda x: (np.tanh(x), x.sum()), X)

    assert check(BACKEND.compile(graph), graph, [X], limit=0.01).agrees
    with plant("instruction", "tanh>exp"):
        program = BACKEND.compile(graph)
    program.judged = set()
    for limit in (0.01, 1e-9):
        assert not check(program, graph, [X], limit=limit, sampled=True).agrees


def test_a_large_table_of_which_little_is_read_does_not_keep_the_reference_from_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checks, "_EVALUATED", ROWS.size // 10)  # a second for a tenth of the table
    graph = tn.trace(lambda x, i: x.T[:, i] * 2, ROWS, np.arange(3))
    found = check(BACKEND.compile(graph), graph, [ROWS, np.arange(3)], limit=9.0)
    assert isinstance(found.verdict, Certificate)
    assert found.verdict.complete


@pytest.mark.parametrize("rows", [slice(0, 1), slice(-1, None), slice(500_000, 500_400)])
def test_rows_that_stay_unwritten_are_seen(rows: slice, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arrays = APART["chain"]
    graph = tn.trace(function, *arrays)
    run_whole = sample.run_whole

    def lost(*given: Any) -> Any:
        (made,), damage = run_whole(*given)
        made.view("i8")[rows] = -1
        return [made], damage

    monkeypatch.setattr(sample, "run_whole", lost)
    assert check_sample(BACKEND.compile(graph), graph, arrays, 1) is None
