"""Numeric: functions of NumPy that are a few ufuncs, written as such."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from tenfold.errors import ShapeError, TypeMismatch
from tenfold.trace.array import Array
from tenfold.trace.operand import dtype_key
from tenfold.trace.surface.emit import (
    ABSENT,
    axis_of,
    cast,
    emit,
    fail,
    is_array,
    on,
    static_int,
    traced,
)
from tenfold.trace.surface.into import as_kind, write
from tenfold.trace.surface.reducing.reductions import every, total
from tenfold.trace.surface.shaping.joining import concatenate
from tenfold.trace.surface.shaping.shapes import cut
from tenfold.trace.surface.ufuncs.composed import filled, number, same
from tenfold.trace.surface.ufuncs.promotion import common, common_dtype
from tenfold.trace.tables import UFUNCS
from tenfold.types import BOOL, DTYPES, F64, KIND

_F16 = DTYPES["f16"]


@on(np.round, np.around)
def round_(a: Any, decimals: Any = 0, out: Any = None) -> Array:
    x, places = traced(a), static_int(decimals, "decimals")
    kind = KIND[x.dtype]
    if kind == "b":
        if places:
            fail(TypeMismatch, f"round of {x.type} to {places} places", "cast it with .astype")
        result = cast(x, _F16)
    elif kind == "c":
        parts = (round_(emit("real", x), places), round_(emit("imag", x), places))
        result = emit("complex", *parts)
    elif places == 0 or (kind in "iu" and places > 0):
        result = emit("round", x) if kind == "f" else same(x)
    elif kind in "iu":
        unit = number(10**-places, F64)
        wide = emit("round", emit("div", cast(x, F64), unit))
        result = cast(emit("mul", wide, unit), x.dtype)
    else:
        unit = number(10.0 ** abs(places), x.dtype)
        if places > 0:
            result = emit("div", emit("round", emit("mul", x, unit)), unit)
        else:
            result = emit("mul", emit("round", emit("div", x, unit)), unit)
    return result if out is None else write(out, result)


@on(np.fix)
def fix(x: Any, out: Any = None) -> Array:
    result: Array = UFUNCS[np.trunc](x)
    return result if out is None else write(out, result)


@on(np.nan_to_num)
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Array:
    array = traced(x)
    kind = KIND[array.dtype]
    if kind == "c":
        parts = (emit("real", array), emit("imag", array))
        made = emit("complex", *(nan_to_num(p, True, nan, posinf, neginf) for p in parts))
    elif kind != "f":
        made = same(array)
    else:
        dtype = array.dtype
        limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
        top = float(limits.max) if posinf is None else posinf
        bottom = float(limits.min) if neginf is None else neginf
        nan, top, bottom = (as_kind(fill, dtype) for fill in (nan, top, bottom))
        infinite = emit("isinf", array)
        above = emit("gt", array, number(0, dtype))
        made = emit("select", emit("isnan", array), nan, array)
        made = emit("select", emit("and", infinite, above), top, made)
        below = emit("and", infinite, emit("not", above))
        made = emit("select", below, bottom, made)
    if not copy and isinstance(x, Array):
        return write(x, made)
    return made


@on(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Array:
    array = traced(x)
    result = emit("and", UFUNCS[np.isinf](array), UFUNCS[np.logical_not](_sign(array)))
    return result if out is None else write(out, result)


@on(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Array:
    array = traced(x)
    result = emit("and", UFUNCS[np.isinf](array), _sign(array))
    return result if out is None else write(out, result)


def _sign(x: Array) -> Array:
    made: Array = UFUNCS[np.signbit](x)
    return made


@on(np.isreal)
def isreal(x: Any) -> Array:
    array = traced(x)
    if KIND[array.dtype] != "c":
        return filled(True, BOOL, array.shape)
    made: Array = UFUNCS[np.equal](emit("imag", array), 0)
    return made


@on(np.iscomplex)
def iscomplex(x: Any) -> Array:
    return emit("not", isreal(x))


@on(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    return KIND[traced(x).dtype] == "c"


@on(np.isrealobj)
def isrealobj(x: Any) -> bool:
    return not iscomplexobj(x)


@on(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> Any:
    keys = [dtype_key(x) if is_array(x) else np.dtype(x) for x in arrays_and_dtypes]
    return common(tuple(keys))


@on(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Array:
    x, y = (v if is_array(v) else traced(v) for v in (a, b))
    other = traced(y)
    if KIND[other.dtype] in "biu":  # so that abs does not wrap
        y = cast(other, common_dtype(other, 1.0))
    gap = (
        np.absolute(np.subtract(traced(x), y))
        if KIND[traced(x).dtype] != "b"
        else (np.absolute(np.subtract(cast(traced(x), traced(y).dtype), y)))
    )
    bound = np.add(atol, np.multiply(rtol, np.absolute(y)))
    near = np.logical_and(np.less_equal(gap, bound), np.isfinite(y))
    found = np.logical_or(near, np.equal(x, y))
    if equal_nan:
        found = np.logical_or(found, np.logical_and(np.isnan(x), np.isnan(y)))
    return traced(found)


@on(np.allclose)
def allclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Array:
    return every(isclose(a, b, rtol, atol, equal_nan))


@on(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    x, y = traced(a1), traced(a2)
    if x.shape != y.shape:
        return filled(False, BOOL, ())
    equal = UFUNCS[np.equal](x, y)
    if equal_nan:
        both = emit("and", UFUNCS[np.isnan](x), UFUNCS[np.isnan](y))
        equal = emit("or", equal, both)
    return every(equal)


@on(np.angle)
def angle(z: Any, deg: bool = False) -> Array:
    x = traced(z)
    if KIND[x.dtype] == "c":
        result = UFUNCS[np.arctan2](emit("imag", x), emit("real", x))
    else:
        result = UFUNCS[np.arctan2](number(0, x.dtype if x.dtype != BOOL else F64), x)
    if deg:
        result = UFUNCS[np.multiply](result, 180 / math.pi)
    return traced(result)


@on(np.sinc)
def sinc(x: Any) -> Array:
    array = traced(x)
    if KIND[array.dtype] in "biu":
        array = cast(array, F64)
    scaled = UFUNCS[np.multiply](array, math.pi)
    zero = UFUNCS[np.equal](scaled, 0)
    safe = emit("select", zero, number(1, scaled.dtype), scaled)
    wave = emit("div", emit("sin", safe), safe)
    return emit("select", zero, number(1, scaled.dtype), wave)


@on(np.diff)
def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = ABSENT, append: Any = ABSENT) -> Array:
    x, times = traced(a), static_int(n, "n")
    if times == 0:
        return x
    if times < 0 or x.ndim == 0:
        fail(ShapeError, f"diff of {x.type} {times} times", "give an axis and n of 0 or more")
    at = axis_of(axis, x.ndim)
    ends: list[Array | None] = []
    for end in (prepend, append):
        if end is not ABSENT:
            part = traced(end)
            if part.ndim == 0:
                shape = tuple(1 if i == at else m for i, m in enumerate(x.shape))
                part = emit("broadcast", part, shape=shape)
            ends.append(part)
        else:
            ends.append(None)
    before, after = ends
    parts = [p for p in (before, x, after) if p is not None]
    if len(parts) > 1:
        x = concatenate(parts, at)
    for _ in range(times):
        extent = x.shape[at]
        if extent == 0:
            break
        high, low = cut(x, at, 1, extent), cut(x, at, 0, extent - 1)
        x = emit("ne", high, low) if x.dtype == BOOL else emit("sub", high, low)
    return x


@on(np.polyval)
def polyval(p: Any, x: Any) -> Array:
    coefficients, at = traced(p), traced(x)
    result: Array = filled(0, at.dtype, at.shape)
    for i in range(coefficients.shape[0]):
        result = UFUNCS[np.add](UFUNCS[np.multiply](result, at), coefficients[i])
    return result


@on(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Array:
    values = traced(y)
    at = axis_of(axis, values.ndim)
    n = values.shape[at]
    width: Any = dx
    if x is not None:
        places = traced(x)
        width = diff(places, axis=0 if places.ndim == 1 else at)
        if places.ndim == 1:
            shape = tuple(width.size if i == at else 1 for i in range(values.ndim))
            width = emit("reshape", width, shape=shape)
    pair = UFUNCS[np.add](cut(values, at, 1, n), cut(values, at, 0, n - 1))
    parts = UFUNCS[np.true_divide](UFUNCS[np.multiply](width, pair), 2.0)
    return total(parts, at)
