"""Loops that are one native function give the interpreter's bits and the evaluator's values."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.plan.steps.loops import native_loops
from tests.backends.cpu.loop.both_ways import MANY, run_both


def test_a_scalar_recurrence(monkeypatch: pytest.MonkeyPatch) -> None:
    run_both(lambda x, b: tn.fori_loop(0, MANY, lambda i, x: x * 0.9 + b + i, x), (1.5, 0.25),
             monkeypatch)  # fmt: skip


@pytest.mark.parametrize("start", [1.0, 100.0, np.nan, np.inf, 1e-30])
def test_a_while_loop_ends_as_its_test_says(start: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        return tn.while_loop(lambda s: s[0] < 50, lambda s: (s[0] * 1.5, s[1] + 1), (x, 0))

    with np.errstate(all="ignore"):
        run_both(function, (np.float64(start),), monkeypatch)


def test_carries_that_swap_and_one_that_is_passed_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(a: Any, b: Any, c: Any) -> Any:
        return tn.fori_loop(0, MANY + 1, lambda i, s: (s[1], s[0] + 1, s[2]), (a, b, c))

    a, b, c = run_both(function, (1.0, 2.0, np.arange(3.0)), monkeypatch)
    assert (a, b) == (22.0, 22.0)
    np.testing.assert_array_equal(c, np.arange(3.0))


@pytest.mark.parametrize("size", [3, 500])
def test_arrays_that_swap(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(a: Any, b: Any) -> Any:
        return tn.fori_loop(0, MANY + 1, lambda i, s: (s[1] * 0.5, s[0]), (a, b))

    run_both(function, (np.arange(float(size)), np.ones(size)), monkeypatch)


def test_one_carry_stands_twice_among_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any, ys: Any) -> Any:
        def step(c: Any, y: Any) -> Any:
            c = c + y
            return c, (c, c)

        return tn.scan(step, x, ys)

    run_both(function, (0.5, np.arange(50.0)), monkeypatch)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(64,), (64, 3), (64, 100)])
def test_slices_and_stacks(
    shape: tuple[int, ...], reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def function(x: Any, ys: Any) -> Any:
        def step(c: Any, y: Any) -> Any:
            return c + y, (c * y, y - c)

        return tn.scan(step, x, ys, reverse=reverse)

    ys = np.random.default_rng(1).standard_normal(shape)
    run_both(function, (np.zeros(shape[1:]), ys), monkeypatch)


def test_integers_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any, small: Any) -> Any:
        def step(i: Any, s: Any) -> Any:
            return s[0] * np.uint64(6364136223846793005) + np.uint64(1), s[1] * 3 + 1

        return tn.fori_loop(0, MANY, step, (x, small))

    run_both(function, (np.uint64(7), np.int8(5)), monkeypatch)


@pytest.mark.parametrize("dtype", [np.bool_, np.int16, np.float32, np.complex128])
def test_carries_of_other_dtypes(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any, y: Any) -> Any:
        return tn.fori_loop(0, MANY, lambda i, s: (s[1], s[0] ^ s[1] if dtype is np.bool_ else
                                                   s[0] - s[1]), (x, y))  # fmt: skip

    run_both(function, (dtype(1), dtype(1)), monkeypatch)


def test_empty_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any, ys: Any) -> Any:
        return tn.scan(lambda c, y: (c + 1, (y, c)), x, ys)

    run_both(function, (np.zeros((0, 2)), np.zeros((MANY, 0))), monkeypatch)


def test_no_rounds_leave_what_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any, a: Any, n: Any) -> Any:
        def step(i: Any, s: Any) -> Any:
            x, a = s
            return x + 1, a * 2

        return tn.fori_loop(0, n, step, (x, a))

    for n in (-3, 0, 1, 2):
        run_both(function, (1.0, np.arange(100.0), n), monkeypatch)
    assert native_loops(
        BACKEND.plan(tn.trace(lambda x: tn.fori_loop(0, 0, lambda i, x: x, x), 1.0))
    )


def test_loops_nest_in_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(a: Any) -> Any:
        n = a.shape[0]

        def row(i: Any, a: Any) -> Any:
            def column(j: Any, a: Any) -> Any:
                dot = tn.fori_loop(0, j, lambda k, s: s + a[i, k] * a[j, k], 0.0)
                a[i, j] = (a[i, j] - dot) / a[j, j]
                return a

            a = tn.fori_loop(0, i, column, a)
            dot = tn.fori_loop(0, i, lambda k, s: s + a[i, k] * a[i, k], 0.0)
            a[i, i] = np.sqrt(a[i, i] - dot)
            return a

        return tn.fori_loop(0, n, row, a)

    a = np.random.default_rng(0).random((9, 9))
    a = a @ a.T + 9 * np.eye(9)
    (made,) = run_both(function, (a,), monkeypatch)
    np.testing.assert_allclose(np.tril(made), np.linalg.cholesky(a), rtol=1e-12)


def test_a_branch_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(a: Any, k: Any) -> Any:
        def update(i: Any, a: Any) -> Any:
            a[i] = a[i] - a[i - 1]
            return a

        def step(i: Any, a: Any) -> Any:
            a = tn.cond(a[i] > a[i - 1], lambda a: update(i, a), lambda a: a, a)
            more = [lambda: a[0], lambda: a[1] + 1, lambda: a[2] * 2]
            a[0] = tn.switch(a[i].astype(int) + k, more)
            return a

        return tn.fori_loop(1, a.shape[0], step, a)

    run_both(function, (np.random.default_rng(0).standard_normal(60) * 3, -1), monkeypatch)


def drawn(source: random.Random, depth: int) -> Any:
    """A function of a counter and a state of a number, an integer and an array, which computes the
    next by steps that are drawn: arithmetic, updates, branches and loops."""

    def number(i: Any, s: Any) -> Any:
        return s[0] * 0.75 + s[2][s[1] % 7], s[1], s[2]

    def integer(i: Any, s: Any) -> Any:
        return s[0], s[1] * 5 + i, s[2]

    def element(i: Any, s: Any) -> Any:
        x, n, a = s
        a[n % a.shape[0]] = x - a[i % 7]
        return x, n, a

    def whole(i: Any, s: Any) -> Any:
        return s[0] + 1, s[1], s[2] * 0.5 + s[0]

    def swapped(i: Any, s: Any) -> Any:
        x, n, a = s
        first = a[0]
        a[0] = x
        return first, n - 1, a

    def branch(i: Any, s: Any) -> Any:
        return tn.cond(s[1] % 3 == 0, lambda s: one(i, s), lambda s: other(i, s), s)

    def loop(i: Any, s: Any) -> Any:
        return tn.fori_loop(0, i % 4, lambda j, s: one(i + j, s), s)

    def until(i: Any, s: Any) -> Any:
        return tn.while_loop(lambda s: s[1] % 4 != 0, lambda s: (s[0], s[1] + 1, one(i, s)[2]), s)

    plain = [number, integer, element, whole, swapped]
    if depth:
        one, other = drawn(source, depth - 1), drawn(source, depth - 1)
        plain += [branch, loop, until]
    steps = source.choices(plain, k=source.randint(1, 3))

    def step(i: Any, s: Any) -> Any:
        for each in steps:
            s = each(i, s)
        return s

    return step


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("size", [8, 80])
def test_drawn_loops(seed: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    step = drawn(random.Random(seed), 2)

    def function(x: Any, n: Any, a: Any) -> Any:
        return tn.fori_loop(0, MANY, step, (x, n, a))

    a = np.random.default_rng(seed).standard_normal(size)
    run_both(function, (0.5, np.int64(seed), a), monkeypatch)
