"""Large arrays of the host on their way to a device: several threads copy them to pinned memory, a
chunk at a time, and each chunk is sent while the next is copied. The driver copies by one thread,
which takes several times as long as to send what lies in pinned memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.backends.cuda.entry.code import unsupported
from tenfold.types import TensorType

if TYPE_CHECKING:
    from tenfold.backends.cuda.driver.device import Device
    from tenfold.backends.cuda.run.results import ResultMemory

Array = np.ndarray[Any, Any]
LEAST, MOST = 1 << 20, 1 << 26  # bytes of an array, and of all that is pinned for a room
CHUNK = 1 << 21
THREADS, CALLS = 4, 4  # from which on it pays: to pin memory takes as long as to send it often
_ALIGN = 4096


class Sender:
    """What sends the arguments of one caller at a time, who waits for them to be there."""

    def __init__(self, device: Device, results: ResultMemory, types: Sequence[TensorType]) -> None:
        self._device, self._results = device, results
        self._starts: dict[int, int] = {}  # of the arguments that are sent in this way
        self._total = 0
        for number, type in enumerate(types):
            if LEAST <= type.nbytes <= MOST - self._total:
                self._starts[number] = self._total
                self._total += -(-type.nbytes // _ALIGN) * _ALIGN
        self._block: Array | None = None
        self._plain = 0  # arrays that could have been sent in this way

    def send(self, number: int, place: int, array: Array, stream: Any) -> None:
        """Have an argument lie in its place."""
        start = self._starts.get(number)
        if start is None or self._results.has(array) or not self._pinned():
            self._device.upload(place, array, stream)
            return
        from tenfold.backends.cuda.entry.copying import copy

        assert self._block is not None
        raw = array.reshape(-1).view(np.uint8)
        own = self._block[start : start + raw.size]
        for first in range(0, raw.size, CHUNK):
            chunk = own[first : first + CHUNK]
            copy(chunk, raw[first : first + CHUNK])
            self._device.upload(place + first, chunk, stream)

    def _pinned(self) -> bool:
        """Whether there is memory, and who fills it."""
        if self._block is not None:
            return True
        self._plain += 1
        if self._plain < CALLS:
            return False
        if unsupported() is None:
            from tenfold.backends.cuda.entry.copying import threads

            if threads() >= THREADS:
                try:
                    self._block = self._device.result_block(self._total)
                    return True
                except MemoryError:
                    pass
        self._starts.clear()
        return False
