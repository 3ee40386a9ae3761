"""A value traced once and used both in a branch and around it is computed exactly once."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tenfold as tn


class Counted:
    """A host function that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        def host(v: Any) -> Any:
            self.calls += 1
            return v * 2

        return tn.call_host(host, tn.spec((), "float64"), x)


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("branch_first", [True, False])
def test_whichever_side_comes_first(branch_first: bool, taken: bool) -> None:
    costly = Counted()

    def program(p: Any, x: Any) -> Any:
        y = costly(x)
        if branch_first:
            inside = tn.cond(p, lambda: y + 1, lambda: y - 1)
            return inside * y
        outside = y * 3
        return outside + tn.cond(p, lambda: y + 1, lambda: y - 1)

    result = tn.jit(program)(taken, 5.0)
    inside = 11 if taken else 9
    assert result == (inside * 10 if branch_first else 30 + inside)
    assert costly.calls == 1


@pytest.mark.parametrize("keys", list(itertools.permutations("abc")))
def test_nested_dicts_in_any_key_order(keys: tuple[str, ...]) -> None:
    costly = Counted()

    def program(p: Any, x: Any) -> Any:
        y = costly(x)
        parts = {"a": y, "b": {"z": y + 1, "c": y}, "c": y - 1}
        one = lambda: {k: parts[k] for k in keys}  # noqa: E731
        other = lambda: {k: parts[k] for k in reversed(keys)}  # noqa: E731
        return {"out": tn.cond(p, one, other), "y": y}

    made = tn.jit(program)(True, 5.0)
    assert made == {"out": {"a": 10, "b": {"c": 10, "z": 11}, "c": 9}, "y": 10}
    assert costly.calls == 1

    def digest(order: tuple[str, ...]) -> str:
        one = lambda x: dict.fromkeys(order, x)  # noqa: E731
        other = lambda x: dict.fromkeys(keys, -x)  # noqa: E731
        return tn.trace(lambda p, x: tn.cond(p, one, other, x), True, 1.0).digest

    digests = {digest(order) for order in itertools.permutations(keys)}
    assert len(digests) == 1


@pytest.mark.parametrize("depth", [3, 4, 7])
def test_nested_conditions(depth: int) -> None:
    costly = Counted()

    def program(n: Any, x: Any) -> Any:
        y = costly(x)

        def level(k: int) -> Any:
            if k == depth:
                return y * 100
            return tn.cond(n > k, lambda: level(k + 1) + y, lambda: y - k)

        return level(0) + y

    f = tn.jit(program)
    for n in range(depth + 1):
        costly.calls = 0
        inner = 1000.0 if n == depth else 10.0 - n
        assert f(n, 5.0) == inner + 10 * n + 10
        assert costly.calls == 1


def test_a_value_used_only_in_a_branch_is_computed_outside_it_once() -> None:
    def program(p: Any, x: Any) -> Any:
        y = np.sin(x)
        return tn.cond(p, lambda: y * y, lambda: y)

    graph = tn.trace(program, True, 1.0)
    assert [n.op for n in graph.nodes] == ["sin", "switch"]
    assert all("sin" not in {n.op for n in s.nodes} for s in graph.scopes())


def test_a_value_used_in_a_loop_is_computed_once() -> None:
    costly = Counted()

    def program(x: Any) -> Any:
        y = costly(x)
        return tn.fori_loop(0, 4, lambda i, s: tn.cond(i > 1, lambda: s + y, lambda: s), 0.0) + y

    assert tn.jit(program)(1.0) == 6
    assert costly.calls == 1


def test_one_made_in_a_branch_is_computed_only_if_that_is_taken() -> None:
    costly = Counted()
    f = tn.jit(lambda p, x: tn.cond(p, lambda: costly(x) + costly(x), lambda: x))
    assert f(False, 1.0) == 1
    assert costly.calls == 0
    assert f(True, 1.0) == 4
    assert costly.calls == 2
