"""Kernels whose reductions run over several axes, or over rows of several lengths: a block for each
position outside of them. Its warps share the outermost axis, the threads of a warp the innermost
one; sums have the kernel's fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tenfold.backends.cuda.emit.control import balanced, least, loop
from tenfold.backends.cuda.emit.function import FunctionWriter, KernelText, finish
from tenfold.backends.cuda.emit.joining import Held, Joining
from tenfold.backends.cuda.emit.memory import both
from tenfold.backends.cuda.emit.point import apart, first_of
from tenfold.backends.cuda.emit.serial import SerialEmitter, levels_of
from tenfold.backends.cuda.emit.team import exchange, kept, short, wait, wide
from tenfold.backends.cuda.emit.thread import Position, Text, Thread
from tenfold.backends.cuda.target import WARP
from tenfold.kernel.analyse.nest import Item, Loop
from tenfold.kernel.ir.kernel import PARALLEL, Instruction, Kernel
from tenfold.kernel.ir.number import Facts, prefers_less

_WARPS = 8
_THREADS = _WARPS * WARP
_LONG, _FEW = 512, 64  # elements of a reduction that are worth a block; where there are few blocks
_BUSY = 264  # blocks that keep a large chip busy


def is_nested(kernel: Kernel, outer: Sequence[int], reductions: Sequence[int]) -> bool:
    """Whether all reductions stand where the outer axes are bound, and are long enough."""
    if not reductions or any(kernel.free[r] != frozenset(outer) for r in reductions):
        return False
    if any(kernel.axes[a].kind != PARALLEL for a in outer):
        return False
    lengths = [prod(kernel.axes[a].extent for a in kernel.instructions[r].attr[1:])
               for r in reductions]  # fmt: skip
    few = prefers_less(prod(kernel.axes[a].extent for a in outer), _BUSY)
    return any(not prefers_less(length, _FEW if few else _LONG) for length in lengths)


def emit_nested(
    f: FunctionWriter,
    outer: Sequence[int],
    items: Sequence[Item],
    along: dict[int, int | None],
    facts: Facts,
) -> KernelText:
    """A kernel of these items, with a block for each position along its outer axes."""
    kernel, w, t = f.kernel, f.w, f.thread()
    extents = [kernel.axes[a].extent for a in outer]
    block = f.sreg("ctaid.x")
    if t.position == "i64":
        block = w.op(f"zext i32 {block} to i64")
    t.base.update(zip(outer, apart(w, t.position, block, extents), strict=True))
    emitter = NestedEmitter(f, t, along)
    leader = emitter.alone
    for level in range(len(outer)):
        *straight, last = items
        emitter.alone = both(w, leader, first_of(t, list(outer[level:])))
        emitter.block(straight)
        assert isinstance(last, Loop)
        items = last.body
    emitter.alone = leader
    emitter.block(items)
    f.memory += emitter.memory
    f.schedule = "nested"
    count: Any = prod(extents)
    return finish([(f, _THREADS, count, 1)], facts)


class NestedEmitter(SerialEmitter):
    """Walks a nest with all threads of a block. What stands in no loop they compute alike, and one
    of them stores it."""

    def __init__(self, f: FunctionWriter, t: Thread, along: dict[int, int | None]) -> None:
        super().__init__(t, along)
        w, self.f = self.w, f
        thread = f.sreg("tid.x")
        self.alone = w.op(f"icmp eq i32 {thread}, 0")
        self.thread = self._position(thread)
        self.warp = self._position(w.op(f"lshr i32 {thread}, 5"))
        self.lane = self._position(w.op(f"and i32 {thread}, {WARP - 1}"))
        self.deep = 0  # how many loops are shared out around here
        self.splits = 0  # among how many threads or warps the next tree is, if it is

    def _position(self, x: Text) -> Text:
        return x if self.t.position == "i32" else self.w.op(f"zext i32 {x} to i64")

    # Loops that store.

    def around(self, item: Loop) -> None:
        innermost = not any(isinstance(one, Loop) for one in item.body)
        first, step, alone = self.lane, WARP, None
        if not self.deep and innermost:
            first, step = self.thread, _THREADS
        elif not self.deep:
            ty = self.t.position
            first, step = self.warp, _WARPS
            alone = self.w.op(f"icmp eq {ty} {self.lane}, 0")
        elif not innermost:
            super().around(item)
            return
        before, self.alone = self.alone, alone
        self.deep += 1

        def body(i: Position, _: list[Text]) -> list[Text]:
            with self.t.inside(item.axis, i):
                self.block(item.body)
            return []

        extent = self.kernel.axes[item.axis].extent
        loop(self.w, self.t.position, first, extent, step, (), body)
        self.alone = before
        self.deep -= 1

    # Reductions.

    def _reduced(self, item: Loop, member: int) -> Held:
        joining = Joining.of(self.kernel, member)
        if joining.shaped:
            self.splits = _THREADS if self.along[member] is None else _WARPS
        found = super()._reduced(item, member)
        assert not self.splits
        return found

    def _plainly(self, item: Loop, i: Instruction, joining: Joining) -> Held:
        """What threads have, one value after the other, and then all of them, in whatever order."""
        levels = levels_of(item)

        def level(at: int, held: list[Text]) -> list[Text]:
            one, last = levels[at], at + 1 == len(levels)

            def body(position: Position, held: list[Text]) -> list[Text]:
                with self.t.inside(one.axis, position):
                    if not last:
                        self.block(one.body[:-1])
                        return level(at + 1, held)
                    self.block(one.body)
                    return joining.step(self.w, held, [self.t.get(a) for a in i.args])

            first: Position = 0
            step = 1
            if last:
                first, step = (self.lane, WARP) if at else (self.thread, _THREADS)
            elif not at:
                first, step = self.warp, _WARPS
            extent = self.kernel.axes[one.axis].extent
            slots = list(zip(joining.types, held, strict=True))
            return loop(self.w, self.t.position, first, extent, step, slots, body)

        held = level(0, joining.identity)
        for step in (1, 2, 4, 8, 16):
            held = self._met(joining, held, step)
        told = self._told(joining, held, WARP)
        return balanced(self.w, joining, [told(number) for number in range(_WARPS)])

    def _by_halves(self, joining: Joining, lane: Callable[[Text], Held]) -> Held:
        """Each half of a warp has the sixteen lanes."""
        fold = self.kernel.fold
        own = self.w.op(f"and {self.t.position} {self.lane}, {fold.lanes - 1}")
        held = lane(own)
        step = fold.lanes // 2
        while step:
            held = self._met(joining, held, step)
            step //= 2
        return held

    def _met(self, joining: Joining, held: Held, step: int) -> Held:
        """What is held joined with what the thread has whose number differs in a bit."""
        others = [exchange(self.w, ty, x, step) for ty, x in zip(joining.types, held, strict=True)]
        return joining.merge(self.w, held, others)

    def _tree(
        self,
        joining: Joining,
        low: Position,
        high: Position,
        size: int,
        part: Callable[[Position], Held],
        most: int | None = None,
    ) -> Held:
        """The outermost tree of a sum is shared out: each warp, or thread, has a power of two of
        its parts, which make a tree of their own."""
        split, self.splits = self.splits, 0
        if not split:
            return super()._tree(joining, low, high, size, part, most)
        assert low == 0
        w, ty = self.w, self.t.position
        end = high if isinstance(high, str) else w.const(ty, high, False)
        parts = self._over(end, size)
        bits = int(ty[1:])
        below = w.intrinsic("smax", ty, self._less(self._over(parts, split)), "0")
        zeros = w.call(ty, f"llvm.ctlz.{ty}", (ty, below), ("i1", "false"))
        each = w.op(f"shl {ty} 1, {w.op(f'sub {ty} {bits}, {zeros}')}")
        own = self.warp if split == _WARPS else self.thread
        begin = least(w, ty, w.op(f"mul {ty} {own}, {each}"), parts)
        stop = least(w, ty, w.op(f"add {ty} {begin}, {each}"), parts)
        first, last = (w.op(f"mul {ty} {n}, {size}") for n in (begin, stop))
        held = super()._tree(joining, first, least(w, ty, last, end), size, part, most)
        told = self._told(joining, held, _THREADS // split)
        filled = w.op(f"udiv {ty} {w.op(f'add {ty} {parts}, {self._less(each)}')}, {each}")
        return super()._tree(joining, 0, filled, 1, told, split)

    def _over(self, x: Text, size: int) -> Text:
        """A quotient rounded up."""
        ty = self.t.position
        return self.w.op(f"udiv {ty} {self.w.op(f'add {ty} {x}, {size - 1}')}, {size}")

    def _less(self, x: Text) -> Text:
        return self.w.op(f"add {self.t.position} {x}, -1")

    def _told(self, joining: Joining, held: Held, stride: int) -> Callable[[Position], Held]:
        """What one in so many threads has, by its number, in all threads that stand like it. All
        have come here, so what they read before may be written over."""
        w, ty = self.w, self.t.position
        memory = [self.f.reserve(kept(kind), _THREADS) for kind in joining.types]

        def place(name: str, kind: str, at: Text) -> Text:
            return w.op(f"getelementptr {kept(kind)}, ptr addrspace(3) {name}, {ty} {at}")

        for name, kind, x in zip(memory, joining.types, held, strict=True):
            at = place(name, kind, self.thread)
            w.put(f"store {kept(kind)} {wide(w, kind, x)}, ptr addrspace(3) {at}")
        wait(w)
        alike = w.op(f"and {ty} {self.thread}, {stride - 1}")

        def read(number: Position) -> Held:
            start = number * stride if isinstance(number, int) else f"{number}"
            if not isinstance(number, int) and stride > 1:
                start = w.op(f"mul {ty} {number}, {stride}")
            at = w.op(f"add {ty} {start}, {alike}")
            return [
                short(w, kind, w.op(f"load {kept(kind)}, ptr addrspace(3) {place(name, kind, at)}"))
                for name, kind in zip(memory, joining.types, strict=True)
            ]

        return read
