"""Memory of results that the GPU writes straight into: pinned, and kept when an array is gone."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.locks import Lock
from tenfold.types import TensorType

Array = np.ndarray[Any, Any]
KEPT = 1 << 28  # bytes of blocks that nobody uses
MOST = 1 << 31  # and of all: further results lie in plain memory


class ResultMemory:
    """Blocks of pinned memory by their size. `allocate` gives one as an array of bytes, which is
    freed with it."""

    def __init__(self, allocate: Callable[[int], Array]) -> None:
        self._allocate, self._lock = allocate, Lock()
        self._free: dict[int, list[Array]] = {}
        self._given: set[int] = set()  # where arrays begin that are in use
        self.kept = self.all = 0  # bytes

    def array(self, type: TensorType) -> Array:
        """A new array, not cleared. Its memory comes back when it is gone."""
        size = -(-type.nbytes // 4096) * 4096
        block = self._take(size)
        if block is None:
            return np.empty(type.shape, type.dtype)
        raw: Any = (ctypes.c_ubyte * type.nbytes).from_address(block.ctypes.data)
        self._given.add(block.ctypes.data)
        weakref.finalize(raw, self._give, block).atexit = False
        made: Array = np.frombuffer(raw, type.dtype).reshape(type.shape)
        return made

    def has(self, array: Array) -> bool:
        """Whether an array is one of these."""
        return array.__array_interface__["data"][0] in self._given

    def _take(self, size: int) -> Array | None:
        with self._lock:
            waiting = self._free.get(size)
            if waiting:
                self.kept -= size
                return waiting.pop()
            if self.all + size > MOST:
                return None
            self.all += size
        try:
            return self._allocate(size)
        except MemoryError:
            with self._lock:
                self.all -= size
            return None

    def _give(self, block: Array) -> None:
        self._given.discard(block.ctypes.data)
        with self._lock:
            if self.kept + block.nbytes > KEPT:
                self.all -= block.nbytes
                return
            self.kept += block.nbytes
            self._free.setdefault(block.nbytes, []).append(block)
