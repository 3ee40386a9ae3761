"""What is done between kernels: bytes are moved, and rounds of a loop are counted.

Any number of bytes is moved from anywhere to anywhere: each invocation has whole words of what is
written, and leaves what stands beside the range in the first and the last one. A round's part of a
longer array is found by the number of the round, which lies on the device, so that all rounds are
sent in the same way. Of an array that is not shown as a whole each part that is has a dispatch,
which does nothing in the rounds of others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from tenfold.backends.webgpu.native import structs as s
from tenfold.backends.webgpu.native.buffer import Group, Range
from tenfold.backends.webgpu.native.commands import Groups
from tenfold.backends.webgpu.native.device import Device
from tenfold.backends.webgpu.native.library import Handle
from tenfold.backends.webgpu.run.memory import Room
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.frozen import frozen

_WIDTH = 256  # invocations
_MOST = 1 << 14  # workgroups of one dispatch
_WIDE = 16  # bytes that an invocation moves at once where all begin at multiples of that
_KINDS = (s.STORAGE_BINDING, s.STORAGE_BINDING, s.READ_ONLY_BINDING, s.STORAGE_BINDING)
_TEXT = """
struct Words { from_byte: u32, to_byte: u32, count: u32, from_step: u32, to_step: u32,
               first: u32, rounds: u32 }
@group(0) @binding(0) var<storage, read_write> from_words: array<u32>;
@group(0) @binding(1) var<storage, read_write> to_words: array<u32>;
@group(0) @binding(0) var<storage, read_write> from_wide: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> to_wide: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> words: Words;
@group(0) @binding(3) var<storage, read_write> turn: array<u32>;

fn byte(at: u32) -> u32 { return (from_words[at >> 2u] >> (8u * (at & 3u))) & 255u; }

@compute @workgroup_size(256)
fn move_bytes(@builtin(global_invocation_id) me: vec3<u32>,
              @builtin(num_workgroups) groups: vec3<u32>) {
    let round = turn[0] - words.first;
    if (round >= words.rounds) { return; }
    let source = words.from_byte + round * words.from_step;
    let goal = words.to_byte + round * words.to_step;
    let lead = goal & 3u;
    let many = (lead + words.count + 3u) >> 2u;
    for (var i = me.x; i < many; i += groups.x * 256u) {
        let place = (goal >> 2u) + i;
        let first = i32(4u * i) - i32(lead);
        if (first >= 0 && u32(first) + 4u <= words.count) {
            let at = source + u32(first);
            let shift = 8u * (at & 3u);
            var word = from_words[at >> 2u] >> shift;
            if (shift != 0u) { word |= from_words[(at >> 2u) + 1u] << (32u - shift); }
            to_words[place] = word;
        } else {
            var word = to_words[place];
            for (var j = 0u; j < 4u; j++) {
                let n = first + i32(j);
                if (n >= 0 && u32(n) < words.count) {
                    let shift = 8u * j;
                    word = (word & ~(255u << shift)) | (byte(source + u32(n)) << shift);
                }
            }
            to_words[place] = word;
        }
    }
}

@compute @workgroup_size(256)
fn move_wide(@builtin(global_invocation_id) me: vec3<u32>,
             @builtin(num_workgroups) groups: vec3<u32>) {
    let round = turn[0] - words.first;
    if (round >= words.rounds) { return; }
    let source = (words.from_byte + round * words.from_step) >> 4u;
    let goal = (words.to_byte + round * words.to_step) >> 4u;
    let many = words.count >> 4u;
    for (var i = me.x; i < many; i += groups.x * 256u) {
        to_wide[goal + i] = from_wide[source + i];
    }
}

@compute @workgroup_size(1)
fn begin_turns() { turn[0] = words.from_byte; }

@compute @workgroup_size(1)
fn next_turn() { turn[0] += words.from_byte; }
"""


@frozen(eq=False)
class Bound:
    """A dispatch with its memory."""

    pipeline: Handle
    group: Group
    groups: Groups


class Mover:
    """Makes dispatches that move bytes of a room."""

    def __init__(self, device: Device, target: WebGPUTarget) -> None:
        self._device = device
        self._alignment = max(target.alignment, _WIDE)
        # Parts are cut where the memory of an adapter is not shown as a whole.
        self._most = max(target.storage_bytes // 4096 - 1, 1) * 4096
        module = device.shader(_TEXT)
        names = ("move_bytes", "move_wide", "begin_turns", "next_turn")
        self._bytes, self._wide, self._begin, self._next = (
            device.pipeline(module, _KINDS, name) for name in names
        )

    def move(self, room: Room, source: Range, target: Range, nbytes: int) -> list[Bound]:
        """The first bytes of a range to another."""
        made, still = [], room.more("turn 0", 4)
        for start in range(0, nbytes, self._most):
            size = min(self._most, nbytes - start)
            parts = source.part(start, size), target.part(start, size)
            made.append(self._moved(room, *parts, size, still, (0, 0)))
        return made

    def slice(self, room: Room, whole: Range, part: Range, nbytes: int, turn: Range) -> list[Bound]:
        """A round's part of an array to a place of its own."""
        made = []
        for one, piece, first, rounds in self._windows(whole, part, nbytes):
            steps = nbytes, 0
            made.append(self._moved(room, one, piece, piece.size, turn, steps, first, rounds))
        return made

    def stack(self, room: Room, part: Range, whole: Range, nbytes: int, turn: Range) -> list[Bound]:
        """What a round has made to its part of an array."""
        made = []
        for one, piece, first, rounds in self._windows(whole, part, nbytes):
            steps = 0, nbytes
            made.append(self._moved(room, piece, one, piece.size, turn, steps, first, rounds))
        return made

    def _windows(
        self, whole: Range, part: Range, nbytes: int
    ) -> Iterator[tuple[Range, Range, int, int]]:
        """What is shown at once of an array with so many bytes for a round, the piece of a part
        that it is for, the first of its rounds and how many there are."""
        for start in range(0, nbytes, self._most):
            size = min(self._most, nbytes - start)
            each, length = (self._most - size) // nbytes + 1, whole.size // nbytes
            for first in range(0, length, each):
                rounds = min(each, length - first)
                shown = whole.part(first * nbytes + start, (rounds - 1) * nbytes + size)
                yield shown, part.part(start, size), first, rounds

    def _moved(
        self,
        room: Room,
        source: Range,
        target: Range,
        nbytes: int,
        turn: Range,
        steps: tuple[int, int],
        first: int = 0,
        rounds: int = 1,
    ) -> Bound:
        (shown, begins), (filled, ends) = (self._shown(one) for one in (source, target))
        wide = not any(n % _WIDE for n in (begins, ends, nbytes, *steps))
        each = _WIDE if wide else 4
        groups = -(-(nbytes + 3) // (each * _WIDTH))
        words = struct.pack("<7I", begins, ends, nbytes, *steps, first, rounds)
        group = self._device.bind_group(_KINDS, [shown, filled, room.words.of(words), turn])
        return Bound(self._wide if wide else self._bytes, group, (min(groups, _MOST), 1, 1))

    def begin(self, room: Room, turn: Range, first: int) -> Bound:
        """Have rounds counted from here on."""
        return Bound(self._begin, self._counted(room, turn, first), (1, 1, 1))

    def next(self, room: Room, turn: Range, step: int) -> Bound:
        """One round more, or one less."""
        return Bound(self._next, self._counted(room, turn, step), (1, 1, 1))

    def _counted(self, room: Room, turn: Range, number: int) -> Group:
        words = struct.pack("<7I", number & 0xFFFFFFFF, *[0] * 6)
        unused: Sequence[Range] = [room.more(name, 16) for name in ("unused", "unused too")]
        return self._device.bind_group(_KINDS, [*unused, room.words.of(words), turn])

    def _shown(self, one: Range) -> tuple[Range, int]:
        """A range as it can be bound, and where it begins in that."""
        lead = one.offset % self._alignment
        return one.part(-lead, one.size + lead), lead
