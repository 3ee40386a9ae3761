"""Asking for memory before it is needed, where the processor can't foresee what is read next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tenfold.backends.cpu.loops import Position
from tenfold.backends.cpu.memory import prefetch
from tenfold.backends.cpu.writer import SIZES
from tenfold.kernel.nest import Compute, Loop

if TYPE_CHECKING:
    from tenfold.backends.cpu.emit import Emitter

_TRIPS = 4  # of a loop, from asking to reading
_LARGE = 1 << 20  # bytes of a table that does not stay in the near caches


def look_ahead(e: Emitter, loop: Loop, position: Position) -> None:
    """Ask for the rows that a later trip reads at a computed place, as one of a table by its
    number. In the last trips the last row is asked for again."""
    s, kernel, axis = e.s, e.kernel, loop.axis
    if s.lane is None or isinstance(position, int):
        return
    rows = []
    for item in loop.body:
        i = kernel.instructions[item.value] if isinstance(item, Compute) else None
        if i is None or i.op != "load" or i.index is None or i.args:
            continue
        buffer, moving = kernel.buffers[i.attr[0]], i.index.values()
        if buffer.size * SIZES[buffer.dtype] < _LARGE or i.index.stride(s.lane) != 1:
            continue
        if any(axis in kernel.free[v] for v in moving):
            rows.append((i.attr[0], i.index))
    if not rows:
        return
    needed = _needed(e, (v for _, index in rows for v in index.values()), axis)
    if any(s.lane in kernel.free[v] for v in needed):
        return
    extent = kernel.axes[axis].extent
    later = e.w.op(f"add nsw i64 {position}, {_TRIPS}")
    later = e.w.intrinsic("smin", "i64", later, str(extent - 1))
    with s.inside(axis, later, 0, extent):
        for v in sorted(needed):
            s.env[v] = e.compute(v)
        for number, index in rows:
            prefetch(s, number, index)


def _needed(e: Emitter, roots: Iterable[int], axis: int) -> set[int]:
    """What these values are computed from inside the loop over an axis."""
    found: set[int] = set()
    stack = list(roots)
    while stack:
        v = stack.pop()
        if v not in found and axis in e.kernel.free[v]:
            found.add(v)
            stack += e.kernel.instructions[v].uses()
    return found
