"""Division by what all slots of a thread share: one reciprocal, and the bits of a division.

The chip has no instruction for it: a division that is rounded to nearest takes some ten, with a
branch. By Markstein's theorem q = a·r, where r is the rounded reciprocal of s, and q less its
remainder's share is a / s rounded to nearest, while nothing leaves the normal numbers. So s has to
lie between bounds, or r is a NaN; and where any dividend is so small beside s that a remainder
might not be exact, or so large that a quotient might overflow, all are divided after all. Zeros are
right as they are, and what is no number stays none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tenfold.backends.llvm.writer import BITS, COMPUTE, Writer

LEAST = 4  # dividends, from which on it pays
# The divisor lies within 2**±x, and the quotient's square is at least the least normal number: then
# the last bit of the remainder is at least that of the format's smallest.
_WITHIN = {"float": 40, "double": 400}
_LEAST = {"float": 2.0**-62, "double": 2.0**-510}  # of a quotient
_MOST = {"float": 2.0**86, "double": 2.0**620}  # of a dividend


def reciprocal(w: Writer, dtype: str, s: str) -> str:
    """1 / s, or NaN for what is to be divided by."""
    ty = COMPUTE[dtype]
    low, high = (w.const(ty, 2.0**x, False) for x in (-_WITHIN[ty], _WITHIN[ty]))
    over, under = w.op(f"fcmp oge {ty} {s}, {low}"), w.op(f"fcmp ole {ty} {s}, {high}")
    inverse = w.op(f"fdiv {ty} {w.const(ty, 1.0, False)}, {s}")
    inside = w.op(f"and i1 {over}, {under}")
    return w.select(inside, ty, inverse, w.const(ty, math.nan, False))


def divided(w: Writer, dtype: str, given: Sequence[str], s: str, r: str) -> list[str]:
    """Dividends by a divisor whose reciprocal is at hand. All of them are looked at first, so that
    each makes room for its quotient."""
    ty = COMPUTE[dtype]
    wrong = _doubtful(w, ty, given, s, r)
    fast, slow, end = (w.fresh(name) for name in ("fast", "slow", "end"))
    w.put(f"br i1 {wrong}, label %{slow}, label %{fast}")
    w.label(fast)
    found = []
    for a in given:
        q = w.op(f"fmul {ty} {a}, {r}")
        rest = w.intrinsic("fma", ty, q, s, w.op(f"fneg {ty} {a}"))
        found.append(w.intrinsic("fma", ty, w.op(f"fneg {ty} {rest}"), r, q))
    w.put(f"br label %{end}")
    w.label(slow)
    exact = [w.op(f"fdiv {ty} {a}, {s}") for a in given]
    w.put(f"br label %{end}")
    w.label(end)
    return [
        w.op(f"phi {ty} [ {q}, %{fast} ], [ {d}, %{slow} ]")
        for q, d in zip(found, exact, strict=True)
    ]


def _doubtful(w: Writer, ty: str, given: Sequence[str], s: str, r: str) -> str:
    """Whether a dividend other than zero lies outside of the bounds, or the divisor does."""
    bits = f"i{BITS[ty]}"
    most = least = ""
    for a in given:
        size = w.intrinsic("fabs", ty, a)
        most = w.intrinsic("maxnum", ty, most, size) if most else size
        place = _place(w, ty, bits, a)
        least = w.intrinsic("umin", bits, least, place) if least else place
    low = w.op(f"fmul {ty} {s}, {w.const(ty, _LEAST[ty], False)}")
    tests = (
        f"icmp ult {bits} {least}, {_place(w, ty, bits, low)}",
        f"fcmp ugt {ty} {most}, {w.const(ty, _MOST[ty], False)}",
        f"fcmp uno {ty} {r}, {r}",
    )
    wrong = [w.op(test) for test in tests]
    return w.op(f"or i1 {w.op(f'or i1 {wrong[0]}, {wrong[1]}')}, {wrong[2]}")


def _place(w: Writer, ty: str, bits: str, x: str) -> str:
    """An integer that rises with the size of a float; that of zero lies beyond all others."""
    twice = w.op(f"shl {bits} {w.op(f'bitcast {ty} {x} to {bits}')}, 1")
    return w.op(f"sub {bits} {twice}, 1")
