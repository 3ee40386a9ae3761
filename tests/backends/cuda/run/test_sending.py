"""Large arguments by way of pinned memory, on simulated GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
from tenfold.backends import registry
from tenfold.backends.cuda.entry import copying
from tenfold.backends.cuda.entry.code import unsupported
from tenfold.backends.cuda.run import program, sending
from tenfold.cache import plans
from tests.backends.cuda.late import LateGpu
from tests.backends.cuda.simulated import SimulatedPlace

pytestmark = pytest.mark.skipif(unsupported() is not None, reason=str(unsupported()))
X = np.arange(600, dtype=np.float32)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[LateGpu]:
    found = LateGpu()
    records = {**registry._records, "cuda": SimulatedPlace(found).record}
    monkeypatch.setattr(registry, "_records", records)
    monkeypatch.setattr(sending, "LEAST", 1 << 10)
    monkeypatch.setattr(sending, "MOST", 1 << 14)
    monkeypatch.setattr(sending, "CHUNK", 1000)
    monkeypatch.setattr(sending, "CALLS", 1)
    monkeypatch.setattr(copying, "PART", 300)
    monkeypatch.setattr(program, "PINNED", 1 << 10)
    monkeypatch.setattr(program, "may_stage", lambda *_: False)
    monkeypatch.setattr(copying, "threads", lambda: 4)
    plans.clear()
    yield found
    plans.clear()


class Sent:
    """The bytes that are sent, and whether from pinned memory."""

    def __init__(self, gpu: LateGpu, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.blocks: list[int] = []
        upload, block = gpu.upload, gpu.result_block

        def counted(address: int, array: Any, stream: Any) -> None:
            self.sizes.append(array.nbytes)
            upload(address, array, stream)

        def pinned(nbytes: int) -> Any:
            self.blocks.append(nbytes)
            return block(nbytes)

        monkeypatch.setattr(gpu, "upload", counted)
        monkeypatch.setattr(gpu, "result_block", pinned)


@pytest.mark.parametrize("size", [1, 299, 300, 301, 4096, 100_000, 1_000_001])
def test_copies(size: int) -> None:
    source = np.random.default_rng(0).integers(0, 256, size, np.uint8)
    target = np.zeros(size + 64, np.uint8)
    copying.copy(target[32 : 32 + size], source)
    np.testing.assert_array_equal(target[32 : 32 + size], source)
    assert not target[:32].any()
    assert not target[32 + size :].any()


def test_chunks_arrive_in_their_places(gpu: LateGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    f = tn.jit(lambda x, y, n: (x * y + n, y - x), backend="cuda")
    small = np.float32(2)
    f(X, X, small)
    assert f.ready(120)
    sent = Sent(gpu, monkeypatch)
    for k in range(3):
        sent.sizes.clear()
        a, b = X + k, X[::-1] * np.float32(2)
        one, two = f(a, b, small)
        np.testing.assert_array_equal(one, a * b + 2)
        np.testing.assert_array_equal(two, b - a)
        assert sent.sizes == [1000, 1000, 400, 1000, 1000, 400, 4]
    assert sent.blocks.count(2 * 4096) <= 1  # both arguments', once


@pytest.mark.parametrize("dtype", [np.bool_, ml_dtypes.bfloat16, np.complex128, np.int8])
def test_dtypes(dtype: Any, gpu: LateGpu) -> None:
    x = (np.arange(3000) % 5).astype(dtype)
    f = tn.jit(lambda x: np.where(x == x, x, x), backend="cuda")
    for _ in range(3):
        np.testing.assert_array_equal(f(x), x)


def test_what_lies_in_pinned_memory_is_sent_as_it_is(
    gpu: LateGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = tn.jit(lambda x: x + 1, backend="cuda")
    f(X)
    assert f.ready(120)
    made = f(X)
    sent = Sent(gpu, monkeypatch)
    made = f(made)
    assert sent.sizes == [X.nbytes]
    np.testing.assert_array_equal(made, X + 2)
    np.testing.assert_array_equal(f(made[1:].copy()), X[1:] + 3)


def test_memory_is_pinned_for_calls_that_come_often(
    gpu: LateGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "CALLS", 4)
    f = tn.jit(lambda x: x * 2, backend="cuda", verify="off")
    sent = Sent(gpu, monkeypatch)
    for n in range(6):
        np.testing.assert_array_equal(f(X + n), (X + n) * 2)
    assert sent.sizes == [X.nbytes] * 3 + [1000, 1000, 400] * 3


@pytest.mark.parametrize("why", ["threads", "memory", "size"])
def test_otherwise_it_is_sent_by_the_driver(
    why: str, gpu: LateGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "PINNED", 1 << 30)
    if why == "threads":
        monkeypatch.setattr(copying, "threads", lambda: 3)
    elif why == "size":
        monkeypatch.setattr(sending, "MOST", 2000)
    sent = Sent(gpu, monkeypatch)
    if why == "memory":

        def none(nbytes: int) -> Any:
            raise MemoryError

        monkeypatch.setattr(gpu, "result_block", none)
    f = tn.jit(lambda x: x * 2, backend="cuda", verify="off")
    for _ in range(2):
        sent.sizes.clear()
        np.testing.assert_array_equal(f(X), X * 2)
        assert sent.sizes == [X.nbytes]
