"""Integer powers: a loop for one element, which legal instructions have none for."""

from __future__ import annotations

from tenfold.backends.llvm.writer import BITS, LANES, Writer, vector


def power(w: Writer, element: str, a: str, b: str, wide: bool) -> str:
    """A power of integers, lane by lane."""
    w.routines.add(("power", BITS[element]))
    call = f"call {element} @local.power.{element}"
    if not wide:
        return w.op(f"{call}({element} {a}, {element} {b})")
    ty, out = vector(element), "poison"
    for lane in range(LANES):
        x = w.op(f"extractelement {ty} {a}, i64 {lane}")
        y = w.op(f"extractelement {ty} {b}, i64 {lane}")
        r = w.op(f"{call}({element} {x}, {element} {y})")
        out = w.op(f"insertelement {ty} {out}, {element} {r}, i64 {lane}")
    return out


def power_routine(bits: int) -> str:
    """Integer powers by squaring, wrapping; a negative exponent gives what its bits give."""
    t = f"i{bits}"
    return f"""define internal {t} @local.power.{t}({t} %base, {t} %exponent) nounwind {{
entry:
  br label %loop
loop:
  %x = phi {t} [ %base, %entry ], [ %square, %loop ]
  %e = phi {t} [ %exponent, %entry ], [ %rest, %loop ]
  %r = phi {t} [ 1, %entry ], [ %next, %loop ]
  %odd = trunc {t} %e to i1
  %more = mul {t} %r, %x
  %next = select i1 %odd, {t} %more, {t} %r
  %square = mul {t} %x, %x
  %rest = lshr {t} %e, 1
  %done = icmp eq {t} %rest, 0
  br i1 %done, label %end, label %loop
end:
  ret {t} %next
}}
"""
