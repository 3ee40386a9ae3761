"""Values moved by their bounds, and how far apart two values are: what trials are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.ops.agreement.units import SIGN
from tenfold.types import KIND

Array = np.ndarray[Any, Any]

_FAR = 2.0**62  # errors from here on are not told apart in int64


def moved(value: Array, error: Array, sign: Any) -> Array:
    """The value moved by its bound; a bool that is open is True one way and False the other. A
    complex sign moves the parts of a complex number each its own way. What may be anything is 0 or
    NaN by a plain sign, and an infinity by an array of signs."""
    kind = KIND[value.dtype]
    if kind == "b":
        return np.where(error > 0, np.broadcast_to(sign > 0, value.shape), value)
    if kind in "iu":
        limits = np.iinfo(value.dtype)
        shift = np.clip(error * sign, -_FAR, _FAR).astype(np.int64)
        far = np.where(error > _FAR, np.inf, error)
        wide = value.astype(np.float64) + far * sign
        made = value + shift.astype(value.dtype)
        made = np.where(wide >= float(limits.max), limits.max, made)
        made = np.where(wide <= float(limits.min), limits.min, made)
        return np.where(error > 0, made, value).astype(value.dtype)
    if kind == "c":
        both = np.empty(value.shape, value.dtype)
        across = np.imag(sign) if np.iscomplexobj(sign) else sign
        both.real = moved(value.real, error, np.real(sign))
        both.imag = moved(value.imag, error, across)
        return both
    made = (value.astype(np.float64) + error * sign).astype(value.dtype)
    if isinstance(sign, (np.ndarray, np.generic)):  # of each element its own, if it is one alone
        anything = np.broadcast_to(np.multiply(sign, np.inf), value.shape).astype(value.dtype)
    else:
        anything = np.full(value.shape, 0.0 if sign > 0 else np.nan).astype(value.dtype)
    made = np.where(np.isinf(error), anything, made)
    made = np.where(np.isnan(value) & np.isnan(made), np.copysign(value, sign), made)
    return np.where(error > 0, made, value).astype(value.dtype)


def outwards(value: Array) -> Array:
    """The signs that move elements away from 0."""
    kind = KIND[value.dtype]
    if kind == "c":
        return outwards(value.real) + 1j * outwards(value.imag)
    return np.copysign(1.0, value.astype(np.float64))


def snapped(value: Array, error: Array) -> list[Array]:
    """Numbers moved to an integer within their bound, or to 0, if there are such: functions have
    poles there, and the ends of a range do not tell of one in the middle."""
    kind = KIND[value.dtype]
    if kind not in "fc":
        return []
    parts = (value.real, value.imag) if kind == "c" else (value,)
    around = np.all([np.abs(part) <= error for part in parts], axis=0) & (value != 0)
    made = [np.where(around, 0, value).astype(value.dtype)] if around.any() else []
    if kind == "c":
        return made
    wide = value.astype(np.float64)
    whole = np.rint(wide)
    near = (whole != wide) & (np.abs(whole - wide) <= error)
    return [*made, np.where(near, whole, wide).astype(value.dtype)] if near.any() else made


def distance(a: Array, b: Array, *, signs: bool = False) -> Array:
    """How far apart two values are; 0 for equal ones and for two NaN, or with `signs` for those of
    one sign; `SIGN` for two zeros of different signs."""
    kind = KIND[b.dtype]
    if kind == "b":
        return np.asarray(a != b, np.float64)
    if kind in "iu":
        plain = np.dtype(f"u{b.dtype.itemsize}")  # holds every difference, and wraps where they do
        larger, lesser = np.maximum(a, b), np.minimum(a, b)
        return np.asarray((larger.view(plain) - lesser.view(plain)).astype(np.float64))
    if kind == "c":
        parts = ((a.real, b.real), (a.imag, b.imag))
        return np.maximum(*(distance(x, y, signs=signs) for x, y in parts))
    x, y = a.astype(np.float64), b.astype(np.float64)
    nan = np.isnan(x) & np.isnan(y)
    far = np.abs(x - y)
    far = np.where((x == y) | nan, 0.0, np.where(np.isnan(far), np.inf, far))
    settled = (x == 0) & (y == 0) | (nan if signs else False)
    return np.where(settled & (np.signbit(x) != np.signbit(y)), SIGN, far)
