"""Functions that shaders call, by name: each is printed where it is called."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CALLED = re.compile(r"\b(\w+)\(")

_TEXTS = [
    "fn k32(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) + Z.x); }",
    "fn k64(x: f64) -> f64 { return bitcast<f64>(bitcast<u64>(x) + u64(Z.x)); }",
    """\
fn to_half(x: f32) -> u32 {
  let b = bitcast<u32>(x);
  let size = b & 0x7fffffffu;
  let sign = (b >> 16u) & 0x8000u;
  // Below 2**-14 the last bit stands for 2**-24, above for a thousandth of what it is.
  let shift = 126u - (size >> 23u);
  let whole = (size & 0x7fffffu) | 0x800000u;
  let near = min(shift, 31u);
  let low = (whole + (1u << (near - 1u)) - 1u + ((whole >> near) & 1u)) >> near;
  let high = (size - 0x38000000u + 0xfffu + ((size >> 13u) & 1u)) >> 13u;
  let small = select(low, 0u, shift > 31u);
  let usual = select(min(high, 0x7c00u), 0x7c00u, size >= 0x47800000u);
  let finite = select(usual, small, size < 0x38800000u);
  return sign | select(finite, 0x7e00u, size > 0x7f800000u);
}""",
    """\
fn to_bfloat(x: f32) -> u32 {
  let b = bitcast<u32>(x);
  let near = (b + 0x7fffu + ((b >> 16u) & 1u)) >> 16u;
  return select(near, (b >> 16u) | 64u, (b & 0x7fffffffu) > 0x7f800000u);
}""",
    """\
fn signed_as(x: f64, sign: f64) -> f64 {
  let top = 0x8000000000000000lu;
  return bitcast<f64>((bitcast<u64>(x) & ~top) | (bitcast<u64>(sign) & top));
}""",
    "fn trunc64(x: f64) -> f64 { return signed_as(floor(abs(x)), x); }",
    """\
fn round64(x: f64) -> f64 {
  let size = signed_as(x, f64(1));
  let down = floor(size);
  let over = k64(size - k64(down));
  let odd = !(k64(floor(k64(down * 0.5lf)) * 2.0lf) == down);
  let up = (over > 0.5lf) | ((over == 0.5lf) & odd);
  return signed_as(select(down, k64(down) + 1.0lf, up), x);
}""",
    # Conversions of 64 bits by halves, since drivers have some wrong.
    """\
fn f64_of_u64(x: u64) -> f64 {
  return k64(f64(u32(x >> 32u)) * 4294967296.0lf) + f64(u32(x & 0xfffffffflu));
}""",
    """\
fn f64_of_i64(x: i64) -> f64 {
  let b = bitcast<u64>(x);
  return k64(f64(bitcast<i32>(u32(b >> 32u))) * 4294967296.0lf) + f64(u32(b & 0xfffffffflu));
}""",
    # To 24 digits: all below the first 54 are one bit, so that nothing is rounded twice.
    """\
fn f32_of_u64(x: u64) -> f32 {
  let rest = select(0lu, 2048lu, (x & 2047lu) != 0lu);
  let few = select((x & ~2047lu) | rest, x, x < 0x20000000000000lu);
  return f32(f64_of_u64(few));
}""",
    """\
fn f32_of_i64(x: i64) -> f32 {
  let b = bitcast<u64>(x);
  let size = f32_of_u64(select(b, ~b + 1lu, x < 0li));
  return select(size, bitcast<f32>(bitcast<u32>(size) ^ 0x80000000u), x < 0li);
}""",
    """\
fn u64_of_f64(x: f64) -> u64 {
  let whole = floor(x);
  let high = floor(whole * 2.3283064365386963e-10lf);
  let low = k64(whole - k64(high * 4294967296.0lf));
  return (u64(u32(high)) << 32u) | u64(u32(low));
}""",
    """\
fn i64_of_f64(x: f64) -> i64 {
  let b = u64_of_f64(signed_as(x, f64(1)));
  return bitcast<i64>(select(b, ~b + 1lu, x < 0.0lf));
}""",
    "fn u64_of_f32(x: f32) -> u64 { return u64_of_f64(f64(x)); }",
    "fn i64_of_f32(x: f32) -> i64 { return i64_of_f64(f64(x)); }",
    # Quotients and roots that a driver rounds within a few units, where fma is exact.
    """\
fn scale32(e: i32) -> f32 { return bitcast<f32>(bitcast<u32>(e + 127) << 23u); }""",
    """\
fn near32(x: f32, y: f32) -> f32 {
  let q = k32(x / y);
  let r = k32(1.0 / y);
  let q1 = k32(fma(fma(-q, y, x), r, q));
  let near = k32(fma(fma(-q1, y, x), r, q1));
  // Or the neighbour that what is left points to, if that leaves less.
  let left = fma(-near, y, x);
  let more = (bitcast<u32>(left) ^ bitcast<u32>(x)) >> 31u;
  let other = bitcast<f32>(bitcast<u32>(near) + 1u - 2u * more);
  let less = fma(-other, y, x);
  let is_less = (bitcast<u32>(less) & 0x7fffffffu) < (bitcast<u32>(left) & 0x7fffffffu);
  return select(near, other, is_less);
}""",
    """\
fn div32(a: f32, b: f32) -> f32 {
  let ba = bitcast<u32>(a) & 0x7fffffffu;
  let bb = bitcast<u32>(b) & 0x7fffffffu;
  // Both between 2**-63 and 2**63: nothing on the way is too large or too small.
  if ((ba - 0x20000000u < 0x3f000000u) & (bb - 0x20000000u < 0x3f000000u)) { return near32(a, b); }
  let ea = i32(ba >> 23u);
  let eb = i32(bb >> 23u);
  // Drivers multiply by an inverse, which is 0 for what is huge.
  let sign = bitcast<u32>(b) & 0x80000000u;
  if ((ea == 255) & (eb < 255)) { return bitcast<f32>(bitcast<u32>(a) ^ sign); }
  if ((ea == 0) | (eb == 0) | (eb == 255)) { return a / b; }
  let x = bitcast<f32>((bitcast<u32>(a) & 0x807fffffu) | 0x3f800000u);
  let y = bitcast<f32>((bitcast<u32>(b) & 0x807fffffu) | 0x3f800000u);
  let near = k32(near32(x, y));
  let e = ea - eb;
  if (e < -124) { return tiny32(near, fma(-near, y, x), x, e); }
  if (e < 127) { return near * scale32(e); }
  return k32(near * scale32(e / 2)) * scale32(e - e / 2);
}""",
    # A quotient that was rounded already, with what it leaves of a dividend: where few digits stay
    # that says which way halves go.
    """\
fn tiny32(q: f32, left: f32, x: f32, e: i32) -> f32 {
  let b = bitcast<u32>(q);
  let less = 1 - e - i32((b >> 23u) & 255u);
  if (less < 1) { return k32(q * scale32(e + 64)) * scale32(-64); }
  let shift = u32(min(less, 26));
  let whole = (b & 0x7fffffu) | 0x800000u;
  let cut = whole & ((1u << shift) - 1u);
  let half = 1u << (shift - 1u);
  let exact = (bitcast<u32>(left) & 0x7fffffffu) == 0u;
  let more = ((bitcast<u32>(left) ^ bitcast<u32>(x)) >> 31u) == 0u;
  let odd = ((whole >> shift) & 1u) == 1u;
  let up = (cut > half) | ((cut == half) & select(more, odd, exact));
  return bitcast<f32>((b & 0x80000000u) | ((whole >> shift) + select(0u, 1u, up)));
}""",
    """\
fn sqrt32(x: f32) -> f32 {
  let e = bitcast<u32>(x) >> 23u;
  if ((e == 0u) | (e > 254u)) { return sqrt(x); }
  // Near 1 nothing on the way is lost.
  let half = select(select(0, -48, e > 190u), 48, e < 64u);
  let y = k32(x * scale32(2 * half));
  let s = sqrt(y);
  let h = k32(0.5 / s);
  let near = k32(fma(fma(-s, s, y), h, s));
  // A root lies between what is nearest to it and a neighbour.
  let below = bitcast<f32>(bitcast<u32>(near) - 1u);
  let above = bitcast<f32>(bitcast<u32>(near) + 1u);
  let least = select(near, below, fma(-near, below, y) <= 0.0);
  return select(least, above, fma(-near, above, y) > 0.0) * scale32(-half);
}""",
]
_FUNCTIONS = {text.split("(")[0].removeprefix("fn "): text for text in _TEXTS}


def helpers(texts: Iterable[str]) -> list[str]:
    """The functions of the prelude that some text calls, and what these call."""
    found: set[str] = set()
    waiting = list(texts)
    while waiting:
        for name in _CALLED.findall(waiting.pop()):
            if name in _FUNCTIONS and name not in found:
                found.add(name)
                waiting.append(_FUNCTIONS[name].split("{", 1)[1])
    return [text for name, text in _FUNCTIONS.items() if name in found]
