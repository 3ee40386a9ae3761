"""The prover on GPUs: a simulated one by CUDA, the first adapter by WebGPU, and none at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

from tenfold.apps.prover.backend import DEVICES, TracedFunction, is_device
from tenfold.apps.prover.closure import fixpoint
from tenfold.apps.prover.closure.closing import close_by_cost
from tenfold.apps.prover.closure.fixpoint import prepare, run
from tenfold.apps.prover.closure.products import multiply
from tenfold.apps.prover.command import app
from tenfold.apps.prover.compiled import Explaining
from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.evaluation import evaluate
from tenfold.apps.prover.input.program import Program
from tenfold.apps.prover.reference.bottom_up import close
from tenfold.apps.prover.rollout.exhaustive import exhaust
from tenfold.apps.prover.rollout.exhaustive_run import Exhaustion, exhaust_all
from tenfold.apps.prover.rollout.loop import roll
from tenfold.apps.prover.rollout.queue import Lane
from tenfold.apps.prover.rollout.room import Batch, Room
from tenfold.apps.prover.rollout.run import Rollout, Search
from tenfold.apps.prover.settings import Settings
from tenfold.backends import registry
from tests.backends.cuda.simulated import SimulatedGpu, simulated

from .conftest import fact, write

FUNCTIONS = (multiply, prepare, run, roll, exhaust)
# a path, which is a product of matrices, and a rule with a constant, which is a join
SMALL = write(
    "p(a,b).\np(b,c).\nq(X,Y) :- p(X,Y).\nq(X,Z) :- p(X,Y), q(Y,Z).\nr(X,X) :- q(X,c).",
    "q(a,c).\nr(a,a).",
)


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulated GPU does one thing after the other."""
    monkeypatch.setattr(fixpoint, "DEVICE_PIECE", 64)


def forget(functions: tuple[TracedFunction, ...]) -> None:
    for function in functions:
        function._jitted = {n: f for n, f in function._jitted.items() if not is_device(n)}
        function._seen = {key for key in function._seen if not is_device(str(key[0]))}


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A simulated GPU in place of the first one."""
    record = replace(simulated(SimulatedGpu(races=False)), describe=lambda: {"target": "simulated"})
    monkeypatch.setattr(registry, "_records", {**registry._records, "cuda": record})
    forget(FUNCTIONS)
    yield "cuda"
    forget(FUNCTIONS)


@pytest.fixture
def webgpu() -> str:
    why = registry.backend_record("webgpu").missing()
    if why is not None:
        pytest.skip(why)
    return "webgpu"


def lanes_of(program: Program) -> list[Lane]:
    asked = ("q(a,c)", "q(c,a)", "r(a,a)", "r(c,c)", "p(a,b)")
    return [Lane(program.number(fact(one))) for one in asked]


def check_closure(backend: str) -> Explaining:
    with Explaining() as log:
        made = close_by_cost(SMALL, 4, backend)
    assert made.by_triple() == close(SMALL, 4).heights
    assert made.complete
    return log


def check_searches(backend: str) -> Explaining:
    """A rollout and an exhaustive search end as the evaluator's do."""
    search = Search(steps=3, height=3, room=Room(8, 3, 4), batch=2, backend="evaluator")
    limits = Exhaustion(2, Room(16, 4, 4), places=32, batch=4, backend="evaluator")
    lanes = lanes_of(SMALL)
    with Explaining() as log:
        found = Rollout(SMALL, replace(search, backend=backend)).run(lanes)
        assert found == Rollout(SMALL, search).run(lanes)
        proved = exhaust_all(SMALL, lanes, replace(limits, backend=backend))
        assert proved == exhaust_all(SMALL, lanes, limits)
    return log


def no_host_steps(log: Explaining, functions: set[str]) -> None:
    assert {one.function for one in log.plans.values()} == functions
    assert [one for one in log.plans.values() if one.hosts] == []


def test_a_closure_is_whole_on_a_simulated_gpu(cuda: str) -> None:
    no_host_steps(check_closure(cuda), {"multiply", "prepare", "run"})


def test_searches_are_whole_on_a_simulated_gpu(cuda: str) -> None:
    no_host_steps(check_searches(cuda), {"roll", "exhaust"})


def test_both_on_an_adapter(webgpu: str) -> None:
    check_closure(webgpu)
    check_searches(webgpu)


def test_a_run_says_what_it_ran_on(cuda: str) -> None:
    made = evaluate(Settings("family:families=1,generations=2", limit=1, backend=cuda, height=1))
    assert made.provenance.target == "simulated"
    plain = evaluate(replace(made.settings, backend="python"))
    assert [one.found.rank for one in made.results] == [one.found.rank for one in plain.results]


@pytest.mark.parametrize("name", ["cuda:", "cuda:sm_90", "cuda:-1", "webgpu:x", "gpu", "cpu"])
def test_what_names_no_gpu_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="backend is") as caught:
        Settings("family:", backend=name)
    assert all(device in str(caught.value) for device in DEVICES)


def test_a_gpu_that_is_not_here_is_said_before_data_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record = replace(registry.backend_record("cuda"), missing=lambda: "there is no driver")
    monkeypatch.setattr(registry, "_records", {**registry._records, "cuda": record})
    ended = CliRunner().invoke(app, ["nowhere", "--backend", "cuda"], env={"COLUMNS": "400"})
    assert ended.exit_code == 2
    assert "there is no driver" in ended.output
    assert "say --backend compiled" in ended.output
    assert "nowhere" not in ended.output


@pytest.mark.parametrize("beam", [1, 4])
def test_a_gpu_searches_for_more_at_once(beam: int) -> None:
    here, there = (Batch.of(name, SMALL, beam) for name in ("compiled", "cuda:1"))
    assert there.lanes > 8 * here.lanes
    assert there.queue > here.queue
    assert (here.slots, there.threads) == (0, 1)
    given = Batch.of("cuda", SMALL, beam, lanes=100)
    assert (given.lanes, given.queue) == (100, here.queue)
    few: Any = replace(Room(), steps=1 << 20)
    assert there.within(few, beam).lanes <= max(1, there.within(few, beam).queue)
