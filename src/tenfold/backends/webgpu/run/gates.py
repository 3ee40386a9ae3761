"""What is sent before anybody knows whether it is wanted: rounds of a loop, and all branches of a
choice.

A gate stands before them. It reads the flag of a loop's condition, or the index of a choice, and
writes how many workgroups each dispatch behind it has: none where the loop has ended, or in
branches that were not chosen. The gate of a loop counts rounds, and stays shut once it was. A gate
behind another one reads whether that was open: it is always carried out itself.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from tenfold.backends.webgpu.native import structs as s
from tenfold.backends.webgpu.native.buffer import Range
from tenfold.backends.webgpu.native.device import MEMORY, Device
from tenfold.backends.webgpu.native.library import Handle
from tenfold.backends.webgpu.run.memory import Room
from tenfold.backends.webgpu.run.moves import Bound
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.frozen import frozen

_KINDS = (
    s.STORAGE_BINDING, s.STORAGE_BINDING, s.READ_ONLY_BINDING, s.STORAGE_BINDING, s.STORAGE_BINDING,
)  # fmt: skip
_TEXT = """
@group(0) @binding(0) var<storage, read_write> asked: array<u32>;  // a flag, or an index
@group(0) @binding(1) var<storage, read_write> state: array<u32>;  // what is open, rounds of a loop
@group(0) @binding(2) var<storage, read> given: array<u32>;
@group(0) @binding(3) var<storage, read_write> wanted: array<u32>;
@group(0) @binding(4) var<storage, read_write> before: array<u32>;  // the state of the gate before

@compute @workgroup_size(1)
fn open() { state[0] = 1u; state[1] = 0u; }

// given: the flag's word, how many there are, groups
@compute @workgroup_size(64)
fn gate(@builtin(local_invocation_index) me: u32) {
    let on = state[0] * select(0u, 1u, (asked[given[0]] & 255u) != 0u);
    storageBarrier();
    if (me == 0u) { state[0] = on; state[1] += on; }
    for (var i = me; i < given[1]; i += 64u) { wanted[i] = given[2u + i] * on; }
}

// given: the index's byte, how many it has, its sign bit, the last branch, the place of the state
// before, how many dispatches there are; of each its branch and groups
@compute @workgroup_size(64)
fn choose(@builtin(local_invocation_index) me: u32) {
    let word = given[0] >> 2u;
    let last = given[3];
    var low = asked[word] >> (8u * (given[0] & 3u));
    if (given[1] < 4u) { low &= (1u << (8u * given[1])) - 1u; }
    var high = 0u;
    var sign = low;
    if (given[1] == 8u) { high = asked[word + 1u]; sign = high; }
    var chosen = select(min(low, last), last, high != 0u);
    if ((sign & given[2]) != 0u) { chosen = 0u; }
    var on = 1u;
    if (given[4] != 0xffffffffu) { on = before[given[4]]; }
    for (var i = me; i <= last; i += 64u) { state[i] = select(0u, on, i == chosen); }
    for (var i = me; i < given[5]; i += 64u) {
        let its = select(0u, on, given[6u + 4u * i] == chosen);
        for (var k = 0u; k < 3u; k++) { wanted[3u * i + k] = given[7u + 4u * i + k] * its; }
    }
}
"""
EACH = 12  # bytes of a dispatch's groups
_NONE = 0xFFFFFFFF


@frozen(eq=False)
class Sent:
    """A dispatch, whose groups may lie where a gate writes them."""

    bound: Bound
    wanted: Range | None = None
    offset: int = 0


@frozen(eq=False)
class Open:
    """Where a gate says whether what stands behind it is wanted: a word of its state."""

    state: Range
    word: int = 0


Flat = Sequence[Bound | Sent]  # of dispatches some may have gates of their own


def behind(flat: Flat, wanted: Range | None, first: int = 0) -> list[Sent]:
    """What has no gate of its own stands behind this one, from its first dispatch on; or behind
    none."""
    made: list[Sent] = []
    for one in flat:
        if isinstance(one, Sent):
            made.append(one)
        else:
            made.append(Sent(one, wanted, EACH * first))
            first += 1
    return made


def own(flat: Flat) -> list[Bound]:
    """What has no gate of its own."""
    return [one for one in flat if isinstance(one, Bound)]


class Gates:
    """Makes gates on a device."""

    def __init__(self, device: Device, target: WebGPUTarget) -> None:
        self._device, self._alignment = device, target.alignment
        module = device.shader(_TEXT)
        self._open, self._gate, self._choose = (
            device.pipeline(module, _KINDS, name) for name in ("open", "gate", "choose")
        )

    def open(self, room: Room, state: Range) -> Bound:
        """Have rounds counted from none on."""
        unused = [room.more(("unused", n), 16) for n in range(3)]
        memory = [unused[0], state, room.words.of(bytes(8)), *unused[1:]]
        return Bound(self._open, self._device.bind_group(_KINDS, memory), (1, 1, 1))

    def round(
        self, room: Room, condition: Flat, body: Flat, flag: Range, state: Range, place: object
    ) -> list[Sent]:
        """A round of a loop: its condition, a gate, and the body behind it."""
        bounds = own(body)
        groups = [n for one in bounds for n in one.groups]
        asked, lead = self._shown(flag, 4)
        given = struct.pack(f"<{2 + len(groups)}I", lead // 4, len(groups), *groups)
        wanted = self._wanted(room, place, bounds)
        gate = self._bound(self._gate, room, asked, state, given, wanted, None)
        return [*behind(condition, None), Sent(gate), *behind(body, wanted)]

    def choice(
        self,
        room: Room,
        index: Range,
        dtype: str,
        branches: Sequence[Flat],
        state: Range,
        before: Open | None,
        place: object,
    ) -> list[Sent]:
        """All branches behind a gate that lets one through."""
        bounds = [own(branch) for branch in branches]
        of = np.dtype(dtype)
        asked, lead = self._shown(index, max(of.itemsize, 4))
        sign = 1 << (8 * min(of.itemsize, 4) - 1) if of.kind == "i" else 0
        words = [
            lead,
            of.itemsize,
            sign,
            len(branches) - 1,
            _NONE if before is None else before.word,
        ]
        words.append(sum(map(len, bounds)))
        words += [
            n for which, some in enumerate(bounds) for one in some for n in (which, *one.groups)
        ]
        wanted = self._wanted(room, place, [one for some in bounds for one in some])
        given = struct.pack(f"<{len(words)}I", *words)
        gate = self._bound(self._choose, room, asked, state, given, wanted, before)
        made, first = [Sent(gate)], 0
        for branch, some in zip(branches, bounds, strict=True):
            made += behind(branch, wanted, first)
            first += len(some)
        return made

    def _shown(self, one: Range, nbytes: int) -> tuple[Range, int]:
        """So many bytes as they can be bound, and where they begin in that."""
        lead = one.offset % self._alignment
        return one.part(-lead, lead + nbytes), lead

    def _wanted(self, room: Room, place: object, bounds: Sequence[Bound]) -> Range:
        """Where the groups of dispatches lie."""
        nbytes = max(EACH * len(bounds), 4)
        return room.more(("wanted", place), nbytes, MEMORY | s.INDIRECT)

    def _bound(
        self,
        pipeline: Handle,
        room: Room,
        asked: Range,
        state: Range,
        given: bytes,
        wanted: Range,
        before: Open | None,
    ) -> Bound:
        last = room.more(("unused", 0), 16) if before is None else before.state
        memory = [asked, state, room.words.of(given), wanted, last]
        return Bound(pipeline, self._device.bind_group(_KINDS, memory), (1, 1, 1))
