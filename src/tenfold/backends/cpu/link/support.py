"""Which instructions the CPU's code generator has, found by asking it."""

from __future__ import annotations

from functools import cache

from tenfold.backends.cpu.target import Target
from tenfold.backends.llvm.operations import Parts, elementwise
from tenfold.backends.llvm.writer import Writer, kind
from tenfold.errors import Unsupported


@cache
def missing(instruction: str, operands: tuple[str, ...], result: str, target: Target) -> str | None:
    """Why there is no code for an elementwise instruction on these dtypes, or None."""
    w = Writer(target)
    given: list[Parts] = [("%re", "%im") if kind(dtype) == "c" else ("%x",) for dtype in operands]
    try:
        elementwise(w, instruction, result, operands[0], given, True)
    except Unsupported as error:
        return error.message
    return None
