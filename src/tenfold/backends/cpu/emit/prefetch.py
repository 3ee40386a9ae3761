"""Prefetch: memory is asked for before it is needed, where the processor can't foresee it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.backends.cpu.emit.memory import element_size, pointer
from tenfold.backends.cpu.emit.state import EmitState, Position
from tenfold.backends.cpu.schedule.traffic import far
from tenfold.backends.llvm.writer import LANES
from tenfold.kernel.analyse.nest import Loop
from tenfold.kernel.analyse.uses import loads, needed
from tenfold.kernel.ir.index import Index

if TYPE_CHECKING:
    from tenfold.backends.cpu.emit.emit import Emitter

_NEAR_ROW = 16384  # bytes of a row, of which three fit the nearest cache
_TRIPS = 4  # of a loop, from the prefetch to the read


def prefetch_gathered_rows(e: Emitter, loop: Loop, position: Position, trips: int = 1) -> None:
    """Prefetch the rows that later trips read at a computed place, as one of a table by its number,
    for so many trips from here on. In the last trips the last rows are prefetched again."""
    s, kernel, axis = e.s, e.kernel, loop.axis
    extent = kernel.axes[axis].extent
    if s.lane is None or position == extent - trips:
        return
    rows = []
    for i in loads(kernel, loop.body):
        assert i.index is not None
        if i.index.stride(s.lane) != 1 or not far(kernel.buffers[i.attr[0]]):
            continue
        if any(axis in kernel.free[v] for v in i.index.values()):
            rows.append((i.attr[0], i.index))
    if not rows:
        return
    wanted = needed(kernel, (v for _, index in rows for v in index.values()), axis)
    if any(s.lane in kernel.free[v] for v in wanted):
        return
    later = e.least(e.sum(position, _TRIPS), extent - trips)
    for trip in range(trips):
        with s.inside(axis, e.sum(later, trip), 0, extent):
            for v in sorted(wanted):
                s.env[v] = e.compute(v)
            for number, index in rows:
                _prefetch(s, number, index)


def prefetch_next_row(e: Emitter, loop: Loop) -> None:
    """Prefetch what the next row reads, where the schedule says that this loop does. A long row has
    to go past the nearest cache, which it would empty."""
    for axis, buffer, index in e.schedule.prefetched:
        if axis == loop.axis:
            size = e.kernel.axes[axis].extent * element_size(e.kernel.buffers[buffer].dtype)
            _prefetch(e.s, buffer, index, near=size <= _NEAR_ROW)


def prefetch_later_rows(e: Emitter, loop: Loop, rows: int) -> None:
    """Prefetch what is read at the same place of a later row. The processor foresees what lies
    behind in memory, but not beyond the end of a page, which a row may be."""
    s, kernel = e.s, e.kernel
    assert s.lane is not None
    if e.schedule.small:
        return
    for i in loads(kernel, loop.body):
        assert i.index is not None
        buffer, step = kernel.buffers[i.attr[0]], i.index.stride(loop.axis)
        if step and i.index.stride(s.lane) == 1 and not i.index.values() and far(buffer):
            _prefetch(s, i.attr[0], i.index + step * rows)


def _prefetch(s: EmitState, buffer: int, index: Index, near: bool = True) -> None:
    """Prefetch what lies at an index, a line of memory at a time, into the nearest cache or the
    next. It may lie beyond the end."""
    size = element_size(s.kernel.buffers[buffer].dtype)
    for copy in range(0, s.copies, max(1, 64 // (LANES * size))):
        at = pointer(s, buffer, index, copy)
        s.w.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        s.w.put(f"call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 {3 if near else 2}, i32 1)")
