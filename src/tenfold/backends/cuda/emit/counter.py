"""Partial results joined as a binary counter carries: that of 2**n waits in place n. So they make a
balanced tree, however many they are.

A loop carries the state of a counter: what waits, if that is in registers, of which there are as
many places as are needed. Where there may be very many results, it is in a thread's own memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.joining import Held, Joining
from tenfold.backends.cuda.emit.memory import zero
from tenfold.backends.cuda.emit.thread import Position, Text
from tenfold.backends.llvm.writer import Writer

_PLACES = 40  # for more results than there is memory
_FEW = (1, 3, 5, 8)  # places that are registers, in steps, so that few sizes have code of their own


class Counter(ABC):
    """One reduction's partial results, numbered by integers of a type."""

    def __init__(self, w: Writer, joining: Joining, ty: str) -> None:
        self.w, self.joining, self.ty = w, joining, ty
        self.declared: list[str] = []  # lines that reserve memory where the function begins
        self.first: list[tuple[str, Text]] = []  # the state at first: types and values

    @abstractmethod
    def join(self, number: Text, made: Held, state: Sequence[Text]) -> list[Text]:
        """The state after the result of this number, from 0 on."""

    @abstractmethod
    def total(self, count: Text, state: Sequence[Text]) -> Held:
        """All that waits after so many, the smallest first; at least one has come."""


def counter_for(w: Writer, joining: Joining, ty: str, most: Any) -> Counter:
    """A counter for so many results at most."""
    for places in _FEW:
        if most < 1 << places:
            return RegisterCounter(w, joining, ty, places)
    return MemoryCounter(w, joining, ty)


class RegisterCounter(Counter):
    """What waits is in registers: those of the first place, then those of the next."""

    def __init__(self, w: Writer, joining: Joining, ty: str, places: int) -> None:
        super().__init__(w, joining, ty)
        self.places, self.width = places, len(joining.types)
        self.first = [(kind, zero(kind)) for kind in joining.types] * places

    def join(self, number: Text, made: Held, state: Sequence[Text]) -> list[Text]:
        """Each place that is taken is left by a carry; the first free one takes it."""
        w, exits = self.w, list[tuple[str, Held]]()
        end = w.fresh("joined")
        for place in range(self.places - 1):
            bit = w.op(f"and {self.ty} {number}, {1 << place}")
            free = w.op(f"icmp eq {self.ty} {bit}, 0")
            on = w.fresh("carry")
            exits.append((w.block, made))
            w.put(f"br i1 {free}, label %{end}, label %{on}")
            w.label(on)
            made = self.joining.merge(w, self._at(state, place), made)
        exits.append((w.block, made))
        w.put(f"br label %{end}")
        w.label(end)
        after = []
        for place in range(self.places):
            for n, kind in enumerate(self.joining.types):
                old = state[place * self.width + n]
                ways = (
                    f"[ {held[n] if at == place else old}, %{block} ]"
                    for at, (block, held) in enumerate(exits)
                )
                after.append(w.op(f"phi {kind} {', '.join(ways)}"))
        return after

    def total(self, count: Text, state: Sequence[Text]) -> Held:
        w, held = self.w, self._at(state, 0)
        some = self._bit(count, 0)
        for place in range(1, self.places):
            own, here = self._at(state, place), self._bit(count, place)
            both = self.joining.merge(w, own, held)
            for n, kind in enumerate(self.joining.types):
                joined = w.op(f"select i1 {some}, {kind} {both[n]}, {kind} {own[n]}")
                both[n] = w.op(f"select i1 {here}, {kind} {joined}, {kind} {held[n]}")
            held, some = both, w.op(f"or i1 {some}, {here}")
        return held

    def _at(self, state: Sequence[Text], place: int) -> Held:
        return list(state[place * self.width : (place + 1) * self.width])

    def _bit(self, count: Text, place: int) -> Text:
        bit = self.w.op(f"and {self.ty} {count}, {1 << place}")
        return self.w.op(f"icmp ne {self.ty} {bit}, 0")


class MemoryCounter(Counter):
    """What waits is in a thread's own memory."""

    def __init__(self, w: Writer, joining: Joining, ty: str) -> None:
        super().__init__(w, joining, ty)
        self.memory = [f"%{w.fresh('m')}" for _ in joining.types]
        self.declared = [
            f"  {name} = alloca [{_PLACES} x {_stored(kind)}], align 8"
            for name, kind in zip(self.memory, joining.types, strict=True)
        ]

    def join(self, number: Text, made: Held, state: Sequence[Text]) -> list[Text]:
        w, ty = self.w, self.ty
        following = w.op(f"add {ty} {number}, 1")
        place = w.call(ty, f"llvm.cttz.{ty}", (ty, following), ("i1", "true"))

        def carried(at: Position, held: list[Text]) -> list[Text]:
            return self.joining.merge(w, self._read(at), held)

        slots = list(zip(self.joining.types, made, strict=True))
        last = loop(w, ty, 0, place, 1, slots, carried)
        for memory, kind, x in zip(self.memory, self.joining.types, last, strict=True):
            w.put(
                f"store {_stored(kind)} {_widened(w, kind, x)}, ptr {self._at(memory, kind, place)}"
            )
        return []

    def total(self, count: Text, state: Sequence[Text]) -> Held:
        w, ty = self.w, self.ty
        first = w.call(ty, f"llvm.cttz.{ty}", (ty, count), ("i1", "true"))
        rest = self._without_least(count)
        slots = [(ty, rest), *zip(self.joining.types, self._read(first), strict=True)]
        turns = w.intrinsic("ctpop", ty, rest)

        def following(_: Position, held: list[Text]) -> list[Text]:
            place = w.call(ty, f"llvm.cttz.{ty}", (ty, held[0]), ("i1", "true"))
            joined = self.joining.merge(w, self._read(place), held[1:])
            return [self._without_least(held[0]), *joined]

        return loop(w, ty, 0, turns, 1, slots, following)[1:]

    def _without_least(self, number: Text) -> Text:
        w, ty = self.w, self.ty
        return w.op(f"and {ty} {number}, {w.op(f'add {ty} {number}, -1')}")

    def _at(self, memory: str, kind: str, place: Position) -> Text:
        return self.w.op(f"getelementptr {_stored(kind)}, ptr {memory}, {self.ty} {place}")

    def _read(self, place: Position) -> Held:
        w = self.w
        return [
            _narrowed(w, kind, w.op(f"load {_stored(kind)}, ptr {self._at(memory, kind, place)}"))
            for memory, kind in zip(self.memory, self.joining.types, strict=True)
        ]


def _stored(kind: str) -> str:
    return "i8" if kind == "i1" else kind


def _widened(w: Writer, kind: str, x: Text) -> Text:
    return w.op(f"zext i1 {x} to i8") if kind == "i1" else x


def _narrowed(w: Writer, kind: str, x: Text) -> Text:
    return w.op(f"icmp ne i8 {x}, 0") if kind == "i1" else x
