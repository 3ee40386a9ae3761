"""Division by what many elements share: one reciprocal, and the bits of a division.

A division of vectors takes ten times as long as a product. Where the divisor s is the same all
along a loop, its reciprocal r, rounded to nearest, is taken before the loop. Then q = a·r is off
by an ulp or so, the remainder q·s - a is exact in one fused operation, and q less remainder·r is
a / s rounded to nearest: by Markstein's theorem, while nothing leaves the normal numbers. So s
has to lie between bounds, or r is made a NaN; and where a quotient is so small that the remainder
might not be exact, or is no number, all is divided after all. Zeros are right as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tenfold.backends.llvm.writer import COMPUTE, LANES, Writer, is_constant, vector
from tenfold.kernel.analyse.nest import Item
from tenfold.kernel.analyse.uses import divisors

if TYPE_CHECKING:
    from tenfold.backends.cpu.emit.emit import Emitter

# The divisor lies within 2**±x. The least square of a quotient that needs no division is the least
# normal number; then the last bit of the remainder is at least that of the format's smallest.
_WITHIN = {"float": 40, "double": 400}
_LEAST = {"float": 2.0**-126, "double": 2.0**-1022}


def invert(e: Emitter, items: Iterable[Item], axis: int) -> None:
    """Before a loop whose lanes lie along an axis: reciprocals of what it divides by. It does not
    pay in a small kernel, nor where a row stays in registers."""
    s = e.s
    if not e.w.fma or e.schedule.small or e.kernel.axes[axis].extent <= e.kernel.fold.round:
        return
    for value in divisors(e.kernel, items, axis):
        val = s.env.get(value)
        if val is None or val.wide or len(val.copies) > 1 or is_constant(val.copies[0]):
            continue
        element = COMPUTE[e.kernel.instructions[value].dtype]
        r = reciprocal(e.w, element, val.copies[0], False)
        s.get(value, 0, True)
        s.env["inverse", value] = e.w.splat(element, r)


def reciprocal(w: Writer, element: str, x: str, wide: bool) -> str:
    """1 / x, or NaN for what is to be divided by."""
    ty, one = vector(element, wide), vector("i1", wide)
    bound = _WITHIN[element]
    over = w.op(f"fcmp oge {ty} {x}, {w.const(element, 2.0**-bound, wide)}")
    under = w.op(f"fcmp ole {ty} {x}, {w.const(element, 2.0**bound, wide)}")
    inside = w.op(f"and {one} {over}, {under}")
    inverse = w.op(f"fdiv {ty} {w.const(element, 1.0, wide)}, {x}")
    return w.select(inside, ty, inverse, w.const(element, math.nan, wide))


def divide(w: Writer, element: str, given: Sequence[str], s: str, r: str) -> list[str]:
    """Vectors divided by one whose reciprocal is at hand."""
    ty, one = vector(element), vector("i1")
    found, doubtful, wrong = [], [], ""
    for a in given:
        q = w.op(f"fmul {ty} {a}, {r}")
        rest = w.intrinsic("fma", ty, q, s, w.op(f"fneg {ty} {a}"))
        q = w.intrinsic("fma", ty, w.op(f"fneg {ty} {rest}"), r, q)
        square = w.op(f"fmul {ty} {q}, {q}")
        test = w.op(f"fcmp ult {ty} {square}, {w.const(element, _LEAST[element], True)}")
        found.append(q)
        doubtful.append(test)
        wrong = w.op(f"or {one} {wrong}, {test}") if wrong else test
    look, slow, end = w.fresh("look"), w.fresh("slow"), w.fresh("end")
    seldom = '!prof !{!"branch_weights", i32 1, i32 1000}'
    before = w.block
    w.put(f"br i1 {_some(w, wrong)}, label %{look}, label %{end}, {seldom}")
    w.label(look)
    wrong = ""
    for a, q, test in zip(given, found, doubtful, strict=True):
        # The quotient has the dividend's sign, or is no number: 0 comes of two zeros alone.
        both = w.op(f"fadd {ty} {a}, {q}")
        other = w.op(f"fcmp une {ty} {both}, {w.const(element, 0.0, True)}")
        test = w.op(f"and {one} {test}, {other}")
        wrong = w.op(f"or {one} {wrong}, {test}") if wrong else test
    w.put(f"br i1 {_some(w, wrong)}, label %{slow}, label %{end}")
    w.label(slow)
    divided = [w.op(f"fdiv {ty} {a}, {s}") for a in given]
    w.put(f"br label %{end}")
    w.label(end)
    return [
        w.op(f"phi {ty} [ {q}, %{before} ], [ {q}, %{look} ], [ {d}, %{slow} ]")
        for q, d in zip(found, divided, strict=True)
    ]


def _some(w: Writer, mask: str) -> str:
    return w.call("i1", f"llvm.vector.reduce.or.v{LANES}i1", (vector("i1"), mask))
