"""Stores that join a value to what is there while others do the same, in any order.

Atomic operations at one place are done one after the other, so those that would change nothing are
left out: padding that all goes to one place costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from tenfold.backends.cuda.emit.memory import (
    GLOBAL,
    element,
    guarded,
    joined,
    pointer,
    size_in_memory,
)
from tenfold.backends.cuda.emit.thread import Text, Thread
from tenfold.backends.llvm.casts import narrow, widen
from tenfold.backends.llvm.writer import Writer, kind
from tenfold.kernel.ir.kernel import Store

_ATOMIC = {"add": "add", "max": "max", "min": "min"}
_LOGIC = {"add": "or", "max": "or", "mul": "and", "min": "and"}  # of bools


def atomic(t: Thread, store: Store, dtype: str) -> None:
    """Join an update to what is there, by one instruction where there is one."""
    w, update, buffer = t.w, store.update, store.buffer
    value = narrow(w, dtype, t.get(store.value), False)
    ty, letter = element(dtype), kind(dtype)
    size = size_in_memory(ty)
    if size >= 4 and update in _ATOMIC:
        at = pointer(t, buffer, store.index, 0)
        sign = "u" if letter == "u" else "s"
        if update == "add":
            changes = w.op(f"icmp ne {ty} {value}, 0")
        else:  # what is there only grows, or shrinks, while all are at it
            held = w.op(f"load volatile {ty}, {GLOBAL} {at}, align {size}")
            changes = w.op(f"icmp {sign}{'gt' if update == 'max' else 'lt'} {ty} {value}, {held}")
        name = ("u" if sign == "u" and update != "add" else "") + _ATOMIC[update]
        _where(w, changes, f"atomicrmw {name} {GLOBAL} {at}, {ty} {value} monotonic, align {size}")
        return
    if size >= 4:
        at = pointer(t, buffer, store.index, 0)
        _exchanged(t, ty, at, lambda old: _joined_here(t, store, dtype, old))
        return
    # Of less than a word: the word that it lies in.
    index = t.whole(store.index)
    per = 4 // size
    word = w.op(f"lshr {t.position} {index}, {per.bit_length() - 1}")
    at = w.op(f"getelementptr i32, {GLOBAL} %b{buffer}, {t.position} {word}")
    part = w.op(f"and {t.position} {index}, {per - 1}")
    part = part if t.position == "i32" else w.op(f"trunc i64 {part} to i32")
    shift = w.op(f"mul i32 {part}, {8 * size}")
    mask = w.op(f"shl i32 {(1 << 8 * size) - 1}, {shift}")
    if letter == "b":
        logic = _LOGIC[update]
        held = w.op(f"shl i32 {w.op(f'zext {ty} {value} to i32')}, {shift}")
        if logic == "and":
            held = w.op(f"or i32 {held}, {w.op(f'xor i32 {mask}, -1')}")
        changes = w.op(f"icmp {'ne' if logic == 'or' else 'eq'} {ty} {value}, 0")
        _where(w, changes, f"atomicrmw {logic} {GLOBAL} {at}, i32 {held} monotonic, align 4")
        return

    def with_part(old: Text) -> Text:
        there = w.op(f"trunc i32 {w.op(f'lshr i32 {old}, {shift}')} to {ty}")
        made = w.op(f"zext {ty} {_joined_here(t, store, dtype, there)} to i32")
        rest = w.op(f"and i32 {old}, {w.op(f'xor i32 {mask}, -1')}")
        return w.op(f"or i32 {rest}, {w.op(f'shl i32 {made}, {shift}')}")

    _exchanged(t, "i32", at, with_part)


def _where(w: Writer, test: Text, atomic: str) -> None:
    """An atomic operation where it would change something: many at one place take turns."""

    def one() -> list[Text]:
        w.op(atomic)
        return []

    guarded(w, test, one, [])


def _joined_here(t: Thread, store: Store, dtype: str, there: Text) -> Text:
    """What is there, joined with the update, as both lie in memory."""
    w = t.w
    (made,) = joined(w, store.update, dtype, [widen(w, dtype, there, False)],
                     [t.get(store.value)])  # fmt: skip
    return narrow(w, dtype, made, False)


def _exchanged(t: Thread, ty: str, at: Text, make: Callable[[Text], Text]) -> None:
    """Put something else in place of what is there, again where others came between."""
    w, size = t.w, size_in_memory(ty)
    first = w.op(f"load volatile {ty}, {GLOBAL} {at}, align {size}")
    before, head, end = w.block, w.fresh("try"), w.fresh("done")
    w.put(f"br label %{head}")
    w.label(head)
    old, slot = f"%{w.fresh('old')}", len(w.lines)
    w.lines.append("")
    made = make(old)
    both_ = w.op(f"cmpxchg {GLOBAL} {at}, {ty} {old}, {ty} {made} monotonic monotonic")
    found = w.op(f"extractvalue {{ {ty}, i1 }} {both_}, 0")
    done = w.op(f"extractvalue {{ {ty}, i1 }} {both_}, 1")
    w.lines[slot] = f"  {old} = phi {ty} [ {first}, %{before} ], [ {found}, %{w.block} ]"
    w.put(f"br i1 {done}, label %{end}, label %{head}")
    w.label(end)
