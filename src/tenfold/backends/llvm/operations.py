"""Elementwise instructions of every dtype: the one place that picks which file emits them."""

from __future__ import annotations

from tenfold.backends.llvm.complexes import complex_op
from tenfold.backends.llvm.floats import floating
from tenfold.backends.llvm.integers import integer
from tenfold.backends.llvm.writer import Writer, kind

Parts = tuple[str, ...]


def elementwise(
    w: Writer, name: str, dtype: str, source: str, args: list[Parts], wide: bool
) -> Parts:
    """Emit one instruction: `dtype` is the result's, `source` the operands'."""
    if name == "complex":
        return args[0][0], args[1][0]
    letter = kind(source)
    if letter == "c":
        return complex_op(w, name, source, args, wide)
    plain = [a[0] for a in args]
    if letter == "f":
        return (floating(w, name, source, plain, wide),)
    return (integer(w, name, dtype, source, plain, wide),)
