"""Special: functions beyond NumPy's that science uses, and np.i0."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.errors import TypeMismatch
from tenfold.trace.array import Array
from tenfold.trace.surface.anywhere import anywhere
from tenfold.trace.surface.composed import number
from tenfold.trace.surface.emit import cast, emit, fail, on, traced
from tenfold.types import BFLOAT16, DTYPES, F32, F64, KIND


def _float(name: str, x: Any) -> Array:
    array = traced(x)
    if KIND[array.dtype] == "c":
        fail(TypeMismatch, f"{name} of {array.type}", "it takes real numbers")
    return array if KIND[array.dtype] == "f" else cast(array, F64)


def _one(op: str, doc: str) -> Callable[[Any], Array]:
    def apply(x: Any, /) -> Array:
        return emit(op, _float(op, x))

    apply.__name__ = apply.__qualname__ = op
    apply.__doc__ = doc
    return anywhere(apply)


erf = _one("erf", "The error function.")
erfc = _one("erfc", "One less the error function, without losing its digits.")
erf_inv = _one("erf_inv", "The inverse of the error function.")
lgamma = _one("lgamma", "The logarithm of the magnitude of the gamma function.")
digamma = _one("digamma", "The derivative of lgamma.")
sigmoid = _one("sigmoid", "1 / (1 + exp(-x)), without overflow.")
rsqrt = _one("rsqrt", "One over the square root.")


_SERIES, _FAR, _TERMS = 20.0, 60, 22


@on(np.i0)
@anywhere
def i0(x: Any, /) -> Array:
    """The modified Bessel function of the first kind, of order 0."""
    given = _float("i0", x)
    wide = cast(given, F32) if given.dtype in (DTYPES["f16"], BFLOAT16) else given
    size = emit("abs", wide)
    near = emit("min", size, number(_SERIES, size.dtype))
    quarter = near * near * 0.25
    series = quarter * 0 + 1
    for k in range(_FAR, 0, -1):
        series = series * quarter * (1.0 / (k * k)) + 1
    # For large x it is exp(x) / sqrt(2 pi x) times a series in 1 / x.
    over = 1 / emit("max", size, number(_SERIES, size.dtype))
    tail = over * 0 + 1
    for k in range(_TERMS, 0, -1):
        tail = tail * over * ((2 * k - 1) ** 2 / (8.0 * k)) + 1
    half = emit("exp", size * 0.5)  # twice a half, so that only the result overflows
    far = half * (tail * emit("sqrt", over * (1 / (2 * math.pi)))) * half
    made = emit("select", emit("le", size, number(_SERIES, size.dtype)), series, far)
    made = emit("select", emit("isnan", size), size, made)
    return cast(made, given.dtype)
