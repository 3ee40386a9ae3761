"""Where the values of a plan lie on a device, and what one caller at a time runs it in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.backends.webgpu.native import structs as s
from tenfold.backends.webgpu.native.buffer import Buffer, Place, Range
from tenfold.backends.webgpu.native.device import MEMORY, Answer, Device
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.frozen import frozen
from tenfold.plan import Plan
from tenfold.plan.steps.plan import ARENA, CONSTANT, INPUT

Array = np.ndarray[Any, Any]
Lent = Mapping[int, Buffer]  # by numbers of inputs, or outputs

SLACK = 256  # bytes behind an arena, so that a slot at its end can be bound
_POOL = 1 << 16  # bytes of words in one buffer
_STAGED = 64 << 20  # bytes that come back at once
FAULT_BYTES = 4
NOTHING: Lent = {}


@frozen(eq=False)
class Frame:
    """One run of a plan, or of a plan below: the memory of its inputs and outputs, of its arena and
    of its constants."""

    plan: Plan
    inputs: Sequence[Range]
    outputs: Sequence[Range]
    arena: Range
    constants: Mapping[int, Sequence[Range]]  # of all plans, by identity

    def range(self, number: int) -> Range:
        """The memory of a slot; of one that is a range of another, as far as that goes."""
        slot = self.plan.slots[number]
        if slot.place == ARENA:
            whole = self.arena
        elif slot.place == CONSTANT:
            whole = self.constants[id(self.plan)][slot.number]
        else:
            whole = (self.inputs if slot.place == INPUT else self.outputs)[slot.number]
        return whole.part(slot.offset, max(0, min(slot.type.nbytes, whole.size - slot.offset)))


class Words:
    """Words that shaders read, each row of them kept once."""

    def __init__(self, device: Device, alignment: int) -> None:
        self._device, self._alignment = device, alignment
        self._known: dict[bytes, Range] = {}
        self._pool: Range | None = None
        self._free = 0

    def of(self, raw: bytes) -> Range:
        """The memory where these bytes lie."""
        found = self._known.get(raw)
        if found is None:
            found = self._known[raw] = self._place(len(raw))
            self._device.write(found, np.frombuffer(raw, np.uint8))
        return found

    def _place(self, nbytes: int) -> Range:
        if self._pool is None or self._free + nbytes > self._pool.size:
            self._pool, self._free = self._device.range(max(nbytes, _POOL)), 0
        made = self._pool.part(self._free, nbytes)
        self._free += -(-max(nbytes, 4) // self._alignment) * self._alignment
        return made


class Staging:
    """What results come back through."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._buffer: Buffer | None = None

    @property
    def nbytes(self) -> int:
        return 0 if self._buffer is None else self._buffer.size

    def of(self, nbytes: int) -> Buffer:
        """A buffer that holds so many bytes; it grows by doubling."""
        if self._buffer is None or self._buffer.size < nbytes:
            size = max(nbytes, min(2 * self.nbytes, _STAGED), 1 << 12)
            self._buffer = None
            self._buffer = self._device.buffer(size, s.MAP_READ | s.COPY_TARGET)
        return self._buffer


class Room:
    """Memory that one caller at a time has: for inputs, outputs and all that is between, for what
    the parts of a kernel leave each other, and the word that faults are told by."""

    captured: object | None = None  # what lies in its last inputs
    whole = False  # whether inputs and outputs lie in memory of its own
    known: dict[Any, tuple[Any, Any]]  # shaders of steps, and their dispatches in any memory

    def __init__(
        self,
        device: Device,
        target: WebGPUTarget,
        inputs: Sequence[int],
        outputs: Sequence[int],
        arena: int,
    ) -> None:
        """Sizes are in bytes. Inputs and outputs have memory when they have been laid."""
        self.device = device
        self._given, self._made = ([Place(n) for n in sizes] for sizes in (inputs, outputs))
        self.inputs, self.outputs = (
            [Range(place, 0, n) for place, n in zip(places, sizes, strict=True)]
            for places, sizes in ((self._given, inputs), (self._made, outputs))
        )
        self.arena = device.range(arena + SLACK)
        self.scratch = device.range(0)
        self.fault = device.range(FAULT_BYTES)
        self.zero = device.range(16, s.UNIFORM | s.COPY_TARGET)
        self.words = Words(device, max(target.alignment, 16))
        self.staging = Staging(device)
        self.known = {}
        self.submitted = 0
        self.marks: list[Answer] = []  # behind some of what was submitted, which may be under way
        self._more: dict[object, Range] = {}

    @property
    def nbytes(self) -> int:
        """How much it is, but for what is small."""
        every = (self.arena, self.scratch, *list(self._more.values()))
        own = sum(place.kept for place in (*self._given, *self._made))
        return own + sum(one.buffer.size for one in every) + self.staging.nbytes

    def lacks(self, inputs: Lent = NOTHING, outputs: Lent = NOTHING) -> int:
        """How much more it would take to lay all but these in memory of its own."""
        return sum(
            place.size
            for places, lent in ((self._given, inputs), (self._made, outputs))
            for n, place in enumerate(places)
            if not place.kept and n not in lent
        )

    def lay(self, inputs: Lent = NOTHING, outputs: Lent = NOTHING) -> None:
        """Have inputs and outputs lie in what is lent for a call, others in memory of its own."""
        self.whole = not inputs and not outputs
        for places, lent in ((self._given, inputs), (self._made, outputs)):
            for n, place in enumerate(places):
                if n in lent:
                    place.lend(lent[n])
                else:
                    place.own(self.device.buffer)

    def give_back(self) -> None:
        """Let go of what was lent."""
        for place in (*self._given, *self._made):
            place.give_back()

    def more(self, what: object, nbytes: int, usage: int = MEMORY) -> Range:
        """Memory for something that is done one after the other, whoever asks for it."""
        found = self._more.get(what)
        if found is None or found.size < nbytes:
            found = self._more[what] = self.device.range(nbytes, usage)
        return found


def uploaded(device: Device, plan: Plan) -> dict[int, list[Range]]:
    """The constants of all plans, on the device."""
    found: dict[int, list[Range]] = {}
    for one in plan.every:
        rows = found[id(one)] = []
        for raw in one.constants:
            made = device.range(len(raw))
            device.write(made, np.frombuffer(raw, np.uint8))
            rows.append(made)
    return found
