"""Taking quarter turns from an argument, for sin, cos and tan: x = n π/2 + r.

Arguments of ordinary size subtract n times the parts of π/2 in vector arithmetic. Larger ones are
rare: a function out of line does them lane by lane, multiplying the argument by 2/π in integers
(Payne and Hanek). It is compiled without optimisation (optnone), which halves what it adds to the
time a kernel takes to compile.
"""

from __future__ import annotations

import math

from tenfold.backends.llvm.maths.coefficients import TABLE
from tenfold.backends.llvm.maths.doubled import product
from tenfold.backends.llvm.maths.emit import Body, Value, rounded
from tenfold.frozen import frozen

# Below these the vector path is exact enough.
LIMIT = {("float", True): 1.0e5, ("double", True): 2.0**30, ("double", False): 2.0**20}


@frozen
class Reduced:
    """x less n quarter turns, as r + low with |r| ≤ π/4, and n as an int, right modulo 4."""

    r: Value
    low: Value
    n: Value


def reduce(x: Value) -> Reduced:
    turns = rounded(x, 2 / math.pi)
    whole = turns.real
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
    return _large(x, Reduced(r, low, turns.n))


def _large(x: Value, fast: Reduced) -> Reduced:
    """The reduction redone for lanes beyond the vector path, if there are any.

    The vectors go there and back through memory, so that one function serves any number of lanes
    and holds scalars only, which compile in a fraction of the time.
    """
    body = x.body
    limit = LIMIT[x.kind, body.target.fma]
    some = body.any(abs(x).ge(limit))
    body.needs |= {_lane_by_lane(x, limit), _SCALAR, *_SCALAR_NEEDS}
    moved = {"x": x, "r": fast.r, "low": fast.low, "n": fast.n}
    tag = body.name()[1:]
    near, far, done = (f"{tag}.{word}" for word in ("near", "far", "done"))
    body.allocas += [f"  %{tag}.{k} = alloca {v.type}, align 8" for k, v in moved.items()]
    passed = ", ".join(f"ptr %{tag}.{k}" for k in moved)
    body.lines += [
        f"  br label %{near}",
        f"{near}:",
        f"  br i1 {some}, label %{far}, label %{done}",
        f"{far}:",
        *(f"  store {v.type} {v.text}, ptr %{tag}.{k}, align 8" for k, v in moved.items()),
        f"  call void @tenfold.maths.reduce.{x.dtype}({passed}, i64 {body.lanes})",
        *(
            f"  %{tag}.{k}.far = load {v.type}, ptr %{tag}.{k}, align 8"
            for k, v in moved.items()
            if k != "x"
        ),
        f"  br label %{done}",
        f"{done}:",
    ]
    values = [
        body.write(v.kind, f"phi {v.type} [ {v.text}, %{near} ], [ %{tag}.{k}.far, %{far} ]")
        for k, v in moved.items()
        if k != "x"
    ]
    return Reduced(*values)


def _lane_by_lane(x: Value, limit: float) -> str:
    """A function that redoes the reduction of the large ones among some numbers in memory."""
    kind, whole = x.kind, "i32" if x.kind == "float" else "i64"
    bound = Body(1, x.body.target).constant(kind, limit).text
    fabs = f"@llvm.fabs.{x.dtype}"
    x.body.needs.add(f"declare {kind} {fabs}({kind})")
    widen, narrow = "%xd = fadd double %xi, 0.0", ""
    if kind == "float":
        widen = "%xd = fpext float %xi to double"
        narrow = """\
  %rf = fptrunc double %y0 to float
  %back = fpext float %rf to double
  %rest = fsub double %y0, %back
  %lf = fptrunc double %rest to float
  %nf = trunc i64 %y2 to i32
"""
    r, low, n = ("%rf", "%lf", "%nf") if kind == "float" else ("%y0", "%y1", "%y2")
    record = "{ double, double, i64 }"
    return f"""\
define internal dso_local void @tenfold.maths.reduce.{x.dtype}(ptr %x, ptr %r, ptr %low, ptr %n, \
i64 %count) noinline optnone nounwind {{
entry:
  br label %lane
lane:
  %i = phi i64 [ 0, %entry ], [ %next, %skip ]
  %x.p = getelementptr {kind}, ptr %x, i64 %i
  %xi = load {kind}, ptr %x.p
  %a = call {kind} {fabs}({kind} %xi)
  %big = fcmp oge {kind} %a, {bound}
  %finite = fcmp olt {kind} %a, 0x7FF0000000000000
  %redo = and i1 %big, %finite
  br i1 %redo, label %far, label %skip
far:
  {widen}
  %y = call {record} @tenfold.maths.reduce(double %xd)
  %y0 = extractvalue {record} %y, 0
  %y1 = extractvalue {record} %y, 1
  %y2 = extractvalue {record} %y, 2
{narrow}\
  %r.p = getelementptr {kind}, ptr %r, i64 %i
  %low.p = getelementptr {kind}, ptr %low, i64 %i
  %n.p = getelementptr {whole}, ptr %n, i64 %i
  store {kind} {r}, ptr %r.p
  store {kind} {low}, ptr %low.p
  store {whole} {n}, ptr %n.p
  br label %skip
skip:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %lane, label %end
end:
  ret void
}}"""


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
noinline optnone nounwind {
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
