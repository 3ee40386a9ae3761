"""Device memory of arrays that are gone, kept for those to come: the driver takes a tenth of a
millisecond to give memory, and waits for all that runs before it takes some back.

A block is given again as soon as its array is gone: what is still under way with it, and what comes
next, are done in order in the device's main stream. What was handed to another library, whose work
is in no order with ours, goes back to the driver instead.
"""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tenfold.errors import DeviceProblem
from tenfold.locks import Lock

if TYPE_CHECKING:
    from tenfold.backends.cuda.driver.device import Device

KEPT = 1 << 30  # bytes of a device


class Blocks:
    """The blocks of one device, by their size."""

    def __init__(self, device: Device) -> None:
        self._device = weakref.ref(device)
        self._lock = Lock()
        self._free: dict[int, list[int]] = {}
        self.kept = 0  # bytes

    def take(self, nbytes: int) -> int | None:
        """A block of this size that was kept."""
        with self._lock:
            waiting = self._free.get(nbytes)
            if not waiting:
                return None
            self.kept -= nbytes
            return waiting.pop()

    def give(self, address: int, nbytes: int) -> None:
        """Keep a block, or give it back."""
        with self._lock:
            if self.kept + nbytes <= KEPT:
                self.kept += nbytes
                self._free.setdefault(nbytes, []).append(address)
                return
        device = self._device()
        if device is not None:
            device.free(address)

    def release(self) -> int:
        """Give all back to the driver: how many bytes."""
        with self._lock:
            blocks, freed = self._free, self.kept
            self._free, self.kept = {}, 0
        device = self._device()
        if device is not None and freed:
            with suppress(DeviceProblem):  # of a GPU that gave up, which calls have told
                device.wait(device.main)
            for address in (one for addresses in blocks.values() for one in addresses):
                device.free(address)
        return freed


_blocks: weakref.WeakKeyDictionary[Any, Blocks] = weakref.WeakKeyDictionary()


def blocks_of(device: Device) -> Blocks:
    """Those of a device."""
    found = _blocks.get(device)
    return _blocks.setdefault(device, Blocks(device)) if found is None else found


def release_blocks() -> int:
    """Give back what is kept of every device: how many bytes."""
    return sum(one.release() for one in list(_blocks.values()))
