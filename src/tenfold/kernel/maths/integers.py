"""Powers of integers, wrapping; the exponent is taken as its bits say, without a sign."""

from __future__ import annotations

from tenfold.kernel.maths.values import Value

_NEAR = 6  # bits of an exponent beyond which no power but of -1, 0 and 1 fits
_DIGIT = 4


def ipow(x: Value, n: Value) -> Value:
    width = int(x.dtype[1:])
    if width == 8:
        return _power(x, n, width)
    large = n.unsigned().ge(1 << _NEAR)
    return x.body.rarely("ipow_large", large, _power(x, n, _NEAR), x, n)


def ipow_large(x: Value, n: Value) -> Value:
    """By digits of the exponent, the lowest first."""
    width = int(x.dtype[1:])
    total = x.body.call("ipow_digit", x, n)
    for at in range(_DIGIT, width, _DIGIT):
        for _ in range(_DIGIT):
            x = x * x
        total = total * x.body.call("ipow_digit", x, n >> at)
    return total


def ipow_digit(x: Value, n: Value) -> Value:
    """The power by the last digit of n."""
    return _power(x, n, _DIGIT)


def _power(x: Value, n: Value, bits: int) -> Value:
    """The power by the last bits of n, by squaring."""
    total = (n & 1).ne(0).where(x, 1)
    for bit in range(1, bits):
        x = x * x
        total = (n & (1 << bit)).ne(0).where(total * x, total)
    return total
