"""Memory of results: it comes back, is bounded, and outlives nobody."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold.backends.cuda.run import results
from tenfold.backends.cuda.run.results import ResultMemory
from tenfold.types import TensorType

BIG = TensorType(np.dtype(np.float32), (100, 1024))


def made(count: list[int]) -> ResultMemory:
    def allocate(size: int) -> np.ndarray:
        count.append(size)
        return np.empty(size, np.uint8)

    return ResultMemory(allocate)


def test_memory_comes_back_when_an_array_and_its_views_are_gone() -> None:
    count: list[int] = []
    memory = made(count)
    x = memory.array(BIG)
    x[...] = 3
    view = x[5:, ::2]
    where = x.ctypes.data
    del x
    other = memory.array(BIG)
    assert other.ctypes.data != where  # the view is still in use
    np.testing.assert_array_equal(view, 3)
    del view
    assert memory.array(BIG).ctypes.data == where
    assert len(count) == 2


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "KEPT", 2 * BIG.nbytes)
    memory = made([])
    arrays = [memory.array(BIG) for _ in range(5)]
    assert memory.all == 5 * BIG.nbytes
    del arrays
    assert memory.kept == memory.all == 2 * BIG.nbytes


def test_beyond_all_bounds_results_lie_in_plain_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MOST", BIG.nbytes)
    count: list[int] = []
    memory = made(count)
    arrays = [memory.array(BIG) for _ in range(3)]
    assert len(count) == 1
    assert all(a.shape == BIG.shape and a.dtype == BIG.dtype for a in arrays)


def test_where_no_memory_can_be_pinned_results_lie_in_plain_memory() -> None:
    def none(size: int) -> np.ndarray:
        raise MemoryError

    memory = ResultMemory(none)
    assert memory.array(BIG).shape == BIG.shape
    assert memory.all == 0
