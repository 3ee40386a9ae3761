"""Exponents: frexp, by the bits of a float; and isnat, which no number is."""

from __future__ import annotations

import numpy as np

from tenfold.trace.array import Array
from tenfold.trace.surface.emit import cast, emit
from tenfold.trace.surface.ufuncs.composed import filled, never, number
from tenfold.trace.surface.ufuncs.ufuncs import define
from tenfold.types import BFLOAT16, DTYPES, I32


def frexp(x: Array) -> tuple[Array, Array]:
    """A fraction from 1/2 to 1 and a power of two whose product is x."""
    width = x.dtype.itemsize * 8
    digits = {16: 7 if x.dtype == BFLOAT16 else 10, 32: 23, 64: 52}[width]
    bias = (1 << (width - digits - 2)) - 1
    bits = DTYPES[f"u{width}"]
    # What is below the normal numbers is scaled up to them first.
    small = emit("lt", emit("abs", x), number(2.0 ** (1 - bias), x.dtype))
    lift = digits + 2
    normal = emit("select", small, emit("mul", x, number(2.0**lift, x.dtype)), x)
    raw = emit("bitcast", normal, dtype=bits)
    ones = (1 << (width - digits - 1)) - 1
    field = emit("and", emit("shr", raw, number(digits, bits)), number(ones, bits))
    power = emit("sub", cast(field, I32), number(bias - 1, I32))
    power = emit("select", small, emit("sub", power, number(lift, I32)), power)
    kept = emit("and", raw, number((1 << width) - 1 - (ones << digits), bits))
    half = emit("or", kept, number((bias - 1) << digits, bits))
    fraction = emit("bitcast", half, dtype=x.dtype)
    plain = emit("and", emit("isfinite", x), emit("ne", x, number(0, x.dtype)))
    return (
        emit("select", plain, fraction, x),
        emit("select", plain, power, filled(0, I32, x.shape)),
    )


define(np.frexp, frexp)
define(np.isnat, never)
