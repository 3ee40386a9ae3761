"""Device memory of arrays that are gone, kept for those to come: the driver takes a tenth of a
millisecond to give memory, and waits for all that runs before it takes some back.

A block is given again as soon as its array is gone: what is still under way with it, and what comes
next, are done in order in the device's main stream. Where it was handed to another library, whose
work is in no order with ours, all that runs is waited for before it is given again, and not before
it is needed. Small blocks are parts of larger ones, which go back to the driver when nobody has any
part of them.

Nothing is locked. Lists grow and shrink in one step each, here and in native code (`entry/gate`),
and arrays come to their end at any moment, in the midst of such code too.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from tenfold.backends.cuda.faults import array_too_large
from tenfold.errors import DeviceMemoryProblem, DeviceProblem
from tenfold.types import DType, TensorType

if TYPE_CHECKING:
    from tenfold.backends.cuda.driver.device import Device

KEPT = 1 << 30  # bytes of a device
SMALL, PARTS, WHOLE = 1 << 16, 64, 1 << 20  # bytes of a part; how many at most, and their bytes
_ALIGN = 256


class Blocks:
    """The blocks of one device, by their size: their addresses."""

    def __init__(self, device: Device) -> None:
        self._device = weakref.ref(device)
        self._free: dict[int, list[int]] = {}
        self._shared: list[tuple[int, int]] = []  # others may still be at these: and their bytes
        self._given = 0  # bytes that were kept at most
        self._parts: dict[int, list[int]] = {}  # of blocks that small ones are parts of
        self._whole: dict[int, int] = {}  # which block one is part of

    def of(self, nbytes: int) -> list[int]:
        """Those of a size: who takes the last has it."""
        return self._free.setdefault(nbytes, [])

    @property
    def kept(self) -> int:
        """Bytes."""
        free = sum(nbytes * len(addresses) for nbytes, addresses in list(self._free.items()))
        return free + sum(nbytes for _, nbytes in list(self._shared))

    def grow(self, device: Device, nbytes: int) -> None:
        """Have more small blocks of a size."""
        step = -(-max(nbytes, 1) // _ALIGN) * _ALIGN
        count = min(PARTS, WHOLE // step)
        whole = device.alloc(step * count)
        parts = [whole + n * step for n in range(count)]
        self._parts[whole] = parts
        self._whole.update(dict.fromkeys(parts, whole))
        self.of(nbytes).extend(parts)

    def give(
        self,
        device: Device,
        address: int,
        nbytes: int,
        shared: bool,
        ending: Callable[[], bool] = sys.is_finalizing,
    ) -> None:
        """That of an array that is gone, which others may be at if it was shared."""
        if address not in self._whole and self._full(nbytes):
            if not ending():  # the driver frees all when the process ends
                device.free(address)
        elif shared:
            self._shared.append((address, nbytes))
        else:
            self.of(nbytes).append(address)

    def settle(self, device: Device) -> None:
        """Wait until nobody is at what was shared."""
        found = list[tuple[int, int]]()
        with suppress(IndexError):  # those that come meanwhile are not waited for
            while True:
                found.append(self._shared.pop())
        try:
            if found:
                device.settle()
        except DeviceProblem:  # what is captured may not be waited for, say
            self._shared += found
        else:
            for address, nbytes in found:
                self.of(nbytes).append(address)

    def _full(self, nbytes: int) -> bool:
        """Whether there is no room for a block of this size. Who asks keeps it if there is."""
        if self._given + nbytes > KEPT:
            self._given = self.kept  # most of what was given may have been taken again
            if self._given + nbytes > KEPT:
                return True
        self._given += nbytes
        return False

    def release(self) -> int:
        """Give all back to the driver that can be: how many bytes."""
        device = self._device()
        if device is None:
            return 0
        with suppress(DeviceProblem):  # of a GPU that gave up, which calls have told
            device.wait(device.main)
        self.settle(device)
        return sum(self._release(device, *one) for one in list(self._free.items()))

    def _release(self, device: Device, nbytes: int, addresses: list[int]) -> int:
        found = set[int]()
        with suppress(IndexError):  # whoever makes an array meanwhile takes one, too
            while True:
                found.add(addresses.pop())
        freed = 0
        for address in found - self._whole.keys():
            device.free(address)
            freed += nbytes
        parts = found & self._whole.keys()
        for whole in {self._whole[part] for part in parts}:
            if parts.issuperset(self._parts[whole]):  # nobody has any of it
                of_it = self._parts.pop(whole)
                parts.difference_update(of_it)
                for part in of_it:
                    del self._whole[part]
                device.free(whole)
                freed += nbytes * len(of_it)
        addresses.extend(parts)
        return freed


_blocks: WeakKeyDictionary[Any, Blocks] = WeakKeyDictionary()


def blocks_of(device: Device) -> Blocks:
    """Those of a device."""
    found = _blocks.get(device)
    return _blocks.setdefault(device, Blocks(device)) if found is None else found


def release_blocks() -> int:
    """Give back what is kept of every device: how many bytes."""
    return sum(one.release() for one in list(_blocks.values()))


class Kind:
    """What arrays of one device, dtype and shape have in common, one object for all of them: native
    code compares its address. `shared` are those that others have, too: they are of another kind.
    """

    __slots__ = ("__weakref__", "_blocks", "device", "free", "nbytes", "shared", "type")

    def __init__(self, device: Device, type: TensorType, shared: bool) -> None:
        self.device, self.type, self.shared = device, type, shared
        self.nbytes = type.nbytes
        self._blocks = blocks_of(device)
        self.free = self._blocks.of(self.nbytes)

    def take(self) -> int:
        """Memory for an array."""
        with suppress(IndexError):
            return self.free.pop()
        with suppress(IndexError):
            self._blocks.settle(self.device)
            return self.free.pop()
        with suppress(DeviceMemoryProblem, IndexError):
            if self.nbytes <= SMALL:
                self._blocks.grow(self.device, self.nbytes)
                return self.free.pop()
        with suppress(DeviceMemoryProblem):
            return self.device.alloc(self.nbytes)
        from tenfold.backends.cuda.run.program import release_rooms

        release_rooms()  # what programs keep while nobody calls them
        try:
            return self.device.alloc(self.nbytes)
        except DeviceMemoryProblem:
            raise array_too_large(self.nbytes, f"an array {self.type!r}") from None

    def give(self, address: int) -> None:
        """That of an array that is gone."""
        self._blocks.give(self.device, address, self.nbytes, self.shared)


_kinds: WeakKeyDictionary[Any, WeakValueDictionary[Any, Kind]] = WeakKeyDictionary()


def kind_of(device: Device, dtype: DType, shape: tuple[int, ...], shared: bool = False) -> Kind:
    """The kind of such arrays."""
    known = _kinds.get(device)
    if known is None:
        known = _kinds.setdefault(device, WeakValueDictionary())
    type = TensorType(dtype, shape)
    found = known.get((type, shared))
    return known.setdefault((type, shared), Kind(device, type, shared)) if found is None else found
