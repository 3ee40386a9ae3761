"""Division by what all slots of a thread share: one reciprocal, and the bits of a division.

The chip has no instruction for it: a division that is rounded to nearest takes some ten, with a
branch. By Markstein's theorem q = a·r, where r is the rounded reciprocal of s, and q less its
remainder's share is a / s rounded to nearest, while nothing leaves the normal numbers. So s has to
lie between bounds, or r is a NaN; and where any quotient is so small that a remainder might not be
exact, or is no number, all are divided after all. Zeros are right as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tenfold.backends.llvm.writer import COMPUTE, Writer

LEAST = 4  # dividends, from which on it pays
# The divisor lies within 2**±x. The least square of a quotient that needs no division is the least
# normal number; then the last bit of the remainder is at least that of the format's smallest.
_WITHIN = {"float": 40, "double": 400}
_LEAST = {"float": 2.0**-126, "double": 2.0**-1022}


def reciprocal(w: Writer, dtype: str, s: str) -> str:
    """1 / s, or NaN for what is to be divided by."""
    ty = COMPUTE[dtype]
    low, high = (w.const(ty, 2.0**x, False) for x in (-_WITHIN[ty], _WITHIN[ty]))
    over, under = w.op(f"fcmp oge {ty} {s}, {low}"), w.op(f"fcmp ole {ty} {s}, {high}")
    inverse = w.op(f"fdiv {ty} {w.const(ty, 1.0, False)}, {s}")
    inside = w.op(f"and i1 {over}, {under}")
    return w.select(inside, ty, inverse, w.const(ty, math.nan, False))


def divided(w: Writer, dtype: str, given: Sequence[str], s: str, r: str) -> list[str]:
    """Dividends by a divisor whose reciprocal is at hand; a few at a time, so that few wait in
    registers to be divided after all."""
    few = (given[n : n + LEAST] for n in range(0, len(given), LEAST))
    return [q for some in few for q in _few(w, dtype, some, s, r)]


def _few(w: Writer, dtype: str, given: Sequence[str], s: str, r: str) -> list[str]:
    ty, found, wrong = COMPUTE[dtype], list[str](), ""
    for a in given:
        q = w.op(f"fmul {ty} {a}, {r}")
        rest = w.intrinsic("fma", ty, q, s, w.op(f"fneg {ty} {a}"))
        q = w.intrinsic("fma", ty, w.op(f"fneg {ty} {rest}"), r, q)
        small = w.op(
            f"fcmp ult {ty} {w.op(f'fmul {ty} {q}, {q}')}, {w.const(ty, _LEAST[ty], False)}"
        )
        # The quotient has the dividend's sign, or is no number: 0 comes of two zeros alone.
        other = w.op(f"fcmp une {ty} {w.op(f'fadd {ty} {a}, {q}')}, {w.const(ty, 0.0, False)}")
        doubtful = w.op(f"and i1 {small}, {other}")
        wrong = w.op(f"or i1 {wrong}, {doubtful}") if wrong else doubtful
        found.append(q)
    before, slow, end = w.block, w.fresh("slow"), w.fresh("end")
    w.put(f"br i1 {wrong}, label %{slow}, label %{end}")
    w.label(slow)
    exact = [w.op(f"fdiv {ty} {a}, {s}") for a in given]
    w.put(f"br label %{end}")
    w.label(end)
    return [
        w.op(f"phi {ty} [ {q}, %{before} ], [ {d}, %{slow} ]")
        for q, d in zip(found, exact, strict=True)
    ]
