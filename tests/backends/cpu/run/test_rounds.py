"""Loops that carry nothing: rounds on several threads, with the bits and errors of one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.target import host_target
from tenfold.backends.cpu.threads.pool import thread_pool

Array = np.ndarray[Any, Any]
ROUNDS = 24


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    yield
    tn.config.threads = None


def regions(f: Any, *args: Any) -> tuple[Any, int]:
    """What a call gives, and how many pieces of work it cut."""
    f(*args)
    before = thread_pool(host_target()).counts()["regions"]
    made = f(*args)
    return made, thread_pool(host_target()).counts()["regions"] - before


def drawn(*shapes: tuple[int, ...]) -> list[Array]:
    generator = np.random.default_rng(7)
    return [generator.standard_normal(shape).astype("f4") for shape in shapes]


def body(_: Any, x: Any, w: Any) -> Any:
    return (), np.tanh(x @ w) @ w.T


@pytest.mark.parametrize("reverse", [False, True])
def test_rounds_are_shared_out_and_give_the_same_bits(reverse: bool) -> None:
    xs, w = drawn((ROUNDS, 96, 128), (128, 160))
    f = tn.jit(lambda xs, w: tn.scan(lambda s, x: body(s, x, w), (), xs, reverse=reverse)[1])
    found = []
    for threads in (1, 2, 3, 8):
        tn.config.threads = threads
        made, cut = regions(f, xs, w)
        assert cut == (threads > 1)  # one piece of work, its indices the rounds
        found.append(made.tobytes())
    assert len(set(found)) == 1
    np.testing.assert_allclose(made, np.tanh(xs @ w) @ w.T, atol=1e-3)


def test_few_rounds_go_one_after_the_other() -> None:
    """Threads share what is inside of them."""
    xs, w = drawn((2, 256, 256), (256, 256))
    f = tn.jit(lambda xs, w: tn.scan(lambda s, x: body(s, x, w), (), xs)[1])
    tn.config.threads = 4
    made, cut = regions(f, xs, w)
    assert cut >= 4
    np.testing.assert_allclose(made, np.tanh(xs @ w) @ w.T, atol=1e-3)


def test_what_is_carried_keeps_rounds_in_order() -> None:
    xs, w = drawn((ROUNDS, 96, 128), (128, 128))
    w /= 64  # small differences stay small
    f = tn.jit(lambda xs, w: tn.scan(lambda c, x: (np.tanh((c + x) @ w), c), xs[0] * 0, xs)[1])
    tn.config.threads = 2
    made, _ = regions(f, xs, w)
    carried = xs[0] * 0
    for x, one in zip(xs, made, strict=True):
        np.testing.assert_allclose(one, carried, atol=1e-3)
        carried = np.tanh((carried + x) @ w)


def test_rounds_that_call_python_stay_on_its_thread() -> None:
    xs, w = drawn((ROUNDS, 96, 128), (128, 160))
    seen: list[int] = []

    def watch(_: Any) -> None:
        seen.append(threading.get_ident())

    def watched(state: Any, x: Any, w: Any) -> Any:
        tn.hook("watch", x[0, 0], watch)
        return body(state, x, w)

    f = tn.jit(lambda xs, w: tn.scan(lambda s, x: watched(s, x, w), (), xs)[1])
    tn.config.threads = 2
    made = f(xs, w)
    assert set(seen) == {threading.get_ident()}
    np.testing.assert_allclose(made, np.tanh(xs @ w) @ w.T, atol=1e-3)


def test_an_index_out_of_range_is_an_error_in_any_round() -> None:
    xs, w = drawn((ROUNDS, 96, 128), (128, 160))
    places = np.zeros(ROUNDS, np.int64)
    places[-1] = 500

    def picked(_: Any, given: Any, w: Any) -> Any:
        x, place = given
        return (), (np.tanh(x @ w) @ w.T)[place]

    f = tn.jit(lambda xs, p, w: tn.scan(lambda s, x: picked(s, x, w), (), (xs, p))[1])
    tn.config.threads = 2
    f(xs, np.zeros_like(places), w)
    with pytest.raises(IndexError):
        f(xs, places, w)
