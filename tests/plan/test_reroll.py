"""Unrolled loops are found again: what is found, what is left alone, and that nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.graph import Builder, Graph
from tenfold.graph.check import check
from tenfold.graph.op import Loop
from tenfold.ops import TABLE
from tenfold.plan.passes.reroll import reroll as pass_
from tenfold.plan.passes.reroll import seeds
from tenfold.plan.passes.reroll.body import Body
from tenfold.plan.passes.reroll.reads import Literals
from tenfold.plan.passes.reroll.reroll import reroll
from tenfold.reference import evaluate
from tenfold.types import DTYPES, TensorType

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(20, 4)).astype("f4")
W = (RANDOM.normal(size=(4, 4)) / 4).astype("f4")
Function = Callable[..., Any]


def loops(graph: Graph) -> list[int]:
    """The rounds of every loop, outer ones last."""
    return [
        node["length"]
        for one in (*graph.scopes(), graph)
        for node in one.nodes
        if isinstance(TABLE[node.op].lowering, Loop)
    ]


def same(graph: Graph, *arrays: Any) -> Graph:
    """The graph with loops; it has to be a graph, and to give the very bits."""
    made, _ = reroll(graph, TABLE)
    check(made, TABLE)
    for got, wanted in zip(evaluate(made, arrays), evaluate(graph, arrays), strict=True):
        assert got.dtype == wanted.dtype
        assert got.shape == wanted.shape
        assert got.tobytes() == wanted.tobytes()
    return made


# Loops that are found.


def steps_in_time(x: Any, w: Any, u: Any) -> Any:
    h, seen = np.zeros(4, "f4"), []
    for t in range(len(x)):
        h = np.tanh(x[t] @ w + h @ u)
        seen.append(h)
    return np.stack(seen)


def sums_beside(x: Any, w: Any) -> Any:
    h, total, seen = np.zeros(4, "f4"), 0, []
    for t in range(len(x)):
        h = np.tanh(x[t] + h @ w)
        total = total + (h * h).sum()
        seen.append(h)
    stacked = np.stack(seen, axis=1)
    return h, total, stacked / total, seen[3]


def recurrence(x: Any) -> Any:
    out = np.zeros_like(x)
    for i in range(1, len(x)):
        out[i] = x[i] * 2 + out[i - 1]
    return out


def backwards(x: Any) -> Any:
    for i in range(len(x) - 2, -1, -1):
        x[i] -= x[i + 1] * 2
    return x


def rows_and_columns(x: Any) -> Any:
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            x[i, j] = x[i - 1, j] * i + x[i, j - 1]
    return x


def nested(x: Any, w: Any) -> Any:
    for i in range(1, 20):
        for j in range(1, 18):
            x[j] = np.tanh(x[j - 1] @ w) + i
        x = x.max(axis=0) - x
    return x


def shortest_ways(x: Any) -> Any:
    for k in range(x.shape[0]):
        x[:] = np.minimum(x[:], np.add.outer(x[:, k], x[k, :]))
    return x


def adam(p: Any, a: Any) -> Any:
    m, v = np.zeros_like(p), np.zeros_like(p)
    for t in range(1, 41):
        g = a.T @ (a @ p - 1)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        p = p - 0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return p


def swapped(x: Any, y: Any, w: Any) -> Any:
    for _ in range(40):
        x, y = y @ w, x + 1
    return x, y


def exchanged(x: Any, w: Any) -> Any:
    a, b = x, x + 1
    for _ in range(40):
        a, b = b, np.tanh(a @ w + b)
    return a, b


def two_rounds_ago(x: Any, w: Any) -> Any:
    seen = [x, x * 2, x * 3]
    for _ in range(20):
        seen.append(np.tanh(seen[-1] @ w + seen[-3]))
    return seen[-1], sum(seen[3:])


def forth_and_back(x: Any, w: Any) -> Any:
    h, seen = np.zeros(4, "f4"), []
    for t in range(len(x)):
        h = np.tanh(x[t] + h @ w)
        seen.append(h)
    g = np.ones(4, "f4")
    for t in range(len(x) - 1, -1, -1):
        g = (g * (1 - seen[t] ** 2)) @ w.T
    return g


def first_and_last_differ(x: Any, w: Any) -> Any:
    h = x[0]
    for t in range(len(x)):
        h = h @ w + x[t]
        if t == 0:
            h = np.sin(h)
        if t == len(x) - 1:
            h = np.cos(h)
    return h


def every_other(x: Any, w: Any) -> Any:
    h = x[0]
    for t in range(20):
        h = h @ w + x[t // 2]
    return h


def strided(x: Any) -> Any:
    total = 0
    for t in range(17):
        total = total + x[t : t + 4 : 3].sum(axis=0)
    return total


def rows_beside(x: Any, w: Any) -> Any:
    """The inner loop makes views again that belong to the outer one, of what that has written."""
    v, h = w[0], w[1]
    for i in range(20):
        v = v * 0.5 + w[2]
        h = np.concatenate([h[1:], v[:1]])
        x[i] = v
        for j in range(17):
            h = np.sort(h * 0.5 + x[j])
    return x, h


def long_chain(x: Any) -> Any:
    for _ in range(1000):
        x = x * 0.5 + 1
    return x


def many_elements(x: Any) -> Any:
    return np.stack([x[i] * 2 for i in range(300)])


FOUND: dict[Function, tuple[tuple[Any, ...], list[int]]] = {
    steps_in_time: ((X, W, W), [20]),
    sums_beside: ((X, W), [20]),
    recurrence: ((X,), [18]),
    backwards: ((X,), [19]),
    rows_and_columns: ((X,), [57]),
    nested: ((X, W), [17, 19]),
    adam: ((X[0], X), [39]),
    swapped: ((W, W * 2, W), [20, 20]),
    exchanged: ((W, W), [20]),
    two_rounds_ago: ((W, W), [19]),
    forth_and_back: ((X, W), [20, 20]),
    first_and_last_differ: ((X, W), [19]),
    every_other: ((X, W), [20]),
    strided: ((X,), [16]),
    rows_beside: ((X, W), [17, 19, 17, 18, 17]),
    long_chain: ((X,), [31]),
    many_elements: ((np.arange(300.0),), []),
}


@pytest.mark.parametrize("function", FOUND, ids=lambda f: f.__name__)
def test_loops_are_found(function: Function) -> None:
    arrays, rounds = FOUND[function]
    graph = tn.trace(function, *arrays)
    made = same(graph, *arrays)
    assert loops(made) == rounds
    again = reroll(graph, TABLE)[0]
    assert again.to_bytes() == made.to_bytes()


@pytest.mark.parametrize("function", FOUND, ids=lambda f: f.__name__)
def test_plans_of_loops_are_right(function: Function) -> None:
    arrays, _ = FOUND[function]
    assert tn.parity(function, *(a.copy() for a in arrays)).agrees


def test_rounds_that_read_no_other_are_done_at_once() -> None:
    x = np.arange(60.0).reshape(20, 3)

    def rows(x: Any) -> Any:
        return np.stack([np.sin(x[i]) * x[19 - i] for i in range(20)], axis=1)

    def columns(x: Any) -> Any:
        return np.concatenate([x[i : i + 1, 2] + i for i in range(1, 20)])

    def turned(x: Any) -> Any:
        return np.stack([x[3 * i % 20] for i in range(20)])

    assert [n.op for n in same(tn.trace(rows, x), x).nodes if n.op in ("sin", "mul")] == [
        "sin",
        "mul",
    ]
    assert len(same(tn.trace(columns, x), x).nodes) < 10
    assert reroll(tn.trace(turned, x), TABLE)[1] == ()


def test_what_a_loop_looks_like() -> None:
    made, _ = reroll(tn.trace(steps_in_time, X, W, W), TABLE)
    text = "\n".join(line.partition("  #")[0] for line in str(made).splitlines())
    assert text == (
        """\
graph (%0: f32[20,4] 'x', %1: f32[4,4] 'w', %2: f32[4,4] 'u') {
  %3 = constant {data=0x00000000, type='f32'} : f32
  %4 = broadcast %3 {shape=(4,)} : f32[4]
  %5, %6 = scan %2 %1 %4 %0 {captures=2, carries=1, length=20, reverse=False, unroll=1} [@0] : \
f32[4], f32[20,1,4]
  %7 = reshape %6 {shape=(20, 4)} : f32[20,4]
  return %7
}

@0 = graph (%0: f32[4,4], %1: f32[4,4], %2: f32[4], %3: f32[4]) {
  %4 = reshape %3 {shape=(1, 4)} : f32[1,4]
  %5 = reshape %4 {shape=(4,)} : f32[4]
  %6 = contract %5 %1 {lhs_contract=(0,), rhs_contract=(0,), lhs_batch=(), rhs_batch=()} : f32[4]
  %7 = contract %2 %0 {lhs_contract=(0,), rhs_contract=(0,), lhs_batch=(), rhs_batch=()} : f32[4]
  %8 = add %6 %7 : f32[4]
  %9 = tanh %8 : f32[4]
  %10 = reshape %9 {shape=(1, 4)} : f32[1,4]
  return %9 %10
}"""
    )


# What is left alone.


def few(x: Any, w: Any) -> Any:
    for t in range(15):
        x = np.tanh(x @ w) + t
    return x


def one_kernel(x: Any, w: Any) -> Any:
    for _ in range(20):
        x = x * 2 + 1
    return x


def triangular(x: Any, w: Any) -> Any:
    for i in range(20):
        x[i] = x[: i + 1].sum(axis=0)
    return x


def shown(x: Any, w: Any) -> Any:
    for _ in range(20):
        x = np.tanh(x @ w)
        tn.print(x.sum())
    return x


@pytest.mark.parametrize("function", [few, one_kernel, triangular], ids=lambda f: f.__name__)
def test_no_loop_is_made(function: Function) -> None:
    graph = tn.trace(function, X, W)
    assert reroll(graph, TABLE) == (graph, ())


def test_parts_of_each_other_are_read_through_while_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop of elementwise ops would have to copy the parts that move."""
    x = np.abs(RANDOM.normal(size=(17, 17)))
    graph = tn.trace(shortest_ways, x)
    assert reroll(graph, TABLE) == (graph, ())
    monkeypatch.setattr(pass_, "LONGER", 10)
    monkeypatch.setattr(pass_, "SHARE", 1)
    assert loops(same(graph, x)) == [17]


def test_a_large_array_that_all_rounds_read_is_read_by_several_at_once() -> None:
    def bins(x: Any) -> Any:
        out = np.zeros(20)
        for i in range(20):
            out[i] = np.where(x > i, x, 0).sum()
        return out

    assert loops(reroll(tn.trace(bins, np.ones(1 << 17)), TABLE)[0]) == []
    assert loops(same(tn.trace(bins, np.ones(5)), np.ones(5))) == [20]


def test_weights_of_their_own_are_left_alone() -> None:
    def layers(x: Any, *weights: Any) -> Any:
        for w in weights:
            x = np.tanh(x @ w)
        return x

    graph = tn.trace(layers, X, *[W] * 20)
    assert reroll(graph, TABLE) == (graph, ())


def test_effects_keep_their_places() -> None:
    graph = tn.trace(shown, X, W)
    made, _ = reroll(graph, TABLE)
    assert len(made.effects) == 20
    check(made, TABLE)


def test_a_loop_that_would_run_before_itself_is_left_alone() -> None:
    """The sum of all rounds is read by what belongs to each of them."""

    def normalised(x: Any) -> Any:
        parts = [(x[i] * x[i]).sum() for i in range(20)]
        total = sum(parts)
        return np.stack([part / total for part in parts])

    same(tn.trace(normalised, X), X)


@pytest.mark.parametrize("shape", [(20, 0), (20, 1)])
def test_empty_and_single_elements(shape: tuple[int, ...]) -> None:
    x = np.ones(shape)
    for function in (recurrence, backwards, strided):
        same(tn.trace(function, x), x)


def test_nan_and_signed_zeros_keep_their_bits() -> None:
    x = X.copy()
    x[2], x[3], x[4, 1] = np.nan, -0.0, np.inf
    for function in (recurrence, backwards):
        same(tn.trace(function, x), x)


# What others see of it.


def test_parts_that_stop_anywhere_behind_their_last_element() -> None:
    builder = Builder(TABLE)
    x, h = (builder.parameter(TensorType(DTYPES["f64"], (n,))) for n in (30, 5))
    for k in range(22):  # the last one ends with the array, the others behind their last element
        part = {"starts": (k,), "stops": (min(k + 10, 30),), "steps": (2,)}
        (h,) = builder.node("add", [h, *builder.node("slice", [x], part)])
        (h,) = builder.node("cumsum", [h], {"axis": 0, "reverse": False})
    graph = builder.finish([h])
    made = same(graph, RANDOM.normal(size=30), RANDOM.normal(size=5))
    assert loops(made) == [22]


def test_the_plan_says_which_lines() -> None:
    text = tn.jit(sums_beside).plan(X, W).explain()
    first = sums_beside.__code__.co_firstlineno + 3
    assert f"{Path(__file__).name}, lines {first} to {first + 3}: 20 rounds found" in text


def test_a_plan_in_a_file(tmp_path: Path) -> None:
    function = tn.jit(sums_beside)
    wanted = function(X, W)
    function.plan(X, W).save(tmp_path / "plan")
    for got, one in zip(tn.load(tmp_path / "plan")(X, W), wanted, strict=True):
        np.testing.assert_array_equal(got, one)


def test_nothing_diverges() -> None:
    assert tn.bisect(sums_beside, X, W, script=None).disagreement is None


def test_a_wrong_loop_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check compares the graph with loops to the one that was traced."""

    def first(body: Body, read: Literals) -> int:
        structure = body.structure
        node = structure.nodes[structure.makers[read.values[body.rounds.low]]]
        return body.builder.node(node.op, (), dict(node.attributes))[0]

    def scaled(x: Any, w: Any) -> Any:
        for t in range(20):
            x = np.tanh(x @ w) * (t + 1)
        return x

    monkeypatch.setattr(Body, "_literals", first)
    with pytest.warns(tn.ParityWarning, match="written out"):
        got = tn.jit(scaled)(X, W)
    np.testing.assert_allclose(got, scaled(X, W), rtol=1e-5)


def test_in_lanes() -> None:
    lanes = np.stack([X, X * 2])
    got = tn.jit(tn.vmap(recurrence))(lanes)
    np.testing.assert_array_equal(got, [recurrence(x) for x in lanes])


def test_an_argument_that_is_updated() -> None:
    mine, wanted = X.copy(), X.copy()
    tn.jit(backwards)(mine)
    np.testing.assert_array_equal(mine, backwards(wanted))


# Loops that are drawn.

STEPS: tuple[Callable[[Any, list[Any], int], Any], ...] = (
    lambda x, s, i: np.tanh(s[0]),
    lambda x, s, i: s[0] @ W,
    lambda x, s, i: s[0] + s[-1],
    lambda x, s, i: s[0] * x[i],
    lambda x, s, i: s[0] - x[i - 1],
    lambda x, s, i: s[0] * (i * 0.25),
    lambda x, s, i: s[0] + 0.5,
    lambda x, s, i: s[0] - s[0].max(),
    lambda x, s, i: np.where(s[0] > s[-1], s[0], x[2 * i % 7]),
    lambda x, s, i: s[0][::-1] + x[min(i, 5)],
)


@st.composite
def programs(draw: st.DrawFn) -> tuple[Function, int]:
    """A loop that changes some arrays, by steps that are drawn; perhaps another loop in it, rounds
    that differ, writes to an array and values that are collected."""
    rounds = draw(st.sampled_from((0, 1, 2, 16, 17, 20)))
    inner = draw(st.sampled_from((1, 1, 1, 2, 16)))
    width = draw(st.integers(1, 3))
    body = draw(st.lists(st.tuples(st.integers(0, width - 1), st.sampled_from(STEPS)), max_size=5))
    turns = draw(st.booleans())
    special = draw(st.sampled_from((-1, 0, 4, rounds - 1)))
    writes = draw(st.sampled_from((None, 0, 1)))
    ago = draw(st.integers(1, 3))

    def function(x: Any) -> Any:
        state = [x[0] * k + 1 for k in range(width)]
        seen, out = [state[0]] * ago, np.zeros((22, 4), "f4")
        for i in range(rounds):
            for _ in range(inner):
                for place, step in body:
                    state[place] = step(x, [state[place], *state], i)
            if i == special:
                state[0] = np.sin(state[0])
            if writes is not None:
                out[i + writes] = state[0] + out[i] * seen[-ago]
            seen.append(state[-1])
            if turns:
                state = [*state[1:], state[0]]
        return np.stack(seen), out, *state, sum(seen)

    return function, rounds


def given_to(graph: Graph) -> list[Any]:
    """What a drawn program reads: the array, and the matrix where it has a use for it."""
    return [X, W][: len(graph.parameters)]


@settings(deadline=None)
@given(programs())
def test_drawn_loops(drawn: tuple[Function, int]) -> None:
    function, _ = drawn
    graph = tn.trace(function, X)
    same(graph, *given_to(graph))


@settings(deadline=None)
@given(programs())
def test_drawn_plans(drawn: tuple[Function, int]) -> None:
    function, _ = drawn
    graph = tn.trace(function, X)
    program = BACKEND.compile(graph)
    arrays = given_to(graph)
    for got, wanted in zip(program(arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("context", [1, 2, 8, 300, 3000])
@pytest.mark.parametrize("kinds", [2, 40, 5000])
def test_many_names_are_doubled_as_few_are(
    monkeypatch: pytest.MonkeyPatch, kinds: int, context: int
) -> None:
    names = np.random.default_rng(kinds).integers(0, kinds, 2000).tolist()
    as_array = seeds._doubled(names, context)
    monkeypatch.setattr(seeds, "MANY", len(names))
    one_by_one = seeds._doubled(names, context)
    pairs = set(zip(as_array, one_by_one, strict=True))
    assert len(pairs) == len(set(as_array)) == len(set(one_by_one))
