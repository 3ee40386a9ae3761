"""Kernels that read some buffers across: a block has a tile of two axes, and what lies packed along
the other one goes through shared memory.

A warp reads 32 neighbours of such a buffer and, after all of the block have written what they read,
goes on with 32 neighbours along the axis that results lie along. All loads of a tile are on their
way before the first of them is waited for. Rows of shared memory are one element longer than the
tile, so that a column of it lies in all banks.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tenfold.backends.cuda.emit.function import FunctionWriter, KernelText, finish
from tenfold.backends.cuda.emit.memory import both, element, guard, load, size_in_memory, store
from tenfold.backends.cuda.emit.point import BLOCK, apart, first_of
from tenfold.backends.cuda.emit.team import wait
from tenfold.backends.cuda.emit.thread import Slot, Text, Thread
from tenfold.backends.llvm.casts import narrow, widen
from tenfold.frozen import frozen
from tenfold.kernel.analyse.access import TRANSPOSED, access, affine
from tenfold.kernel.ir.kernel import READ, Kernel
from tenfold.kernel.ir.number import Facts, prefers_less

_LARGE, _SMALL = 64, 32  # elements of a side
_MEMORY = 40 * 1024  # bytes of shared memory, of the 48 KiB that every block may have
_MANY = 4 * 132  # large tiles, of which there have to be so many
_LEAST = 16  # elements of an axis; shorter ones are read as they lie


@frozen
class Tile:
    """A tile along two axes: `row`, along which the `loads` lie packed, and `lane`, along which
    the results do."""

    row: int
    lane: int
    side: int
    loads: tuple[int, ...]


def tile_of(kernel: Kernel, order: Sequence[int]) -> Tile | None:
    """The tile of a legal kernel without loops; None where nothing is read across."""
    if len(order) < 2:
        return None
    lane = order[-1]
    found: dict[int, list[int]] = {}
    for n, i in enumerate(kernel.instructions):
        if i.op != "load" or i.index is None or i.args or not affine(i.index):
            continue
        buffer = kernel.buffers[i.attr[0]]
        if buffer.role != READ or buffer.alias:
            continue
        if access(kernel, i.index, lane) == TRANSPOSED:
            row = next(a for a in order if a != lane and i.index.stride(a) == 1)
            found.setdefault(row, []).append(n)
    if not found:
        return None
    row = max(found, key=lambda a: (len(found[a]), -a))
    extents = kernel.axes[row].extent, kernel.axes[lane].extent
    if any(prefers_less(extent, _LEAST) for extent in extents):
        return None
    dtypes = [kernel.buffers[kernel.instructions[n].attr[0]].dtype for n in found[row]]
    sizes = [size_in_memory(element(dtype)) for dtype in dtypes]
    total: Any = prod(kernel.axes[a].extent for a in order)
    side = _LARGE
    if sum(sizes) * _room(_LARGE) > _MEMORY or prefers_less(total, _MANY * _LARGE**2):
        side = _SMALL
    taken, left = list[int](), _MEMORY
    for n, size in zip(found[row], sizes, strict=True):  # what finds no room is read as it lies
        left -= size * _room(side)
        if left >= 0:
            taken.append(n)
    return Tile(row, lane, side, tuple(taken))


def _room(side: int) -> int:
    return side * (side + 1)


def emit_tiles(f: FunctionWriter, order: Sequence[int], tile: Tile, facts: Facts) -> KernelText:
    """A legal kernel without loops, tile by tile."""
    kernel, w, t = f.kernel, f.w, f.thread()
    ty, side = t.position, tile.side
    extents = [kernel.axes[a].extent for a in (tile.row, tile.lane)]
    tiles = [(extent + side - 1) // side for extent in extents]
    outer = [a for a in order if a not in (tile.row, tile.lane)]
    counts = [*(kernel.axes[a].extent for a in outer), *tiles]
    block = f.sreg("ctaid.x")
    if ty == "i64":
        block = w.op(f"zext i32 {block} to i64")
    *places, row, lane = apart(w, ty, block, counts)
    t.base.update(zip(outer, places, strict=True))
    starts = [w.op(f"mul {ty} {place}, {side}") for place in (row, lane)]
    writer = TileWriter(f, t, order, tile, starts)
    end = w.fresh("end")
    whole = all(extent % side == 0 for extent in extents)
    if not whole:
        test: Text | None = None
        for start, extent in zip(starts, extents, strict=True):
            last = w.op(f"add {ty} {start}, {side}")
            test = both(w, test, w.op(f"icmp ule {ty} {last}, {w.const(ty, extent, False)}"))
        yes, no = w.fresh("whole"), w.fresh("part")
        w.put(f"br i1 {test}, label %{yes}, label %{no}")
        w.label(no)
        writer.body(extents)
        w.put(f"br label %{end}")
        w.label(yes)
    writer.body(None)
    w.put(f"br label %{end}")
    w.label(end)
    total: Any = prod(counts)
    f.schedule = f"tile{side}"
    return finish([(f, BLOCK, total, 1)], facts)


class TileWriter:
    """One tile, as text."""

    def __init__(
        self,
        f: FunctionWriter,
        t: Thread,
        order: Sequence[int],
        tile: Tile,
        starts: Sequence[Text],
    ) -> None:
        self.f, self.t, self.w, self.order, self.tile = f, t, f.w, order, tile
        self.starts = starts  # where the tile begins along row and lane
        self.kernel = t.kernel
        self.step = BLOCK // tile.side  # threads that lie across
        me, bits = f.sreg("tid.x"), tile.side.bit_length() - 1
        self.along = self.w.op(f"and i32 {me}, {tile.side - 1}")
        self.across = self.w.op(f"lshr i32 {me}, {bits}")
        self.memory = [f.reserve(element(self._dtype(n)), _room(tile.side)) for n in tile.loads]

    def _dtype(self, value: int) -> str:
        buffer: int = self.kernel.instructions[value].attr[0]
        return self.kernel.buffers[buffer].dtype

    def body(self, extents: Sequence[Any] | None) -> None:
        """All of a tile; with the extents of both axes where it may reach beyond them."""
        t, tile = self.t, self.tile
        env, base = t.env, t.base
        t.env, t.base = dict(env), dict(base)  # what one way knows the other does not
        ends = extents or (None, None)
        (row, lane), (rows, lanes) = self.starts, ends
        slots, fits, place = self._slots(row, self.along, lane, self.across, rows, lanes)
        t.base[tile.row] = place
        found: list[list[Text]] = []
        with t.across(tile.lane, slots[0], self._both(slots[1], fits)):
            for n in tile.loads:
                load(t, n)
                dtype = self._dtype(n)
                found.append([narrow(self.w, dtype, t.get(n, s), False) for s in t.each(n)])
        slots, fits, place = self._slots(lane, self.along, row, self.across, lanes, rows)
        t.base[tile.lane] = place
        with t.across(tile.row, slots[0], self._both(slots[1], fits)):
            self._direct()
            self._turn(found)
            self._rest()
        t.env, t.base = env, base

    def _slots(
        self, near: Text, along: Text, far: Text, across: Text, limit: Any, stop: Any
    ) -> tuple[tuple[Text, list[Slot]], Text | None, Text]:
        """A thread's place along one axis, whether it is there, and its slots along the other."""
        w, ty = self.w, self.t.position
        if ty == "i64":
            along, across = (w.op(f"zext i32 {x} to i64") for x in (along, across))
        place = w.op(f"add {ty} {near}, {along}")
        anchor = w.op(f"add {ty} {far}, {across}")
        offsets = range(0, self.tile.side, self.step)
        if limit is None:
            return (anchor, [Slot(n) for n in offsets]), None, place
        fits = w.op(f"icmp ult {ty} {place}, {w.const(ty, limit, False)}")
        # Where there is no such place the last one is read: it is the same in all slots.
        last = w.const(ty, limit - 1, False)
        place = w.op(f"select i1 {fits}, {ty} {place}, {ty} {last}")
        slots = []
        for n in offsets:
            at = w.op(f"add {ty} {anchor}, {n}") if n else anchor
            slots.append(Slot(n, w.op(f"icmp ult {ty} {at}, {w.const(ty, stop, False)}")))
        return (anchor, slots), fits, place

    def _both(self, slots: Sequence[Slot], fits: Text | None) -> list[Slot]:
        return [Slot(s.offset, both(self.w, s.active, fits)) for s in slots]

    def _direct(self) -> None:
        """Loads that need nothing computed: they are on their way with the others."""
        for n, i in enumerate(self.kernel.instructions):
            if i.op == "load" and n not in self.tile.loads and not i.uses():
                load(self.t, n)

    def _turn(self, found: Sequence[Sequence[Text]]) -> None:
        """What was read along one axis, in the threads that have it along the other."""
        w, t, tile = self.w, self.t, self.tile
        width = tile.side + 1
        first = w.op(f"add i32 {w.op(f'mul i32 {self.across}, {width}')}, {self.along}")
        for name, n, given in zip(self.memory, tile.loads, found, strict=True):
            ty = element(self._dtype(n))
            at = w.op(f"getelementptr {ty}, ptr addrspace(3) {name}, i32 {first}")
            for slot, x in enumerate(given):
                here = self._beside(ty, at, slot * self.step * width)
                w.put(f"store {ty} {x}, ptr addrspace(3) {here}, align {size_in_memory(ty)}")
        wait(w)
        first = w.op(f"add i32 {w.op(f'mul i32 {self.along}, {width}')}, {self.across}")
        for name, n in zip(self.memory, tile.loads, strict=True):
            dtype = self._dtype(n)
            ty = element(dtype)
            at = w.op(f"getelementptr {ty}, ptr addrspace(3) {name}, i32 {first}")
            for slot in t.each(n):
                here = self._beside(ty, at, slot * self.step)
                size = size_in_memory(ty)
                x = w.op(f"load {ty}, ptr addrspace(3) {here}, align {size}")
                t.put(n, slot, widen(w, dtype, x, False))

    def _beside(self, ty: str, at: Text, offset: int) -> Text:
        if not offset:
            return at
        return self.w.op(f"getelementptr {ty}, ptr addrspace(3) {at}, i32 {offset}")

    def _rest(self) -> None:
        """What is left to be computed, checked and stored."""
        kernel, t = self.kernel, self.t
        for n, i in enumerate(kernel.instructions):
            if (n, 0) not in t.env:
                if i.op == "load":
                    load(t, n)
                else:
                    t.compute(n)
        fits = self._there()
        for n in range(len(kernel.checks)):
            guard(t, n, fits)
        for n, item in enumerate(kernel.stores):
            free = kernel.store_free(item)
            missing = [a for a in self.order if a not in free]
            test = first_of(t, missing)
            store(t, n, test if self.tile.row in free else both(self.w, test, fits))

    def _there(self) -> Text | None:
        """Whether this thread has any place in the tile at all."""
        return self.t.slots[0].active
