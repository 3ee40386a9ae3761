"""Loops and trees of a thread's code."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenfold.backends.cuda.emit.joining import Held, Joining
from tenfold.backends.cuda.emit.thread import Position, Text
from tenfold.backends.llvm.writer import Writer

Body = Callable[[Position, list[Text]], list[Text]]


def loop(
    w: Writer,
    ty: str,
    low: Position,
    high: Position,
    step: int,
    carried: Sequence[tuple[str, Text]],
    body: Body,
) -> list[Text]:
    """Positions from low to high of an integer type; what the last trip carried, each a type and a
    first value. Where the bounds are known a single trip stands alone, and none is none."""
    first = [x for _, x in carried]
    if isinstance(low, int) and isinstance(high, int):
        if high <= low:
            return first
        if high - low <= step:
            return body(low, first)
    low, high = (_as_text(w, ty, bound) for bound in (low, high))
    before, head, end = w.block, w.fresh("loop"), w.fresh("end")
    some = w.op(f"icmp slt {ty} {low}, {high}")
    w.put(f"br i1 {some}, label %{head}, label %{end}")
    w.label(head)
    i, slot = f"%{w.fresh('i')}", len(w.lines)
    w.lines.append("")
    names = [f"%{w.fresh('c')}" for _ in carried]
    results = body(i, names)
    following = w.op(f"add {ty} {i}, {step}")
    latch = w.block
    again = w.op(f"icmp slt {ty} {following}, {high}")
    w.put(f"br i1 {again}, label %{head}, label %{end}")
    phis = [f"  {i} = phi {ty} [ {low}, %{before} ], [ {following}, %{latch} ]"]
    for name, (kind, x), result in zip(names, carried, results, strict=True):
        phis.append(f"  {name} = phi {kind} [ {x}, %{before} ], [ {result}, %{latch} ]")
    w.lines[slot] = "\n".join(phis)
    w.label(end)
    return [
        w.op(f"phi {kind} [ {x}, %{before} ], [ {result}, %{latch} ]")
        for (kind, x), result in zip(carried, results, strict=True)
    ]


def _as_text(w: Writer, ty: str, bound: Position) -> Text:
    return bound if isinstance(bound, str) else w.const(ty, bound, False)


def least(w: Writer, ty: str, a: Position, b: Position) -> Position:
    """The lesser of two positions."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return w.intrinsic("smin", ty, _as_text(w, ty, a), _as_text(w, ty, b))


def total(w: Writer, ty: str, a: Position, b: int) -> Position:
    """A position and so many more."""
    if isinstance(a, int):
        return a + b
    return w.op(f"add {ty} {_as_text(w, ty, a)}, {b}") if b else a


def balanced(w: Writer, joining: Joining, parts: Sequence[Held]) -> Held:
    """Neighbours joined, then neighbouring pairs, and so on; one without a neighbour goes up as it
    is."""
    found = list(parts)
    while len(found) > 1:
        pairs = [found[n : n + 2] for n in range(0, len(found), 2)]
        found = [joining.merge(w, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return found[0]


class Counter:
    """Partial results joined as a binary counter carries, in a thread's own memory: that of 2**n
    waits in place n. So they make a balanced tree, however many they are."""

    def __init__(self, w: Writer, joining: Joining, ty: str, places: int) -> None:
        self.w, self.joining, self.ty = w, joining, ty
        self.memory = [f"%{w.fresh('m')}" for _ in joining.types]
        self.declared = [
            f"  {name} = alloca [{places} x {_stored(kind)}], align 8"
            for name, kind in zip(self.memory, joining.types, strict=True)
        ]

    def join(self, number: Text, made: Held) -> None:
        """The result of this number, from 0 on, with as many as wait for it."""
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

    def total(self, count: Text) -> Held:
        """All that waits after so many, the smallest first; at least one has come."""
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
