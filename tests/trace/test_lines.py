"""The user's lines: each node has that of the call that made it, however the call came about."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import TenfoldError

X = np.arange(6.0)


def _lines(function: Callable[..., Any], *args: Any) -> dict[str, list[int]]:
    """By op, the lines of the nodes that were made, counted from that of the function."""
    first = function.__code__.co_firstlineno
    found: dict[str, list[int]] = {}
    for node in tn.trace(function, *args).nodes:
        assert node.source is not None
        assert node.source.file == __file__
        found.setdefault(node.op, []).append(node.source.line - first)
    return found


def test_nodes_of_one_call_have_its_line() -> None:
    def f(x: Any) -> Any:
        a = x - x.mean()
        b = np.exp(a)[1:4]
        b += 2
        a[0] = b.sum()
        return a, np.where(a > 0, a, -a)

    assert _lines(f, X) == {
        "reduce_sum": [1, 4],
        "div": [1],
        "sub": [1],
        "exp": [2],
        "slice": [2],
        "add": [3],
        "reshape": [4],
        "dynamic_update": [4],
        "gt": [5],
        "neg": [5],
        "select": [5],
        "constant": [1, 3, 4, 5],
    }


def test_what_our_code_calls_has_the_line_of_the_user() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for item in x[:3]:
            total = total + np.cross(x[:3], item * x[3:])
        return total

    found = _lines(f, X)
    assert set(found["slice"]) == {2, 3}
    assert set(found["sub"]) == {3}


def test_functions_that_ours_call_have_lines_of_their_own() -> None:
    def low(part: Any) -> Any:
        return np.sin(part)

    def f(x: Any) -> Any:
        def high(part: Any) -> Any:
            shifted = tn.dynamic_slice(part, [0], [6])
            return np.cos(shifted)

        return np.piecewise(x, [x < 2], [low, high])

    found = _lines(f, X)
    start = f.__code__.co_firstlineno
    assert found["sin"] == [low.__code__.co_firstlineno + 1 - start]
    assert found["dynamic_slice"] == [2]
    assert found["cos"] == [3]
    assert set(found["select"]) == {5}


def test_a_call_that_fails_leaves_no_line_behind() -> None:
    def f(x: Any) -> Any:
        with suppress(TenfoldError):
            x.reshape(7)
        with suppress(TenfoldError):
            x[9]
        with suppress(TenfoldError):
            x += np.ones(5)
        return tn.dynamic_slice(x, [0], [2])

    assert _lines(f, X)["dynamic_slice"] == [7]


def test_branches_have_lines_of_their_own() -> None:
    def f(x: Any) -> Any:
        def one(y: Any) -> Any:
            return np.sqrt(y)

        return tn.cond(x[0] > 0, one, lambda y: np.tanh(y), x)

    graph = tn.trace(f, X)
    first = f.__code__.co_firstlineno
    lines = {
        node.op: node.source.line - first
        for scope in (*graph.scopes(), graph)
        for node in scope.nodes
        if node.source is not None
    }
    assert (lines["sqrt"], lines["tanh"], lines["gt"]) == (2, 4, 4)


def test_an_updated_argument_names_its_first_line() -> None:
    def f(x: Any) -> None:
        x[0] = 1
        x[1] = 2

    jitted = tn.jit(f)
    frozen = X.copy()
    frozen.flags.writeable = False
    with pytest.raises(TenfoldError) as caught:
        jitted(frozen)
    assert f"{__file__}:{f.__code__.co_firstlineno + 1}" in str(caught.value)
