"""Large kernels are judged at smaller sizes, by the very code that they run."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fresh import forget_code

import tenfold as tn
from tenfold import seam
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.schedule import traffic
from tenfold.kernel import Kernel
from tenfold.parity import check as checks
from tenfold.parity.check import check
from tenfold.parity.replay.drawn import Bench, kernels
from tenfold.parity.replay.smaller import smaller
from tenfold.parity.replay.state import PlanFacts

A = np.random.default_rng(5).normal(size=(9000, 777)).astype("f4")
B = np.random.default_rng(6).normal(size=(777,)).astype("f4")

LARGE = {
    "chain": (lambda a: np.tanh(a) * 2 + a, (A,)),
    "softmax": (lambda a: np.exp(a) / np.exp(a).sum(axis=1, keepdims=True), (A,)),
    "rows": (lambda a, b: (a * b).sum(axis=1) - 1, (A, B)),
    "gather": (lambda a, i: a[i] + 1, (A, np.arange(5))),
    "tables": (lambda a, i: np.tanh(a[i] * 2), (A, np.arange(9))),
    "stencil": (lambda a: a[1:-1] * 2 - a[2:] - a[:-2], (A,)),
}


def large_step(function: Any, arrays: Any) -> tuple[Any, str, PlanFacts, int]:
    graph = tn.trace(function, *arrays)
    program = BACKEND.compile(graph)
    about = PlanFacts(program.plan, program.plan.graph, 0)
    ((name, _, at),) = kernels(program, {0: about})
    return program, name, about, at


@pytest.mark.parametrize("case", LARGE)
def test_a_large_kernel_has_smaller_sizes(case: str) -> None:
    program, name, about, at = large_step(*LARGE[case])
    compiled = tn.stats()["kernels_compiled"]
    found = smaller(program, about, at, name, lambda: None)
    assert found is not None
    assert found.about.size(0) < 0.95 * about.size(at)
    assert tn.stats()["kernels_compiled"] == compiled


def test_code_that_is_preferred_for_large_arrays_is_judged_with_few_elements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Non-temporal stores and polls are right for any number of elements."""
    forget_code(monkeypatch)
    monkeypatch.setattr(traffic, "cache_bytes", lambda: 1 << 20)
    program, name, about, at = large_step(*LARGE["chain"])
    (code,) = program.code.values()
    assert code.compiled.schedule.stream is not None
    assert code.compiled.polls
    found = smaller(program, about, at, name, lambda: None)
    assert found is not None
    assert found.about.size(0) < 1 << 17


def test_what_the_reference_makes_on_the_way_counts() -> None:
    """Two short rows become a table, which the kernel never has in memory."""
    x = A[:2000, 0].copy()
    arrays = (x, x[::-1].copy())
    program, name, about, at = large_step(
        lambda a, b: np.tanh(a[:, None] * b).sum(axis=1) + a, arrays
    )
    assert about.size(at) == x.size**2
    found = smaller(program, about, at, name, lambda: None)
    assert found is not None
    assert found.about.size(0) < 1 << 18


def test_sizes_that_have_other_code_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    program, name, about, at = large_step(*LARGE["chain"])
    monkeypatch.setattr(type(program), "serves", lambda *_: False)
    assert smaller(program, about, at, name, lambda: None) is None


def test_it_is_judged_there(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_code(monkeypatch)
    sizes = []
    judge = Bench.judge

    def judged(self: Any, about: Any, at: int, watch: Any) -> Any:
        sizes.append(about.size(at))
        return judge(self, about, at, watch)

    monkeypatch.setattr(Bench, "judge", judged)
    function, arrays = LARGE["gather"]
    graph = tn.trace(function, *arrays)
    program = BACKEND.compile(graph)
    program.judged = set()
    found = check(program, graph, arrays, limit=0.5)
    assert found.agrees
    assert found.verdict.undrawn == 0
    (size,) = sizes
    assert size < A.size / 4


def with_exp(kernel: Kernel) -> Kernel:
    """A kernel with exp for tanh."""
    swapped = [replace(i, op="exp") if i.op == "tanh" else i for i in kernel.instructions]
    return kernel.with_instructions(swapped, range(len(swapped)))


def test_a_fault_is_found_there_and_named_by_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_code(monkeypatch)
    function, arrays = LARGE["tables"]
    graph = tn.trace(function, *arrays)

    def spoil(what: str, made: Any) -> Any:
        return replace(made, own=tuple(map(with_exp, made.own))) if what == "plan" else made

    monkeypatch.setattr(seam, "hook", spoil)
    program = BACKEND.compile(graph)
    program.judged = set()
    found = check(program, graph, None)
    assert not found.agrees
    assert "on drawn values" in str(found.verdict)
    assert found.verdict.step.startswith("step 0, kernel")
    parameters = found.verdict.case.graph.parameters
    assert parameters[0].type.size < A.size / 2


def test_one_kernel_is_judged_to_its_end_in_each_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else checks of plans that share kernels would all begin with the same one, in vain."""
    forget_code(monkeypatch)
    monkeypatch.setattr(checks, "PACE", 1e30)
    graph = tn.trace(lambda a: (np.sort(np.exp(a), axis=0) - 1, np.sort(a, axis=0) * 3), A[:9])
    left: list[int] = []
    judged: set[str] = set()
    for _ in range(3):
        program = BACKEND.compile(graph)
        program.judged = judged
        found = check(program, graph, [A[:9]], limit=1e-9)
        left.append(found.verdict.undrawn)
    assert left == sorted(set(left), reverse=True)


def test_looking_for_smaller_sizes_ends_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_code(monkeypatch)
    looked = []

    def look(program: Any, about: Any, at: int, name: str, watch: Any) -> None:
        looked.append(name)
        watch()

    monkeypatch.setattr(checks, "smaller", look)
    graph = tn.trace(lambda a: (np.sort(np.exp(a), axis=0) - 1, np.sort(a, axis=0) * 3), A[:900])
    program = BACKEND.compile(graph)
    program.judged = set()
    found = check(program, graph, [A[:900]], limit=1e-9)
    assert len(looked) == 1
    assert found.verdict.undrawn == 3
