"""How many rounds loops of one invocation have: some drivers end them silently after so many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.backends.webgpu.emit.joining import Joining
from tenfold.backends.webgpu.emit.serial import levels_of
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.errors import Unsupported
from tenfold.kernel.analyse.nest import Item, Loop
from tenfold.kernel.ir.kernel import Kernel

_TREE, _LANES = 12, 400  # rounds of trees over few positions; for all lanes of a chunk


def rounds_of(kernel: Kernel, items: Sequence[Item]) -> Any:
    """A bound of the rounds of all loops among items, with those of counters."""
    found: Any = 0
    stack: list[tuple[Item, Any]] = [(item, 1) for item in items]
    while stack:
        item, times = stack.pop()
        if not isinstance(item, Loop):
            continue
        # Shaped reductions have loops of their own each, and those of their trees.
        shaped = [m for m in item.members if Joining.of(kernel, m).shaped]
        times = times * (len(shaped) + (len(shaped) < len(item.members)) if item.members else 1)
        each = 2 if shaped else 1
        levels = levels_of(item)
        for level in levels:
            extent: Any = kernel.axes[level.axis].extent
            tree = (_LANES if level is levels[-1] else _TREE) if shaped else 1
            found = found + times * (extent * each + tree)
            times = times * (extent + 1)
            inner = level.inner
            stack += [(one, times) for one in level.body if one is not inner]
    return found


def check_rounds(
    kernel: Kernel, target: WebGPUTarget, items: Sequence[Item], team: int = 1, parts: int = 1
) -> None:
    """Refuse what an adapter would not carry out to the end, shared out among so many, or in a part
    of the rounds that it lets loops run."""
    if target.loop_limit and not rounds_of(kernel, items) < target.loop_limit * team // parts:
        raise Unsupported(
            f"a kernel whose invocations loop for more than {target.loop_limit} rounds: "
            f"{target.adapter} ends them silently",
            fix="compute it on the CPU",
        )
