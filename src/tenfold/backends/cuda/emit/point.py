"""Kernels without loops: a thread for each element, or for a few that lie side by side."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tenfold.backends.cuda.emit.control import loop
from tenfold.backends.cuda.emit.function import FunctionWriter, KernelText, finish
from tenfold.backends.cuda.emit.memory import PACKED, both, guard, load, store
from tenfold.backends.cuda.emit.thread import Position, Slot, Text, Thread, divide
from tenfold.backends.llvm.writer import SIZES, Writer, kind
from tenfold.kernel.ir.kernel import Kernel
from tenfold.kernel.ir.number import Facts, Number, prefers_less
from tenfold.kernel.passes.flatten import joined, outside

BLOCK = 256  # threads
_FULL = 132 * 256  # threads that keep a large chip busy
_MOST = 8  # elements of a thread


def flattened(kernel: Kernel, order: list[int]) -> tuple[Kernel, list[int]]:
    """A legal kernel of parallel axes whose rows are no whole number of a thread's elements: with
    one axis for the inner two, along which they are. What is the same in all rows, or along one,
    is then found by quotient and remainder."""
    if len(order) < 2 or (most := _most(kernel, order)) == 1:
        return kernel, order
    inner, extent = order[-1], kernel.axes[order[-1]].extent
    if extent % most == 0 or prefers_less(extent, most):
        return kernel, order
    outer = outside(kernel, inner)
    whole = len(order) == 2 or (kernel.axes[order[-2]].extent * extent) % most == 0
    if outer != order[-2] or not whole:
        return kernel, order
    return joined(kernel, outer, inner), [a - (a > inner) for a in order[:-1]]


def emit_point(f: FunctionWriter, order: list[int], facts: Facts) -> KernelText:
    """A legal kernel whose axes, outermost first, are all parallel."""
    kernel, w, t = f.kernel, f.w, f.thread()
    count = _count(kernel, order)
    extents = [kernel.axes[axis].extent for axis in order]
    if count > 1:
        extents[-1] = (extents[-1] + count - 1) // count
    threads: Any = prod(extents)
    ty = t.position
    me = thread_number(f, ty)
    end = w.fresh("end")
    outside_of(w, ty, me, threads, end)
    t.base.update(zip(order, apart(w, ty, me, extents), strict=True))
    if count == 1:
        straight(t, order)
    else:
        lane = order[-1]
        t.base[lane] = anchor = w.op(f"mul {ty} {t.base[lane]}, {count}")
        if kernel.axes[lane].extent % count == 0:
            with t.across(lane, anchor, [Slot(n) for n in range(count)]):
                straight(t, order, count)
        else:
            _with_tail(t, order, count)
    w.put(f"br label %{end}")
    w.label(end)
    blocks = (threads + BLOCK - 1) // BLOCK
    f.schedule = f"point{count}"
    return finish([(f, BLOCK, blocks, 1)], facts)


def _count(kernel: Kernel, order: list[int]) -> int:
    """How many elements a thread has: one where rows do not begin at such places."""
    count = _most(kernel, order)
    if len(order) > 1 and count > 1 and kernel.axes[order[-1]].extent % count:
        return 1
    return count


def _most(kernel: Kernel, order: list[int]) -> int:
    """How many elements a thread has at most: 16 bytes of what lies packed, fewer where the chip
    would not be full."""
    if not order:
        return 1
    lane = order[-1]
    touched = [(s.buffer, s.index) for s in kernel.stores]
    touched += [(i.attr[0], i.index) for i in kernel.instructions if i.op == "load" and i.index]
    dtypes = [kernel.buffers[n].dtype for n, index in touched if index.stride(lane) == 1]
    if not dtypes or any(kind(b.dtype) == "c" for b in kernel.buffers):
        return 1
    count = min(_MOST, PACKED // max(SIZES[dtype] for dtype in dtypes))
    total: Any = prod(kernel.axes[axis].extent for axis in order)
    while count > 1 and prefers_less(total, count * _FULL):
        count //= 2
    return count


def thread_number(f: FunctionWriter, ty: str) -> Text:
    """The number of this thread among all."""
    w = f.w
    block, own = f.sreg("ctaid.x"), f.sreg("tid.x")
    if ty == "i64":
        block, own = (w.op(f"zext i32 {x} to i64") for x in (block, own))
    size = f.sreg("ntid.x")
    size = w.op(f"zext i32 {size} to i64") if ty == "i64" else size
    return w.op(f"add {ty} {w.op(f'mul {ty} {block}, {size}')}, {own}")


def outside_of(w: Writer, ty: str, me: Text, count: Any, end: str) -> None:
    """Leave where there are fewer than threads."""
    inside, on = w.op(f"icmp ult {ty} {me}, {w.const(ty, count, False)}"), w.fresh("on")
    w.put(f"br i1 {inside}, label %{on}, label %{end}")
    w.label(on)


def apart(w: Writer, ty: str, me: Text, extents: Sequence[Any]) -> list[Position]:
    """The positions along axes of so many, the last one the fastest, of this number."""
    found: list[Position] = []
    for extent in reversed(extents[1:]):
        if isinstance(extent, Number) and ty == "i32":
            quotient = divide(w, me, extent)
        else:
            quotient = w.op(f"udiv {ty} {me}, {w.const(ty, extent, False)}")
        back = w.op(f"mul {ty} {quotient}, {w.const(ty, extent, False)}")
        found.append(w.op(f"sub {ty} {me}, {back}"))
        me = quotient
    return [me, *reversed(found)] if extents else []


def straight(t: Thread, order: Sequence[int], count: int = 1) -> None:
    """All instructions, then all stores and checks."""
    for n, i in enumerate(t.kernel.instructions):
        if i.op == "load":
            load(t, n, count)
        else:
            t.compute(n)
    for n in range(len(t.kernel.checks)):
        guard(t, n)
    for n, item in enumerate(t.kernel.stores):
        free = t.kernel.store_free(item)
        missing = [a for a in order if a not in free]
        store(t, n, first_of(t, missing), count)


def first_of(t: Thread, axes: list[int]) -> Text | None:
    """Whether a thread stands at the beginning of some axes: of those that compute the same, one
    stores it."""
    test: Text | None = None
    for axis in axes:
        one = t.w.op(f"icmp eq {t.position} {t.base[axis]}, 0")
        test = both(t.w, test, one)
    return test


def _with_tail(t: Thread, order: list[int], count: int) -> None:
    """A thread whose elements are all there has them at once, the last one by one."""
    w, ty, lane = t.w, t.position, order[-1]
    anchor, inner = t.base[lane], t.kernel.axes[lane].extent
    last = w.op(f"add {ty} {anchor}, {count}")
    whole = w.op(f"icmp ule {ty} {last}, {w.const(ty, inner, False)}")
    yes, no, end = w.fresh("whole"), w.fresh("part"), w.fresh("done")
    w.put(f"br i1 {whole}, label %{yes}, label %{no}")
    w.label(yes)
    with t.across(lane, anchor, [Slot(n) for n in range(count)]):
        straight(t, order, count)
    w.put(f"br label %{end}")
    w.label(no)

    def one(i: Position, _: list[Text]) -> list[Text]:
        with t.inside(lane, i):
            straight(t, order)
        return []

    loop(w, ty, anchor, inner, 1, (), one)
    w.put(f"br label %{end}")
    w.label(end)
