"""What is large is made just before it is read."""

from __future__ import annotations

from typing import Any

import numpy as np

import tenfold as tn
from tenfold.plan.fusion.defer import defer


def products(x: Any) -> Any:
    """A product with a part of one array for each round: each part is copied out."""
    x = x - x.mean(axis=0)
    found = np.zeros((x.shape[1], x.shape[1]))
    for i in range(x.shape[1]):
        found[i, i:] = x[:, i] @ x[:, i:]
    return found


def test_parts_of_an_array_do_not_live_at_once() -> None:
    x = np.random.default_rng(0).normal(size=(4000, 40))
    jitted = tn.jit(products)
    np.testing.assert_allclose(jitted(x), products(x), atol=1e-10)
    assert jitted.plan(x).peak_bytes < 5 * x.nbytes  # all parts are 20 times as large


def test_what_would_keep_memory_longer_is_not_deferred() -> None:
    # b reads 0 for the last time: it stays, though what it makes is read by d alone.
    assert defer("abcd", [[0], [0], [1], [2]], [[1], [2], [], []], []) == [*"abcd"]
    assert defer("abcd", [[0], [0], [1], [2]], [[1], [2], [], []], [0]) == [*"acbd"]


def test_what_is_deferred_takes_along_what_it_reads() -> None:
    reads = [[0], [1], [0], [2, 0], [1]]
    assert defer("abcde", reads, [[1], [2], [], [], []], []) == [*"cabde"]
    assert defer("abcde", reads, [[1], [], [], [], []], []) == [*"abcde"]  # b does not move


def test_two_sums_of_what_is_computed_alike_are_one_kernel() -> None:
    def mean(x: Any) -> Any:
        inside = (x > 0.25) & (x < 0.5)
        return np.sum(np.where(inside, x, 0.0)) / np.sum(inside)

    x = np.random.default_rng(0).random(100_000)
    plan = tn.jit(mean).plan(x)
    assert len(plan.steps) == 1
    assert plan.arena_bytes < 100_000  # no mask is stored
    np.testing.assert_allclose(tn.jit(mean)(x), mean(x))


def test_what_needs_the_sum_waits_for_it() -> None:
    def scaled(x: Any) -> Any:
        y = np.exp(x)
        return y / y.sum() + np.sum(y * y)

    x = np.random.default_rng(0).random(100_000)
    np.testing.assert_allclose(tn.jit(scaled, verify="always")(x), scaled(x))
