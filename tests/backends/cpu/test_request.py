"""Kernels that are asked for while a plan is made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fresh import forget_code

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.link import compile
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.backends.cpu.run.kernels import Request
from tenfold.backends.llvm import assemble
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.kernel.passes.generalise import generalise
from tests.backends.cpu.running import HOST
from tests.backends.cpu.test_compile import chain


def program(x: Any) -> Any:
    """Several kernels, in a loop too, some of them equal."""

    def body(carry: Any, row: Any) -> Any:
        total = np.sort(np.tanh(carry) * row) + carry
        return total, total.sum()

    made, sums = tn.scan(body, x[0], np.sort(x * 3) + 1)
    return np.sort(made) - 2, np.sort(np.exp(sums)) - 2


def test_kernels_are_asked_for_in_the_order_of_the_plan() -> None:
    """So they are parted into modules as those of a plan that is there: the same bytes."""
    asked: list[SizedKernel] = []

    class Recorded(Request):
        def add(self, call: SizedKernel) -> None:
            asked.append(call)
            super().add(call)

    graph = tn.trace(program, np.ones((4, 6)))
    request = Recorded(HOST, False)
    plan = BACKEND.plan(graph, request=request)
    assert tuple(dict.fromkeys(asked)) == plan.calls
    assert len(plan.calls) > 3
    before = len(asked)
    x = np.random.default_rng(0).random((4, 6))
    made = CompiledProgram(plan, request=request)([x])
    assert tuple(asked[before:]) == plan.calls  # all over again, and nothing new
    for one, other in zip(made, CompiledProgram(BACKEND.plan(graph))([x]), strict=True):
        assert one.tobytes() == other.tobytes()


def test_one_that_is_open_keeps_nobody_waiting() -> None:
    mine, other = SizedKernel(chain(11, 7.25)), SizedKernel(chain(12, 7.5))
    request = Request(HOST, False)
    request.add(mine)
    second = Request(HOST, False)
    second.add(mine)
    made = second.finish([mine, other])
    assert request.finish([mine])[mine] is made[mine]  # what was made meanwhile is shared


class ExactFacts:
    """Of these very sizes."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.sizes = sizes

    def hold(self, sizes: tuple[int, ...]) -> bool:
        return self.sizes == sizes


def test_what_is_made_is_found_by_its_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where another's text is the same."""
    prepare = compile.prepare

    def exact(call: SizedKernel, *given: Any) -> Any:
        code, made = prepare(call, *given)
        return code, replace(made, facts=ExactFacts(call.sizes))

    monkeypatch.setattr(compile, "prepare", exact)
    calls = [generalise(chain(13, extent=extent)) for extent in (1000, 2000)]
    made = Request(HOST, True).finish(calls)
    assert len({code.compiled.name for code in made.values()}) == 1
    again = Request(HOST, True).finish(calls)
    assert [again[call] for call in calls] == [made[call] for call in calls]
    assert all(made[call].compiled.facts.hold(call.sizes) for call in calls)


def test_a_plan_that_fails_lets_go_of_its_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_code(monkeypatch)
    monkeypatch.setattr(assemble, "processors", lambda: 1)  # no thread takes any
    monkeypatch.setattr(compile, "BATCH", 1)
    request = Request(HOST, True)  # no other test has its kernels
    graph = tn.trace(program, np.ones((4, 6)))

    def failing(call: SizedKernel) -> None:
        Request.add(request, call)
        if len(request._new) > 2:
            assert request._compilation is not None
            assert request._compilation._assembly._left
            raise KeyboardInterrupt

    monkeypatch.setattr(request, "add", failing)
    with pytest.raises(KeyboardInterrupt):
        BACKEND.plan(graph, request=request)
    assert request._compilation is not None
    assert not request._compilation._assembly._left


def test_threads_that_ended_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble, "processors", lambda: 2)
    assembly = assemble.Assembly(HOST)
    for number in range(3):
        assembly.add(f"define i32 @f{number}() {{\n  ret i32 {number}\n}}")
        (thread,) = assembly._threads
        thread.join()
        assert not assembly._left
    assert len(assembly.finish()) == 3
