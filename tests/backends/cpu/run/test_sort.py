"""Sorts in plans: routines, not host steps, in loops and along any axis."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.capabilities import capabilities
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.backends.cpu.target import host_target
from tenfold.errors import PlanError
from tenfold.plan import Plan, RoutineStep
from tenfold.plan.file.file import read_plan, write_plan
from tenfold.reference import evaluate

HOST = capabilities(host_target())

random = np.random.default_rng(17)


def planned(function: Callable[..., Any], *args: Any) -> Plan:
    """The plan of a function without host steps, with the reference's bits."""
    graph = tn.trace(function, *args)
    plan = BACKEND.plan(graph)
    assert not plan.host_steps, plan.explain()
    flat = [np.asarray(a) for a in args]
    for got, wanted in zip(CompiledProgram(plan)(flat), evaluate(graph, flat), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)
    return plan


def kinds(plan: Plan) -> Counter[str]:
    return Counter(step.kind for one in plan.every for step in one.steps)


def draw(*shape: int) -> np.ndarray[Any, Any]:
    return np.round(random.standard_normal(shape) * 4).astype("f4")


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("shape", [(5, 7, 300), (300, 2, 3), (1, 1, 1), (4, 0, 3)])
def test_along_any_axis(shape: tuple[int, ...], axis: int) -> None:
    planned(lambda x: np.sort(x, axis), draw(*shape))
    planned(lambda x: np.argsort(x, axis, kind="stable"), draw(*shape))


def test_one_step_along_the_last_axis() -> None:
    plan = planned(lambda x: np.sort(x), draw(20, 30))
    assert kinds(plan) == {"routine": 1}
    plan = planned(lambda x: np.sort(x.reshape(20, 30), 1), draw(600))  # seen otherwise
    assert kinds(plan) == {"routine": 1}


def test_complex_numbers_are_the_hosts() -> None:
    x = draw(9) + 1j * draw(9)
    graph = tn.trace(np.sort, x)
    plan = BACKEND.plan(graph)
    assert [step.op for step in plan.host_steps] == ["sort"]
    np.testing.assert_array_equal(CompiledProgram(plan)([x])[0], np.sort(x))


def test_what_is_built_on_it() -> None:
    x = draw(50)
    planned(lambda x: np.median(x), x)
    planned(lambda x: tn.top_k(x, 5), x)
    planned(lambda x: tn.unique(x, size=30), x)
    planned(lambda x: np.searchsorted(np.sort(x), x), x)
    planned(tn.vmap(lambda x: (np.sort(x), np.argsort(x, kind="stable"))), draw(6, 40))


def test_one_routine_for_every_length() -> None:
    """The same functions serve every plan: nothing is compiled for another length."""
    planned(lambda x: np.sort(x), draw(30))
    before = tn.stats()["kernels_compiled"]
    plan = planned(lambda x: np.sort(x), draw(4, 999))
    assert tn.stats()["kernels_compiled"] == before
    assert not plan.kernels


def rollout(x: Any, weights: Any, rounds: int) -> Any:
    """A while loop around gather, scatter, cumsum, searchsorted and argsort."""

    def body(state: Any) -> Any:
        k, x = state
        order = np.argsort(x, kind="stable")
        sums = np.cumsum(np.abs(x[order]))
        at = np.clip(np.searchsorted(sums, weights * sums[-1]), 0, x.size - 1)
        x = x * 0.5
        np.add.at(x, order[at], weights)
        return k + 1, x

    return tn.while_loop(lambda s: s[0] < rounds, body, (0, x))


def test_a_loop_without_host_steps() -> None:
    x, weights = random.standard_normal(64), random.random(20)
    graph = tn.trace(lambda x, w: rollout(x, w, 7), x, weights)
    plan = BACKEND.plan(graph)
    assert not plan.host_steps
    for got, wanted in zip(
        CompiledProgram(plan)([x, weights]), evaluate(graph, [x, weights]), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-9)


def test_others_run_while_a_loop_does() -> None:
    """The GIL is given up for the whole loop: this thread goes on meanwhile."""
    x, weights = random.standard_normal(256), random.random(20)
    function = tn.jit(lambda x, w: rollout(x, w, 30_000), verify="off")
    function(x, weights)
    inside = threading.Event()
    done = threading.Event()

    def run() -> None:
        inside.set()
        function(x, weights)
        done.set()

    thread = threading.Thread(target=run)
    thread.start()
    inside.wait()
    turns = 0
    while not done.wait(0.001):
        turns += 1
    thread.join()
    assert turns > 10


def test_a_saved_plan(tmp_path: Any) -> None:
    function = tn.jit(lambda x: (np.sort(x, 0), np.argsort(x * 2, kind="stable")))
    x = draw(20, 30)
    wanted = function(x)
    function.plan(x).save(tmp_path / "sort.plan")
    for got, want in zip(tn.load(tmp_path / "sort.plan")(x), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_plan_with_too_little_scratch_is_refused() -> None:
    plan = BACKEND.plan(tn.trace(np.sort, draw(500)))
    (step,) = plan.steps
    assert isinstance(step, RoutineStep)
    read_plan(write_plan(plan), HOST)
    for bad in (replace(step, scratch=()), replace(step, scratch=step.outputs)):
        with pytest.raises(PlanError, match=r"routine sort|is of type"):
            read_plan(write_plan(replace(plan, steps=(bad,))), HOST)


def test_ctrl_c_stops_a_long_sort_and_the_next_call_is_right() -> None:
    """The result of a sort that was stopped is thrown away, and so is what it left in scratch."""
    f = tn.jit(lambda x: np.sort(x), verify="off")
    x = draw(6_000_000)
    wanted = np.sort(x)
    np.testing.assert_array_equal(f(x), wanted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        stopped = 0
        for _ in range(5):
            start = time.perf_counter()
            f(x)
            whole = time.perf_counter() - start
            timer = threading.Timer(whole / 3, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            try:
                np.testing.assert_array_equal(f(x), wanted)
            except KeyboardInterrupt:
                stopped += 1
            with contextlib.suppress(KeyboardInterrupt):  # where the sort was done before
                timer.join()
            np.testing.assert_array_equal(f(x), wanted)
        assert stopped
    finally:
        signal.signal(signal.SIGINT, before)
