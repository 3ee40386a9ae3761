"""Which instructions a kernel may have where LLVM prints it, found by asking the passes."""

from __future__ import annotations

from functools import cache

from tenfold.backends.llvm.target import LLVMTarget
from tenfold.errors import Unsupported
from tenfold.kernel.ir.build import Builder
from tenfold.kernel.ir.index import Index
from tenfold.kernel.passes.legalise import legalise


@cache
def missing(
    instruction: str, operands: tuple[str, ...], result: str, target: LLVMTarget
) -> str | None:
    """Why there is no code for an elementwise instruction on these dtypes, or None."""
    b = Builder()
    out = b.buffer(result, 1, "write")
    b.store(out, Index(), b.op(instruction, result, *(b.param(dtype) for dtype in operands)))
    try:
        legalise(b.finish(), fused=target.fma)
    except Unsupported as error:
        return error.message
    return None
