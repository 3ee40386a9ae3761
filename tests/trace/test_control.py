"""Branches and loops: what they give, in every container, inside and outside a trace."""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tenfold as tn

Pair = namedtuple("Pair", "left right")


@dataclass
class Layer:
    weight: Any
    name: str = field(default="layer", metadata={"static": True})


def same(one: Any, other: Any) -> None:
    """Equal in structure, values and dtypes."""
    from tenfold.trace.containers import flatten

    (left, a), (right, b) = flatten(one), flatten(other)
    assert left == right
    for x, y in zip(a, b, strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_array_equal(x, y)


def both(f: Callable[..., Any], *args: Any) -> Any:
    """What a function gives traced, which is what it gives at once."""
    traced = tn.jit(f)(*args)
    same(traced, f(*args))
    return traced


def f32(*values: float) -> np.ndarray:
    return np.array(values, "f4")


# -- cond


def test_only_the_branch_taken_runs() -> None:
    seen: list[str] = []

    def branch(name: str) -> Callable[[Any], Any]:
        return lambda x: tn.hook(name, x, lambda _: seen.append(name))

    f = tn.jit(lambda p, x: tn.cond(p, branch("yes"), branch("no"), x))
    f(True, f32(1))
    f(np.False_, f32(1))
    assert seen == ["yes", "no"]


def test_an_if_merges_types_and_broadcasts() -> None:
    f = lambda p, x: tn.cond(p, lambda: x, lambda: np.int16(1))  # noqa: E731
    same(both(f, True, f32(1, 2)), f32(1, 2))
    same(both(f, False, f32(1, 2)), f32(1, 1))
    g = lambda p, x: tn.cond(p, lambda: x[:, None], lambda: x.astype(int))  # noqa: E731
    same(both(g, False, f32(1, 2)), np.array([[1.0, 2], [1, 2]]))


def test_a_python_number_in_a_branch_takes_the_dtype_of_the_other() -> None:
    for dtype in ("uint8", "float32", tn.spec((), "bfloat16").dtype):
        x = np.ones(2, dtype)
        same(both(lambda p, x: tn.cond(p, lambda: x, lambda: 0), False, x), np.zeros(2, dtype))


def test_python_numbers_alone_stay_python_numbers() -> None:
    f = lambda p, x: x * tn.cond(p, lambda: 2, lambda: 0.5)  # noqa: E731
    same(both(f, True, f32(4)), f32(8))
    assert type(tn.cond(True, lambda: 2, lambda: 0.5)) is float


def test_nested_tuples_and_dicts() -> None:
    def f(p: Any, x: Any) -> Any:
        return tn.cond(
            p,
            lambda: {"b": (x, [x + 1]), "a": None},
            lambda: {"a": None, "b": (x * 2, [0])},
        )

    same(both(f, True, f32(3)), {"b": (f32(3), [f32(4)]), "a": None})
    same(both(f, False, f32(3)), {"b": (f32(6), [f32(0)]), "a": None})


def test_destructured_results_feed_arithmetic_and_part_of_one_is_returned() -> None:
    def f(p: Any, x: Any) -> Any:
        low, (mid, _) = tn.cond(p, lambda: (x, (x + 1, x)), lambda: (-x, (x, x)))
        return low * mid + 1

    same(both(f, True, f32(3)), f32(13))
    same(both(f, False, f32(3)), f32(-8))
    g = lambda p, x: tn.cond(p, lambda: [x, (x + 1,)], lambda: [x, (x,)])[1][0]  # noqa: E731
    same(both(g, True, f32(3)), f32(4))


def test_a_dataclass_with_static_fields_in_out_and_from_a_branch() -> None:
    @tn.jit
    def f(p: Any, layer: Layer) -> Layer:
        return tn.cond(p, lambda at: Layer(at.weight * 2, at.name), lambda at: at, layer)

    made = f(True, Layer(f32(1, 2), "first"))
    assert made.name == "first"
    same(made.weight, f32(2, 4))
    pair = both(lambda p, q: tn.cond(p, lambda q: Pair(*q), lambda q: q, q), True, Pair(1.5, 2))
    assert pair == Pair(1.5, 2)


def test_a_number_is_a_predicate_where_it_is_not_zero() -> None:
    f = lambda n: tn.cond(n, lambda: 1.0, lambda: 2.0)  # noqa: E731
    assert [both(f, n) for n in (0, 3, 0.0, np.float32(0.5), np.True_)] == [2, 1, 2, 1, 1]


def test_a_predicate_known_while_tracing_still_checks_both_branches() -> None:
    same(tn.jit(lambda x: tn.cond(True, lambda: x, lambda: x + 1))(f32(1)), f32(1))
    with pytest.raises(tn.TenfoldError, match="different containers"):
        tn.trace(lambda x: tn.cond(True, lambda: x, lambda: (x, x)), f32(1))


@pytest.mark.parametrize("name", ["lu", "qr", "svd"])
def test_several_values_of_one_op_inside_a_branch(name: str) -> None:
    factor = tn.lu if name == "lu" else getattr(np.linalg, name)
    a = np.array([[2.0, 1], [1, 3]])
    parts = tuple(tn.jit(lambda a: tuple(factor(a)))(a))

    def f(p: Any, a: Any) -> Any:
        zeros = tuple(np.zeros_like(part) for part in parts)
        first, *rest = tn.cond(p, lambda: tuple(factor(a)), lambda: zeros)
        return first + 1, rest

    first, rest = tn.jit(f)(True, a)
    same((first, *rest), (parts[0] + 1, *parts[1:]))
    first, rest = tn.jit(f)(False, a)
    assert (first == 1).all()
    assert not any(part.any() for part in rest)


def test_a_branch_may_update_what_it_is_given() -> None:
    def double(y: Any) -> Any:
        y *= 2
        return y

    f = tn.jit(lambda p, x: (tn.cond(p, double, lambda y: y, x), x))
    same(f(True, f32(1, 2)), (f32(2, 4), f32(1, 2)))


def test_nested_conditions() -> None:
    def sign(x: Any) -> Any:
        positive = lambda: tn.cond(x > 10, lambda: 2, lambda: 1)  # noqa: E731
        return tn.cond(x > 0, positive, lambda: tn.cond(x == 0, lambda: 0, lambda: -1))

    assert [both(sign, n) for n in (12, 3, 0, -4)] == [2, 1, 0, -1]


def test_conditions_five_hundred_deep() -> None:
    def level(k: int, x: Any) -> Any:
        return x if k == 500 else tn.cond(x > k, lambda: level(k + 1, x + 1), lambda: -x)

    limit = sys.getrecursionlimit()
    f = tn.jit(lambda x: level(0, x))
    assert [f(x) for x in (600.0, 1.0, -3.0)] == [1100, 501, 3]
    assert sys.getrecursionlimit() == limit
    graph = f.trace(1.0)
    assert tn.Graph.from_bytes(graph.to_bytes()) == graph


def test_a_function_that_calls_itself_in_a_branch_has_no_end() -> None:
    def factorial(n: Any) -> Any:
        return tn.cond(n > 1, lambda: n * factorial(n - 1), lambda: 1)

    with pytest.raises(tn.TenfoldError, match="nest more than 1000 deep") as caught:
        tn.jit(factorial)(5)
    assert "tn.while_loop" in str(caught.value)
    assert "return tn.cond(n > 1" in str(caught.value)


# -- switch


def test_switch_takes_one_branch_and_clamps() -> None:
    branches = [lambda x: x, lambda x: x * 2, np.negative]
    f = lambda i, x: tn.switch(i, branches, x)  # noqa: E731
    found = [float(both(f, i, f32(3))[0]) for i in (0, 1, 2, 9, -1, np.uint8(1))]
    assert found == [3, 6, -3, -3, 3, 6]


# -- while


def test_while_with_int_and_float() -> None:
    assert both(lambda n: tn.while_loop(lambda i: i < 10, lambda i: i + 3, n), 0) == 12
    assert both(lambda x: tn.while_loop(lambda v: v > 1, lambda v: v / 2, x), 20.0) == 0.625
    found = both(lambda x: tn.while_loop(lambda v: v > 1, lambda v: v / 2, x), np.float32(20))
    same(found, np.float32(0.625))


def test_while_with_tuple_state_dict_state_and_dict_input() -> None:
    def fibonacci(n: Any) -> Any:
        state = tn.while_loop(
            lambda s: s[2] < n, lambda s: (s[1], s[0] + s[1], s[2] + 1), (0, 1, 0)
        )
        return state[0]

    assert [both(fibonacci, n) for n in (0, 1, 10)] == [0, 1, 55]

    def f(given: dict[str, Any]) -> Any:
        return tn.while_loop(
            lambda s: s["n"] > 0, lambda s: {"x": s["x"] * 2, "n": s["n"] - 1}, given
        )

    same(both(f, {"x": f32(1, 3), "n": 3}), {"x": f32(8, 24), "n": 0})


def test_a_while_of_no_rounds_gives_its_state_as_it_came() -> None:
    x = f32(5)
    result = both(lambda x: tn.while_loop(lambda v: v[0] < 0, lambda v: v + 1, x), x)
    same(result, x)
    assert result is not x


def test_what_a_loop_captures() -> None:
    def f(x: Any, step: Any, limit: Any) -> Any:
        return tn.while_loop(lambda v: v.sum() < limit, lambda v: v + step, x)

    same(both(f, f32(0, 0), f32(1, 2), 10.0), f32(4, 8))
    (node,) = [n for n in tn.trace(f, f32(0, 0), f32(1, 2), 10.0).nodes if n.op == "while"]
    assert node["captures"] == 2
    condition, body = node.scopes
    assert len(condition.parameters) == len(body.parameters) == 3


# -- fori_loop


@pytest.mark.parametrize("dynamic", [False, True])
def test_fori_loop_counts_from_lower_to_upper(dynamic: bool) -> None:
    body = lambda i, s: s * 10 + i  # noqa: E731
    if dynamic:
        f = tn.jit(lambda lower, upper: tn.fori_loop(lower, upper, body, 0))
        assert "while" in {n.op for n in f.trace(1, 2).nodes}
    else:
        f = lambda lower, upper: tn.jit(lambda: tn.fori_loop(lower, upper, body, 0))()  # noqa: E731
    assert [f(*b) for b in ((1, 5), (-2, 1), (3, 3), (5, 1))] == [1234, -210, 0, 0]


def test_the_counter_is_a_python_number_in_the_body() -> None:
    f = lambda x: tn.fori_loop(0, 3, lambda i, s: s + i * x, x)  # noqa: E731
    same(both(f, f32(1, 2)), f32(4, 8))
    g = lambda x, n: tn.fori_loop(0, n, lambda i, s: s + i * x, x)  # noqa: E731
    same(tn.jit(g)(f32(1, 2), np.int32(3)), f32(4, 8))


def test_a_body_may_update_its_state_in_place() -> None:
    def f(x: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            s[i] = s[i] * 2 + i
            return s

        return tn.fori_loop(0, 3, body, x)

    given = f32(1, 2, 3)
    same(both(f, given), f32(2, 5, 8))
    same(given, f32(1, 2, 3))


def test_an_outer_array_is_not_updated_in_a_body() -> None:
    def f(x: Any) -> Any:
        y = x + 1

        def body(i: Any, s: Any) -> Any:
            y[0] = 3
            return s

        return tn.fori_loop(0, 3, body, x)

    with pytest.raises(tn.TenfoldError, match=r"updated in place inside fori_loop of .*body"):
        tn.trace(f, f32(1))


# -- scan, map, reduce


def test_scan_carries_stacks_and_goes_backwards() -> None:
    f = lambda x: tn.scan(lambda c, v: (c + v, c), np.float32(1), x)  # noqa: E731
    same(both(f, f32(1, 2, 3)), (np.float32(7), f32(1, 2, 4)))
    g = lambda x: tn.scan(lambda c, v: (c + v, c), np.float32(1), x, reverse=True)  # noqa: E731
    same(both(g, f32(1, 2, 3)), (np.float32(7), f32(6, 4, 1)))


def test_scan_in_containers() -> None:
    def step(carry: Any, x: Any) -> Any:
        new = {"sum": carry["sum"] + x["v"], "count": carry["count"] + 1}
        return new, (x["k"], [new["sum"]])

    f = lambda xs: tn.scan(step, {"count": 0, "sum": np.zeros(2, "f4")}, xs)  # noqa: E731
    xs = {"v": np.arange(6, dtype="f4").reshape(3, 2), "k": np.arange(3)}
    carry, (keys, (sums,)) = both(f, xs)
    same(carry, {"count": 3, "sum": f32(6, 9)})
    same(keys, np.arange(3))
    same(sums, np.cumsum(xs["v"], 0))


def test_scan_by_length_unrolled_and_of_length_zero() -> None:
    f = lambda x: tn.scan(lambda c, _: (c * 2, None), x, length=5, unroll=4)  # noqa: E731
    same(both(f, np.int64(1)), (np.int64(32), None))
    g = lambda x: tn.scan(lambda c, v: (c + v, v * 2), 0.5, x)  # noqa: E731
    same(both(g, f32()), (np.float32(0.5), f32()))


def test_a_scan_is_one_node_whatever_its_length() -> None:
    def size(n: int) -> int:
        running = lambda x: tn.scan(lambda c, v: (c + v, c), 0.0, x)  # noqa: E731
        return len(tn.trace(running, np.ones(n)).nodes)

    assert size(2) == size(10_000)


def test_map_goes_along_the_first_axis() -> None:
    x = np.arange(6.0).reshape(3, 2)
    same(both(lambda x: tn.map(lambda r: r.sum(), x), x), x.sum(1))
    made = both(lambda x: tn.map(lambda p: {"s": p[0] + p[1]}, (x, x)), x)
    same(made, {"s": x + x})


def test_a_function_called_directly_and_through_reduce() -> None:
    def longest(a: Any, b: Any) -> Any:
        return np.where(np.abs(a) < np.abs(b), b, a)

    x = np.array([[1.0, -5, 2], [4, 2, -3]])
    same(both(lambda x: longest(x[0], x[1]), x), np.array([4.0, -5, -3]))
    same(both(lambda x: tn.reduce(longest, x, 0.0, axis=0), x), np.array([4.0, -5, -3]))
    same(both(lambda x: tn.reduce(longest, x, 0.0, axis=(0, -1)), x), np.float64(-5))
    same(both(lambda x: tn.reduce(longest, x, 0.0), x), np.float64(-5))
    same(both(lambda x: tn.reduce(np.add, x, 10, axis=1), x), x.sum(1) + 10)
    same(both(lambda x: tn.reduce(np.add, x, 10, axis=1), np.ones((2, 0))), np.full(2, 10.0))


# -- dtypes of loop state


@pytest.mark.parametrize("init", [0, 0.0])
def test_a_python_number_takes_the_dtype_that_the_body_gives(init: Any) -> None:
    f = lambda x: tn.fori_loop(0, 3, lambda i, s: s + x, init)  # noqa: E731
    same(both(f, np.float32(2)), np.float32(6))
    g = lambda x: tn.scan(lambda c, v: (c + v, None), init, x)[0]  # noqa: E731
    same(both(g, f32(1, 2)), np.float32(3))


def test_an_int_that_the_body_divides_becomes_a_float() -> None:
    assert both(lambda: tn.fori_loop(0, 3, lambda i, s: s / 2, 8)) == 1.0
    assert type(tn.fori_loop(0, 3, lambda i, s: s / 2, 8)) is float


def test_a_traced_python_number_gives_way_too() -> None:
    f = tn.jit(lambda n, x: tn.while_loop(lambda s: s < 5, lambda s: s + x, n))
    same(f(1, np.float32(1.5)), np.float32(5.5))


def test_a_body_traced_twice_keeps_its_hooks_in_order() -> None:
    seen: list[float] = []

    def body(i: Any, s: Any) -> Any:
        return tn.hook("s", s + np.astype(i, np.float32), lambda v: seen.append(float(v)))

    same(tn.jit(lambda: tn.fori_loop(0, 3, body, 0))(), np.float32(3))
    assert seen == [0, 1, 3]


def test_a_literal_in_a_body_takes_the_dtype_of_the_state() -> None:
    f = lambda x: tn.fori_loop(0, 2, lambda i, s: (s[0] * 2, 1), (x, np.uint8(0)))  # noqa: E731
    same(both(f, f32(1)), (f32(4), np.uint8(1)))


# -- graphs


def test_an_operand_and_a_captured_array_are_the_same_program() -> None:
    by_operand = tn.trace(lambda p, x: tn.cond(p, np.sin, np.cos, x), True, f32(1))
    by_capture = tn.trace(
        lambda p, x: tn.cond(p, lambda: np.sin(x), lambda: np.cos(x)), True, f32(1)
    )
    assert by_operand.digest == by_capture.digest


def test_branches_take_the_union_of_their_captures_each_once_by_first_use() -> None:
    def f(p: Any, a: Any, b: Any, c: Any, unused: Any) -> Any:
        unused + 1
        return tn.cond(p, lambda: (unused * 0, c + b)[1], lambda: b - a)

    graph = tn.trace(f, True, f32(1), f32(2), f32(3), f32(4))
    (node,) = graph.nodes
    # The branch not taken stands first: 0 is False. It reads b, then a; the other adds c.
    assert [graph.parameters[v].name for v in node.inputs] == ["p", "b", "a", "c"]
    assert [[p.name for p in s.parameters] for s in node.scopes] == [["b", "a", ""], ["b", "", "c"]]


def test_equal_branches_are_merged_into_one_node() -> None:
    def f(p: Any, x: Any) -> Any:
        branch = lambda: tn.cond(p, lambda: x, lambda: -x)  # noqa: E731
        return branch() + branch()

    assert [n.op for n in tn.trace(f, True, f32(1)).nodes] == ["switch", "add"]


def test_an_array_of_a_branch_does_not_leave_it() -> None:
    kept: list[Any] = []

    def f(p: Any, x: Any) -> Any:
        tn.cond(p, lambda: kept.append(x + 1) or x, lambda: x)
        return kept[0] * 2

    with pytest.raises(tn.TenfoldError, match="leaked") as caught:
        tn.trace(f, True, f32(1))
    assert "kept[0] * 2" in str(caught.value)
    assert "kept.append(x + 1)" in str(caught.value)


def test_captured_numpy_arrays_through_any_depth() -> None:
    weights = np.arange(32, dtype="f4")

    def f(p: Any, x: Any) -> Any:
        inner = lambda s: tn.cond(p, lambda: s + weights, lambda: s)  # noqa: E731
        return tn.fori_loop(0, 2, lambda i, s: inner(s), x)

    same(both(f, True, np.zeros(32, "f4")), weights * 2)
    graph = tn.trace(f, True, np.zeros(32, "f4"))
    assert [p.name for p in graph.parameters] == ["p", "x", "weights"]
