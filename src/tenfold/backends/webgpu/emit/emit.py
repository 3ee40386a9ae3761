"""WGSL from a kernel: the form it is laid over invocations in, by fixed rules."""

from __future__ import annotations

from tenfold.backends.webgpu.emit.flat import emit_flat
from tenfold.backends.webgpu.emit.grid import emit_grid
from tenfold.backends.webgpu.emit.rows import emit_rows
from tenfold.backends.webgpu.emit.scatter import emit_scatter
from tenfold.backends.webgpu.emit.tile import emit_tiles, tile_of
from tenfold.backends.webgpu.shader import Shader
from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.backends.webgpu.wgsl.support import lacking
from tenfold.errors import Unsupported
from tenfold.kernel.analyse.access import farthest
from tenfold.kernel.analyse.lanes import LaneChoice, rounds_in
from tenfold.kernel.ir.kernel import SEQUENTIAL, Kernel
from tenfold.kernel.ir.number import Facts
from tenfold.kernel.ir.sized import SizedKernel
from tenfold.kernel.passes.keep import recompute
from tenfold.kernel.passes.legalise import legalise


def prepare(call: SizedKernel, target: WebGPUTarget, strict: bool = False) -> tuple[Shader, Facts]:
    """A kernel as WGSL, for some sizes and all that are like them."""
    facts = Facts(call.sizes)
    return emit(call.numbered(facts), target, strict), facts


def emit(kernel: Kernel, target: WebGPUTarget, strict: bool = False) -> Shader:
    """A kernel as WGSL. Its sizes are plain, or Numbers whose facts say what it is right for."""
    choice = LaneChoice(kernel)
    lanes = choice.best()
    order = choice.within(lanes)
    legal = legalise(recompute(kernel), fused=target.fma and not strict, brain=True)
    reason = lacking(legal, target)
    if reason is not None:
        raise Unsupported(reason, fix="compute it on the CPU")
    if not farthest(legal) < 2**31:
        raise Unsupported("a kernel that reaches 2**31 elements", fix="compute it on the CPU")
    sequential = [n for n, a in enumerate(kernel.axes) if a.kind == SEQUENTIAL]
    along = rounds_in(legal, order, lanes)  # of all reductions: some are constants by now
    if not along and not sequential:
        tile = tile_of(legal, target, order)
        if tile is not None:
            return emit_tiles(legal, target, order, tile)
        return emit_flat(legal, target, order)
    if not sequential:
        found = emit_rows(legal, target, order, along, lanes)
        if found is not None:
            return found
    else:
        scattered = emit_scatter(legal, target)
        if scattered is not None:
            return scattered
    return emit_grid(legal, target, order, sequential, along)
