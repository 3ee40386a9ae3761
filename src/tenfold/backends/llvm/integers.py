"""Elementwise instructions on integers and booleans; every one is defined for all operands."""

from __future__ import annotations

from tenfold.backends.llvm.writer import BITS, COMPUTE, LANES, Writer, is_constant, kind, vector
from tenfold.errors import Unsupported

_BOOL = {"add": "or", "mul": "and", "sub": "xor", "max": "or", "min": "and", "fmax": "or"} | {
    "fmin": "and",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "ne": "xor",
}
_PLAIN = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_EXTREME = {"max": "max", "min": "min", "fmax": "max", "fmin": "min"}
_SAME = frozenset(("floor", "ceil", "trunc", "round", "real", "conj"))


def integer(w: Writer, name: str, dtype: str, source: str, args: list[str], wide: bool) -> str:
    """One instruction on operands of an integer dtype or bool."""
    element = COMPUTE[source]
    ty, i1 = vector(element, wide), vector("i1", wide)
    signed = kind(source) == "i"
    x = args[0]

    def const(value: int) -> str:
        return w.const(element, value, wide)

    if name in _SAME:
        return x
    if name in ("isnan", "isinf", "isfinite"):
        return w.const("i1", name == "isfinite", wide)
    if name == "imag":
        return const(0)
    if name == "not":
        return w.op(f"xor {ty} {x}, {const(1 if source == 'bool' else -1)}")
    if name in ("eq", "ne", "lt", "le", "gt", "ge"):
        sign = "" if name in ("eq", "ne") else "s" if signed else "u"
        return w.op(f"icmp {sign}{name} {ty} {x}, {args[1]}")
    if source == "bool":
        if name in _BOOL:
            return w.op(f"{_BOOL[name]} {ty} {x}, {args[1]}")
        if name in ("abs", "sign"):
            return x
        if name == "signbit":
            return const(0)
        raise Unsupported(f"{name} of bool on the CPU; cast to an integer first")
    if name in _PLAIN:
        return w.op(f"{_PLAIN[name]} {ty} {x}, {args[1]}")
    if name in _EXTREME:
        return w.intrinsic(f"{'s' if signed else 'u'}{_EXTREME[name]}", ty, x, args[1])
    if name == "neg":
        return w.op(f"sub {ty} {const(0)}, {x}")
    if name == "abs":
        return w.call(ty, f"llvm.abs.{_mangle(ty)}", (ty, x), ("i1", "false")) if signed else x
    if name == "signbit":
        return w.op(f"icmp slt {ty} {x}, {const(0)}") if signed else w.const("i1", False, wide)
    if name == "sign":
        positive = w.op(f"icmp {'sgt' if signed else 'ne'} {ty} {x}, {const(0)}")
        one = w.op(f"zext {i1} {positive} to {ty}")
        if not signed:
            return one
        return w.op(f"or {ty} {one}, {w.op(f'ashr {ty} {x}, {const(BITS[element] - 1)}')}")
    if name in ("shl", "shr"):
        return _shift(w, name, element, signed, x, args[1], wide)
    if name in ("floordiv", "mod", "fmod"):
        return _divide(w, name, element, signed, x, args[1], wide)
    if name == "pow":
        return _each(w, f"local.power.i{BITS[element]}", element, x, args[1], wide)
    if name == "popcount":
        size = w.call(ty, f"llvm.abs.{_mangle(ty)}", (ty, x), ("i1", "false")) if signed else x
        count, out = w.intrinsic("ctpop", ty, size), COMPUTE[dtype]
        if BITS[out] == BITS[element]:
            return count
        change = "zext" if BITS[out] > BITS[element] else "trunc"
        return w.op(f"{change} {ty} {count} to {vector(out, wide)}")
    raise Unsupported(f"{name} of {source} on the CPU; cast to a float first")


def _mangle(ty: str) -> str:
    from tenfold.backends.llvm.writer import mangle

    return mangle(ty)


def _shift(w: Writer, name: str, element: str, signed: bool, x: str, by: str, wide: bool) -> str:
    """Shifts by any amount: too wide or negative gives 0, or the sign."""
    ty, width = vector(element, wide), BITS[element]
    if name == "shr" and signed:
        least = w.intrinsic("umin", ty, by, w.const(element, width - 1, wide))
        return w.op(f"ashr {ty} {x}, {least}")
    fits = w.op(f"icmp ult {ty} {by}, {w.const(element, width, wide)}")
    amount = w.select(fits, ty, by, w.const(element, 0, wide))
    moved = w.op(f"{'shl' if name == 'shl' else 'lshr'} {ty} {x}, {amount}")
    return w.select(fits, ty, moved, w.const(element, 0, wide))


def _divide(w: Writer, name: str, element: str, signed: bool, a: str, b: str, wide: bool) -> str:
    """Division rounding down, its remainder, and the remainder of rounding towards zero.

    By zero all give 0, and the least integer by -1 gives itself and 0. Narrow types divide as
    floats, which is exact and many times faster than a scalar division for each lane.
    """
    ty, i1 = vector(element, wide), vector("i1", wide)
    zero, one = w.const(element, 0, wide), w.const(element, 1, wide)
    bits = BITS[element]
    constant = is_constant(b) and b.rstrip(")").rpartition(" ")[2] not in ("0", "-1")
    by_zero = w.op(f"icmp eq {ty} {b}, {zero}")
    divisor = b
    if not constant:
        divisor = w.select(by_zero, ty, one, b)
        if signed and (bits >= 32 or not wide):  # the least integer by 1 gives the same bits
            least = w.op(f"icmp eq {ty} {a}, {w.const(element, -(1 << (bits - 1)), wide)}")
            minus = w.op(f"icmp eq {ty} {b}, {w.const(element, -1, wide)}")
            divisor = w.select(w.op(f"and {i1} {least}, {minus}"), ty, one, divisor)
    s = "s" if signed else "u"
    if constant or bits == 64 or not wide:
        quotient = w.op(f"{s}div {ty} {a}, {divisor}")
    else:
        floating = vector("double" if bits == 32 else "float", wide)
        fa, fb = (w.op(f"{s}itofp {ty} {v} to {floating}") for v in (a, divisor))
        ratio = w.op(f"fdiv {floating} {fa}, {fb}")
        roomy = vector("i32", wide)
        quotient = w.op(f"fpto{s}i {floating} {ratio} to {roomy}")
        if bits < 32:
            quotient = w.op(f"trunc {roomy} {quotient} to {ty}")
    rest = w.op(f"sub {ty} {a}, {w.op(f'mul {ty} {quotient}, {b}')}")
    if name == "fmod":
        return w.select(by_zero, ty, zero, rest)
    if signed:  # rounded towards zero so far; one less where the signs differ and it is inexact
        inexact = w.op(f"icmp ne {ty} {rest}, {zero}")
        differ = w.op(f"icmp slt {ty} {w.op(f'xor {ty} {rest}, {b}')}, {zero}")
        down = w.op(f"and {i1} {inexact}, {differ}")
        quotient = w.op(f"add {ty} {quotient}, {w.op(f'sext {i1} {down} to {ty}')}")
        rest = w.op(f"add {ty} {rest}, {w.select(down, ty, b, zero)}")
    return w.select(by_zero, ty, zero, quotient if name == "floordiv" else rest)


def _each(w: Writer, function: str, element: str, a: str, b: str, wide: bool) -> str:
    """A scalar routine of this module, lane by lane."""
    w.routines.add(("power", BITS[element]))
    if not wide:
        return w.op(f"call {element} @{function}({element} {a}, {element} {b})")
    ty, out = vector(element), "poison"
    for lane in range(LANES):
        x = w.op(f"extractelement {ty} {a}, i64 {lane}")
        y = w.op(f"extractelement {ty} {b}, i64 {lane}")
        r = w.op(f"call {element} @{function}({element} {x}, {element} {y})")
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
