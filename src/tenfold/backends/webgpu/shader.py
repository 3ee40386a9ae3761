"""A kernel as WGSL: plain data, and what it is run with for given sizes.

`emit/emit.prepare(call, target)` gives a shader with the facts of its sizes; it is right for all
sizes of which these hold (`facts.hold(sizes)`). `Shader.bound(facts, sizes, params)` gives what to
do for some: dispatches one after the other, each with words of its own.

A module has one bind group. Binding n is `bindings[n]`, all of type storage and `read_write`, but
for words (`read-only-storage`) and zero (`uniform`):

- `buffer`: the kernel's buffer of this number; those that nothing touches have none
- `scratch`: memory between dispatches, of `BoundShader.scratch[number]` bytes, not cleared
- `fault`: one atomic u32; a check that fails sets bit `code`
- `words`: the words of the dispatch, `BoundDispatch.words`
- `zero`: 16 bytes that are 0
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgpack

from tenfold.frozen import frozen
from tenfold.kernel.ir.number import Facts, Number

GROUPS = 65535  # groups along each dimension that every adapter dispatches
BUFFER, SCRATCH, FAULT, WORDS, ZERO = "buffer", "scratch", "fault", "words", "zero"
NUMBER, PARAM, TURN = "number", "param", "turn"  # what words are

# A count that is known when code is made, or computed from sizes: where it stands among the numbers
# of the facts, or negative and then -1 less what it is.
Count = int


def count(number: Any) -> Count:
    """A count as a shader has it.

    >>> count(7)
    -8
    """
    return number.at if isinstance(number, Number) else -1 - int(number)


@frozen
class Binding:
    """What is bound: one of the kinds above, and the number of a buffer or of scratch memory."""

    kind: str
    number: int = 0


@frozen
class Word:
    """What one word is: a `number` of 32 bits of the facts; of a `param` of the kernel one of the
    words of its raw bytes; or a `turn`, the number of the dispatch among those of one entry."""

    kind: str
    number: int = 0
    part: int = 0


@frozen
class Dispatch:
    """An entry point and how many groups run it, so many `times` one after the other."""

    entry: str
    groups: Count
    times: Count = -2


@frozen
class BoundDispatch:
    """A dispatch for some sizes: its groups along x, y and z, none of them 0, and its words."""

    entry: str
    groups: tuple[int, int, int]
    words: bytes


@frozen
class BoundShader:
    """What is to be done for some sizes."""

    dispatches: tuple[BoundDispatch, ...]
    scratch: tuple[int, ...]  # bytes


@frozen
class Shader:
    """A kernel as WGSL."""

    text: str
    schedule: str  # how it is laid over invocations, in words
    workgroup: int  # invocations
    bindings: tuple[Binding, ...]
    words: tuple[Word, ...]
    dispatches: tuple[Dispatch, ...]
    scratch: tuple[Count, ...] = ()

    def bound(self, facts: Facts, sizes: Sequence[int], params: Sequence[bytes]) -> BoundShader:
        """What is done for some sizes, of which the facts hold, and parameters."""
        wanted = sorted(
            {w.number for w in self.words if w.kind == NUMBER}
            | {c for c in self.scratch if c >= 0}
            | {c for d in self.dispatches for c in (d.groups, d.times) if c >= 0}
        )
        values = facts.at(sizes, tuple(wanted))
        assert values is not None, "the shader is for other sizes"
        numbers = dict(zip(wanted, values, strict=True))

        def counted(c: Count) -> int:
            return numbers[c] if c >= 0 else -1 - c

        made = []
        for d in self.dispatches:
            groups = spread(counted(d.groups))
            for turn in range(counted(d.times) if groups[0] else 0):
                words = b"".join(_word(w, numbers, params, turn) for w in self.words)
                made.append(BoundDispatch(d.entry, groups, words or bytes(4)))
        return BoundShader(tuple(made), tuple(max(4, counted(c)) for c in self.scratch))

    def to_data(self) -> list[Any]:
        """Lists, numbers and text, to be written to a file."""
        return [
            self.text, self.schedule, self.workgroup,
            [[b.kind, b.number] for b in self.bindings],
            [[w.kind, w.number, w.part] for w in self.words],
            [[d.entry, d.groups, d.times] for d in self.dispatches],
            list(self.scratch),
        ]  # fmt: skip

    def pack(self) -> bytes:
        packed: bytes = msgpack.packb(self.to_data())
        return packed


def from_data(data: Sequence[Any]) -> Shader:
    """The shader that `to_data` wrote down."""
    text, schedule, workgroup, bindings, words, dispatches, scratch = data
    return Shader(
        text, schedule, workgroup,
        tuple(Binding(*b) for b in bindings),
        tuple(Word(*w) for w in words),
        tuple(Dispatch(*d) for d in dispatches),
        tuple(scratch),
    )  # fmt: skip


def spread(groups: int) -> tuple[int, int, int]:
    """So many groups over two dimensions, or a few more: shaders look whether they take part.

    >>> spread(70000)
    (35000, 2, 1)
    """
    if not groups:
        return 0, 0, 0
    rows = -(-groups // GROUPS)
    return -(-groups // rows), rows, 1


def _word(word: Word, numbers: dict[int, int], params: Sequence[bytes], turn: int) -> bytes:
    if word.kind == PARAM:
        raw = params[word.number][4 * word.part : 4 * word.part + 4]
        return raw.ljust(4, b"\0")
    value = turn if word.kind == TURN else numbers[word.number]
    return (value & 0xFFFFFFFF).to_bytes(4, "little")
