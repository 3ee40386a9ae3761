"""Kernels without loops: an invocation for each element, or for four that lie side by side.

Four neighbours are read and written as a vector, or as whole words of shorter elements, which
nobody else writes to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.backends.webgpu.emit.module import (
    ModuleWriter,
    global_number,
    scattered,
    spread_over,
    total,
)
from tenfold.backends.webgpu.shader import Shader
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.backends.webgpu.wgsl.invocation import Invocation, number
from tenfold.backends.webgpu.wgsl.memory import guard, load, store
from tenfold.kernel.ir.index import AXIS, Index
from tenfold.kernel.ir.kernel import Kernel
from tenfold.kernel.ir.legal import in_memory
from tenfold.kernel.ir.number import prefers_less
from tenfold.kernel.passes.flatten import joined, outside

SLOTS = 4
_WORKGROUP = 256


def emit_flat(kernel: Kernel, target: WebGPUTarget, order: list[int]) -> Shader:
    """A legal kernel whose axes, outermost first, are all parallel."""
    kernel, order = flattened(kernel, order)
    wide = wide_buffers(kernel, order[-1]) if order else frozenset[int]()
    slots = SLOTS if wide else 1
    extents: list[Any] = [kernel.axes[a].extent for a in order]
    if wide:
        extents[-1] = extents[-1] // SLOTS
    m = ModuleWriter(kernel, target, _WORKGROUP)
    m.wide = dict.fromkeys(wide, SLOTS)
    v = m.invocation(scattered(kernel) - wide)
    v.wide = wide
    w, count = v.w, total(extents)
    me = global_number(w, _WORKGROUP)
    with w.block(f"if ({me} < {number(count)})"):
        spread_over(v, order, extents, me)
        if wide:
            v.lane, v.slots = order[-1], slots
            v.axes[v.lane] = w.let("i32", f"{v.axes[v.lane]} * {SLOTS}")
        straight(v, order)
    m.entry(w, (count + _WORKGROUP - 1) // _WORKGROUP)
    words = "four elements an invocation" if wide else "an element an invocation"
    return m.finish(words)


def straight(v: Invocation, order: Sequence[int], live: str = "") -> None:
    """All instructions, then all checks and stores; nothing is stored unless `live`."""
    for n, i in enumerate(v.kernel.instructions):
        if (n, 0) in v.env:
            continue
        if i.op == "load":
            load(v, n)
        else:
            v.compute(n)
    for n in range(len(v.kernel.checks)):
        guard(v, n, live)
    for n, item in enumerate(v.kernel.stores):
        free = v.kernel.store_free(item)
        tests = [f"{v.axes[a]} == 0" for a in order if a not in free]
        store(v, n, " && ".join([*tests, *([live] if live else [])]))


def flattened(kernel: Kernel, order: list[int]) -> tuple[Kernel, list[int]]:
    """A kernel whose rows are no multiple of four long, with one axis for the inner two."""
    if len(order) < 2:
        return kernel, order
    inner, extent = order[-1], kernel.axes[order[-1]].extent
    if extent % SLOTS == 0:
        return kernel, order
    outer = outside(kernel, inner)
    if outer != order[-2] or (kernel.axes[outer].extent * extent) % SLOTS != 0:
        return kernel, order
    return joined(kernel, outer, inner), [a - (a > inner) for a in order[:-1]]


def wide_buffers(kernel: Kernel, lane: int) -> frozenset[int]:
    """The buffers whose elements are all read and written four neighbours at a time along an axis,
    or none where that is no use."""
    if kernel.axes[lane].extent % SLOTS != 0 or prefers_less(kernel.axes[lane].extent, SLOTS):
        return frozenset()
    apart: set[int] = set()
    packed: set[int] = set()
    for i in kernel.instructions:
        if i.op == "load" and i.index is not None:
            fits = not i.args and _packed(kernel, i.attr[0], i.index, lane)
            (packed if fits else apart).add(i.attr[0])
    for s in kernel.stores:
        fits = s.condition is None and not s.update and _packed(kernel, s.buffer, s.index, lane)
        (packed if fits else apart).add(s.buffer)
    return frozenset(packed - apart)


def _packed(kernel: Kernel, buffer: int, index: Index, lane: int) -> bool:
    """Whether four neighbours begin at multiples of four."""
    if index.values() or len(in_memory(kernel.buffers[buffer].dtype)) > 1:
        return False
    step = index.stride(lane)
    if step is None or step != 1:
        return False
    others = [k for atom, k in index.terms if not (atom.kind == AXIS and atom.of == lane)]
    return all(k % SLOTS == 0 for k in (*others, index.const))
