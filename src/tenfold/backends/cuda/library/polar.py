"""Numbers in double precision as their parts, one or two: magnitude and sign, and products."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.backends.llvm.functions import called
from tenfold.backends.llvm.writer import Writer, float_text

Parts = list[str]
_ONE = float_text("double", 1.0)


def polar(w: Writer, value: Parts) -> tuple[str, Parts]:
    """The magnitude of a number that is not 0, and its sign."""
    if len(value) == 1:
        size = w.intrinsic("fabs", "double", value[0])
        return size, [w.intrinsic("copysign", "double", _ONE, value[0])]
    size = called(w, "hypot", "f64", value, False)
    return size, [w.op(f"fdiv double {x}, {size}") for x in value]


def multiplied(w: Writer, a: Sequence[str], b: Sequence[str]) -> Parts:
    if len(a) == 1:
        return [w.op(f"fmul double {a[0]}, {b[0]}")]
    ac, bd, ad, bc = (
        w.op(f"fmul double {x}, {y}")
        for x, y in ((a[0], b[0]), (a[1], b[1]), (a[0], b[1]), (a[1], b[0]))
    )
    return [w.op(f"fsub double {ac}, {bd}"), w.op(f"fadd double {ad}, {bc}")]
