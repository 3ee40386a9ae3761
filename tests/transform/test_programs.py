"""Random programs of branches, loops, faults and hooks: vmap gives what a loop over lanes gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tenfold as tn

Block = tuple[Any, ...]
State = dict[str, Any]

SCALARS = ("a", "b", "s")  # s starts the same for all lanes
NAMES = st.sampled_from(SCALARS)
SMALL = st.integers(-3, 5)

ASSIGN = st.one_of(
    st.tuples(st.just("calc"), st.sampled_from("+-*^/%"), NAMES, NAMES, NAMES),
    st.tuples(st.just("number"), NAMES, SMALL),
    st.tuples(st.just("read"), NAMES, NAMES),  # v[x], which may be out of range
    st.tuples(st.just("write"), NAMES, NAMES),
    st.tuples(st.just("scale"), NAMES),
    st.tuples(st.just("see"), NAMES),
)


def extend(inner: st.SearchStrategy[Block]) -> st.SearchStrategy[Block]:
    block = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        st.tuples(st.just("if"), NAMES, SMALL, block, block),
        st.tuples(st.just("switch"), NAMES, st.lists(block, min_size=1, max_size=3)),
        st.tuples(st.just("while"), NAMES, SMALL, block),
        st.tuples(st.just("for"), st.integers(0, 3), block),
        st.tuples(st.just("scan"), block),
        st.tuples(st.just("vmap"), block),
    )


PROGRAMS = st.lists(st.recursive(ASSIGN, extend, max_leaves=12), max_size=4).map(tuple)

CALC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "^": lambda x, y: x ^ y,
    "/": lambda x, y: x // y,
    "%": lambda x, y: x % y,
}


def run(block: Block, state: State, see: Callable[[Any], Any]) -> State:
    """Carry a program out on traced values."""
    for step in block:
        state = one(step, dict(state), see)
    return state


def one(step: Block, state: State, see: Callable[[Any], Any]) -> State:
    match step:
        case ("calc", op, to, x, y):
            state[to] = CALC[op](state[x], state[y])
        case ("number", to, n):
            state[to] = np.int64(n)
        case ("read", to, x):
            state[to] = state["v"][state[x]]
        case ("write", x, y):
            v = state["v"].copy()
            v[state[x] % 3] = state[y]
            state["v"] = v
        case ("scale", x):
            state["v"] = state["v"] * state[x] + 1
        case ("see", x):
            see((state["lane"], state[x]))
        case ("if", x, n, yes, no):
            state = tn.cond(
                state[x] > n, lambda s: run(yes, s, see), lambda s: run(no, s, see), state
            )
        case ("switch", x, blocks):
            branches = [lambda s, b=b: run(b, s, see) for b in blocks]
            state = tn.switch(state[x], branches, state)
        case ("while", x, n, body):
            more = lambda c: (c[0] < 4) & (c[1][x] > n)  # noqa: E731
            go = lambda c: (c[0] + 1, run(body, c[1], see))  # noqa: E731
            state = tn.while_loop(more, go, (0, state))[1]
        case ("for", n, body):
            state = tn.fori_loop(0, n, lambda i, s: run(body, {**s, "b": s["b"] + i}, see), state)
        case ("scan", body):

            def along(s: State, x: Any) -> Any:
                s = run(body, {**s, "a": s["a"] + x}, see)
                return s, s["b"]

            state, state["v"] = tn.scan(along, state, state["v"])
        case ("vmap", body):
            each = lambda x: run(body, {**state, "a": x}, see)["b"]  # noqa: E731
            state["v"] = tn.vmap(each)(state["v"])
    return state


def start(lane: Any, a: Any, b: Any, v: Any, s: Any) -> State:
    return {"lane": lane, "a": a, "b": b, "v": v, "s": s}


LANES = np.arange(4)
A = np.array([0, 1, 2, -2])
B = np.array([5, -1, 0, 3])
V = np.array([[1, 2, 3], [0, 0, 0], [-5, 2, 2**62], [7, 1, -1]])
S = np.int64(2)


def outcome(call: Callable[[], Any]) -> Any:
    """What is given, or the error that is raised."""
    try:
        return call()
    except IndexError:
        return IndexError


@settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(PROGRAMS)
def test_vmap_is_a_loop(program: Block) -> None:
    together: list[Any] = []
    alone: list[Any] = []

    def of(log: list[Any]) -> Callable[..., State]:
        see = lambda x: tn.hook("see", x, lambda v: log.append([int(n) for n in v]))  # noqa: E731
        return lambda *args: run(program, start(*args), see)

    got = outcome(lambda: tn.vmap(of(together), (0, 0, 0, 0, None))(LANES, A, B, V, S))
    lane = tn.jit(of(alone))
    rows = [outcome(lambda k=k: lane(LANES[k], A[k], B[k], V[k], S)) for k in LANES]
    if any(row is IndexError for row in rows):
        assert got is IndexError
        return
    assert got is not IndexError
    for name, value in got.items():
        want = np.stack([row[name] for row in rows])
        assert value.dtype == want.dtype
        np.testing.assert_array_equal(value, want)
    for k in LANES:
        assert [x for x in together if x[0] == k] == [x for x in alone if x[0] == k]
