"""How many rounds loops of one invocation have: some drivers end them silently after so many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.errors import Unsupported
from tenfold.kernel.analyse.nest import Item, Loop
from tenfold.kernel.ir.kernel import Kernel


def rounds_of(kernel: Kernel, items: Sequence[Item], along: dict[int, int | None]) -> Any:
    """A bound of the rounds of all loops among items, with those of counters."""
    found: Any = 0
    stack: list[tuple[Item, Any]] = [(item, 1) for item in items]
    while stack:
        item, times = stack.pop()
        if isinstance(item, Loop):
            # Shaped reductions have loops of their own each, and those of their trees.
            each = 1 + 3 * len([m for m in item.members if m in along])
            times = times * (kernel.axes[item.axis].extent + 1)
            found = found + times * each + (64 if item.members else 0)
            stack += [(inner, times * max(1, len(item.members))) for inner in item.body]
    return found


def check_rounds(
    kernel: Kernel, target: WebGPUTarget, items: Sequence[Item], along: dict[int, int | None]
) -> None:
    """Refuse what an adapter would not carry out to the end."""
    if target.loop_limit and not rounds_of(kernel, items, along) < target.loop_limit:
        raise Unsupported(
            f"a kernel whose invocations loop for more than {target.loop_limit} rounds: "
            f"{target.adapter} ends them silently",
            fix="compute it on the CPU",
        )
