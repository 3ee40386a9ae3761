"""Memory on a device: buffers, parts of them, and places whose memory is now this buffer, now
that."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Self
from weakref import WeakSet

from tenfold.backends.webgpu.native.library import Handle

LEAST = 32  # bytes of a buffer, and of what is bound: a vector of the widest elements


def words_of(nbytes: int) -> int:
    """The bytes of a buffer for so many.

    >>> [words_of(n) for n in (0, 33, 64)]
    [32, 36, 64]
    """
    return -(-max(nbytes, LEAST) // 4) * 4


class Buffer(Handle):
    """Memory on a device."""

    size: int


class Lease(partial[None]):
    """What gives a buffer to others when its owner is gone, without Python as `Handle` does."""

    def __new__(cls, buffer: Buffer, others: deque[Buffer]) -> Self:
        return super().__new__(cls, others.append, buffer)

    __del__ = partial.__call__


class Place:
    """Memory of one size that what is recorded names: a buffer of its own, or for a call that of
    somebody else."""

    __slots__ = ("_bindings", "_lent", "_own", "size")

    def __init__(self, nbytes: int) -> None:
        self.size = words_of(nbytes)
        self._own: Buffer | None = None
        self._lent: Buffer | None = None
        self._bindings = WeakSet[Bindings]()

    @property
    def kept(self) -> int:
        """Bytes of its own."""
        return 0 if self._own is None else self.size

    @property
    def buffer(self) -> Buffer:
        """Where it lies now."""
        found = self._lent or self._own
        assert found is not None
        return found

    @property
    def address(self) -> int:
        return self.buffer.address

    def own(self, make: Callable[[int], Buffer]) -> None:
        """Have it lie in a buffer of its own, which is made at the first time."""
        if self._own is None:
            self._own = make(self.size)
        self._lie(None)

    def lend(self, buffer: Buffer) -> None:
        """Have it lie in a buffer of somebody else's."""
        self._lie(buffer)

    def give_back(self) -> None:
        """Let go of what was lent."""
        self._lie(None)

    def _lie(self, lent: Buffer | None) -> None:
        if lent is not self._lent:
            self._lent = lent
            for one in self._bindings:
                one.forget()

    def bound_by(self, bindings: Bindings) -> None:
        """Have these told when it comes to lie elsewhere."""
        self._bindings.add(bindings)


class Range:
    """A part of a buffer, or of a place."""

    __slots__ = ("buffer", "offset", "size")

    def __init__(self, buffer: Memory, offset: int, size: int) -> None:
        self.buffer, self.offset, self.size = buffer, offset, size

    def part(self, offset: int, size: int) -> Range:
        return Range(self.buffer, self.offset + offset, size)

    def key(self) -> tuple[int, int]:
        """Where it begins."""
        return id(self.buffer), self.offset


class Bindings:
    """A bind group with places: made again for a dispatch when one has come to lie elsewhere."""

    __slots__ = ("__weakref__", "_group", "_make")

    def __init__(self, make: Callable[[], Handle]) -> None:
        self._make = make
        self._group: Handle | None = None

    @property
    def address(self) -> int:
        if self._group is None:
            self._group = self._make()
        return self._group.address

    def forget(self) -> None:
        self._group = None


Memory = Buffer | Place
Group = Handle | Bindings  # memory for the bindings of a pipeline
