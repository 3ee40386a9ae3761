"""Taking quarter turns from an argument, for sin, cos and tan: x = n π/2 + r.

Arguments of ordinary size subtract n times the parts of π/2. Larger ones are rare, and multiply
the argument by 2/π in integers (Payne and Hanek).
"""

from __future__ import annotations

import math
import struct
from itertools import pairwise

from tenfold.frozen import frozen
from tenfold.kernel.maths.coefficients import TABLE
from tenfold.kernel.maths.doubled import Pair, constant, ordered_total, product, times
from tenfold.kernel.maths.values import Value, form, rounded


@frozen
class ReducedArgument:
    """x less n quarter turns, as r + low with |r| ≤ π/4, and n as bits, right modulo 4."""

    r: Value
    low: Value
    n: Value


def large(x: Value) -> Value:
    """Whether `reduce` is not exact enough for x; false for NaN."""
    limit = 1.0e5 if x.dtype == "f32" else 2.0**30 if x.body.fma else 2.0**20
    return abs(x).ge(limit)


def reduce(x: Value) -> ReducedArgument:
    """The reduction of an x that is not large."""
    turns = rounded(x, 2 / math.pi)
    whole = turns.real
    if x.body.fma:
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
    return ReducedArgument(r, low, turns.n)


def reduce_large(x: Value) -> ReducedArgument:
    """The reduction of any float64 from 1; NaN for an infinite one."""
    bits = x.bits()
    size = bits & (form(x).sign - 1)
    m = (size & (2**52 - 1)) | 2**52  # |x| = m 2**(e - 52), m an integer of 53 bits
    # The window of 192 bits of 2/π whose product with m has two integer bits, modulo 4: it starts
    # at bit e - 54 of the fraction, the table having one word of zeros in front.
    w = _window((size >> 52) - 1013, 3)
    carry = _high_product(w[2], m)
    low = w[1] * m + carry
    high = w[0] * m + _high_product(w[1], m) + low.lt(carry).cast("u64")
    # Shift the integer bits out; what is left is a signed fraction of a quarter turn.
    fraction = (high << 2) | (low >> 62)
    up = fraction >> 63
    sign = 0 - up
    fraction, rest = fraction ^ sign, (low << 2) ^ sign
    # As two floats: 53 bits, 53 more, and the last 22.
    first = _real(fraction >> 11, 53)
    second = _real(((fraction & 2047) << 42) | (rest >> 22), 106)
    part = ordered_total(first, second)
    part = Pair(part.high, part.low + _real(rest & (2**22 - 1), 128))
    c1, c2, _ = TABLE["half_pi", "f64"]
    angle = times(part, constant(x, c1, c2))
    angle = ordered_total(angle.high + (x - x), angle.low)
    # The sign of the fraction, then that of x, which also turns n.
    turned = (bits ^ sign) & form(x).sign
    n = (high >> 62) + up
    n = x.lt(0.0).where(0 - n, n)
    return ReducedArgument(angle.high.flip(turned), angle.low.flip(turned), n)


def reduce_large_narrow(x: Value) -> ReducedArgument:
    """The reduction of any float32 from 1, in float64; NaN for an infinite one."""
    size = (x.bits() & (form(x).sign - 1)).cast("u64")
    m = (size & (2**23 - 1)) | 2**23  # |x| = m 2**(e - 23), m an integer of 24 bits
    # 96 bits of 2/π from bit e - 25 on: the upper 64 of the product have two integer bits.
    w = _window((size >> 23) - 88, 2)
    turns = w[0] * m + ((w[1] >> 32) * m >> 32)
    fraction = (turns << 2).signed().cast("f64")
    r = fraction * (math.pi / 2 * 2.0**-64) + (x - x).wide()
    n = (turns >> 62) + ((turns >> 61) & 1)
    left = x.lt(0.0)
    return ReducedArgument(left.where(-r, r), r.like(0.0), left.where(0 - n, n))


def _window(start: Value, words: int) -> list[Value]:
    """Words of 2/π from a bit on, there being 64 zeros in front."""
    odd, word = start & 63, start >> 6
    word = word.lt(_WORDS - words).where(word, 0).cast("i32")  # whatever x, within the table
    t = [start.body.lookup("u64", _TWO_OVER_PI, word + k) for k in range(words + 1)]
    return [(a << odd) | ((b >> 1) >> (63 - odd)) for a, b in pairwise(t)]


def _real(n: Value, bits: int) -> Value:
    """n · 2**-bits, for an n below 2**53."""
    return n.signed().cast("f64") * 2.0**-bits


def _high_product(a: Value, b: Value) -> Value:
    """The upper 64 bits of a · b, by parts of 32 bits."""
    a1, a0, b1, b0 = a >> 32, a & 0xFFFFFFFF, b >> 32, b & 0xFFFFFFFF
    middle = a1 * b0 + (a0 * b0 >> 32)
    cross = a0 * b1 + (middle & 0xFFFFFFFF)
    return a1 * b1 + (middle >> 32) + (cross >> 32)


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
_TWO_OVER_PI = struct.pack(f"<{_WORDS}Q", 0, *_two_over_pi(_WORDS - 1))
