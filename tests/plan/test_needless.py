"""Carries that nobody needs are left out: which, and that nothing else changes."""

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
from tenfold.graph.op import Loop
from tenfold.ops import TABLE
from tenfold.plan.passes.needless import leave_out_carries, may_leave_out_carries
from tenfold.reference import evaluate

Array = np.ndarray[Any, Any]
GRID = np.random.default_rng(7).random((4, 5)) + 1.0


def loops(graph: Graph) -> list[tuple[int, int]]:
    """How many inputs and results each loop has."""
    found = [n for n in graph.nodes if isinstance(TABLE[n.op].lowering, Loop)]
    return [(len(node.inputs), len(node.types)) for node in found]


def left(f: Callable[..., Any], *arrays: Array, **given: Any) -> list[tuple[int, int]]:
    """How many inputs and results the loops of a function have left. They give what the function
    gives, bit for bit."""
    graph = tn.jit(f, **given).trace(*arrays)
    made, notes = leave_out_carries(graph, TABLE)
    check(made, TABLE)
    for a, b in zip(evaluate(graph, arrays), evaluate(made, arrays), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
    before, after = (
        sum(results for scope in (one, *one.scopes()) for _, results in loops(scope))
        for one in (graph, made)
    )
    assert sum(note.count for note in notes) == before - after
    assert may_leave_out_carries(graph, TABLE) == bool(notes)
    assert leave_out_carries(made, TABLE) == (made, ())
    return loops(made)


def test_a_variable_that_each_round_assigns_first() -> None:
    def f(p: Any) -> Any:
        q = np.empty_like(p)
        for _ in range(3):
            q = p.copy()
            p[1:-1] = (q[:-2] + q[2:]) / 2
        return p

    graph = tn.jit(f, control="convert").trace(GRID)
    if loops(graph):  # else it is unrolled
        assert left(f, GRID, control="convert")[0][1] == 1

    def g(p: Any) -> Any:
        return tn.fori_loop(0, 40, lambda i, c: (c[0] * 0.5 + c[0].mean(), c[0]), (p, p * 2))[0]

    ((inputs, results),) = left(g, GRID)
    assert (inputs, results) == (1, 1)  # the count is needless, too


def test_carries_that_need_each_other_alone() -> None:
    def body(c: Any, _: Any) -> Any:
        a, x, y, z = c
        return (a + 1, y * 2, x + y, z + x), None

    def f(a: Any) -> Any:
        return tn.scan(body, (a, a, a + 1, a + 2), None, length=5)[0][0]

    assert left(f, GRID) == [(1, 1)]

    def g(a: Any) -> Any:
        return tn.scan(body, (a, a, a + 1, a + 2), None, length=5)[0][3]

    assert left(g, GRID)[0][1] == 3  # z by way of x and y


def test_a_condition_needs_what_it_reads() -> None:
    def f(a: Any) -> Any:
        state = (a, a.sum(), a * 3, np.float64(0))

        def more(c: Any) -> Any:
            return c[1] < 1000.0

        def body(c: Any) -> Any:
            return c[0] * 2, c[1] + c[3], c[2] * 0.5, c[3] + 1.0

        return tn.while_loop(more, body, state)[0]

    assert left(f, GRID)[0][1] == 3


def test_stacked_results_and_what_is_for_them_alone() -> None:
    def f(xs: Any, ys: Any, w: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            one, two = x
            return c + one, (c * w, two * 2, c)

        last, (_, _, third) = tn.scan(body, xs[0], (xs, ys))
        return last, third

    assert left(f, GRID, GRID + 1, GRID[0]) == [(2, 2)]


def test_a_loop_that_carries_what_is_needed_stays_as_it_is() -> None:
    def f(a: Any) -> Any:
        return tn.fori_loop(0, 9, lambda i, c: c * i + 1, a)

    graph = tn.jit(f).trace(GRID)
    assert leave_out_carries(graph, TABLE) == (graph, ())
    assert leave_out_carries(graph, TABLE)[0] is graph


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_an_effect_needs_what_it_reads(rounds: int) -> None:
    def f(a: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            shown, x, other = c
            tn.hook("seen", shown)
            return shown + 1, x * 2, other + x

        return tn.fori_loop(0, rounds, body, (a.sum(), a, a))[1]

    graph = tn.jit(f).trace(GRID)
    made, notes = leave_out_carries(graph, TABLE)
    check(made, TABLE)
    assert sum(note.count for note in notes) == 2  # the count, and `other`
    seen: list[Any] = []
    function = tn.jit(f).with_hooks({"seen": lambda x: seen.append(float(x))})
    np.testing.assert_array_equal(function(GRID), GRID * 2**rounds)
    np.testing.assert_array_equal(seen, GRID.sum() + np.arange(rounds))


def test_a_loop_for_its_effects_alone_hands_on_something() -> None:
    def f(a: Any) -> Any:
        tn.fori_loop(0, 3, lambda _, c: (tn.hook("seen", c[0]), c[1] + c[0]), (a, a))
        return a + 1

    made, _ = leave_out_carries(tn.jit(f).trace(GRID), TABLE)
    check(made, TABLE)
    assert loops(made) == [(1, 1)]


def test_a_plan_says_so_and_copies_nothing() -> None:
    def f(p: Any) -> Any:
        def body(_: Any, c: Any) -> Any:
            return np.roll(c[0], 1) * 0.5, c[0]

        return tn.fori_loop(0, 40, body, (p, p))[0]

    function = tn.jit(f)
    big = np.random.default_rng(1).random((200, 200))
    wanted = big
    for _ in range(40):
        wanted = np.roll(wanted, 1) * 0.5
    np.testing.assert_array_equal(function(big), wanted)
    assert (
        "2 values that nobody reads left out of what a loop carries" in function.plan(big).explain()
    )


def test_loops_in_loops_and_many_carries() -> None:
    """From the outside in; and in time that grows with the loop."""

    def f(a: Any) -> Any:
        def inner(_: Any, c: Any) -> Any:
            return c[0] + 1, c[1] * 2

        def outer(_: Any, c: Any) -> Any:
            return tn.fori_loop(0, 3, inner, c)

        return tn.fori_loop(0, 3, outer, (a, a))[0]

    assert left(f, GRID) == [(1, 1)]
    plan = tn.jit(f).plan(GRID)
    assert [len(one.graph.parameters) for one in plan.every] == [1, 1, 1]

    many = 3000

    def chain(a: Any) -> Any:
        carries = tuple(a + n for n in range(many))
        return tn.fori_loop(0, 3, lambda _, c: (*c[1:], c[-1] * 2), carries)[many - 2]

    ((_, results),) = left(chain, np.float64(1))
    assert results == 2


def test_what_may_raise_is_computed_though_nobody_reads_it() -> None:
    """The line of an index that is out of range is named, by calls after the first as well."""

    def carried(a: Any, k: Any) -> Any:
        return tn.fori_loop(0, 3, lambda i, c: (c[0] + 1, a[k], c[2] * 2), (a, a[0], a))[0]

    def stacked(a: Any, k: Any) -> Any:
        return tn.scan(lambda c, i: (c + 1, (a[i], c * 2)), a, np.arange(3) + k)[0]

    def below(a: Any, k: Any) -> Any:
        def inner(_: Any, c: Any) -> Any:
            return c[0] + 1, c[1] + a[k], c[2] * 2

        def outer(_: Any, c: Any) -> Any:
            return tn.fori_loop(0, 2, inner, c)

        return tn.fori_loop(0, 2, outer, (a, a[0], a))[0]

    def before(a: Any, k: Any) -> Any:
        y = tn.fori_loop(0, 2, lambda _, y: y + 1, a[k])
        return tn.fori_loop(0, 3, lambda _, c: (c[0] + 1, c[1] * y, c[2] * 2), (a, y, a))[0]

    def by_a_branch(a: Any, k: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            return c[0] + 1, tn.cond(i > 1, lambda: a[k], lambda: a[0]), c[2] * 2

        return tn.fori_loop(0, 3, body, (a, a[0], a))[0]

    for f, results in (carried, 2), (stacked, 2), (below, 2), (before, 3), (by_a_branch, 3):
        kept = left(f, GRID[0], np.int64(1))
        assert sum(n for _, n in kept) == results, f
        function = tn.jit(f)
        wanted = evaluate(function.trace(GRID[0], np.int64(1)), (GRID[0], np.int64(1)))[0]
        for _ in range(2):
            np.testing.assert_array_equal(function(GRID[0], np.int64(1)), wanted)
        with pytest.raises(IndexError, match=r"out of range[^\0]*test_needless.py"):
            function(GRID[0], np.int64(9))

    def needed_anyway(a: Any, k: Any) -> Any:
        return tn.fori_loop(0, 3, lambda _, c: (c[0] + a[k], c[1] * a[k]), (a, a))[0]

    assert left(needed_anyway, GRID[0], np.int64(1))[0][1] == 1


@settings(max_examples=60)
@given(st.data())
def test_any_loop(data: st.DataObject) -> None:
    """Carries that read some of each other, of which some are read: those that reach these stay."""
    count = data.draw(st.integers(1, 6))
    some = st.sets(st.integers(0, count - 1), max_size=3)
    reads = [sorted(data.draw(some)) for _ in range(count)]
    read = sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1)))

    def f(a: Any) -> Any:
        def body(_: Any, c: Any) -> Any:
            return tuple(sum((c[m] for m in own), a * n) for n, own in enumerate(reads))

        found = tn.fori_loop(0, 3, body, tuple(a + n for n in range(count)))
        return tuple(found[n] for n in read)

    needed, waiting = set[int](), list(read)
    while waiting:
        n = waiting.pop()
        if n not in needed:
            needed.add(n)
            waiting += reads[n]
    left_over = left(f, np.float64(1.5))
    assert not left_over or left_over[0][1] <= len(needed)


def test_equal_loops_hand_on_what_any_needs() -> None:
    def body(_: Any, c: Any) -> Any:
        return c[0] + 1, c[1] * 2, c[2] - c[1]

    def f(a: Any, b: Any) -> Any:
        first = tn.fori_loop(0, 5, body, (a, a, a))[0]
        return first, tn.fori_loop(0, 5, body, (b, b, b))[1]

    assert [results for _, results in left(f, GRID, GRID * 3)] == [2, 2]

    def one_of_another(a: Any) -> Any:
        """What the first hands on is for a carry that nobody needs."""
        x, y, _ = tn.fori_loop(0, 5, body, (a, a, a))
        return tn.fori_loop(0, 6, body, (x, y, y))[0]

    assert [results for _, results in left(one_of_another, GRID)] == [1, 1]


def test_loops_in_conditions_and_branches_and_effects_below() -> None:
    seen: list[float] = []

    def inner(_: Any, c: Any) -> Any:
        tn.hook("seen", c[0].sum())
        return c[0] + 1, c[1] * 2, c[2] + c[1]

    def outer(c: Any) -> Any:
        a, b, d, n = c
        a, b, d = tn.fori_loop(0, 2, inner, (a, b, d))
        d = tn.cond(n > 1, lambda d: tn.fori_loop(0, 3, lambda _, x: x * 2, d), lambda d: d, d)
        return a, b, d, n + 1

    def more(c: Any) -> Any:
        return tn.fori_loop(0, 3, lambda _, x: x + c[3], c[3]) < 12

    def f(a: Any) -> Any:
        return tn.while_loop(more, outer, (a, a, a, np.int64(0)))[3]

    function = tn.jit(f).with_hooks({"seen": lambda x: seen.append(float(x))})
    assert function(GRID) == 3
    np.testing.assert_allclose(seen, GRID.sum() + GRID.size * np.arange(6))
    made, notes = leave_out_carries(tn.jit(f).trace(GRID), TABLE)
    check(made, TABLE)
    assert loops(made)[0][1] == 2  # what is shown, and the count
    assert sum(note.count for note in notes) == 2 + 3  # two each, and the inner count
