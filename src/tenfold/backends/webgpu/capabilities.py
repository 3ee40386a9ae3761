"""What an adapter brings to a planner: all that is a kernel on the CPU is one here, so that sums
have the same shape, where its shaders have the types."""

from __future__ import annotations

from functools import lru_cache

from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.backends.webgpu.wgsl.support import missing
from tenfold.graph.op import Types
from tenfold.kernel import Kernel
from tenfold.kernel.passes.collapse import collapse
from tenfold.kernel.passes.flatten import flatten
from tenfold.kernel.passes.unroll import unroll
from tenfold.plan.capabilities import Capabilities


@lru_cache(maxsize=8)
def capabilities(target: WebGPUTarget) -> Capabilities:
    """What can be done for a target."""
    return Capabilities(
        supports=lambda *named: missing(*named, target),
        lacks=_lacks,
        row_blocks=False,  # one block after another would leave most of a GPU idle
        tune=tune,
    )


def tune(kernel: Kernel) -> Kernel:
    """The kernel with neighbouring axes as one."""
    kernel = collapse(kernel)
    if any(i.op == "reduce" for i in kernel.instructions):
        return unroll(kernel)
    for axis in range(len(kernel.axes) - 1, -1, -1):
        kernel = flatten(kernel, axis)
    return kernel


def _lacks(routine: str, types: Types) -> str:
    """Why there is no such routine on a GPU."""
    return f"there is no {routine} in WGSL yet"
