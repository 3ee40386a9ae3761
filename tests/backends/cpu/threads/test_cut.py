"""Kernels in parts: the same bits on any number of threads, faults and signals as on one."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fuzz import everything_cut, on_threads

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.backends.cpu.target import host_target
from tenfold.backends.cpu.threads.cut import LEAST, MOST_ROWS, Cut, KernelPlace, cut, share
from tenfold.backends.cpu.threads.pool import thread_pool

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def woken() -> Iterator[None]:
    """Workers are woken for little work, too."""
    pool = thread_pool(host_target())
    before, pool.moment = pool.moment, 1 << 62
    yield
    pool.moment = before


def draw(*shape: int, dtype: str = "f4") -> Array:
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


def softmax(x: Array, axis: int = -1) -> Array:
    powers = np.exp(x - x.max(axis, keepdims=True))
    made: Array = powers / powers.sum(axis, keepdims=True)
    return made


def normal(x: Array) -> Array:
    mean = x.mean(-1, keepdims=True)
    made: Array = (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
    return made


def added_at(x: Array, at: Array, values: Array) -> Array:
    x = x.copy()
    np.add.at(x, at, values)
    return x


def ties(count: int) -> Array:
    """Few different values, zeros of both signs among them."""
    made = np.round(draw(count) * 2) / 2
    made[::3] *= -1
    return made


def with_nans(x: Array) -> Array:
    x = x.copy()
    x[[70_000, 90_001]] = np.nan
    return x


INDICES = np.random.default_rng(3).integers(0, 50, 4000)
CASES: dict[str, tuple[Function, tuple[Array, ...]]] = {
    "pointwise": (lambda x: np.tanh(x) * 2 + 1, (draw(100_003),)),
    "rows": (softmax, (draw(1001, 67),)),
    "rows in registers": (softmax, (draw(16384, 64),)),
    "long rows, kept in scratch": (softmax, (draw(37, 9001),)),
    "columns": (lambda x: softmax(x, 0), (draw(300, 1003),)),
    "column sums": (lambda x: x.sum(0), (draw(1000, 500),)),
    "few columns, many rows": (lambda x, c: (c * c).sum(1) - x, (draw(3000, 32), draw(32, 16))),
    "layers": (normal, (draw(700, 1024),)),
    "transposed": (lambda x: x.T * 2 + 1, (draw(700, 1003),)),
    "a window": (lambda x: x[:, 1:] + x[:, :-1], (draw(500, 1003),)),
    "parts of an axis": (lambda x: np.concatenate([x, x * 2], 1) + 1, (draw(300, 500),)),
    "bools": (lambda x: (x > 0) & (x < 1), (draw(200_001),)),
    "remainders": (lambda x: np.repeat(x, 3) * 2, (draw(50_001),)),
    "a scatter": (added_at, (draw(50, 700), INDICES, draw(4000, 700))),
    "sorted rows": (lambda x: np.sort(x, -1, kind="stable"), (draw(300, 1003),)),
    "order of rows": (lambda x: np.argsort(x, -1, kind="stable"), (draw(300, 777),)),
    "a sum": (lambda x: x.sum(), (draw(1_000_003),)),
    "a sum of whole chunks": (lambda x: x.sum(), (draw(1 << 20),)),
    "a sum of doubles": (lambda x: np.sqrt((x * x).sum()), (draw(300_001, dtype="f8"),)),
    "a sum of halves": (lambda x: x.sum(dtype="f4"), (draw(300_001, dtype="f2"),)),
    "a sum over two axes": (lambda x, y: (x * y).sum(), (draw(999, 301), draw(301))),
    "a sum over long rows": (lambda x, y: (x * y).sum(), (draw(64, 9001), draw(9001))),
    "a sum along columns": (lambda x, y: (x.T * y).sum(), (draw(301, 999), draw(301))),
    "a sum of complex numbers": (lambda x: (x * 1j + x).sum(), (draw(200_001),)),
    "a product": (lambda x: (x * 1e-3 + 1).prod(), (draw(300_001),)),
    "the greatest": (lambda x: x.max(), (draw(500_001),)),
    "the least, with NaN": (lambda x: x.min(), (with_nans(draw(500_001)),)),
    "the first of the greatest": (lambda x: x.argmax(), (ties(500_001),)),
    "the first NaN": (lambda x: x.argmin(), (with_nans(ties(500_001)),)),
    "a zero of some sign": (lambda x: np.abs(x).min() * (0 * x).max(), (ties(500_001),)),
    "integers": (lambda x: x.sum(), ((draw(500_001) * 100).astype("i4"),)),
    "a truth": (lambda x: (x > 9).any() | (x < 9).all(), (draw(500_001),)),
    "several at once": (lambda x: x.max() - x.min() + x.mean(), (draw(500_001),)),
    "one after the other": (lambda x: x.var(), (draw(500_001),)),
    "a checked sum": (lambda x, at: x[at].sum(), (draw(50), np.arange(200_000) % 50)),
    "complex": (lambda x: np.exp(x * 1j).real, (draw(30_001),)),
    "halves": (lambda x: np.tanh(x), (draw(100_001, dtype="f2"),)),
}


def program_of(function: Function, arrays: tuple[Array, ...]) -> CompiledProgram:
    graph = tn.jit(function, verify="off").plan(*arrays).graph
    return CompiledProgram(BACKEND.plan(graph, (), host_target()))


@pytest.mark.parametrize("name", CASES)
def test_bits_do_not_depend_on_the_number_of_threads(name: str) -> None:
    function, arrays = CASES[name]
    pool = thread_pool(host_target())
    with everything_cut():
        program = program_of(function, arrays)
    with on_threads(1):
        (expected,) = program(arrays)
    np.testing.assert_allclose(
        expected.astype("c16"), np.asarray(function(*arrays)).astype("c16"), 2e-3, 1e-4
    )
    for number in (2, 3, 8):
        before = pool.counts()["regions"]
        with on_threads(number):
            for _ in range(5):
                (made,) = program(arrays)
                assert made.tobytes() == expected.tobytes()
        assert pool.counts()["regions"] > before, "nothing was cut"


def test_a_small_kernel_stays_on_the_caller() -> None:
    pool = thread_pool(host_target())
    with on_threads(2):
        f = tn.jit(lambda x: x * 2 + 1, verify="off")
        f(draw(1000))
        before = pool.counts()["regions"]
        f(draw(1000))
        assert pool.counts()["regions"] == before
        f = tn.jit(lambda x: np.tanh(np.exp(x)), verify="off")
        x = draw(1_000_000)
        f(x)
        before = pool.counts()["regions"]
        f(x)
        assert pool.counts()["regions"] == before + 1


def test_rows_cost_what_joining_their_lanes_costs() -> None:
    def nanoseconds(function: Function, x: Array) -> int:
        (call,) = tn.jit(function, verify="off").plan(x).calls
        found = cut(call, KernelPlace(0, 0, 1))
        assert found is not None
        return found.nanoseconds

    rows, columns = draw(20_000, 32), draw(32, 20_000)
    along = nanoseconds(lambda x: x.argmin(1), rows)
    assert along > 2 * nanoseconds(lambda x: x.argmin(0), columns)


@pytest.mark.parametrize("extent", [2, 3, 63, 64, 65, 1000, 10**6])
@pytest.mark.parametrize("grain", [1, 64, 1024])
def test_parts_make_up_the_whole(extent: int, grain: int) -> None:
    assert share(LEAST / 2, extent, grain) is None
    for cost in (LEAST, 10 * LEAST, 10**9):
        found = share(cost, extent, grain)
        if extent < 2 * grain:
            assert found is None
            continue
        assert isinstance(found, Cut)
        assert found.chunk % grain == 0
        assert (found.parts - 1) * found.chunk < extent <= found.parts * found.chunk


def test_a_check_that_fails_on_any_thread_raises_as_on_one() -> None:
    at = np.arange(200_000) % 100
    at[150_000] = 100
    f = tn.jit(lambda x, i: np.tanh(x[i]) + 1)
    for number in (1, 2, 8):
        with on_threads(number), pytest.raises(IndexError, match="index 100 is out of range"):
            f(draw(100), at)
    at[150_000] = 99
    with on_threads(2):
        np.testing.assert_allclose(f(draw(100), at), np.tanh(draw(100)[at]) + 1, 1e-5)


def test_a_check_that_fails_in_a_part_of_a_sum_raises() -> None:
    at = np.arange(200_000) % 100
    at[150_000] = 100
    f = tn.jit(lambda x, i: x[i].sum())
    for number in (1, 2, 8):
        with on_threads(number), pytest.raises(IndexError, match="index 100 is out of range"):
            f(draw(100), at)


def test_parts_of_a_reduction_are_stretches_of_its_tree() -> None:
    x = draw(1_000_003)
    plan = tn.jit(lambda x: x.sum(), verify="off").plan(x)
    (call,) = plan.calls
    with everything_cut():
        found = cut(call, KernelPlace(0, 0, 8192))
    assert found is not None
    assert found.joined
    assert found.parts <= MOST_ROWS
    runs, rest = divmod(found.chunk, 8192)
    assert (rest, runs & runs - 1) == (0, 0)
    assert (found.parts - 1) * found.chunk < x.size <= found.parts * found.chunk


def test_a_hook_sees_what_parts_have_written() -> None:
    seen: list[Array] = []

    def f(x: Any) -> Any:
        y = np.tanh(x) * 3
        tn.hook("y", y, seen.append)
        return np.exp(y)

    x = draw(300_000)
    with on_threads(3):
        tn.jit(f, verify="off")(x)
    np.testing.assert_allclose(seen[-1], np.tanh(x) * 3, 1e-5)


def test_many_callers_of_one_plan() -> None:
    f = tn.jit(softmax, verify="off")
    x = draw(512, 512)
    expected = f(x).tobytes()
    wrong: list[int] = []

    def call(number: int) -> None:
        if any(f(x).tobytes() != expected for _ in range(30)):
            wrong.append(number)

    with on_threads(3):
        callers = [threading.Thread(target=call, args=(n,)) for n in range(16)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_plan_in_the_child_of_a_fork() -> None:
    f = tn.jit(softmax, verify="off")
    x = draw(512, 512)
    with on_threads(3):
        expected = f(x).tobytes()
        child = os.fork()
        if child == 0:
            os._exit(0 if all(f(x).tobytes() == expected for _ in range(10)) else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert f(x).tobytes() == expected


@pytest.mark.parametrize("number", [2, 8])
def test_ctrl_c_stops_all_threads_and_the_next_call_is_right(number: int) -> None:
    f = tn.jit(lambda x: np.tanh(np.exp(-x * x) + np.sin(x)) / (1 + np.exp(-x)), verify="off")
    x = draw(12_000_000, dtype="f8")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with on_threads(number):
        expected = f(x)[::1001].copy()
        stopped = 0
        try:
            for _ in range(5):
                start = time.perf_counter()
                f(x)
                whole = time.perf_counter() - start
                timer = threading.Timer(whole / 3, os.kill, (os.getpid(), signal.SIGINT))
                timer.start()
                try:
                    f(x)
                except KeyboardInterrupt:
                    stopped += 1
                with contextlib.suppress(KeyboardInterrupt):  # where the call was done before
                    timer.join()
                np.testing.assert_array_equal(f(x)[::1001], expected)
        finally:
            signal.signal(signal.SIGINT, before)
    assert stopped


def test_ctrl_c_leaves_no_argument_half_written() -> None:
    def update(x: Array) -> None:
        x[:] = np.sin(x) + np.cos(x) * 2

    f, x = tn.jit(update, verify="off"), draw(1_000_000)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with on_threads(2):
            f(x.copy())
            expected = x.copy()
            f(expected)
            for _ in range(30):
                made = x.copy()
                timer = threading.Timer(0.001, os.kill, (os.getpid(), signal.SIGINT))
                with contextlib.suppress(KeyboardInterrupt):
                    timer.start()
                    f(made)
                    timer.join()
                with contextlib.suppress(KeyboardInterrupt):
                    timer.join()
                assert made.tobytes() in (x.tobytes(), expected.tobytes())
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_kernel_that_stands_for_a_larger_one_is_cut_as_that_is() -> None:
    plan = tn.jit(np.tanh, verify="off").plan(draw(3000))
    (call,) = plan.calls
    place = KernelPlace(0, 0, 1024)
    assert cut(call, place) is None
    found = cut(call, place, fine=True)
    assert found is not None
    assert (found.chunk, found.parts) == (2048, 2)
