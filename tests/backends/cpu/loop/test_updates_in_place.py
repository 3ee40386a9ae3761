"""An array that a round updates stays where it is."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.plan import KernelStep
from tests.backends.cpu.loop.both_ways import run_both

UPDATES: dict[str, Callable[[Any, Any], Any]] = {}


def update(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    UPDATES[function.__name__] = function
    return function


@update
def once(i: Any, a: Any) -> Any:
    a[i] = 0.5 * a[i - 1] + a[i]
    return a


@update
def twice(i: Any, a: Any) -> Any:
    a[i] = a[i] + a[i - 1]
    a[i - 1] = a[i - 1] * 0.5
    return a


@update
def three_times(i: Any, a: Any) -> Any:
    a[i] += 1
    a[i - 1] = a[i]
    a[0] = a[i - 1] * 0.5
    return a


@update
def a_read_before_and_one_after(i: Any, a: Any) -> Any:
    before = a[i - 1]
    a[i - 1] = a[i]
    a[i] = before + a[i - 1]
    return a


@update
def a_sum_before(i: Any, a: Any) -> Any:
    total = a.sum()
    a[i] = total * 1e-3
    return a


@update
def in_a_branch(i: Any, a: Any) -> Any:
    def changed(a: Any) -> Any:
        a[i] = a[i] * 2
        return a

    return tn.cond(a[i] > 0, changed, lambda a: a, a)


@update
def in_both_branches(i: Any, a: Any) -> Any:
    def doubled(a: Any) -> Any:
        a[i] = a[i] * 2
        return a

    def halved(a: Any) -> Any:
        a[i - 1] = a[i] * 0.5
        a[i] = 0
        return a

    return tn.cond(a[i] > 0, doubled, halved, a)


@update
def in_an_inner_loop(i: Any, a: Any) -> Any:
    def inner(j: Any, a: Any) -> Any:
        a[j] = a[j] + a[i]
        return a

    return tn.fori_loop(0, i, inner, a)


@pytest.mark.parametrize("name", UPDATES)
def test_updates_in_place_copy_no_array(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often an array is updated in a round, it stays where it is."""

    def function(a: Any) -> Any:
        return tn.fori_loop(1, a.shape[0], UPDATES[name], a)

    a = np.random.default_rng(2).standard_normal(200)
    run_both(function, (a,), monkeypatch)
    plan = BACKEND.plan(tn.trace(function, a))
    (outer,) = (s for s in plan.steps if s.kind == "loop")
    big = [n for n, s in enumerate(outer.outputs) if plan.slots[s].type.nbytes == a.nbytes]
    assert all(outer.second[n] == outer.outputs[n] for n in big), plan  # it is updated in place
    assert all(inner.greatest_live < a.nbytes for inner in plan.every), plan


def rows_by_python(a: Any) -> Any:
    for i in range(1, a.shape[0]):
        a[i] = a[i] + a[i - 1]
        a[i - 1] = a[i] * 0.5
    return a


def elements_by_python(a: Any) -> Any:
    for i in range(1, a.shape[0]):
        a[i, 1] += a[i - 1, 2]
        a[i, 1] /= 3.0
    return a


def rows_by_slices(a: Any) -> Any:
    def step(i: Any, a: Any) -> Any:
        row = tn.dynamic_slice(a, (i - 1, 0), (1, a.shape[1]))
        a = tn.dynamic_update(a, row * 0.5, (i, 0))
        return tn.dynamic_update(a, row + 1, (i - 1, 0))

    return tn.fori_loop(1, a.shape[0], step, a)


@pytest.mark.parametrize("function", [rows_by_python, elements_by_python, rows_by_slices])
@pytest.mark.parametrize("columns", [4, 40])
def test_a_round_touches_what_it_updates_and_no_more(
    function: Callable[..., Any], columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An array of more than a few numbers is updated in place, twice in a round too."""
    a = np.random.default_rng(4).standard_normal((50, columns))
    run_both(function, (a,), monkeypatch)
    plan = BACKEND.plan(tn.trace(function, a))
    (step,) = (s for s in plan.steps if s.kind == "loop")
    body = plan.plans[step.plans[-1]]
    for kernel in (s for s in body.steps if isinstance(s, KernelStep)):
        call = body.call(kernel)
        assert prod(call.size(axis.extent) for axis in call.kernel.axes) <= columns
    assert body.greatest_live < a.nbytes
