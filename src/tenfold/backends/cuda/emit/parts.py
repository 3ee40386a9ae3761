"""Partial results of rows: which block comes last and has them all, and how they are joined, as a
balanced tree by position, so that it does not matter who does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold.backends.cuda.emit.control import balanced, loop
from tenfold.backends.cuda.emit.counter import Counter, counter_for
from tenfold.backends.cuda.emit.function import ARRIVED, FunctionWriter
from tenfold.backends.cuda.emit.joining import Held, Joining
from tenfold.backends.cuda.emit.memory import guarded
from tenfold.backends.cuda.emit.team import exchange, wait
from tenfold.backends.cuda.emit.thread import Position, Text
from tenfold.backends.cuda.target import WARP
from tenfold.backends.llvm.writer import Writer

ARRIVALS = ARRIVED // 4  # groups of blocks that can be counted
_AT_ONCE = (1, 2, 4)  # partial results that a thread has in registers
_FENCE = 'fence syncscope("device") acq_rel'


def comes_last(f: FunctionWriter, group: Text, parts: Any) -> Text:
    """Whether all other blocks of the group, so many as there are parts, have left what they have.
    They are counted, and the count begins anew by itself."""
    w, told, shared = f.w, f.reserve("i32", 1), "ptr addrspace(3)"
    wait(w)

    def count() -> list[Text]:
        number = w.op(f"sext i32 {w.op(f'sub i32 {group}, {ARRIVALS}')} to i64")
        at = w.op(f"getelementptr i32, ptr addrspace(1) %partial, i64 {number}")
        most = w.op(f"sub i32 {w.const('i32', parts, False)}, 1")
        w.put(_FENCE)
        before = w.op(
            f'atomicrmw uinc_wrap ptr addrspace(1) {at}, i32 {most} syncscope("device") '
            "monotonic, align 4"
        )
        w.put(_FENCE)
        w.put(f"store i32 {w.op(f'sub i32 {most}, {before}')}, {shared} {told}")
        return []

    guarded(w, w.op(f"icmp eq i32 {f.sreg('tid.x')}, 0"), count, [])
    wait(w)
    left = w.op(f"load i32, {shared} {told}")
    return w.op(f"icmp eq i32 {left}, 0")


def recalled_by_block(
    f: FunctionWriter, joining: Joining, read: Any, count: Any, threads: int, wait: Any
) -> Held:
    """Partial results of a row, as many as there are, joined as a balanced tree by position by all
    threads of a block: each has neighbours, a power of two of them."""
    w = f.w
    me = f.sreg("tid.x")
    total = w.const("i32", count, False)
    each = next((n for n in _AT_ONCE if count <= n * threads), 0)
    if each:
        last = w.op(f"sub i32 {total}, 1")
        first = w.op(f"mul i32 {me}, {each}")
        parts = []
        for n in range(each):  # all are on their way at once
            at = w.op(f"add i32 {first}, {n}") if n else first
            there = w.op(f"icmp ult i32 {at}, {total}")
            found = read(w.intrinsic("umin", "i32", at, last))
            parts.append(or_nothing(w, joining, there, found))
        held = balanced(w, joining, parts)
    else:
        size = 1 << ((count + threads - 1) // threads - 1).bit_length()
        first = w.op(f"mul i32 {me}, {w.const('i32', size, False)}")
        stop = w.op(f"add i32 {first}, {w.const('i32', size, False)}")
        stop = w.intrinsic("umin", "i32", stop, total)
        counter = counter_for(w, joining, "i32", size)
        f.memory += counter.declared
        held = counted(w, counter, first, stop, read)
        held = or_nothing(w, joining, w.op(f"icmp ult i32 {first}, {total}"), held)
    for step in (1, 2, 4, 8, 16):
        other = [exchange(w, ty, x, step) for ty, x in zip(joining.types, held, strict=True)]
        held = joining.merge(w, held, other)
    return balanced(w, joining, wait(joining, held, threads // WARP))


def or_nothing(w: Writer, joining: Joining, some: Text, made: Held) -> Held:
    """What is made, where there is something, else what changes no other."""
    return [
        w.op(f"select i1 {some}, {ty} {x}, {ty} {none}")
        for ty, x, none in zip(joining.types, made, joining.identity, strict=True)
    ]


def state_of(
    joinings: Sequence[Joining], counters: Sequence[Counter | None]
) -> list[tuple[str, Text]]:
    """What a loop over rows carries for some reductions at first: a counter's state, or what is
    held."""
    return [
        pair
        for joining, counter in zip(joinings, counters, strict=True)
        for pair in (
            zip(joining.types, joining.identity, strict=True) if counter is None else counter.first
        )
    ]


def apart_of(
    joinings: Sequence[Joining], counters: Sequence[Counter | None], carried: Sequence[Text]
) -> list[list[Text]]:
    """What is carried, for each of the reductions."""
    found, at = list[list[Text]](), 0
    for joining, counter in zip(joinings, counters, strict=True):
        width = len(joining.types) if counter is None else len(counter.first)
        found.append(list(carried[at : at + width]))
        at += width
    return found


def counted(
    w: Writer, counter: Counter, first: Position, stop: Position, read: Callable[[Text], Held]
) -> Held:
    """Partial results from one number to another as a balanced tree; zeros if there is none."""

    def one(at: Position, held: list[Text]) -> list[Text]:
        state = counter.join(held[0], read(str(at)), held[1:])
        return [w.op(f"add i32 {held[0]}, 1"), *state]

    number, *state = loop(w, "i32", first, stop, 1, [("i32", "0"), *counter.first], one)
    some = w.op(f"icmp ne i32 {number}, 0")
    return guarded(w, some, lambda: counter.total(number, state), counter.joining.types)
