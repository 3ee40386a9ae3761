"""Rounds that are sent before anybody knows whether they are wanted.

A gate stands between the condition of a loop and its body: it reads the condition's flag and writes
how many workgroups each dispatch of the body has, none once the loop has ended. It counts rounds,
and stays shut once it was.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tenfold.backends.webgpu.native import structs as s
from tenfold.backends.webgpu.native.buffer import Range
from tenfold.backends.webgpu.native.device import MEMORY, Device
from tenfold.backends.webgpu.run.memory import Room
from tenfold.backends.webgpu.run.moves import Bound
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.frozen import frozen

_KINDS = (s.STORAGE_BINDING, s.STORAGE_BINDING, s.READ_ONLY_BINDING, s.STORAGE_BINDING)
_TEXT = """
@group(0) @binding(0) var<storage, read_write> flag: array<u32>;
@group(0) @binding(1) var<storage, read_write> state: array<u32>;  // whether it goes on, rounds
@group(0) @binding(2) var<storage, read> given: array<u32>;  // the flag's word, how many, groups
@group(0) @binding(3) var<storage, read_write> wanted: array<u32>;

@compute @workgroup_size(1)
fn open() { state[0] = 1u; state[1] = 0u; }

@compute @workgroup_size(64)
fn gate(@builtin(local_invocation_index) me: u32) {
    let on = state[0] * select(0u, 1u, (flag[given[0]] & 255u) != 0u);
    storageBarrier();
    if (me == 0u) { state[0] = on; state[1] += on; }
    for (var i = me; i < given[1]; i += 64u) { wanted[i] = given[2u + i] * on; }
}
"""
EACH = 12  # bytes of a dispatch's groups


@frozen(eq=False)
class Gated:
    """A round behind a gate: the condition, the gate, and the body with where its groups lie."""

    condition: tuple[Bound, ...]
    gate: Bound
    body: tuple[Bound, ...]
    wanted: Range


class Gates:
    """Makes gates on a device."""

    def __init__(self, device: Device, target: WebGPUTarget) -> None:
        self._device, self._alignment = device, target.alignment
        module = device.shader(_TEXT)
        self._open, self._gate = (device.pipeline(module, _KINDS, n) for n in ("open", "gate"))

    def open(self, room: Room, state: Range) -> Bound:
        """Have rounds counted from none on."""
        unused = [room.more(name, 16) for name in ("unused", "unused too")]
        memory = [unused[0], state, room.words.of(bytes(8)), unused[1]]
        return Bound(self._open, self._device.bind_group(_KINDS, memory), (1, 1, 1))

    def gated(
        self,
        room: Room,
        condition: Sequence[Bound],
        body: Sequence[Bound],
        flag: Range,
        state: Range,
    ) -> Gated:
        """A round behind a gate."""
        wanted = self._device.range(max(EACH * len(body), 4), MEMORY | s.INDIRECT)
        groups = [n for one in body for n in one.groups]
        lead = flag.offset % self._alignment
        given = struct.pack(f"<{2 + len(groups)}I", lead // 4, len(groups), *groups)
        memory = [flag.part(-lead, lead + 4), state, room.words.of(given), wanted]
        gate = Bound(self._gate, self._device.bind_group(_KINDS, memory), (1, 1, 1))
        return Gated(tuple(condition), gate, tuple(body), wanted)
