"""What one caller at a time runs a program in."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.backends.cuda.driver.device import Device
from tenfold.backends.cuda.emit.function import ARRIVED
from tenfold.backends.cuda.run.memory import Address
from tenfold.backends.cuda.run.partials import Partials
from tenfold.backends.cuda.run.staging import Staging
from tenfold.backends.device_program import Captures

if TYPE_CHECKING:
    from tenfold.backends.cuda.run.replay import Replay
    from tenfold.backends.cuda.run.sending import Sender

_ALIGN = 256
_NOTHING_ARRIVED = np.zeros(ARRIVED, np.uint8)


def starts_of(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Where blocks of these sizes begin that lie one after another, and the bytes of all."""
    starts, total = list[int](), 0
    for size in sizes:
        starts.append(total)
        total += -(-max(size, 1) // _ALIGN) * _ALIGN
    return starts, total


def freed_with(owner: Any, device: Device, address: Address) -> None:
    """Have memory given back when its owner goes; not when the process ends, where a check may
    still be at work in it: the driver frees all."""
    weakref.finalize(owner, device.free, address).atexit = False


class Room:
    """A stream, device memory for inputs, outputs and all that is between, and the word that faults
    are told by."""

    replay: Replay | None = None
    captured: Captures | None = None  # what lies in its last inputs
    sender: Sender | None = None  # of large arguments
    under_way = False  # whether something in the main stream may still be at it

    def __init__(
        self, device: Device, sizes: Sequence[int], arena: int, partials: Partials
    ) -> None:
        self.device = device
        self.stream = device.stream()
        starts, self.nbytes = starts_of((*sizes, arena, partials.nbytes))
        self.base = device.alloc(self.nbytes)
        freed_with(self, device, self.base)
        *places, self.arena, partial = (self.base + start for start in starts)
        self.partials = partials.places(partial)
        for counts in partials.counts(partial):
            device.upload(counts, _NOTHING_ARRIVED, self.stream)
        if partials.count:
            device.wait(self.stream)
        self.places = places
        self.fault = device.fault_word()
        self.staged: dict[int, Staging | None] = {}  # by the number of arguments

    def more(self, nbytes: int) -> Address:
        """Memory that lives as long as the room."""
        made = self.device.alloc(nbytes)
        freed_with(self, self.device, made)
        return made

    def follow(self) -> None:
        """Have its stream come after what was begun in the main one."""
        self.device.follow(self.stream, self.device.main)
        self.under_way = False

    def failed(self) -> bool:
        """Whether a kernel told of a fault; it is forgotten."""
        if not self.fault.value:
            return False
        self.fault.value = 0
        return True
