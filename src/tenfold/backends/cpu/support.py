"""Which instructions the CPU's code generator has, found by asking it."""

from __future__ import annotations

from functools import cache

from tenfold.backends.cpu.emit import emit
from tenfold.backends.cpu.schedule import choose
from tenfold.backends.cpu.target import Target
from tenfold.errors import Unsupported
from tenfold.kernel import Builder


@cache
def missing(instruction: str, operands: tuple[str, ...], result: str, target: Target) -> str | None:
    """Why there is no code for an elementwise instruction on these dtypes, or None."""
    b = Builder()
    buffers = [b.buffer(dtype, 32) for dtype in operands]
    made = b.buffer(result, 32, "write")
    i = b.axis(32)
    try:
        b.store(made, i, b.op(instruction, result, *(b.load(x, i) for x in buffers)))
        kernel = b.finish()
        emit(kernel, choose(kernel, target), target, "tn_asked")
    except Unsupported as error:
        return error.message
    return None
