"""Branches and loops under vmap, where lanes go one way and where they part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.graph import Graph

N = np.array([3, 0, 7, 1])
X = np.arange(8.0).reshape(4, 2) - 3


def ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def everywhere(graph: Graph, op: str) -> int:
    """How many nodes of this op there are, scopes counted once."""
    return sum(ops(g).count(op) for g in (graph, *graph.scopes()))


# -- cond and switch


def test_cond_where_lanes_part(compare: Any) -> None:
    compare(lambda x: tn.cond(x.sum() > 0, lambda: x * 2, lambda: x - 1), X)
    compare(lambda x, n: tn.cond(n, lambda: (x, {"n": n}), lambda: (-x, {"n": 0})), X, N)


def test_cond_where_they_do_not_stays_a_cond() -> None:
    f = tn.vmap(lambda p, x: tn.cond(p, lambda: x * 2, lambda: x - 1), in_axes=(None, 0))
    assert f(np.True_, X).tolist() == (X * 2).tolist()
    assert f(np.False_, X).tolist() == (X - 1).tolist()
    assert ops(tn.trace(f, True, X)) == ["switch"]


def test_flat_branches_become_a_select() -> None:
    f = tn.vmap(lambda x: tn.cond(x > 0, lambda: x * 2, lambda: x - 1))
    graph = tn.trace(f, np.ones(4))
    assert everywhere(graph, "select") == 1
    assert everywhere(graph, "switch") == 0


def test_cond_with_broadcast(compare: Any) -> None:
    compare(lambda x, n: tn.cond(n > 2, lambda: x[:, None], lambda: n), X, N)
    compare(lambda n: tn.cond(n > 2, lambda: np.ones((2, 3), "f4"), lambda: np.int8(1)), N)


def test_cond_whose_branches_give_different_things() -> None:
    # One branch gives what all lanes share, the other each lane's own.
    f = tn.vmap(lambda p, x, s: tn.cond(p, lambda: x, lambda: s), in_axes=(None, 0, None))
    shared = np.array([10.0, 20.0])
    assert f(np.True_, X, shared).tolist() == X.tolist()
    assert f(np.False_, X, shared).tolist() == [shared.tolist()] * 4


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "bool"])
def test_switch_clamps_in_every_lane(compare: Any, dtype: str) -> None:
    index = np.array([0, 1, 2, 3, -1, 200, 2**63 - 1])
    branches = [lambda x: x, lambda x: x * 10, lambda x: x - 100]
    x = np.arange(7)
    compare(lambda i, x: tn.switch(i, branches, x), index.astype(dtype), x)
    compare(lambda i, x: tn.switch(i, branches[:2], x), index.astype(dtype), x)
    compare(lambda i, x: tn.switch(i, branches[1:2], x), index.astype(dtype), x)


def test_a_branch_that_no_lane_takes_does_not_run() -> None:
    forever = lambda x: tn.while_loop(lambda s: True, lambda s: s + 1, x)  # noqa: E731
    f = tn.vmap(lambda x: tn.cond(x > 100, lambda: forever(x), lambda: x))
    assert f(N).tolist() == N.tolist()


# -- while_loop


def count_down(n: Any) -> Any:
    return tn.while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 1, s[1] + s[0]), (n, n * 0))


def test_lanes_end_by_themselves(compare: Any) -> None:
    got = compare(count_down, N)
    assert got[1].tolist() == [6, 0, 28, 1]


def test_finished_lanes_stay_as_they_are(compare: Any) -> None:
    # One round too many would overflow, divide by zero or give a NaN.
    step = lambda s: (s[0] - 1, s[1] * 127, 1 / s[2] - s[2])  # noqa: E731
    f = lambda n: tn.while_loop(lambda s: s[0] > 0, step, (n, n.astype("i1"), 1.0 * n))[1:]  # noqa: E731
    compare(f, N)


def test_no_lane_starts(compare: Any) -> None:
    compare(count_down, N * 0 - 1)


def test_a_loop_whose_lanes_go_together_stays_as_it_is() -> None:
    body = lambda s: (s[0] + 1, s[1] * 2)  # noqa: E731
    f = tn.vmap(lambda x: tn.while_loop(lambda s: s[0] < 3, body, (0, x))[1])
    assert f(X).tolist() == (X * 8).tolist()
    graph = tn.trace(f, X)
    (loop,) = (node for node in graph.nodes if node.op == "while")
    assert [str(t) for t in loop.types] == ["i64", "f64[4,2]"]


def test_carries_become_batched_one_by_the_other(compare: Any) -> None:
    # x reaches a in the third round; the counter is the same for all lanes.
    def f(x: Any) -> Any:
        zero = np.zeros(2)
        body = lambda s: (s[0] + 1, s[1] + s[2], s[2] + s[3], s[3] + x)  # noqa: E731
        return tn.while_loop(lambda s: s[0] < 5, body, (0, zero, zero, zero))

    compare(f, X)
    graph = tn.trace(tn.vmap(f), X)
    (loop,) = (node for node in graph.nodes if node.op == "while")
    assert [t.rank for t in loop.types] == [0, 2, 2, 2]


def test_a_condition_that_comes_to_differ(compare: Any) -> None:
    # The limit is a carry that starts the same for all lanes.
    step = lambda s: (s[0] + 1, s[2] % 4, s[2])  # noqa: E731
    compare(lambda n: tn.while_loop(lambda s: s[0] < s[1], step, (0, 2, n)), N)


def test_a_condition_with_a_loop_and_a_fault_in_it(compare: Any) -> None:
    table = np.array([5, 3, 9, 0, 0])

    def f(n: Any) -> Any:
        def more(s: Any) -> Any:
            total = tn.while_loop(lambda t: t[0] < s, lambda t: (t[0] + 1, t[1] + t[0]), (0, 0))[1]
            return total < (n + table)[s] * 2  # out of range soon after a lane has ended

        return tn.while_loop(more, lambda s: s + 1, 0)

    compare(f, N[[1, 3]])


def test_nested_loops_share_their_conditions() -> None:
    def nest(depth: int, x: Any) -> Any:
        if not depth:
            return x > 0
        return tn.while_loop(lambda s: nest(depth - 1, x - s), lambda s: s + 1, 0) > 0

    sizes = []
    for depth in (2, 4, 8):
        graph = tn.trace(tn.vmap(lambda x, d=depth: nest(d, x)), N)
        sizes.append(sum(len(g.nodes) for g in (graph, *graph.scopes())))
    assert sizes[2] - sizes[1] <= 2 * (sizes[1] - sizes[0]) + 2


def test_while_with_an_incompatible_body() -> None:
    def widen(s: Any) -> Any:
        return s[:1]

    with pytest.raises(TypeError) as caught:
        tn.vmap(lambda x: tn.while_loop(lambda s: s.sum() < 3, widen, x))(X)
    assert str(caught.value).splitlines()[:2] == [
        "while_loop of widen: the body changes the type of the state",
        "  state: f64[2] goes in, f64[1] comes out",
    ]


# -- fori_loop, scan, map, reduce


def test_fori_loop_with_bounds_of_each_lane(compare: Any) -> None:
    compare(lambda n, x: tn.fori_loop(0, n, lambda i, s: s + i * x, x), N, X)
    compare(lambda n, x: tn.fori_loop(n, 5, lambda i, s: s + i * x, x), N, X)
    compare(lambda n, x: tn.fori_loop(1, 4, lambda i, s: s * i + n, x), N, X)


@pytest.mark.parametrize("reverse", [False, True])
def test_scan(compare: Any, reverse: bool) -> None:
    shared = np.arange(40.0)  # a captured array, the same for all lanes
    rows = np.arange(24.0).reshape(4, 3, 2)

    def f(rows: Any, x: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            a, b, k = carry
            return (a + row, b * 2, k + 1), (row * a, b, shared[:2] + k)

        return tn.scan(step, (x, 1.0, 0), rows, reverse=reverse)

    compare(f, rows, X)
    compare(lambda x: tn.scan(lambda c, row: (c + row, c), x, np.ones((3, 2))), X)
    compare(lambda x: tn.scan(lambda c, row: (c + 1, x * row), 0, np.ones((3, 2))), X)
    compare(lambda x: tn.scan(lambda c, _: (c * 2, c), x, length=0), X)


def test_map_and_reduce(compare: Any) -> None:
    compare(lambda x: tn.map(lambda v: v * x.sum(), x), X)
    wide = np.arange(24).reshape(4, 2, 3) % 5
    order = lambda a, b: a * 10 + b  # noqa: E731
    for axis in (None, 0, 1, (0, 1)):
        compare(lambda x, a=axis: tn.reduce(order, x, 1, axis=a), wide)
        compare(lambda x, n, a=axis: tn.reduce(order, x, n, axis=a), wide, N)
        compare(
            lambda x, n, a=axis: tn.cond(
                n > 0, lambda: tn.reduce(order, x, n, axis=a), lambda: tn.reduce(order, x, 0, a)
            ),
            wide,
            N,
        )
    f = tn.vmap(lambda n: tn.reduce(order, wide[0], n))
    assert f(N).tolist() == [int(tn.reduce(order, wide[0], n)) for n in N]


def test_reduce_by_a_function_that_loops(compare: Any) -> None:
    gcd = lambda a, b: tn.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, b))[0]  # noqa: E731
    wide = np.array([[12, 18, 30], [7, 21, 14], [1, 2, 3], [0, 0, 5]])
    compare(lambda x: tn.reduce(gcd, x, 0), wide)
    compare(lambda x, n: tn.cond(n > 1, lambda: tn.reduce(gcd, x, n), lambda: n), wide, N)


# -- custom


def test_a_custom_op_keeps_its_name() -> None:
    gelu = tn.custom("vmapped", lambda x: x / (1 + np.exp(-1.7 * x)))
    f = tn.vmap(lambda x: gelu(x) + 1)
    np.testing.assert_array_equal(f(X), gelu(X) + 1)
    graph = tn.trace(f, X)
    (node,) = (node for node in graph.nodes if node.op == "custom")
    assert node["name"] == "vmapped"
    assert str(node.types[0]) == "f64[4,2]"


def test_a_custom_op_that_may_raise(compare: Any) -> None:
    pick = tn.custom("vmapped pick", lambda x, i: x[i])
    compare(lambda x, n: tn.cond(n < 2, lambda: pick(x, n), lambda: -1.0), X, N)
    with pytest.raises(IndexError):
        tn.vmap(pick)(X, N)


# -- nested


def collatz(n: Any) -> Any:
    def step(s: Any) -> Any:
        n, count = s
        return tn.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1), count + 1

    return tn.while_loop(lambda s: s[0] != 1, step, (n, 0))[1]


def test_while_in_cond_in_scan(compare: Any) -> None:
    def f(ns: Any, limit: Any) -> Any:
        def step(total: Any, n: Any) -> Any:
            steps = tn.cond(n > limit, lambda: collatz(n), lambda: -1)
            return total + steps, steps

        return tn.scan(step, 0, ns)

    ns = np.array([[1, 6, 27], [0, 7, 9], [5, 3, -4], [2, 2, 2]])
    compare(f, ns, np.array([0, 0, 1, 7]))
    # The limit the same for all lanes, then the numbers.
    shared = tn.vmap(f, in_axes=(0, None))(ns, np.int64(0))
    assert shared[1].tolist() == [[0, 8, 111], [-1, 16, 19], [5, 7, -1], [1, 1, 1]]
    shared = tn.vmap(f, in_axes=(None, 0))(ns[0], np.array([0, 1, 30]))
    assert shared[1].tolist() == [[0, 8, 111], [-1, 8, 111], [-1, -1, -1]]


def test_an_inner_loop_ends_when_no_active_lane_goes_on() -> None:
    # The lane that is not active would go on for ever.
    def f(n: Any) -> Any:
        loop = lambda: tn.while_loop(lambda s: s != 10, lambda s: s + 1, n)  # noqa: E731
        return tn.cond(n <= 10, loop, lambda: -n)

    assert tn.vmap(f)(np.array([3, 50, 10])).tolist() == [10, -50, 10]


def test_scan_in_while_in_switch(compare: Any) -> None:
    def f(n: Any, x: Any) -> Any:
        def go() -> Any:
            body = lambda s: (s[0] - 2, tn.scan(lambda c, v: (c + v, c), s[1], x)[1].sum())  # noqa: E731
            return tn.while_loop(lambda s: s[0] > 0, body, (n, x.sum()))[1]

        return tn.switch(n, [go, lambda: x[n], go, lambda: -x.sum()])

    compare(f, N, X)


def test_vmap_of_vmap(compare: Any) -> None:
    grid = np.arange(12).reshape(4, 3) + 1
    inner = lambda row: tn.vmap(collatz)(row)  # noqa: E731
    compare(inner, grid)
    want = [[int(collatz(n)) for n in row] for row in grid]
    assert tn.vmap(tn.vmap(collatz))(grid).tolist() == want
    outer = tn.vmap(lambda a: tn.vmap(lambda b: tn.cond(a > b, lambda: a, lambda: b * 10))(N))(N)
    assert outer.tolist() == [[int(a if a > b else b * 10) for b in N] for a in N]


def test_vmap_inside_a_loop_and_a_branch(compare: Any) -> None:
    rows = np.arange(24).reshape(4, 3, 2)

    def f(rows: Any) -> Any:
        step = lambda c, row: (c + tn.vmap(lambda v: v * c)(row).sum(), tn.vmap(collatz)(row + 1))  # noqa: E731
        both = tn.scan(step, 1, rows)
        return tn.cond(both[0] > 3, lambda: tn.vmap(lambda v: v.sum())(rows), lambda: rows[:, 0])

    compare(f, rows)


def test_a_size_of_nothing() -> None:
    def f(x: Any, w: Any) -> Any:
        tn.hook("never", x, lambda _: pytest.fail("called"))
        return w[np.int64(99) + x * 0], tn.while_loop(lambda s: True, lambda s: s, x)

    made = tn.vmap(f, in_axes=(0, None))(np.zeros((0,), int), np.ones((3, 2)))
    assert [m.shape for m in made] == [(0, 2), (0,)]
    assert [m.dtype for m in made] == [np.float64, np.int64]


def test_one_lane(compare: Any) -> None:
    compare(collatz, np.array([27]))


def test_branches_five_hundred_deep() -> None:
    def nest(depth: int, x: Any) -> Any:
        return tn.cond(x > depth, lambda: nest(depth - 1, x), lambda: x * 2) if depth else x

    got = tn.vmap(lambda x: nest(500, x))(np.array([1, 600]))
    assert got.tolist() == [2, 600]
