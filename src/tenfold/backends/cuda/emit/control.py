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
