"""Calls that native code answers, on a simulated GPU: the launch of a graph calls Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cuda.array import DeviceArray
from tenfold.backends.cuda.entry.code import unsupported
from tenfold.types import DTYPES
from tests.backends.cuda.entry.answering import FailingGpu, Python, X, jitted, there

pytestmark = pytest.mark.skipif(unsupported() is not None, reason=str(unsupported()))


def test_both_ways(gpu: FailingGpu, python: Python) -> None:
    f = jitted(lambda x, y: (x * y + 1, x - y), X, X)
    program, x, y = f.plan(X, X).program, there(X), there(X + 2)
    del gpu.native[:]
    python.calls, before = 0, program.answered
    for one in (f(X, X + 2), [a.numpy() for a in f(x, y)]):
        np.testing.assert_array_equal(one[0], X * (X + 2) + 1)
        np.testing.assert_array_equal(one[1], X - (X + 2))
    assert python.calls == 0
    assert program.answered == before + 2
    assert gpu.native[:3] == ["current", "launch", "wait"]
    assert set(gpu.native[3:]) <= {"current", "kernel", "copy", "launch"}
    made = f(x, y)
    again = gpu.native.count("kernel")
    del made
    f(x, y)  # in the same memory: nothing is to be told anew
    f(x, y)
    assert gpu.native.count("kernel") <= again + 1


@pytest.mark.parametrize("short", ["f32", "bool", "i8", "f64", "c64", "bf16"])
def test_dtypes(short: str, gpu: FailingGpu, python: Python) -> None:
    x = X.astype(DTYPES[short])
    f = jitted(lambda x, y: np.where(x == y, x, y), x, x)
    python.calls = 0
    np.testing.assert_array_equal(f(x, x), x)
    np.testing.assert_array_equal(f(there(x), there(x)).numpy(), x)
    assert python.calls == 0


def test_numbers_and_empty_arrays(gpu: FailingGpu, python: Python) -> None:
    empty = X[:0]
    f = jitted(lambda x, e: (x.sum(), e * 2, x.max()), X, empty)
    python.calls = 0
    total, nothing, most = f(X, empty)
    assert type(total) is np.float32
    assert (total, most, nothing.shape) == (66, 11, (0, 4))
    total, nothing, most = f(there(X), there(empty))
    assert (total.item(), most.item(), nothing.shape) == (66, 11, (0, 4))
    assert python.calls == 0


@pytest.mark.parametrize("short", ["bool", "i8", "u16", "f16", "f32", "i64", "c64", "c128"])
def test_numbers_beside_arrays(short: str, gpu: FailingGpu, python: Python) -> None:
    x, kind = X.astype(DTYPES[short]), DTYPES[short].type
    f = jitted(lambda x, n: (x + n, n), x, kind(1))
    one = there(x)
    for _ in range(2):
        f(one, kind(1))
    python.calls = 0
    for value in (kind(1), kind(0), kind(1), -kind(0) if short[0] in "fc" else kind(1)):
        total, back = f(one, value)
        np.testing.assert_array_equal(total.numpy(), x + value)
        assert back.numpy().tobytes() == value.tobytes()
        del total, back
    assert python.calls == 0
    total = f(one, there(kind(1)))[0]
    np.testing.assert_array_equal(total.numpy(), x + kind(1))
    np.testing.assert_array_equal(f(one, np.array(kind(1)))[0].numpy(), x + kind(1))
    np.testing.assert_array_equal(f(x, kind(1))[0], x + kind(1))


def test_arrays_that_are_not_packed(gpu: FailingGpu, python: Python) -> None:
    f = jitted(lambda x: x + 1, X)
    python.calls = 0
    wide = np.zeros((6, 4), np.float32)
    wide[::2] = X
    np.testing.assert_array_equal(f(wide[::2]), X + 1)
    np.testing.assert_array_equal(f(X[::-1]), X[::-1] + 1)
    assert python.calls == 0


def test_arguments_that_are_updated(gpu: FailingGpu, python: Python) -> None:
    def add(x: Any, y: Any) -> Any:
        x += y
        return x

    f, mine = tn.jit(add, backend="cuda"), X.copy()
    f(mine, X)
    assert f.ready(120)
    for _ in range(2):
        f(mine, X)
    python.calls = 0
    assert f(mine, X) is mine
    np.testing.assert_array_equal(mine, X * 5)
    assert python.calls == 0
    mine.flags.writeable = False
    with pytest.raises(tn.TenfoldError):
        f(mine, X)
    f(X.copy(), there(X))


def test_other_types_and_names(gpu: FailingGpu) -> None:
    f = jitted(lambda x, y: x + y, X, X)
    for x, y in ((X, there(X)), (there(X), X), (X.astype(int), X), (X[:2], X[:2])):
        wanted = np.asarray(x) + np.asarray(y)
        for a, b in ((x, y), (there(np.asarray(x)), there(np.asarray(y)))):
            for _ in range(3):
                got = f(a, y=b)
                np.testing.assert_array_equal(np.asarray(got), wanted)
                np.testing.assert_array_equal(np.asarray(f(a, b)), wanted)
    np.testing.assert_array_equal(np.asarray(f(there(X), 2.0)), X + 2)


def test_many_shapes(gpu: FailingGpu, python: Python) -> None:
    f = tn.jit(lambda x: x * 2, backend="cuda")
    arrays = [np.arange(n, dtype=np.float32) for n in range(1, 12)]
    for _ in range(3):
        for x in arrays:
            f(x)
            f(there(x))
        assert f.ready(120)
    python.calls = 0
    for x in arrays:
        np.testing.assert_array_equal(f(x), x * 2)
        np.testing.assert_array_equal(f(there(x)).numpy(), x * 2)
    assert python.calls == 0


SCALE = 2.0


def test_what_is_captured(gpu: FailingGpu, monkeypatch: pytest.MonkeyPatch, python: Python) -> None:
    w = X + 1

    def function(x: Any) -> Any:
        return x * w * np.float32(SCALE)

    f = jitted(function, X)
    python.calls = 0
    np.testing.assert_array_equal(f(there(X)).numpy(), X * w * 2)
    np.testing.assert_array_equal(f(X), X * w * 2)
    assert python.calls == 0
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    for _ in range(3):
        np.testing.assert_array_equal(f(there(X)).numpy(), X * w * 4)
        np.testing.assert_array_equal(f(X), X * w * 4)
    w[...] = 1
    f.refresh()
    for _ in range(3):
        np.testing.assert_array_equal(f(there(X)).numpy(), X * 4)
        np.testing.assert_array_equal(f(X), X * 4)


def test_keep_and_no_arguments(gpu: FailingGpu, python: Python) -> None:
    for keep, kind in ((True, DeviceArray), (False, np.ndarray)):
        f = tn.jit(lambda: np.arange(5) * 2, backend="cuda", keep=keep)
        for _ in range(4):
            got = f()
            assert type(got) is kind
            np.testing.assert_array_equal(np.asarray(got), np.arange(5) * 2)
    g = tn.jit(lambda x: x + 1, backend="cuda", keep=True)
    for _ in range(4):
        assert type(g(X)) is DeviceArray
        np.testing.assert_array_equal(g(there(X)).numpy(), X + 1)
