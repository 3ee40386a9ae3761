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
from tenfold.backends.webgpu.emit.rounds import check_rounds, rounds_of
from tenfold.backends.webgpu.emit.serial import SerialEmitter
from tenfold.backends.webgpu.shader import Shader
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.backends.webgpu.wgsl.invocation import number
from tenfold.kernel.analyse.nest import Item, Loop, nest
from tenfold.kernel.ir.kernel import SEQUENTIAL, Kernel

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
        turns = cut(emitter, target, items)
        emitter.block(items)
    m.entry(w, (count + _WORKGROUP - 1) // _WORKGROUP, turns)
    return m.finish("an invocation for each position")


def cut(emitter: SerialEmitter, target: WebGPUTarget, items: Sequence[Item]) -> Any:
    """Have the positions of an axis in order, of which there are too many for the loops of one
    invocation, be gone through by dispatches one after the other: how many of these there are.
    What is not in their loop comes out the same each time."""
    kernel, last = emitter.kernel, items[-1] if items else None
    ordered = isinstance(last, Loop) and kernel.axes[last.axis].kind == SEQUENTIAL
    if not target.loop_limit or rounds_of(kernel, items) < target.loop_limit or not ordered:
        check_rounds(kernel, target, items)
        return 1
    assert isinstance(last, Loop)
    check_rounds(kernel, target, [*items[:-1], *last.body], parts=3)
    extent: Any = kernel.axes[last.axis].extent
    each = target.loop_limit // 2 // (rounds_of(kernel, last.body) + 1)
    low = emitter.w.let("i32", f"turn * {number(each)}")
    high = emitter.w.let("i32", f"min({low} + {number(each)}, {number(extent)})")
    emitter.ranges[last.axis] = low, high
    return (extent + each - 1) // each


def first_of(axes: dict[int, str], some: Sequence[int]) -> str:
    """Whether an invocation stands at the beginning of some axes: of those that compute the same,
    one stores it."""
    return " && ".join(f"{axes[a]} == 0" for a in some)
