"""Composed: ufuncs that are a few ops, on operands already brought to their dtype."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.trace.array import Array
from tenfold.trace.lazy.lazy import LAZY
from tenfold.trace.operand import literal_value, scope_of, value_of
from tenfold.trace.scope import local
from tenfold.trace.surface.emit import cast, emit
from tenfold.types import BOOL, DTYPES, KIND, DType


def number(value: Any, dtype: DType) -> Array:
    """A Python number as a traced 0-d array of the dtype."""
    scope = local.scope or LAZY
    return Array(scope, literal_value(value, scope, dtype))


def filled(value: Any, dtype: DType, shape: tuple[int, ...]) -> Array:
    """A traced array with one number everywhere."""
    made = number(value, dtype)
    return emit("broadcast", made, shape=shape) if shape else made


def same(x: Array) -> Array:
    """A fresh array with the same value."""
    scope = scope_of(x)
    return Array(scope, value_of(x, scope))


def unsigned_zero(x: Array) -> Array:
    """Complex numbers as they are, but 0 for every zero."""
    zero = filled(0, x.dtype, x.shape)
    return emit("select", emit("eq", x, zero), zero, x)


def never(x: Array) -> Array:
    return filled(False, BOOL, x.shape)


def always(x: Array) -> Array:
    return filled(True, BOOL, x.shape)


def logical(op: str) -> Callable[..., Array]:
    """A logical op, which looks at whether its operands are zero."""
    return lambda *operands: emit(op, *(cast(x, BOOL) for x in operands))


def rint(x: Array) -> Array:
    if KIND[x.dtype] == "c":
        return emit("complex", *(emit("round", emit(part, x)) for part in ("real", "imag")))
    return emit("round", x)


def complex_extreme(op: str, quiet: bool) -> Callable[[Array, Array], Array]:
    """The greater or lesser of complex numbers; NaN wins, or with `quiet` loses."""

    def apply(x: Array, y: Array) -> Array:
        first = emit("or", emit(op, x, y), emit("isnan", y if quiet else x))
        return emit("select", first, x, y)

    return apply


def square(x: Array) -> Array:
    return emit("mul", x, x)


def reciprocal(x: Array) -> Array:
    one = number(1, x.dtype)
    if KIND[x.dtype] in "iu":  # NumPy truncates: 1, -1, or 0; 1 / 0 is what floordiv makes it
        wide = emit("floordiv", one, x)
        if KIND[x.dtype] == "u":
            return wide
        below = emit("lt", x, number(-1, x.dtype))
        return emit("select", below, number(0, x.dtype), wide)
    if KIND[x.dtype] == "c":
        return _complex_reciprocal(x)
    return emit("div", one, x)


def _complex_reciprocal(x: Array) -> Array:
    """As NumPy divides, by the greater part: signs of zeros and infinities come out as there."""
    real, imaginary = emit("real", x), emit("imag", x)
    flat = emit("le", emit("abs", imaginary), emit("abs", real))
    great = emit("select", flat, real, imaginary)
    small = emit("select", flat, imaginary, real)
    ratio = emit("div", small, great)
    whole = emit("add", great, emit("mul", small, ratio))
    one = emit("div", number(1, real.dtype), whole)
    part = emit("div", ratio, whole)
    minus = emit("neg", emit("select", flat, part, one))
    return emit("complex", emit("select", flat, one, part), minus)


def bit_count(x: Array) -> Array:
    """The number of one bits of the absolute value."""
    if KIND[x.dtype] == "i":
        x = cast(emit("abs", x), DTYPES[f"u{x.dtype.itemsize * 8}"])
    return emit("popcount", x)


def integer_power(x: Array, y: Array) -> Array:
    return emit("pow", x, y)


def deg2rad(x: Array) -> Array:
    return emit("mul", x, number(math.pi / 180.0, x.dtype))


def rad2deg(x: Array) -> Array:
    return emit("mul", x, number(180.0 / math.pi, x.dtype))


def heaviside(x: Array, at_zero: Array) -> Array:
    zero, one = number(0, x.dtype), number(1, x.dtype)
    step = emit("select", emit("lt", x, zero), zero, one)
    found = emit("select", emit("eq", x, zero), at_zero, step)
    return emit("select", emit("isnan", x), x, found)


def divmod_(x: Array, y: Array) -> tuple[Array, Array]:
    return emit("floordiv", x, y), emit("mod", x, y)


def logaddexp2(x: Array, y: Array) -> Array:
    top, bottom = emit("max", x, y), emit("min", x, y)
    gap = emit("sub", bottom, top)
    scale = number(1.0 / math.log(2.0), x.dtype)
    rest = emit("mul", emit("log1p", emit("exp2", gap)), scale)
    # equal infinities have no difference, yet log2(2 * 2**inf) is known
    return emit("add", top, emit("select", emit("eq", x, y), number(1, x.dtype), rest))


def modf(x: Array) -> tuple[Array, Array]:
    whole = emit("trunc", x)
    rest = emit("select", emit("isinf", x), number(0, x.dtype), emit("sub", x, whole))
    return emit("copysign", rest, x), whole


def spacing(x: Array) -> Array:
    """The gap to the next float: away from zero and signed, but of float16 the one above."""
    top = number(math.inf, x.dtype)
    if x.dtype == DTYPES["f16"]:
        gap = emit("sub", emit("nextafter", x, top), x)
        return emit("select", emit("isinf", x), number(math.nan, x.dtype), gap)
    size = emit("abs", x)
    gap = emit("sub", emit("nextafter", size, top), size)
    zero = emit("eq", x, number(0, x.dtype))
    return emit("select", zero, gap, emit("copysign", gap, x))


def ldexp(x: Array, y: Array) -> Array:
    """x times 2**y; the power is taken in parts, each of them a float of x's dtype."""
    limit = int(np.finfo(np.float32 if x.dtype.itemsize == 2 else x.dtype).maxexp) - 2
    wide = x if x.dtype.itemsize > 2 else cast(x, DTYPES["f32"])
    y = cast(y, DTYPES["i64"])
    for _ in range(3):
        low, high = number(-limit, y.dtype), number(limit, y.dtype)
        part = emit("clip", y, low, high)
        wide = emit("mul", wide, emit("exp2", cast(part, wide.dtype)))
        y = emit("sub", y, part)
    return cast(wide, x.dtype)
