"""Device memory of arrays that are gone: given again, bounded, and not while others read it."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold.backends.cuda import blocks
from tenfold.backends.cuda.array import DeviceArray
from tenfold.backends.cuda.blocks import blocks_of
from tenfold.backends.cuda.run.program import release_rooms
from tests.backends.cuda.simulated import SimulatedGpu

F32 = np.dtype(np.float32)


def test_memory_is_given_again_to_arrays_of_its_size() -> None:
    gpu = SimulatedGpu()
    x = DeviceArray(gpu, (8, 4), F32)
    where = x.address
    del x
    assert DeviceArray(gpu, (9, 4), F32).address != where
    assert DeviceArray(gpu, (32,), F32).address == where


def test_what_another_library_was_handed_goes_back_to_the_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu, freed = SimulatedGpu(), list[int]()
    monkeypatch.setattr(gpu, "free", freed.append)
    for handed in (lambda x: x.__cuda_array_interface__, lambda x: x.__dlpack__()):
        x = DeviceArray(gpu, (8,), F32)
        where = x.address
        for _ in range(2):
            held = handed(x)
        del x, held
        assert freed.pop() == where
        assert not freed
        assert blocks_of(gpu).kept == 0


def test_what_is_kept_is_bounded_and_can_be_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "KEPT", 100)
    gpu, freed = SimulatedGpu(), list[int]()
    monkeypatch.setattr(gpu, "free", freed.append)
    arrays = [DeviceArray(gpu, (10,), F32) for _ in range(5)]
    del arrays
    assert blocks_of(gpu).kept == 80
    assert len(freed) == 3
    assert release_rooms() >= 80
    assert blocks_of(gpu).kept == 0
    assert len(freed) == 5
