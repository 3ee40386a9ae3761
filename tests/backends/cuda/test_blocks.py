"""Device memory of arrays that are gone: given again, bounded, and not while others read it."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold.backends.cuda import blocks
from tenfold.backends.cuda.array import DeviceArray
from tenfold.backends.cuda.blocks import blocks_of
from tenfold.backends.cuda.run.program import release_rooms
from tenfold.errors import DeviceProblem
from tests.backends.cuda.simulated import SimulatedGpu

F32 = np.dtype(np.float32)


@pytest.fixture(autouse=True)
def none_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is the driver's, unless a test says otherwise."""
    monkeypatch.setattr(blocks, "SMALL", -1)


def test_memory_is_given_again_to_arrays_of_its_size() -> None:
    gpu = SimulatedGpu()
    x = DeviceArray(gpu, (8, 4), F32)
    where = x.address
    del x
    assert DeviceArray(gpu, (9, 4), F32).address != where
    assert DeviceArray(gpu, (32,), F32).address == where


@pytest.mark.parametrize("most", [1 << 30, 0])
def test_what_another_library_was_handed_is_waited_for(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When its memory is wanted; or by the driver, which gets back what there is no room for."""
    monkeypatch.setattr(blocks, "KEPT", most)
    gpu, freed, waited = SimulatedGpu(), list[int](), list[int]()
    monkeypatch.setattr(gpu, "free", freed.append)
    monkeypatch.setattr(gpu, "settle", lambda: waited.append(1))
    for handed in (lambda x: x.__cuda_array_interface__, lambda x: x.__dlpack__()):
        x = DeviceArray(gpu, (8,), F32)
        where = x.address
        for _ in range(2):
            held = handed(x)
        waited.clear()
        del x, held
        assert not waited
        if not most:
            assert freed.pop() == where
            assert blocks_of(gpu).kept == 0
            continue
        assert blocks_of(gpu).kept == 32
        y = DeviceArray(gpu, (8,), F32)
        assert y.address == where
        assert waited == [1]
        del y
    assert not freed


def test_what_can_not_be_waited_for_is_given_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """While somebody's work is captured, say."""
    gpu = SimulatedGpu()
    x = DeviceArray(gpu, (8,), F32)
    x.share()
    where = x.address
    del x

    def refused() -> None:
        raise DeviceProblem("CUDA: operation not permitted when stream is capturing")

    settle = gpu.settle
    monkeypatch.setattr(gpu, "settle", refused)
    other = DeviceArray(gpu, (8,), F32)
    assert other.address != where
    monkeypatch.setattr(gpu, "settle", settle)
    assert DeviceArray(gpu, (8,), F32).address == where


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


def test_small_blocks_come_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SMALL", 1 << 16)
    gpu, asked, freed, waited = SimulatedGpu(), list[int](), list[int](), list[int]()
    alloc = gpu.alloc
    monkeypatch.setattr(gpu, "alloc", lambda nbytes: asked.append(nbytes) or alloc(nbytes))
    monkeypatch.setattr(gpu, "free", freed.append)
    monkeypatch.setattr(gpu, "settle", lambda: waited.append(1))
    arrays = [DeviceArray(gpu, (10,), F32) for _ in range(blocks.PARTS + 1)]
    assert asked == [256 * blocks.PARTS] * 2
    assert len({one.address for one in arrays}) == len(arrays)
    assert all(one.address % 256 == 0 for one in arrays)
    first = arrays[0]
    held = first.__dlpack__()
    where = first.address
    del first, arrays[0], held  # others may still be at it
    arrays += [DeviceArray(gpu, (10,), F32) for _ in range(blocks.PARTS - 1)]
    assert not waited
    assert DeviceArray(gpu, (10,), F32).address == where
    assert waited == [1]
    del arrays[: blocks.PARTS - 1]
    del arrays[1:]
    assert release_rooms() == 40 * blocks.PARTS  # of the second, one part is in use
    assert freed == [where - 256 * (blocks.PARTS - 1)]
    assert blocks_of(gpu).kept == 40 * (blocks.PARTS - 1)
    arrays.clear()
    assert release_rooms() == 40 * blocks.PARTS
    assert blocks_of(gpu).kept == 0
    assert len(freed) == 2
    large = DeviceArray(gpu, (1 << 14,), F32)
    assert asked[2:] == [blocks.WHOLE]
    larger = DeviceArray(gpu, ((1 << 14) + 1,), F32)
    assert asked[3:] == [larger.nbytes]
    del large, larger
    empty = [DeviceArray(gpu, (0, n), F32) for n in range(3)]
    assert len({one.address for one in empty}) == 3
