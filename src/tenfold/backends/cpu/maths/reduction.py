"""Taking quarter turns from an argument, for sin, cos and tan: x = n π/2 + r.

Arguments of ordinary size subtract n times the parts of π/2 in vector arithmetic. Larger ones are
rare: a function out of line does them lane by lane, multiplying the argument by 2/π in integers
(Payne and Hanek).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tenfold.backends.cpu.maths.coefficients import TABLE
from tenfold.backends.cpu.maths.doubled import product
from tenfold.backends.cpu.maths.emit import Body, Value, rounded

# Below these the vector path is exact enough.
LIMIT = {("float", True): 1.0e5, ("double", True): 2.0**30, ("double", False): 2.0**20}


@dataclass(frozen=True, slots=True)
class Reduced:
    """x less n quarter turns, as r + low with |r| ≤ π/4, and n as an int, right modulo 4."""

    r: Value
    low: Value
    n: Value


def reduce(x: Value) -> Reduced:
    whole, n = rounded(x, 2 / math.pi)
    if x.fma_exists:
        c1, c2, c3 = TABLE["half_pi", x.dtype]
        r1 = whole.fma(-c1, x)
        p = product(whole, c2)
        r = r1 - p.high
        low = whole.fma(-c3, ((r1 - r) - p.high) - p.low)
    else:
        c1, c2, c3, c4 = TABLE["half_pi_short", "f64"]
        r1 = x - whole * c1
        p2 = whole * c2
        near = r1 - p2
        rest = ((r1 - near) - p2) - whole * c3 - whole * c4
        r = near + rest
        low = (near - r) + rest
    return _large(x, Reduced(r, low, n))


def _large(x: Value, fast: Reduced) -> Reduced:
    """The reduction redone for lanes beyond the vector path, if there are any."""
    body = x.body
    limit = LIMIT[x.kind, body.target.fma]
    some = body.any(abs(x).ge(limit))
    floats, ints = x.type, fast.n.type
    record = f"{{ {floats}, {floats}, {ints} }}"
    slow = f"@tenfold.maths.reduce.{x.dtype}.{body.lanes}"
    body.needs |= {_slow(body, x.kind, limit, slow), _SCALAR, *_SCALAR_NEEDS}
    tag = body.name()[1:]
    first, then, after = (f"{tag}.{w}" for w in ("near", "far", "done"))
    body.lines += [
        f"  br label %{first}",
        f"{first}:",
        f"  br i1 {some}, label %{then}, label %{after}",
        f"{then}:",
        f"  %{tag} = call {record} {slow}({floats} {x.text}, {floats} {fast.r.text}, "
        f"{floats} {fast.low.text}, {ints} {fast.n.text})",
        *(f"  %{tag}.{i} = extractvalue {record} %{tag}, {i}" for i in range(3)),
        f"  br label %{after}",
        f"{after}:",
    ]
    values = [
        body.write(old.kind, f"phi {old.type} [ {old.text}, %{first} ], [ %{tag}.{i}, %{then} ]")
        for i, old in enumerate((fast.r, fast.low, fast.n))
    ]
    return Reduced(*values)


def _slow(body: Body, kind: str, limit: float, name: str) -> str:
    """A function that redoes the reduction of a vector's large lanes."""
    whole = "i32" if kind == "float" else "i64"
    floats, ints = body.type(kind), body.type(whole)
    record = f"{{ {floats}, {floats}, {ints} }}"
    bound = body.constant(kind, limit).text.removeprefix(f"splat ({kind} ").rstrip(")")
    infinity = "0x7FF0000000000000"
    slots = [("x", floats, kind), ("r", floats, kind), ("l", floats, kind), ("n", ints, whole)]
    lines = [
        f"define internal dso_local {record} {name}({floats} %x, {floats} %r, {floats} %l, "
        f"{ints} %n) noinline nounwind {{",
        "entry:",
    ]
    lines += [f"  %{s}.at = alloca {t}, align 64" for s, t, _ in slots]
    lines += [f"  store {t} %{s}, ptr %{s}.at, align 64" for s, t, _ in slots]
    lines += [
        "  br label %lane",
        "lane:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %skip ]",
    ]
    lines += [f"  %{s}.p = getelementptr {e}, ptr %{s}.at, i64 %i" for s, _, e in slots]
    lines += [
        f"  %xi = load {kind}, ptr %x.p",
        f"  %a = call {kind} @llvm.fabs.{'f32' if kind == 'float' else 'f64'}({kind} %xi)",
        f"  %big = fcmp oge {kind} %a, {bound}",
        f"  %finite = fcmp olt {kind} %a, {infinity}",
        "  %redo = and i1 %big, %finite",
        "  br i1 %redo, label %far, label %skip",
        "far:",
    ]
    wide = "%xi"
    if kind == "float":
        lines.append("  %xd = fpext float %xi to double")
        wide = "%xd"
    lines += [
        f"  %y = call {{ double, double, i64 }} @tenfold.maths.reduce(double {wide})",
        *(f"  %y{k} = extractvalue {{ double, double, i64 }} %y, {k}" for k in range(3)),
    ]
    if kind == "float":
        lines += [
            "  %rf = fptrunc double %y0 to float",
            "  %back = fpext float %rf to double",
            "  %rest = fsub double %y0, %back",
            "  %lf = fptrunc double %rest to float",
            "  %nf = trunc i64 %y2 to i32",
            "  store float %rf, ptr %r.p",
            "  store float %lf, ptr %l.p",
            "  store i32 %nf, ptr %n.p",
        ]
    else:
        lines += [
            "  store double %y0, ptr %r.p",
            "  store double %y1, ptr %l.p",
            "  store i64 %y2, ptr %n.p",
        ]
    lines += [
        "  br label %skip",
        "skip:",
        "  %next = add i64 %i, 1",
        f"  %more = icmp ult i64 %next, {body.lanes}",
        "  br i1 %more, label %lane, label %end",
        "end:",
        *(f"  %{s}.v = load {t}, ptr %{s}.at, align 64" for s, t, _ in slots[1:]),
        f"  %o0 = insertvalue {record} poison, {floats} %r.v, 0",
        f"  %o1 = insertvalue {record} %o0, {floats} %l.v, 1",
        f"  %o2 = insertvalue {record} %o1, {ints} %n.v, 2",
        f"  ret {record} %o2",
        "}",
    ]
    body.needs.add(f"declare {kind} @llvm.fabs.{'f32' if kind == 'float' else 'f64'}({kind})")
    return "\n".join(lines)


def _two_over_pi(words: int) -> list[int]:
    """The leading bits of 2/π after the binary point, in words of 64.

    >>> hex(_two_over_pi(1)[0])
    '0xa2f9836e4e441529'
    """
    bits = 64 * words + 64
    one = 1 << bits

    def arctan_inverse(n: int) -> int:
        power, total, k = one // n, one // n, 1
        while power:
            power //= n * n
            k += 2
            total += -power // k if k % 4 == 3 else power // k
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))  # Machin's formula
    quotient = (2 * one * one) // pi
    return [(quotient >> (bits - 64 * (i + 1))) & (2**64 - 1) for i in range(words)]


# The largest exponent wants bits to 1024 - 53 + 192 of 2/π, and a word before them.
_WORDS = 21
_SCALAR_NEEDS = {
    "declare double @llvm.fabs.f64(double)",
    "declare i64 @llvm.ctlz.i64(i64, i1 immarg)",
    "declare i64 @llvm.fshl.i64(i64, i64, i64)",
    "@tenfold.maths.two_over_pi = internal dso_local constant "
    f"[{_WORDS} x i64] [{', '.join(f'i64 {w}' for w in [0, *_two_over_pi(_WORDS - 1)])}]",
}
_SCALAR = """\
define internal dso_local { double, double, i64 } @tenfold.maths.reduce(double %x) \
noinline nounwind {
  ; |x| = m 2^(e-52), m an integer of 53 bits
  %a = call double @llvm.fabs.f64(double %x)
  %b = bitcast double %a to i64
  %be = lshr i64 %b, 52
  %frac = and i64 %b, 4503599627370495
  %m = or i64 %frac, 4503599627370496
  ; The window of 192 bits of 2/pi whose product with m has two integer bits, mod 4:
  ; it starts at bit e - 54 of the fraction, the table having one word of zeros in front.
  %e54 = sub i64 %be, 1013
  %start = lshr i64 %e54, 6
  %odd = and i64 %e54, 63
  %p0 = getelementptr i64, ptr @tenfold.maths.two_over_pi, i64 %start
  %p1 = getelementptr i64, ptr %p0, i64 1
  %p2 = getelementptr i64, ptr %p0, i64 2
  %p3 = getelementptr i64, ptr %p0, i64 3
  %t0 = load i64, ptr %p0
  %t1 = load i64, ptr %p1
  %t2 = load i64, ptr %p2
  %t3 = load i64, ptr %p3
  %w0 = call i64 @llvm.fshl.i64(i64 %t0, i64 %t1, i64 %odd)
  %w1 = call i64 @llvm.fshl.i64(i64 %t1, i64 %t2, i64 %odd)
  %w2 = call i64 @llvm.fshl.i64(i64 %t2, i64 %t3, i64 %odd)
  %m128 = zext i64 %m to i128
  %w1x = zext i64 %w1 to i128
  %w2x = zext i64 %w2 to i128
  %q2 = mul i128 %w2x, %m128
  %q1 = mul i128 %w1x, %m128
  %q0 = mul i64 %w0, %m
  %c2 = lshr i128 %q2, 64
  %s1 = add i128 %q1, %c2
  %low = trunc i128 %s1 to i64
  %c1 = lshr i128 %s1, 64
  %c1t = trunc i128 %c1 to i64
  %high = add i64 %q0, %c1t
  ; Shift the integer bits out; what is left is a signed fraction of a quarter turn.
  %sh = call i64 @llvm.fshl.i64(i64 %high, i64 %low, i64 2)
  %sl = shl i64 %low, 2
  %n0 = lshr i64 %high, 62
  %neg = icmp slt i64 %sh, 0
  %up = zext i1 %neg to i64
  %n = add i64 %n0, %up
  %mask = sub i64 0, %up
  %ah = xor i64 %sh, %mask
  %al = xor i64 %sl, %mask
  ; Normalise and cut into two doubles of 53 bits.
  %z = call i64 @llvm.ctlz.i64(i64 %ah, i1 false)
  %zs = and i64 %z, 63
  %full = icmp eq i64 %z, 64
  %nh0 = call i64 @llvm.fshl.i64(i64 %ah, i64 %al, i64 %zs)
  %nl0 = shl i64 %al, %zs
  %nh = select i1 %full, i64 %al, i64 %nh0
  %nl = select i1 %full, i64 0, i64 %nl0
  %h53 = lshr i64 %nh, 11
  %l53a = call i64 @llvm.fshl.i64(i64 %nh, i64 %nl, i64 53)
  %l53 = lshr i64 %l53a, 11
  %hd = sitofp i64 %h53 to double
  %ld = sitofp i64 %l53 to double
  ; Scales 2^-(z + 53) and 2^-(z + 106).
  %eh0 = sub i64 970, %z
  %eh1 = shl i64 %eh0, 52
  %eh = bitcast i64 %eh1 to double
  %el0 = sub i64 917, %z
  %el1 = shl i64 %el0, 52
  %el = bitcast i64 %el1 to double
  %fh = fmul double %hd, %eh
  %fl = fmul double %ld, %el
  ; Times pi/2 in two parts, split at 27 bits: not every target has a fused multiply-add.
  %gb = bitcast double %fh to i64
  %g1b = and i64 %gb, -134217728
  %g1 = bitcast i64 %g1b to double
  %g2 = fsub double %fh, %g1
  %ph = fmul double %fh, 0x3FF921FB54442D18
  %pa = fmul double %g1, 0x3FF921FB50000000
  %pb = fmul double %g2, 0x3FF921FB50000000
  %pc = fmul double %g1, 0x3E5110B460000000
  %pd = fmul double %g2, 0x3E5110B460000000
  %pe = fsub double %pa, %ph
  %pf = fadd double %pe, %pb
  %pg = fadd double %pf, %pc
  %pl = fadd double %pg, %pd
  %e1 = fmul double %fh, 0x3C91A62633145C07
  %e2 = fmul double %fl, 0x3FF921FB54442D18
  %e3 = fadd double %e1, %e2
  %e4 = fadd double %e3, %pl
  %r = fadd double %ph, %e4
  %d1 = fsub double %ph, %r
  %l = fadd double %d1, %e4
  ; The sign of the fraction, then that of x, which also turns n.
  %xb = bitcast double %x to i64
  %xs = and i64 %xb, -9223372036854775808
  %fs = and i64 %mask, -9223372036854775808
  %flip = xor i64 %xs, %fs
  %rb = bitcast double %r to i64
  %rx = xor i64 %rb, %flip
  %rf = bitcast i64 %rx to double
  %lb = bitcast double %l to i64
  %lx = xor i64 %lb, %flip
  %lf = bitcast i64 %lx to double
  %xneg = icmp slt i64 %xb, 0
  %nn = sub i64 0, %n
  %no = select i1 %xneg, i64 %nn, i64 %n
  %o0 = insertvalue { double, double, i64 } poison, double %rf, 0
  %o1 = insertvalue { double, double, i64 } %o0, double %lf, 1
  %o2 = insertvalue { double, double, i64 } %o1, i64 %no, 2
  ret { double, double, i64 } %o2
}"""
