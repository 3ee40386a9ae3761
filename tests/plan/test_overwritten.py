"""Updates that are written over are left out: which, and that nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenfold as tn
from tenfold.graph import Graph
from tenfold.graph.check import check
from tenfold.graph.op import Ranges
from tenfold.ops import TABLE
from tenfold.plan.passes.overwritten import leave_out
from tenfold.reference import evaluate

Array = np.ndarray[Any, Any]
N = 9
GRID = np.random.default_rng(5).random((N, N)) + 1.0


def updates(graph: Graph) -> int:
    return sum(isinstance(TABLE[node.op].lowering, Ranges) for node in graph.nodes)


def left(f: Callable[..., Any], *arrays: Array) -> tuple[int, int]:
    """How many updates a function has, and how many are left. They give what the function gives,
    bit for bit."""
    graph = tn.jit(f).trace(*arrays)
    made, notes = leave_out(graph, TABLE)
    check(made, TABLE)
    for a, b in zip(evaluate(graph, arrays), evaluate(made, arrays), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
    assert sum(note.count for note in notes) == updates(graph) - updates(made)
    return updates(graph), updates(made)


def test_an_element_that_is_written_twice() -> None:
    def f(a: Any) -> Any:
        a = a * 2.0
        a[4, 3] -= a[4, :3] @ a[3, :3]
        a[4, 3] /= a[3, 3]
        a[4, 3] = np.sqrt(a[4, 3])
        return a

    assert left(f, GRID) == (3, 1)


def test_an_array_that_was_updated_in_between() -> None:
    """What is written over is what the very next update writes over."""

    def f(a: Any) -> Any:
        a = a * 2.0
        a[1, 1] = a[0, 0] + 1.0
        a[2, 2] = a[1, 1] + a[3, 3]
        a[1, 1] = a[2, 2] * 2.0
        return a

    assert left(f, GRID) == (3, 3)


def test_more_than_was_written() -> None:
    def f(a: Any) -> Any:
        a = a * 2.0
        a[3, 2:5] = a[2, 1:4]
        part = a[3, 3:5] + a[3, 5:7] + a[4, 2:4]  # inside, beside, and beside
        a[2:5] *= 3.0
        return a, part

    # `a[2:5] *= 3.0` reads across the edges of what was written.
    assert left(f, GRID) == (2, 2)

    def g(a: Any) -> Any:
        a = a * 2.0
        a[3, 2:5] = a[2, 1:4]
        part = a[3, 3:5] + a[3, 5:7] + a[4, 2:4]
        a[2:5] = 3.0
        return a, part, a[3, 2:5:2]

    assert left(g, GRID) == (2, 1)


@pytest.mark.parametrize(
    "read",
    [
        lambda a: a.sum(),
        lambda a: a[3, 1:6].sum(),  # across the edge
        lambda a: a.T[2, 1],
        lambda a: a,
    ],
)
def test_whoever_reads_all_of_it_has_it(read: Any) -> None:
    def f(a: Any) -> Any:
        a = a * 2.0
        a[3, 2:5] = a[2, 1:4]
        seen = read(a) + 0.0
        a[3, 2:5] = 1.0
        return a, seen

    assert left(f, GRID) == (2, 2)


def test_places_that_only_the_program_knows() -> None:
    def f(a: Any, i: Any) -> Any:
        for value in (1.0, 2.0):
            a = tn.dynamic_update(a, np.full((1, 1), value), (i, 2))
        return a

    assert left(f, GRID, np.array(3)) == (2, 2)


def test_what_is_written_may_be_a_part_of_what_was_there() -> None:
    def f(a: Any) -> Any:
        a = a * 2.0
        a[3, 2:5] = a[3, 3:6]
        a[3, 2:5] = a[3, 2:5] + a[3, 5:8]
        return a

    assert left(f, GRID) == (2, 1)


BOX = st.tuples(*[st.tuples(st.integers(0, 7), st.integers(1, 3)) for _ in range(2)])


@given(st.lists(st.tuples(BOX, BOX, st.booleans()), min_size=2, max_size=12))
@settings(max_examples=60, deadline=None)
def test_whatever_is_written_and_read(steps: Any) -> None:
    def key(box: Any, shape: tuple[int, ...] | None = None) -> Any:
        ends = [n for _, n in box] if shape is None else shape
        return tuple(slice(at, at + n) for (at, _), n in zip(box, ends, strict=True))

    def f(a: Any) -> Any:
        a = a * 2.0
        seen = []
        for number, (to, of, same) in enumerate(steps):
            where = key(to)
            read = a[where] if same else a[key(of)][:1, :1]
            seen.append(a[key(of)] + 1.0)
            a[where] = read * 3.0 + number
        return (a, *seen)

    left(f, GRID)


def test_what_may_raise_is_computed_though_it_is_written_over() -> None:
    def f(a: Any, k: Any) -> Any:
        a = a.copy()
        a[0, 0] = a[k, k]
        a[0, 0] = 1.0
        a[1, 1] = 3.0
        a[1, 1] = 2.0
        return a

    def read_again(a: Any, k: Any) -> Any:
        a = a.copy()
        a[0, 0] -= a[k, k]
        a[0, 0] /= 2.0
        return a

    assert left(f, GRID, np.int64(3)) == (4, 3)
    assert left(read_again, GRID, np.int64(3)) == (2, 1)
    jitted = tn.jit(f)
    np.testing.assert_array_equal(jitted(GRID, np.int64(3)), f(GRID, 3))
    with pytest.raises(IndexError, match=r"index 9[^\0]*test_overwritten.py"):
        jitted(GRID, np.int64(9))


def test_what_may_raise_is_computed_though_it_reaches_what_is_written_over_by_others() -> None:
    """By an update that is written over itself, and by the one that does so."""

    def f(a: Any, k: Any) -> Any:
        x, y = a[k] * 2.0, a.copy()
        x[0] = 1.0
        x[0] = 2.0
        y[0] = x.sum()
        y[0] = 3.0
        return y

    def by_one_that_stays(a: Any, k: Any) -> Any:
        x, y = a.copy(), a * 2.0
        x[0] = a[k].sum()
        x[0] = 2.0
        y[0] = x.sum()
        y[0] = 3.0
        return y

    assert left(f, GRID[0], np.arange(3)) == (4, 3)
    assert left(by_one_that_stays, GRID[0], np.arange(3)) == (4, 4)
    with pytest.raises(IndexError, match=r"index 9[^\0]*test_overwritten.py"):
        tn.jit(f)(GRID[0], np.array([0, 9]))


def test_hooks_see_what_was_not_yet_written_over() -> None:
    def f(a: Any) -> Any:
        a = a.copy()
        tn.hook("seen", a.sum())
        a[0] = a[1] + 1.0
        a[0] = a[2] * 2.0
        tn.hook("seen", a.sum())
        return a

    def at_the_end(a: Any) -> None:
        a = f(a)
        tn.hook("seen", a[0])

    assert left(f, GRID[0]) == (2, 1)
    for g, known in (f, 2), (at_the_end, 3):
        seen: list[Any] = []
        tn.jit(g).with_hooks({"seen": seen.append})(GRID[0])
        wanted = [GRID[0].sum(), f(GRID[0]).sum(), f(GRID[0])[0]][:known]
        np.testing.assert_allclose(seen, wanted, rtol=1e-14)


def test_plans_are_right_and_say_so() -> None:
    """A cholesky by elements: one kernel an element."""

    def f(a: Any) -> Any:
        a = a.copy()
        a[0, 0] = np.sqrt(a[0, 0])
        for i in range(1, N):
            for j in range(i):
                a[i, j] -= np.dot(a[i, :j], a[j, :j])
                a[i, j] /= a[j, j]
            a[i, i] -= np.dot(a[i, :i], a[i, :i])
            a[i, i] = np.sqrt(a[i, i])
        return a

    given = GRID @ GRID.T + N * np.eye(N)
    jitted = tn.jit(f, verify="always")
    np.testing.assert_allclose(jitted(given), f(given), rtol=1e-12)
    assert jitted.certificate(given).state == "whole"
    plan = jitted.plan(given)
    elements = N * (N + 1) // 2
    assert sum(step.kind == "kernel" for step in plan.steps) == elements
    assert f"{elements - 1} updates that are written over left out" in plan.explain()
