"""What an adapter brings to a planner: all that is a kernel on the CPU is one here, so that sums
have the same shape, where its shaders have the types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

from tenfold.backends.convolutions import convolution_of
from tenfold.backends.matrices import matrices_of
from tenfold.backends.webgpu.library.routine import ROUTINES, routine_of
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.backends.webgpu.wgsl.support import missing
from tenfold.graph.op import CONVOLUTION, PRODUCT, Types
from tenfold.kernel import Kernel
from tenfold.kernel.passes.collapse import collapse
from tenfold.kernel.passes.flatten import flatten
from tenfold.kernel.passes.unroll import unroll
from tenfold.plan.capabilities import Capabilities
from tenfold.types import KIND, SHORT


@lru_cache(maxsize=8)
def capabilities(target: WebGPUTarget) -> Capabilities:
    """What can be done for a target."""
    return Capabilities(
        supports=lambda *named: missing(*named, target),
        routines=ROUTINES,
        scratch=partial(_scratch, target),
        lacks=partial(_lacks, target),
        multiplied=frozenset({"f16", "bf16"}),
        words=partial(_words, target),
        row_blocks=False,  # one block after another would leave most of a GPU idle
        arrays=target.arrays,
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


def _scratch(
    target: WebGPUTarget, routine: str, types: Types, attributes: Mapping[str, Any]
) -> int | None:
    """No memory of a plan: what a routine needs is each caller's, as what kernels leave for
    later."""
    return None if routine_of(routine, types, attributes, target) is None else 0


def _lacks(target: WebGPUTarget, routine: str, types: Types) -> str:
    """Why there is no such routine on a GPU."""
    if routine not in ROUTINES:
        return f"there is no {routine} in WGSL yet"
    if routine != PRODUCT and any(KIND[t.dtype] == "c" for t in types):
        return f"there is no {routine} of complex numbers in WGSL yet"
    for t in types:
        dtype = SHORT[t.dtype]
        if not getattr(target, {"u64": "i64", "c128": "f64"}.get(dtype, dtype), True):
            return f"{target.adapter} has no {dtype}"
    return f"{target.adapter} shows a shader {target.storage_bytes} bytes of an array"


def _words(target: WebGPUTarget, routine: str, types: Types, attributes: Mapping[str, Any]) -> str:
    """Which way a product or a convolution goes."""
    of = {PRODUCT: matrices_of, CONVOLUTION: convolution_of}
    made = of[routine](types, attributes) if routine in of else None
    found = routine_of(routine, types, attributes, target) if made is not None else None
    return "" if found is None else f"{made}: {found.shader.schedule}"
