"""What ends a loop's function early: a check that fails, a signal."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tests.backends.cpu.loop.both_ways import interpreted


def reads_beyond(a: Any) -> Any:
    def step(i: Any, a: Any) -> Any:
        a[i] = a[2 * i] + 1
        return a

    return tn.fori_loop(0, a.shape[0], step, a)


def writes_before(a: Any) -> Any:
    def step(i: Any, a: Any) -> Any:
        a[-3 * i] = 1.0
        return a

    return tn.fori_loop(0, a.shape[0], step, a)


def reads_beyond_in_an_inner_loop(a: Any) -> Any:
    def step(i: Any, total: Any) -> Any:
        return total + tn.fori_loop(0, i, lambda j, s: s * 0.5 + a[i + j], total)

    return tn.fori_loop(0, a.shape[0], step, 0.0)


def looks_beyond_in_its_test(a: Any) -> Any:
    return tn.while_loop(lambda i: a[i] >= 0, lambda i: i + 3, 0)


def reads_a_carry_of_a_few_numbers(a: Any) -> Any:
    def step(i: Any, s: Any) -> Any:
        few, total = s
        return few * 0.5 + total, total + few[i % 5]

    return tn.fori_loop(0, a.shape[0], step, (a[:4], 0.0))


def reads_beyond_in_a_branch(a: Any) -> Any:
    def step(i: Any, s: Any) -> Any:
        return tn.cond(i > 20, lambda: s + a[i + 30], lambda: s + 1)

    return tn.fori_loop(0, a.shape[0], step, 0.0)


@pytest.mark.parametrize(
    "function",
    [
        reads_beyond,
        writes_before,
        reads_beyond_in_an_inner_loop,
        looks_beyond_in_its_test,
        reads_a_carry_of_a_few_numbers,
        reads_beyond_in_a_branch,
    ],
)
def test_a_fault_is_named_as_the_interpreter_names_it(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    a = np.arange(50.0)
    plan = BACKEND.plan(tn.trace(function, a))
    program = CompiledProgram(plan)
    assert len(program.functions) == 1
    with pytest.raises(IndexError) as caught:
        program([a.copy()])
    with pytest.raises(IndexError) as told:
        interpreted(plan, monkeypatch)([a.copy()])
    assert str(caught.value) == str(told.value)
    assert Path(__file__).name in str(caught.value)


@contextmanager
def alarm() -> Iterator[None]:
    """A signal that raises comes while what is inside goes on."""

    def ring(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_endless_loop_hears_of_signals() -> None:
    program = CompiledProgram(
        BACKEND.plan(tn.trace(lambda x: tn.while_loop(lambda x: x < 2, lambda x: x * 1.0, x), 1.0))
    )
    assert len(program.functions) == 1
    with pytest.raises(KeyboardInterrupt), alarm():
        program([np.float64(1)])
