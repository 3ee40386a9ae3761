"""Memory of native calls, what fails in them, threads, and who answers where they can't."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends import registry
from tenfold.backends.cuda import assemble
from tenfold.backends.cuda.array import DeviceArray
from tenfold.backends.cuda.blocks import PARTS, blocks_of, kind_of
from tenfold.backends.cuda.driver import device, library
from tenfold.backends.cuda.entry.code import entries, unsupported
from tenfold.backends.cuda.entry.plans import ROOMS
from tenfold.backends.cuda.entry.rooms import StagedRooms
from tenfold.backends.cuda.run import staging
from tenfold.cache import plans
from tenfold.errors import IndexProblem, TypeMismatch
from tests.backends.cuda.entry.answering import FailingGpu, Python, X, jitted, there
from tests.backends.cuda.fake_cublas import FakeCublas
from tests.backends.cuda.fake_driver import FakeLibrary
from tests.backends.cuda.simulated import SimulatedGpu, SimulatedPlace

pytestmark = pytest.mark.skipif(unsupported() is not None, reason=str(unsupported()))
ROWS = np.array([0, 2])


def test_python_answers_where_no_memory_waits(gpu: FailingGpu, python: Python) -> None:
    f, x = jitted(lambda x: (x + 1, x * 2), X), there(X)
    python.calls, kept = 0, list[Any]()
    for _ in range(PARTS + 5):  # two each
        kept.append(f(x))
    assert 1 <= python.calls <= 4
    addresses = {one.address for pair in kept for one in pair}
    assert len(addresses) == 2 * len(kept)
    for one, two in kept:
        np.testing.assert_array_equal(one.numpy(), X + 1)
        np.testing.assert_array_equal(two.numpy(), X * 2)


def test_nothing_is_lost_or_held(gpu: FailingGpu, python: Python) -> None:
    f, x = jitted(lambda x: (x + 1, x * 2), X), there(X)
    kind = kind_of(gpu, X.dtype, X.shape)  # type: ignore[arg-type]
    f(x)
    gc.collect()
    held, waiting = sys.getrefcount(kind), sorted(kind.free)
    python.calls = 0
    for _ in range(50):
        f(x)
    assert python.calls == 0
    assert sys.getrefcount(kind) == held
    assert sorted(kind.free) == waiting
    assert blocks_of(gpu).kept >= len(waiting) * X.nbytes  # type: ignore[arg-type]
    count = sys.getrefcount(x)
    f(x)
    assert sys.getrefcount(x) == count


def test_the_collector_may_run_at_any_moment(gpu: FailingGpu) -> None:
    f, x = jitted(lambda x: x + 1, X), there(X)
    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for _ in range(30):
            held: list[Any] = [f(x)]
            held.append(held)  # the collector finds it
            got = f(x)
        np.testing.assert_array_equal(got.numpy(), X + 1)
    finally:
        gc.set_threshold(*before)


@pytest.mark.parametrize("what", ["current", "kernel", "launch", "wait"])
def test_python_answers_what_fails(what: str, gpu: FailingGpu, python: Python) -> None:
    f = jitted(lambda x: x + 1, X)
    gpu.fails = {what}
    for n in range(3):
        np.testing.assert_array_equal(f(there(X + n)).numpy(), X + n + 1)
        np.testing.assert_array_equal(f(X + n), X + n + 1)
    gpu.fails = set()
    for _ in range(2):
        f(X), f(there(X))
    python.calls = 0
    np.testing.assert_array_equal(f(there(X + 7)).numpy(), X + 8)
    np.testing.assert_array_equal(f(X + 7), X + 8)
    assert python.calls == 0


def test_a_bad_index_of_numpys(gpu: FailingGpu, python: Python) -> None:
    f = tn.jit(lambda x, i: (x + 1)[i], backend="cuda")
    good = np.array([0, 2])
    f(X, good)
    assert f.ready(120)
    for _ in range(3):
        f(X, good)
    for _ in range(2):
        with pytest.raises(IndexProblem):
            f(X, np.array([0, 9]))
        python.calls = 0
        np.testing.assert_array_equal(f(X, good), (X + 1)[good])
        assert python.calls == 0


def test_a_bad_index_on_the_device(gpu: FailingGpu, python: Python) -> None:
    """Native code waits, and leaves it to Python to say what is wrong, and where."""
    f = tn.jit(lambda x, i, n: (x * n + 1)[i], backend="cuda")
    good, bad = np.array([0, 2]), np.array([0, 9])
    f(X, good, 2.0)
    assert f.ready(120)
    x = there(X)
    for _ in range(2):
        f(x, there(good), 2.0)
    for _ in range(3):
        with pytest.raises(IndexProblem, match=r"index 9 .*(.|\n)*test_rooms"):
            f(x, there(bad), 2.0)
        python.calls = 0
        for n in (2.0, 3.0):
            np.testing.assert_array_equal(f(x, there(good), n).numpy(), (X * n + 1)[good])
        assert python.calls == 0
    assert tn.release_memory()
    for _ in range(2):
        np.testing.assert_array_equal(f(x, there(good), 4.0).numpy(), (X * 4 + 1)[good])
    gpu.fails = {"wait"}
    np.testing.assert_array_equal(f(x, there(good), 5.0).numpy(), (X * 5 + 1)[good])
    gpu.fails = set()
    for _ in range(2):
        np.testing.assert_array_equal(f(x, there(good), 5.0).numpy(), (X * 5 + 1)[good])


def test_what_was_handed_on_is_not_for_native_code(gpu: FailingGpu, python: Python) -> None:
    f, x = jitted(lambda x: x + 1, X), there(X)
    f(x)
    python.calls = 0
    f(x)
    assert python.calls == 0
    capsule = x.__dlpack__()
    np.testing.assert_array_equal(f(x).numpy(), X + 1)
    assert python.calls == 1
    del capsule


def test_an_array_without_memory(gpu: FailingGpu) -> None:
    f = jitted(lambda x: x + 1, X)
    with pytest.raises((AttributeError, TypeMismatch)):
        f(DeviceArray.__new__(DeviceArray))
    np.testing.assert_array_equal(f(there(X)).numpy(), X + 1)


def test_memory_is_released_and_taken_again(gpu: FailingGpu, python: Python) -> None:
    f = jitted(lambda x: np.sort(x + 1, axis=0), X)
    x = there(X)
    for _ in range(2):
        assert tn.release_memory() > 0
        python.calls = 0
        for _n in range(4):
            np.testing.assert_array_equal(f(X), X + 1)
            np.testing.assert_array_equal(f(x).numpy(), X + 1)
        assert 2 <= python.calls <= 4
    assert f(X)[0, 0] == 1


def test_loops_and_hooks_are_for_python(gpu: FailingGpu, python: Python) -> None:
    def loop(x: Any) -> Any:
        return tn.while_loop(lambda c: c.sum() < 500, lambda c: c * 2, x)

    f = jitted(loop, X)
    python.calls = 0
    f(there(X))
    f(X)
    assert python.calls == 2


@pytest.mark.parametrize("most", [1 << 24, 16])
def test_a_librarys_products(most: int, monkeypatch: pytest.MonkeyPatch, python: Python) -> None:
    """A library is told of addresses once: what it reads and makes is copied, if that is little."""
    gpu = SimulatedGpu(cublas=FakeCublas())
    records = {**registry._records, "cuda": SimulatedPlace(gpu).record}
    monkeypatch.setattr(registry, "_records", records)
    monkeypatch.setattr(staging, "CARRIED", most)
    plans.clear()
    big = np.arange(40 * 64, dtype=np.float32).reshape(40, 64) % 7
    w = np.arange(64 * 48, dtype=np.float32).reshape(64, 48) % 5
    f = jitted(lambda x, y: ((x + 1) @ w, x @ y, y * 2), big, w)
    assert "by cublasLt" in f.plan(big, w).explain()
    python.calls = 0
    for n in range(3):
        x, wanted = there(big + n), ((big + n + 1) @ w, (big + n) @ w, w * 2)
        for got, one in zip(f(x, there(w)), wanted, strict=True):
            np.testing.assert_array_equal(got.numpy(), one)
        np.testing.assert_array_equal(x.numpy(), big + n)
        del got, one
    assert python.calls == (0 if most > 16 else 3)


def test_the_child_of_a_fork_has_no_native_code() -> None:
    home = ctypes.c_int64.from_address(entries().address("tn_at_home"))
    assert home.value == 1
    child = os.fork()
    if not child:
        os._exit(home.value)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert home.value == 1


def test_away_python_answers(gpu: FailingGpu, python: Python) -> None:
    f, x = jitted(lambda x: x + 1, X), there(X)
    home = ctypes.c_int64.from_address(entries().address("tn_at_home"))
    python.calls = 0
    home.value = 0
    try:
        np.testing.assert_array_equal(f(x).numpy(), X + 1)
        np.testing.assert_array_equal(f(X), X + 1)
    finally:
        home.value = 1
    assert python.calls == 2


@pytest.mark.parametrize("released", [False, True])
def test_many_threads(released: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a driver that does nothing: who is answered, and how many rooms there come to be; also
    where memory is given back all the time."""
    made = FakeLibrary()
    monkeypatch.setattr(library, "_open", lambda name: made)
    monkeypatch.setattr(assemble, "assembler", lambda: None)
    monkeypatch.setattr(tn.config, "cache", None)
    for forget in (library._begun.cache_clear, device._gpu.cache_clear, plans.clear):
        forget()
    try:
        f = tn.jit(lambda x, y: x * y + 1, backend="cuda", verify="off")
        g = tn.jit(lambda x, i: x[i], backend="cuda", verify="off", keep=True)
        f(X, X), g(X, ROWS)
        program = f.plan(X, X).program
        wrong, gate = list[BaseException](), threading.Barrier(24)
        before = program.answered

        def work() -> None:
            try:
                x, i = there(X), there(ROWS)
                gate.wait()
                for _ in range(100):
                    assert f(X, X).shape == X.shape
                    y = f(x, x)
                    assert f(y, x).shape == X.shape
                    assert g(y, i).shape == (2, 4)
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work) for _ in range(24)]
        for one in threads:
            one.start()
        while released and any(one.is_alive() for one in threads):
            tn.release_memory()
        for one in threads:
            one.join()
        assert not wrong
        assert program.answered - before == 24 * 300
        (rooms,) = [one for one in program.native if isinstance(one, StagedRooms)]
        assert released or 1 <= len(rooms._held) <= ROOMS
        assert sum(map(bool, rooms._words[3:])) == len(rooms._held)  # all are back
    finally:
        for forget in (plans.clear, library._begun.cache_clear, device._gpu.cache_clear):
            forget()
