"""What is let off where a target flushes subnormal numbers, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.parity.rule.agree import compare, judged
from tenfold.parity.rule.flushed import as_on

TINY = np.float32(1e-40)
X = np.array([TINY, -TINY, 0.0, 1e-20, 1.0, 3e38], np.float32)
Y = np.array([0.0, TINY, -TINY, 1e-20, 2.0, 1.0], np.float32)


def flushed(x: Any) -> Any:
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, x * np.float32(0), x)


def agree(function: Callable[..., Any], got: Any, flushes: bool, *arrays: Any) -> bool:
    graph = tn.trace(function, *arrays)
    with as_on(WebGPUTarget(subnormals=not flushes)):
        (bound,) = judged(graph, list(arrays))
    return compare(np.asarray(got), bound.value, bound.allowed).agrees


@pytest.mark.parametrize(
    "function",
    [np.add, np.multiply, np.less, np.equal, np.maximum, lambda x, y: np.tanh(x * y)],
)
def test_what_computes_may_take_them_for_zero(function: Callable[..., Any]) -> None:
    got = flushed(function(flushed(X), flushed(Y)))
    got = got.astype(np.asarray(function(X, Y)).dtype)
    assert agree(function, got, True, X, Y)


def test_nothing_is_let_off_elsewhere() -> None:
    assert not agree(np.add, flushed(X + Y), False, X, Y)
    assert not agree(np.less, flushed(X) < flushed(Y), False, X, Y)


@pytest.mark.parametrize(
    "function", [np.negative, np.abs, lambda x: x[::-1], lambda x: np.where(x == x, x, 0)]
)
def test_what_moves_keeps_every_bit(function: Callable[..., Any]) -> None:
    assert agree(function, function(X), True, X)
    assert not agree(function, flushed(function(X)), True, X)


def test_no_more_than_the_smallest_normal_number_is_let_off() -> None:
    got = X + Y
    got[0] = 1e-37
    assert not agree(np.add, got, True, X, Y)
    got = X + Y
    got[4] = np.nextafter(got[4], np.float32(9))
    assert not agree(np.add, got, True, X, Y)


def test_a_double_keeps_its_subnormal_numbers() -> None:
    x = np.array([5e-324, 1.0])
    assert not agree(np.add, np.array([0.0, 2.0]), True, x, x)
