"""Shaders that are compiled while a plan is made."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.webgpu.backend import BACKEND
from tenfold.backends.webgpu.native.device import Device
from tenfold.backends.webgpu.probe import opened
from tenfold.backends.webgpu.run import kernels as run_kernels
from tenfold.backends.webgpu.run.kernels import Kernels
from tenfold.backends.webgpu.run.program import WebGPUProgram
from tenfold.backends.webgpu.run.request import Ahead, Request
from tenfold.errors import DeviceProblem
from tenfold.graph import Graph
from tenfold.stats import stats
from tests.backends.webgpu.here import needs_adapter

pytestmark = needs_adapter

X = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)


def new_kernels(**changed: Any) -> Kernels:
    found = opened()
    return Kernels(found.device, replace(found.target, **changed), False)


def several() -> Graph:
    """A loop and a branch, with kernels and routines."""

    def f(i: Any, x: Any) -> Any:
        y = np.sort(np.tanh(x), axis=0) @ x.T
        y = tn.fori_loop(0, 3, lambda n, c: np.cos(c) * n, y)
        return tn.cond(i, lambda v: np.cumsum(v, axis=0), lambda v: v.sum(axis=0) + v, y)

    return tn.trace(f, np.bool_(True), X)


def quiet(ahead: Ahead) -> None:
    """Wait until nothing is left to be done."""
    while ahead._at_work:
        time.sleep(0.001)


def test_nothing_is_left_when_the_plan_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels, graph = new_kernels(), several()
    request = Request(kernels)
    plan = BACKEND.plan(graph, request=request)
    quiet(kernels.ahead)
    before = stats()["kernels_compiled"]

    def refuse(*_: Any) -> Any:
        raise AssertionError("it is made twice")

    with monkeypatch.context() as patched:
        patched.setattr(run_kernels, "prepare", refuse)
        patched.setattr(Device, "pipeline", refuse)
        program = WebGPUProgram(plan, kernels, BACKEND, request=request)
        made = program([np.bool_(False), X])
    assert stats()["kernels_compiled"] - before == len({id(t) for t in request.texts}) > 2
    for got, wanted in zip(made, BACKEND.compile(graph)([np.bool_(False), X]), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_what_begins_elsewhere_is_made_again() -> None:
    """A kernel that writes a range of a slot, and is written as if it were a slot of its own."""
    kernels = new_kernels()
    x = X[:8].astype(np.float16)
    graph = tn.trace(lambda x: np.concatenate([x[:, :3] + 1, x[:5].T * 2, x[:8, 1:2]], axis=1), x)
    request = Request(kernels)
    plan = BACKEND.plan(graph, request=request)
    program = WebGPUProgram(plan, kernels, BACKEND, request=request)
    wanted = np.concatenate([x[:, :3] + 1, x[:5].T * 2, x[:8, 1:2]], axis=1)
    np.testing.assert_array_equal(program([x])[0], wanted)


def test_nothing_is_asked_for_where_most_would_be_made_again() -> None:
    request = Request(new_kernels(alignment=256))
    BACKEND.plan(several(), request=request)
    assert not request.texts


def test_a_plan_that_is_not_made_lets_go() -> None:
    kernels = new_kernels()
    kernels.ahead._most = 0  # nothing is begun
    request = Request(kernels)
    BACKEND.plan(several(), request=request)
    left = kernels.ahead._left
    assert len(left) > 3
    request.drop()
    while left:
        left.popleft()()
    assert not kernels._compiled


def test_what_fails_in_a_thread_is_told_where_it_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernels, graph = new_kernels(), several()
    asked = list[str]()

    def shader(self: Device, text: str) -> Any:
        asked.append(text)
        raise DeviceProblem("a shader is not taken")

    request = Request(kernels)
    with monkeypatch.context() as patched:
        patched.setattr(Device, "shader", shader)
        plan = BACKEND.plan(graph, request=request)
        quiet(kernels.ahead)
        assert asked
        with pytest.raises(DeviceProblem, match="not taken"):
            WebGPUProgram(plan, kernels, BACKEND, request=request)
    program = WebGPUProgram(plan, kernels, BACKEND, request=request)  # and is tried again
    assert len(program([np.bool_(True), X])) == 1


def test_a_shader_is_compiled_once() -> None:
    """Whoever needs it while a thread is at it waits for it."""
    kernels, graph, made = new_kernels(), several(), list[str]()
    own = kernels._made

    def slowly(shader: Any) -> Any:
        made.append(shader.text)
        time.sleep(0.02)
        return own(shader)

    kernels._made = slowly  # type: ignore[method-assign]
    request = Request(kernels)
    program = WebGPUProgram(BACKEND.plan(graph, request=request), kernels, BACKEND, request=request)
    program([np.bool_(True), X])
    quiet(kernels.ahead)
    assert len(made) == len(set(made)) > 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_waits_for_what_is_compiled() -> None:
    """It waits for threads of ours, and they for nothing that waits for it."""
    done = list[int]()

    def make() -> None:
        for _ in range(3):
            kernels = new_kernels()
            request = Request(kernels)
            plan = BACKEND.plan(several(), request=request)
            WebGPUProgram(plan, kernels, BACKEND, request=request)
        done.append(1)

    thread = threading.Thread(target=make)
    thread.start()
    for _ in range(8):
        child = os.fork()
        if not child:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        time.sleep(0.01)
    thread.join(60)
    assert done
