"""Which instructions a kernel may have where it is printed as WGSL, found by asking the passes and
the printer."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from tenfold.backends.webgpu.target import WebGPUTarget
from tenfold.errors import Unsupported
from tenfold.kernel import maths
from tenfold.kernel.ir.build import Builder
from tenfold.kernel.ir.index import Index
from tenfold.kernel.ir.kernel import Instruction, Kernel
from tenfold.kernel.ir.legal import in_memory
from tenfold.kernel.passes.legalise import legalise

_FEATURES = {"f64": "f64", "i64": "i64", "u64": "i64"}  # what a dtype asks of an adapter
_CALLED = {"f64": "64-bit floats", "i64": "64-bit integers"}


@cache
def missing(
    instruction: str, operands: tuple[str, ...], result: str, target: WebGPUTarget
) -> str | None:
    """Why there is no WGSL for an elementwise instruction on these dtypes, or None."""
    b = Builder()
    out = b.buffer(result, 1, "write")
    b.store(out, Index(), b.op(instruction, result, *(b.param(dtype) for dtype in operands)))
    try:
        legal = legalise(b.finish(), fused=target.fma, brain=True)
    except Unsupported as error:
        return error.message
    return lacking(legal, target)


def lacking(legal: Kernel, target: WebGPUTarget) -> str | None:
    """What a legal kernel has that an adapter can't do, or None."""
    held = {d for b in legal.buffers for d in in_memory(b.dtype)}
    held |= {d for p in legal.params for d in in_memory(p)}
    held |= used(legal.instructions, target.fma)
    for dtype in sorted(held):
        feature = _FEATURES.get(dtype)
        if feature and not getattr(target, feature):
            return f"{target.adapter} has no {_CALLED[feature]} in shaders"
    return None


def used(instructions: Iterable[Instruction], fma: bool) -> set[str]:
    """The dtypes that instructions compute with, and the functions that they call."""
    found: set[str] = set()
    waiting: list[tuple[str, str]] = []
    seen: set[tuple[str, str]] = set()

    def look(some: Iterable[Instruction]) -> None:
        for i in some:
            found.add(i.dtype)
            if i.op in ("call", "rarely"):
                waiting.append((i.attr[0], i.dtype))

    look(instructions)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            look(maths.function(*name, fma).instructions)
    return found
