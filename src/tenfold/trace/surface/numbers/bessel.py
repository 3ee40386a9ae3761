"""Bessel: the modified Bessel functions of the first kind, of the orders 0 and 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenfold.errors import TypeMismatch
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import cast, emit, fail, on, traced
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.types import BFLOAT16, DTYPES, F32, F64, KIND

# Up to _NEAR the power series is summed, from there on the asymptotic one.
_NEAR, _POWERS, _TERMS = 20.0, 60, 22


def bessel(x: Array, order: int, *, scaled: bool) -> Array:
    """The function of a float; scaled it is times exp(-|x|)."""
    size = emit("abs", x)
    near = emit("min", size, number(_NEAR, size.dtype))
    quarter = near * near * 0.25
    series = quarter * 0 + 1
    for k in range(_POWERS, 0, -1):
        series = series * quarter * (1.0 / (k * (k + order))) + 1
    # For large x it is exp(x) / sqrt(2 pi x) times a series in 1 / x.
    over = 1 / emit("max", size, number(_NEAR, size.dtype))
    tail = over * 0 + 1
    for k in range(_TERMS, 0, -1):
        tail = tail * over * (((2 * k - 1) ** 2 - 4 * order) / (8.0 * k)) + 1
    far = tail * emit("sqrt", over * (1 / (2 * math.pi)))
    if order:
        series = series * (near * 0.5)
    if scaled:
        series = series * emit("exp", emit("neg", near))
    else:
        half = emit("exp", size * 0.5)  # twice a half, so that only the result overflows
        far = half * far * half
    made = emit("select", emit("le", size, number(_NEAR, size.dtype)), series, far)
    made = emit("select", emit("isnan", size), size, made)
    return emit("copysign", made, x) if order else made


@on(np.i0)
def i0(x: Any) -> Array:
    given = traced(x)
    if KIND[given.dtype] == "c":
        fail(TypeMismatch, f"i0 of {given.type}", "it takes real numbers")
    given = given if KIND[given.dtype] == "f" else cast(given, F64)
    wide = cast(given, F32) if given.dtype in (DTYPES["f16"], BFLOAT16) else given
    return cast(bessel(wide, 0, scaled=False), given.dtype)
