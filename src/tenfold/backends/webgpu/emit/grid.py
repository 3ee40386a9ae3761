"""An invocation for each position of the axes outside of all loops."""

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
from tenfold.backends.webgpu.emit.rounds import check_rounds
from tenfold.backends.webgpu.emit.serial import SerialEmitter
from tenfold.backends.webgpu.shader import Shader
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.backends.webgpu.wgsl.invocation import number
from tenfold.kernel.analyse.nest import Loop, nest
from tenfold.kernel.ir.kernel import Kernel

_WORKGROUP = 256


def emit_grid(
    kernel: Kernel,
    target: WebGPUTarget,
    order: Sequence[int],
    sequential: Sequence[int],
    along: dict[int, int | None],
) -> Shader:
    """A legal kernel, all loops written as loops."""
    reduced = sorted(
        {a for r in along for a in kernel.instructions[r].attr[1:]},
        key=lambda a: (a in along.values(), a),
    )
    depth = min(
        (max((order.index(a) + 1 for a in kernel.free[r] if a in order), default=0) for r in along),
        default=len(order),
    )
    outer = order[:depth]
    extents: list[Any] = [kernel.axes[a].extent for a in outer]
    items = nest(kernel, [*order, *sequential], reduced)
    m = ModuleWriter(kernel, target, _WORKGROUP)
    v = m.invocation(scattered(kernel))
    w = v.w
    me = global_number(w, _WORKGROUP)
    count = total(extents)
    emitter = SerialEmitter(v, along)
    with w.block(f"if ({me} < {number(count)})"):
        spread_over(v, outer, extents, me)
        for level in range(depth):
            *straight, last = items
            emitter.test = first_of(v.axes, outer[level:])
            emitter.block(straight)
            assert isinstance(last, Loop)
            items = last.body
        emitter.test = ""
        check_rounds(kernel, target, items)
        emitter.block(items)
    m.entry(w, (count + _WORKGROUP - 1) // _WORKGROUP)
    return m.finish("an invocation for each position")


def first_of(axes: dict[int, str], some: Sequence[int]) -> str:
    """Whether an invocation stands at the beginning of some axes: of those that compute the same,
    one stores it."""
    return " && ".join(f"{axes[a]} == 0" for a in some)
