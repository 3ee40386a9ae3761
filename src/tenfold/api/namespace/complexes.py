"""Complex functions whose values at infinities, NaNs and zeros the standard fixes.

NumPy leaves these to formulas that give NaN there, or a zero of another sign. np.expm1 and
np.tanh do here what they do in NumPy; tn.expm1 and tn.tanh follow the standard. Everywhere else
the two agree.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenfold.trace.array import Array
from tenfold.trace.surface.emit import emit, traced
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.trace.tables import UFUNCS
from tenfold.types import KIND


def _parts(x: Array) -> tuple[Array, Array]:
    return emit("real", x), emit("imag", x)


def _is(part: Array, value: float) -> Array:
    return emit("eq", part, number(value, part.dtype))


def _choose(where: Array, value: float, other: Array) -> Array:
    return emit("select", where, number(value, other.dtype), other)


def expm1(x: Any, /) -> Any:
    """exp(x) - 1, exact also where x is small."""
    array = traced(x)
    if KIND[array.dtype] != "c":
        return UFUNCS[np.expm1](x)
    a, b = _parts(array)
    real, imag = _parts(UFUNCS[np.expm1](array))
    wild = emit("not", emit("isfinite", b))
    gone, grown = emit("and", _is(a, -math.inf), wild), emit("and", _is(a, math.inf), wild)
    real = emit("add", real, number(0, real.dtype))  # -0 becomes 0
    real = _choose(grown, math.inf, _choose(gone, -1, real))
    imag = emit("select", _is(b, 0), b, imag)
    imag = _choose(grown, math.nan, _choose(gone, 0, imag))
    return emit("complex", real, imag)


def tanh(x: Any, /) -> Any:
    """The hyperbolic tangent."""
    array = traced(x)
    if KIND[array.dtype] != "c":
        return UFUNCS[np.tanh](x)
    a, b = _parts(array)
    real, imag = _parts(UFUNCS[np.tanh](array))
    flat = emit("and", emit("isinf", a), emit("isfinite", b))
    nothing = emit("copysign", number(0, b.dtype), b)
    return emit("complex", real, emit("select", flat, nothing, imag))
