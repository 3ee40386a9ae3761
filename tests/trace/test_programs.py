"""Random programs of nested branches and loops give what plain Python gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn

State = tuple[Any, Any]
Program = Callable[[State], State]


class Plain:
    """Control flow in plain Python, with the signatures of Tenfold's."""

    @staticmethod
    def cond(pred: Any, true_fn: Any, false_fn: Any, *operands: Any) -> Any:
        return true_fn(*operands) if pred else false_fn(*operands)

    @staticmethod
    def switch(index: Any, branches: Any, *operands: Any) -> Any:
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)

    @staticmethod
    def while_loop(cond_fn: Any, body_fn: Any, init: Any) -> Any:
        while cond_fn(init):
            init = body_fn(init)
        return init

    @staticmethod
    def fori_loop(lower: Any, upper: Any, body_fn: Any, init: Any) -> Any:
        for i in range(int(lower), int(upper)):
            init = body_fn(i, init)
        return init

    @staticmethod
    def scan(f: Any, init: Any, xs: Any, reverse: bool = False) -> Any:
        ys = []
        for x in xs[::-1] if reverse else xs:
            init, y = f(init, x)
            ys.append(y)
        return init, np.stack(ys[::-1] if reverse else ys)


def draw(random: np.random.Generator, flow: Any, depth: int) -> Program:
    """A random program on an integer and a vector of integers, which both stay small."""
    kind = random.integers(0, 7) if depth else 0
    number = int(random.integers(1, 7))
    inner = [draw(random, flow, depth - 1) for _ in range(3)] if kind else []

    def step(state: State) -> State:
        n, v = state
        return (n * 3 + number) % 101, (v * (n + 1) + number) % 97

    def around(state: State) -> State:
        n, v = state
        outer = (v + n) % 89  # used inside and outside
        match kind:
            case 0:
                return step(state)
            case 1:
                n, v = flow.cond(n % 2 == 0, inner[0], inner[1], state)
            case 2:
                n, v = flow.switch(n % 4, inner, state)
            case 3:
                n, v = flow.fori_loop(0, number, lambda i, s: inner[0]((s[0] + i, s[1])), state)
            case 4:
                n, v = flow.fori_loop(n % 3, 4, lambda i, s: inner[1]((s[0], s[1] + outer)), state)
            case 5:
                more = lambda s: s[0] < number  # noqa: E731
                body = lambda s: (s[0] + 1, *inner[0](s[1:]))  # noqa: E731
                n, v = flow.while_loop(more, body, (n * 0, n, v))[1:]
            case _:
                body = lambda c, x: ((inner[0](c)[0] + x) % 101, c[1] + x)  # noqa: E731
                both = lambda c, x: (body(c, x), x + outer.sum())  # noqa: E731
                (n, v), ys = flow.scan(both, state, v, reverse=number > 3)
                v = (v + ys) % 97
        return inner[2]((n % 101, (v + outer) % 97))

    return around


@pytest.mark.parametrize("seed", range(40))
def test_a_random_program(seed: int) -> None:
    traced = draw(np.random.default_rng(seed), tn, 3)
    plain = draw(np.random.default_rng(seed), Plain, 3)
    f = tn.jit(lambda n, v: traced((n, v)))
    for n in (np.int64(0), np.int64(7)):
        v = np.arange(4) + n
        got, want = f(n, v), plain((n, v))
        assert got[0] == want[0]
        np.testing.assert_array_equal(got[1], want[1])
    assert f.traces == 1


def test_zeros_keep_their_signs_from_trace_to_trace() -> None:
    """Arrays of literals are kept, and zeros of both signs are equal."""
    for zero in (0.0, -0.0, 0.0, 0, False, 0j, -0.0):
        graph = tn.trace(lambda x, zero=zero: np.where(x > 1, x, zero), np.ones(2, "c16"))
        (kept,) = [n["data"] for n in graph.nodes if n.op == "constant" and n["type"] == "c128"][
            -1:
        ]
        assert kept == np.complex128(zero).tobytes()
