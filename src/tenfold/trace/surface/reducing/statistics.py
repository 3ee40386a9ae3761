"""Statistics: mean, var, std and their kin, and reductions that leave NaNs out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import ABSENT, axes_of, cast, emit, fail, on, traced
from tenfold.trace.surface.reducing.reductions import (
    argmax,
    argmin,
    every,
    finish,
    fold,
    given,
    largest,
    product,
    smallest,
    total,
    unordered,
    whole,
)
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.trace.surface.ufuncs.promotion import common
from tenfold.trace.tables import UFUNCS
from tenfold.types import BFLOAT16, BOOL, DTYPES, F32, F64, KIND

_HALVES = (DTYPES["f16"], BFLOAT16)


def _count(x: Array, axes: tuple[int, ...], where: Any, keepdims: Any) -> Any:
    """How many elements a mean is taken over: a number, or an array where `where` chooses."""
    if where is True or where is ABSENT:
        count = 1
        for a in axes:
            count *= x.shape[a]
        return count
    chosen = emit("broadcast", traced(where, BOOL), shape=x.shape)
    return total(chosen, axes, keepdims=keepdims)


def _divide(x: Array, count: Any) -> Array:
    """x over a count, in x's dtype."""
    dtype = x.dtype
    return emit("div", x, number(count, dtype) if isinstance(count, int) else cast(count, dtype))


@on(np.mean)
def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Array:
    x = traced(a)
    half = dtype is None and x.dtype in _HALVES
    inner = F32 if half else F64 if KIND[x.dtype] in "biu" else x.dtype
    wide = cast(x, inner if dtype is None else dtype)
    axes = axes_of(axis, x.ndim)
    result = _divide(
        total(wide, axes, dtype=wide.dtype, keepdims=keepdims, where=where),
        _count(x, axes, where, keepdims),
    )
    return finish(cast(result, x.dtype) if half else result, out)


@on(np.var)
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = ABSENT,
    correction: Any = ABSENT,
) -> Array:
    if correction is not ABSENT:
        ddof = correction
    x = traced(a)
    half = dtype is None and x.dtype in _HALVES
    inner = F32 if half else F64 if KIND[x.dtype] in "biu" else x.dtype
    wide = cast(x, inner if dtype is None else dtype)
    axes = axes_of(axis, x.ndim)
    if mean is ABSENT:
        sums = total(wide, axes, dtype=wide.dtype, keepdims=True, where=where)
        centre = _divide(sums, _count(x, axes, where, True))
    else:
        centre = traced(mean, wide.dtype)
    # as NumPy: a dtype that is asked for is that of the mean and of the sum, not of what is between
    away = emit("sub", wide, centre) if dtype is None else UFUNCS[np.subtract](x, centre)
    if KIND[away.dtype] == "c":
        real, imag = emit("real", away), emit("imag", away)
        squares = emit("add", emit("mul", real, real), emit("mul", imag, imag))
    else:
        squares = emit("mul", away, away)
    added = squares.dtype if dtype is None else wide.dtype
    sums = total(squares, axes, dtype=added, keepdims=keepdims, where=where)
    count = _count(x, axes, where, keepdims)
    if isinstance(count, int) and isinstance(ddof, (int, float)):
        left: Array = number(max(count - ddof, 0), added)
    else:
        rest = UFUNCS[np.subtract](count, ddof)
        left = cast(UFUNCS[np.maximum](rest, 0), added)
    result = emit("div", sums, left)
    return finish(cast(result, x.dtype) if half else result, out)


@on(np.std)
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = ABSENT,
    correction: Any = ABSENT,
) -> Array:
    x = traced(a)
    half = dtype is None and x.dtype in _HALVES
    spread = var(
        cast(x, F32) if half else x,
        axis,
        dtype,
        None,
        ddof,
        keepdims,
        where=where,
        mean=mean,
        correction=correction,
    )
    result = emit("sqrt", spread)
    return finish(cast(result, x.dtype) if half else result, out)


@on(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Array:
    top, bottom = largest(a, axis, keepdims=keepdims), smallest(a, axis, keepdims=keepdims)
    return finish(UFUNCS[np.subtract](top, bottom), out)


@on(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Array:
    return total(traced(a, BOOL), axis, keepdims=keepdims)


@on(np.average)
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    x = traced(a)
    if weights is None:
        result = mean(x, axis, keepdims=keepdims)
        share: Any = _count(x, axes_of(axis, x.ndim), True, keepdims)
        scale = number(share, result.dtype)
    else:
        w = traced(weights)
        if w.shape != x.shape:
            axes = axes_of(axis, x.ndim)
            if axis is None or w.shape != tuple(x.shape[i] for i in axes):
                fail(
                    ShapeError,
                    f"average: weights {w.type} do not fit the axes {axis} of {x.type}",
                    "give weights of the array's shape, or of the shape of the averaged axes",
                )
            if axes != tuple(sorted(axes)):
                order = tuple(sorted(range(len(axes)), key=lambda i: axes[i]))
                w = emit("transpose", w, axes=order)
            shape = tuple(n if i in axes else 1 for i, n in enumerate(x.shape))
            w = emit("reshape", w, shape=shape)
        dtypes = (x.dtype, w.dtype, *((F64,) if KIND[x.dtype] in "biu" else ()))
        made = common(dtypes)
        w = emit("broadcast", cast(w, made), shape=x.shape)
        scale = total(w, axis, keepdims=keepdims)
        weighted = total(UFUNCS[np.multiply](cast(x, made), w), axis, keepdims=keepdims)
        result = UFUNCS[np.true_divide](weighted, scale)
    if returned:
        return result, emit("broadcast", scale, shape=result.shape)
    return result


# The same, with NaNs left out.


def _without_nans(x: Array, fill: Any) -> Array:
    if KIND[x.dtype] not in "fc":
        return x
    return emit("select", emit("isnan", x), number(fill, x.dtype), x)


@on(np.nansum)
def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = ABSENT,
    where: Any = True,
) -> Array:
    return total(_without_nans(traced(a), 0), axis, dtype, out, keepdims, initial, where)


@on(np.nanprod)
def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = ABSENT,
    where: Any = True,
) -> Array:
    return product(_without_nans(traced(a), 1), axis, dtype, out, keepdims, initial, where)


def _nan_extreme(op: str, ufunc: np.ufunc, skip: float) -> Callable[..., Array]:
    def apply(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = ABSENT,
        where: Any = True,
    ) -> Array:
        x = traced(a)
        if KIND[x.dtype] == "c":
            return unordered(ufunc, x, axis, out, keepdims, initial, where)
        if KIND[x.dtype] != "f":
            return finish(fold(op, x, axis, keepdims, initial, where), out)
        result = fold(op, _without_nans(x, skip), axis, keepdims, initial, where)
        empty = every(emit("isnan", x), axis, keepdims=keepdims)
        if not given(initial):
            result = emit("select", empty, number(np.nan, x.dtype), result)
        return finish(result, out)

    return apply


nanmax = on(np.nanmax)(_nan_extreme("reduce_max", np.fmax, -np.inf))
nanmin = on(np.nanmin)(_nan_extreme("reduce_min", np.fmin, np.inf))


def _present(x: Array, where: Any) -> Any:
    """Which elements a statistic without NaNs takes."""
    if KIND[x.dtype] not in "fc":
        return where
    real = emit("not", emit("isnan", x))
    return real if where is True or where is ABSENT else emit("and", real, traced(where, BOOL))


@on(np.nanmean)
def nanmean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Array:
    x = traced(a)
    if KIND[x.dtype] in "fc":
        axis = whole(axis, x)
    return mean(x, axis, dtype, out, keepdims, where=_present(x, where))


@on(np.nanvar)
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = ABSENT,
    correction: Any = ABSENT,
) -> Array:
    x = traced(a)
    if KIND[x.dtype] in "fc":
        axis = whole(axis, x)
    chosen = _present(x, where)
    given = {"where": chosen, "mean": mean, "correction": correction}
    return var(x, axis, dtype, out, ddof, keepdims, **given)


@on(np.nanstd)
def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = ABSENT,
    correction: Any = ABSENT,
) -> Array:
    x = traced(a)
    if KIND[x.dtype] in "fc":
        axis = whole(axis, x)
    chosen = _present(x, where)
    given = {"where": chosen, "mean": mean, "correction": correction}
    return std(x, axis, dtype, out, ddof, keepdims, **given)


def _nan_position(name: str, position: Callable[..., Array], skip: float) -> Callable[..., Array]:
    def apply(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Array:
        x = traced(a)
        if KIND[x.dtype] == "c":
            fail(TypeMismatch, f"{name} of {x.type}", "complex numbers have no greatest")
        return position(_without_nans(x, skip), axis, out, keepdims=keepdims)

    return apply


# Of NaNs alone these give 0, where NumPy raises.
nanargmax = on(np.nanargmax)(_nan_position("nanargmax", argmax, -np.inf))
nanargmin = on(np.nanargmin)(_nan_position("nanargmin", argmin, np.inf))
