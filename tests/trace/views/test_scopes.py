"""Views and the scopes of a trace: a view is derived where it lives, and written nowhere else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tenfold as tn

X = np.arange(12.0).reshape(3, 4)


def test_a_view_of_an_outer_array_is_read_inside_as_it_is() -> None:
    def f(x: Any) -> Any:
        x = x.copy()
        row, column = x[1], x.T[0]
        x += 1

        def body(total: Any, i: Any) -> Any:
            return total + row[i] + column[0], row[0]

        total, _ = tn.scan(body, 0.0, np.arange(4))
        x += 1
        return total, row, column

    total, row, column = tn.jit(f)(X)
    assert total == (X[1] + 1).sum() + 4
    np.testing.assert_array_equal(row, X[1] + 2)
    np.testing.assert_array_equal(column, X[:, 0] + 2)


def test_a_view_of_an_outer_array_is_not_written_inside() -> None:
    def outside(x: Any) -> Any:
        y = x + 1
        view = y[1:]

        def body(i: Any, total: Any) -> Any:
            view[0] = 5
            return total

        return tn.fori_loop(0, 3, body, x)

    def inside(x: Any) -> Any:
        y = x + 1

        def body(i: Any, total: Any) -> Any:
            y[1:][0] += 5
            return total

        return tn.fori_loop(0, 3, body, x)

    for f in (outside, inside):
        with pytest.raises(tn.TenfoldError, match=r"updated in place inside fori_loop of .*body"):
            tn.jit(f)(X)


def test_a_captured_array_is_not_written_through_a_view() -> None:
    lazy = tn.asarray(X)
    view = lazy[1:]

    def f(x: Any) -> Any:
        view[0] = x
        return x

    with pytest.raises(tn.TenfoldError, match="an array from outside is updated"):
        tn.jit(f)(X[0])
    np.testing.assert_array_equal(np.asarray(lazy), X)


def test_a_donated_argument_is_written_through_a_view() -> None:
    def row(x: Any) -> Any:
        for row in x:
            row[:] = 0
        return x

    def part(x: Any) -> Any:
        y = x.T[1:]
        y += 1
        return x

    for f in (row, part):
        x = X.copy()
        expected = f(X.copy())
        np.testing.assert_array_equal(tn.jit(f, donate="x")(x), expected)
        np.testing.assert_array_equal(x, expected)


def test_a_view_of_a_trace_that_is_over() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        y = x + 1
        tn.cond(x[0, 0] > 0, lambda z: kept.append(z[1:]) or z, lambda z: z, y)
        kept[0][0] = 5
        return y

    with pytest.raises(tn.TenfoldError, match="leaked"):
        tn.trace(f, X)


def test_what_a_branch_gives_is_what_its_views_are() -> None:
    def f(x: Any) -> Any:
        def then(y: Any) -> Any:
            y = y.copy()
            row = y[0]
            y += 1
            return row, y.T[0]

        return tn.cond(x[0, 0] == 0, then, lambda y: (y[1], y[:, 1]), x)

    row, column = tn.jit(f)(X)
    np.testing.assert_array_equal(row, X[0] + 1)
    np.testing.assert_array_equal(column, X[:, 0] + 1)


def test_threads_of_lazy_arrays() -> None:
    x = tn.asarray(X).copy()
    views = [x[i] for i in range(3)]
    x += 1
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda i: (views[i] * 2).tolist(), [0, 1, 2] * 4))
    assert found == [((X[i] + 1) * 2).tolist() for i in [0, 1, 2] * 4]
