"""Kernels that read some buffers across: a workgroup has a tile of two axes, and what lies packed
along the other one goes through the memory that it shares.

32 neighbours of such a buffer are read at a time and, after all have written what they read, 32
neighbours along the axis that results lie along. Rows of shared memory are one element longer than
the tile, so that a column of it lies in all banks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.backends.webgpu.emit.flat import straight
from tenfold.backends.webgpu.emit.module import ModuleWriter, scattered, spread_over, total
from tenfold.backends.webgpu.shader import Shader
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.backends.webgpu.wgsl.invocation import Invocation, number
from tenfold.backends.webgpu.wgsl.memory import read
from tenfold.backends.webgpu.wgsl.types import REGISTER, of_shared, to_shared
from tenfold.frozen import frozen
from tenfold.kernel.analyse.access import TRANSPOSED, access, affine
from tenfold.kernel.ir.kernel import READ, Kernel
from tenfold.kernel.ir.number import prefers_less

SIDE, _WORKGROUP = 32, 256
_LEAST = 16  # elements of an axis; shorter ones are read as they lie
_BYTES = {"f64": 8, "i64": 8, "u64": 8}


@frozen
class Tile:
    """A tile along two axes: `row`, along which the `loads` lie packed, and `lane`, along which
    the results do."""

    row: int
    lane: int
    loads: tuple[int, ...]


def tile_of(kernel: Kernel, target: WebGPUTarget, order: Sequence[int]) -> Tile | None:
    """The tile of a legal kernel without loops; None where nothing is read across."""
    if len(order) < 2 or target.workgroup_invocations < _WORKGROUP:
        return None
    lane = order[-1]
    found: dict[int, list[int]] = {}
    for n, i in enumerate(kernel.instructions):
        if i.op != "load" or i.index is None or i.args or not affine(i.index):
            continue
        buffer = kernel.buffers[i.attr[0]]
        if buffer.role == READ and not buffer.alias and access(kernel, i.index, lane) == TRANSPOSED:
            row = next(a for a in order if a != lane and i.index.stride(a) == 1)
            found.setdefault(row, []).append(n)
    if not found:
        return None
    row = max(found, key=lambda a: (len(found[a]), -a))
    if any(prefers_less(kernel.axes[axis].extent, _LEAST) for axis in (row, lane)):
        return None
    taken, left = list[int](), target.workgroup_bytes
    for n in found[row]:  # what finds no room is read as it lies
        left -= _BYTES.get(REGISTER[kernel.instructions[n].dtype], 4) * SIDE * (SIDE + 1)
        if left >= 0:
            taken.append(n)
    return Tile(row, lane, tuple(taken))


def emit_tiles(kernel: Kernel, target: WebGPUTarget, order: Sequence[int], tile: Tile) -> Shader:
    """A legal kernel without loops, tile by tile."""
    m = ModuleWriter(kernel, target, _WORKGROUP)
    v = m.invocation(scattered(kernel))
    w = v.w
    extents: list[Any] = [kernel.axes[a].extent for a in (tile.row, tile.lane)]
    tiles = [(extent + SIDE - 1) // SIDE for extent in extents]
    outer = [a for a in order if a not in (tile.row, tile.lane)]
    counts = [*(kernel.axes[a].extent for a in outer), *tiles]
    group = w.let("i32", "i32(group.x + group.y * grid.x)")
    # The last workgroups may be beyond all tiles: they go through the last one, and store nothing.
    last = w.let("i32", f"min({group}, {number(total(counts))} - 1)")
    there = w.let("bool", f"{group} < {number(total(counts))}")
    spread_over(v, [*outer, tile.row, tile.lane], counts, last)
    starts = [w.let("i32", f"{v.axes[a]} * {SIDE}") for a in (tile.row, tile.lane)]
    across = w.let("i32", f"i32(lid) % {SIDE}")
    down = w.let("i32", f"i32(lid) / {SIDE}")
    shared = {
        n: m.reserve(REGISTER[kernel.instructions[n].dtype], SIDE * (SIDE + 1)) for n in tile.loads
    }
    turn = w.fresh("i")
    step = _WORKGROUP // SIDE
    with w.block(f"for (var {turn} = {down}; {turn} < {SIDE}; {turn} += {step})"):
        _place(v, tile, starts, across, turn)
        inside = _inside(v, tile, extents)
        with w.block(f"if ({inside})"):
            for n, name in shared.items():
                i = kernel.instructions[n]
                assert i.index is not None
                x = read(v, i.attr[0], v.position(i.index), i.attr[1])
                x = to_shared(REGISTER[i.dtype], x)
                w.put(f"{name}[{across} * {SIDE + 1} + {turn}] = {x};")
    w.put("workgroupBarrier();")
    with w.block(f"for (var {turn} = {down}; {turn} < {SIDE}; {turn} += {step})"):
        _place(v, tile, starts, turn, across)
        live = w.let("bool", f"{there} && {_inside(v, tile, extents)}")
        with w.block(f"if ({live})"):
            for n, name in shared.items():
                i = kernel.instructions[n]
                ty, x = REGISTER[i.dtype], f"{name}[{turn} * {SIDE + 1} + {across}]"
                v.put(n, 0, w.let(ty, of_shared(ty, x)))
            straight(v, order)
    m.entry(w, total(counts))
    return m.finish(f"tiles of {SIDE} by {SIDE} elements")


def _place(v: Invocation, tile: Tile, starts: Sequence[str], row: str, lane: str) -> None:
    """Have the axes of a tile stand at an element of it."""
    for axis, start, at in zip((tile.row, tile.lane), starts, (row, lane), strict=True):
        v.axes[axis] = v.w.let("i32", f"{start} + {at}")


def _inside(v: Invocation, tile: Tile, extents: Sequence[Any]) -> str:
    both = zip((tile.row, tile.lane), extents, strict=True)
    return " && ".join(f"{v.axes[axis]} < {number(extent)}" for axis, extent in both)
