"""Which instructions the CPU's code generator has, found by asking it."""

from __future__ import annotations

from functools import cache

from tenfold.backends.cpu.emit import emit
from tenfold.backends.cpu.floats import REMAINDERS
from tenfold.backends.cpu.functions import LIBM, ours
from tenfold.backends.cpu.schedule import choose
from tenfold.backends.cpu.target import Target
from tenfold.errors import Unsupported
from tenfold.kernel import Builder, Kernel


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


def outside(kernel: Kernel) -> tuple[str, ...]:
    """The functions of libm that a kernel calls lane by lane, with their dtypes."""
    found = set()
    for i in kernel.instructions:
        if i.dtype not in ("f16", "bf16", "f32", "f64"):
            continue
        dtype = "f64" if i.dtype == "f64" else "f32"
        if i.op in REMAINDERS:
            found.add(f"fmod of {dtype}")
        elif i.op in LIBM and not ours(i.op, dtype):
            found.add(f"{i.op} of {dtype}")
    return tuple(sorted(found))
