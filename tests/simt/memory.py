"""Simulated memory: segments with gaps between them, in one space of 64-bit addresses.

The window of an address (its highest byte) says what memory it means, whatever the address space
of the pointer: 0 is global memory; shared, local and constant memory have windows of their own. So
a cast between address spaces changes nothing, and a generic pointer needs no more than others.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .errors import LaunchProblem
from .types import UNSIGNED, rounded_up

WINDOW = 56  # bits below the window's number
SHARED, LOCAL, CONSTANT, CLUSTER = (n << WINDOW for n in (1, 2, 3, 4))
RANK = 32  # in the cluster window: the bits below the number of the block in its cluster

_FIRST = 0x10_0000_0000
_GAP = 1 << 16  # at least, between allocations
_FRESH = 0xCD  # what memory holds that nobody has written

Bytes = NDArray[np.uint8]


class Segment:
    """Some bytes: one copy for all threads, or one for each block or thread."""

    def __init__(
        self,
        base: int,
        size: int,
        name: str,
        copies: int = 1,
        owner: str = "grid",  # or 'block', 'thread': whose copies they are
        tracked: bool = False,  # whether it is known which bytes were written
        writable: bool = True,
    ) -> None:
        self.base, self.size, self.name = base, size, name
        self.owner, self.writable = owner, writable
        self.stride = rounded_up(size, 16)
        self.data: Bytes = np.full(self.stride * copies, _FRESH, np.uint8)
        # Ones where a byte was written, so that whole words of them can be compared.
        self.defined: Bytes | None = np.zeros(self.stride * copies, np.uint8) if tracked else None
        self._views: dict[tuple[int, int, int], NDArray[Any]] = {}

    @property
    def end(self) -> int:
        return self.base + self.size

    def view(self, item: int, width: int) -> NDArray[Any]:
        """The bytes as unsigned integers of `item` bytes, in rows of `width` if that is not 1."""
        return self._view(self.data, 0, item, width)

    def defined_view(self, item: int, width: int) -> NDArray[Any]:
        """The same of the marks of what was written."""
        assert self.defined is not None
        return self._view(self.defined, 1, item, width)

    def _view(self, data: Bytes, which: int, item: int, width: int) -> NDArray[Any]:
        found = self._views.get((which, item, width))
        if found is None:
            found = data.view(UNSIGNED[item])
            if width > 1:
                found = found.reshape(-1, width)
            self._views[which, item, width] = found
        return found


class Segments:
    """Segments by address."""

    def __init__(self) -> None:
        self.list: list[Segment] = []
        self.bases: list[int] = []

    def add(self, segment: Segment) -> None:
        at = bisect_right(self.bases, segment.base)
        self.bases.insert(at, segment.base)
        self.list.insert(at, segment)

    def remove(self, segment: Segment) -> None:
        at = self.list.index(segment)
        del self.list[at], self.bases[at]

    def at(self, address: int) -> Segment | None:
        """The one that has a byte."""
        at = bisect_right(self.bases, address) - 1
        if at >= 0 and address < self.list[at].end:
            return self.list[at]
        return None


class Memory:
    """Global memory of a device. If it is strict, reading what nobody wrote is an error."""

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self.segments = Segments()
        self._next = _FIRST
        self.conditions: dict[int, int] = {}  # of graphs, by their handles

    def alloc(self, nbytes: int, align: int = 256) -> int:
        """Memory of some bytes, which may be 0; its address."""
        if nbytes < 0 or align <= 0 or align & (align - 1):
            raise LaunchProblem(f"{nbytes} bytes with alignment {align}")
        base = rounded_up(self._next, max(16, align))
        self._next = base + nbytes + _GAP
        self.segments.add(
            Segment(base, nbytes, f"the {nbytes} bytes at {base:#x}", tracked=self.strict)
        )
        return base

    def free(self, address: int) -> None:
        segment = self.segments.at(address)
        if segment is None or segment.base != address:
            empty = [s for s in self.segments.list if s.base == address]
            if not empty:
                raise LaunchProblem(f"nothing was allocated at {address:#x}")
            segment = empty[0]
        self.segments.remove(segment)

    def write(self, address: int, array: ArrayLike) -> None:
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        part, marks = self._part(address, raw.size)
        part[...] = raw
        if marks is not None:
            marks[...] = 1

    def fill(self, address: int, nbytes: int, byte: int) -> None:
        part, marks = self._part(address, nbytes)
        part[...] = byte
        if marks is not None:
            marks[...] = 1

    def read(self, address: int, dtype: DTypeLike, shape: int | tuple[int, ...]) -> NDArray[Any]:
        kind = np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        part, marks = self._part(address, count * kind.itemsize)
        if marks is not None and not marks.all():
            first = address + int(marks.argmin())
            raise LaunchProblem(f"the byte at {first:#x} was never written")
        return part.view(kind).reshape(shape).copy()

    def _part(self, address: int, nbytes: int) -> tuple[Bytes, Bytes | None]:
        segment = self.segments.at(address)
        if not nbytes:
            return np.empty(0, np.uint8), None
        if segment is None or address + nbytes > segment.end:
            raise LaunchProblem(f"{nbytes} bytes at {address:#x} are not all allocated")
        at = slice(address - segment.base, address - segment.base + nbytes)
        marks = segment.defined
        return segment.data[at], None if marks is None else marks[at]
