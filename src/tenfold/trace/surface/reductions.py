"""Reductions: over one axis, several or all, with NumPy's dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, ValueProblem
from tenfold.trace.array import UFUNCS, Array
from tenfold.trace.surface.composed import filled, number
from tenfold.trace.surface.emit import (
    axes_of,
    axis_of,
    cast,
    emit,
    fail,
    on,
    traced,
    view,
)
from tenfold.trace.surface.into import write
from tenfold.types import BFLOAT16, BOOL, DTYPES, F32, F64, I64, KIND, DType

_U64 = DTYPES["u64"]
_HALVES = (DTYPES["f16"], BFLOAT16)
_NO: Any = np._NoValue  # what NumPy passes for an argument not given


def given(value: Any) -> bool:
    """Whether an argument was given at all."""
    return value is not _NO and value is not None


def _kept(x: Array, result: Array, axes: tuple[int, ...], keepdims: Any) -> Array:
    if keepdims is _NO or not keepdims:
        return result
    shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape))
    return emit("reshape", result, shape=shape)


def _finish(result: Array, out: Any) -> Array:
    if isinstance(out, tuple):
        (out,) = out
    return result if out is None else write(out, result)


def fold(
    op: str,
    x: Array,
    axis: Any = None,
    keepdims: Any = False,
    initial: Any = _NO,
    where: Any = True,
    identity: Any = None,
) -> Array:
    """Reduce an array in its own dtype; what `where` leaves out counts as the identity."""
    axes = axes_of(axis, x.ndim)
    if where is not True and where is not _NO:
        fill = initial if identity is None else identity
        if not given(fill):
            fail(
                ValueProblem,
                f"{op.removeprefix('reduce_')} has no identity, so where= needs initial=",
                "give initial=, the result where nothing is chosen",
            )
        shape = np.broadcast_shapes(x.shape, traced(where).shape)
        rest = emit("broadcast", traced(fill, x.dtype), shape=shape)
        x = emit("select", traced(where, BOOL), x, rest)
        axes = axes_of(axis, x.ndim)
    if identity is None and any(x.shape[a] == 0 for a in axes):
        shape = tuple(n for a, n in enumerate(x.shape) if a not in axes)
        if not given(initial):
            if 0 not in shape:
                fail(
                    ShapeError,
                    f"{op.removeprefix('reduce_')} of {x.type} over an empty axis",
                    "give initial=, the result of nothing",
                )
            result = filled(0, x.dtype, shape)
        else:
            result = emit("broadcast", traced(initial, x.dtype), shape=shape)
        return _kept(x, result, axes, keepdims)
    result = emit(op, x, axes=axes)
    if given(initial):
        result = emit(_PAIR[op], result, traced(initial, x.dtype))
    return _kept(x, result, axes, keepdims)


_PAIR = {
    "reduce_sum": "add",
    "reduce_prod": "mul",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_any": "or",
    "reduce_all": "and",
}


def _wide(dtype: DType) -> DType:
    """The dtype NumPy sums in."""
    kind = KIND[dtype]
    return _U64 if kind == "u" else I64 if kind in "bi" else dtype


def _total(op: str, identity: int) -> Callable[..., Array]:
    def apply(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = _NO,
        where: Any = True,
    ) -> Array:
        x = traced(a)
        x = cast(x, _wide(x.dtype) if dtype is None else dtype)
        if x.dtype == BOOL:
            op_here = {"reduce_sum": "reduce_any", "reduce_prod": "reduce_all"}[op]
        else:
            op_here = op
        return _finish(fold(op_here, x, axis, keepdims, initial, where, identity), out)

    return apply


total = on(np.sum)(_total("reduce_sum", 0))
product = on(np.prod)(_total("reduce_prod", 1))


def _extreme(op: str) -> Callable[..., Array]:
    def apply(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = _NO,
        where: Any = True,
    ) -> Array:
        return _finish(fold(op, traced(a), axis, keepdims, initial, where), out)

    return apply


largest = on(np.max, np.amax)(_extreme("reduce_max"))
smallest = on(np.min, np.amin)(_extreme("reduce_min"))


def _truth(op: str, identity: bool) -> Callable[..., Array]:
    def apply(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
    ) -> Array:
        x = traced(a, BOOL)
        return _finish(fold(op, x, axis, keepdims, where=where, identity=identity), out)

    return apply


some = on(np.any)(_truth("reduce_any", False))
every = on(np.all)(_truth("reduce_all", True))


def _position(op: str) -> Callable[..., Array]:
    def apply(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Array:
        x = traced(a)
        whole = x.ndim
        if axis is None:
            x = emit("reshape", x, shape=(x.size,))
            axis = 0
        elif whole == 0:
            axis_of(axis, 1)
            x, axis = emit("reshape", x, shape=(1,)), 0
        number_ = axis_of(axis, x.ndim)
        if x.shape[number_] == 0:
            fail(
                ShapeError, f"{op} of {x.type} over an empty axis", "an empty axis has no extremes"
            )
        result = emit(op, x, axis=number_)
        if keepdims is True:
            shape = tuple(1 if i == number_ else n for i, n in enumerate(x.shape))
            flat = whole != x.ndim
            result = emit("reshape", result, shape=(1,) * whole if flat else shape)
        return _finish(result, out)

    return apply


argmax = on(np.argmax)(_position("argmax"))
argmin = on(np.argmin)(_position("argmin"))


def _count(x: Array, axes: tuple[int, ...], where: Any, keepdims: Any) -> Any:
    """How many elements a mean is taken over: a number, or an array where `where` chooses."""
    if where is True or where is _NO:
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
    return _finish(cast(result, x.dtype) if half else result, out)


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
    mean: Any = _NO,
    correction: Any = _NO,
) -> Array:
    if correction is not _NO:
        ddof = correction
    x = traced(a)
    half = dtype is None and x.dtype in _HALVES
    inner = F32 if half else F64 if KIND[x.dtype] in "biu" else x.dtype
    wide = cast(x, inner if dtype is None else dtype)
    axes = axes_of(axis, x.ndim)
    if mean is _NO:
        sums = total(wide, axes, dtype=wide.dtype, keepdims=True, where=where)
        centre = _divide(sums, _count(x, axes, where, True))
    else:
        centre = traced(mean, wide.dtype)
    away = emit("sub", wide, centre)
    if KIND[away.dtype] == "c":
        real, imag = emit("real", away), emit("imag", away)
        squares = emit("add", emit("mul", real, real), emit("mul", imag, imag))
    else:
        squares = emit("mul", away, away)
    sums = total(squares, axes, dtype=squares.dtype, keepdims=keepdims, where=where)
    count = _count(x, axes, where, keepdims)
    if isinstance(count, int) and isinstance(ddof, (int, float)):
        left: Array = number(max(count - ddof, 0), squares.dtype)
    else:
        rest = UFUNCS[np.subtract](count, ddof)
        left = cast(UFUNCS[np.maximum](rest, 0), squares.dtype)
    result = emit("div", sums, left)
    return _finish(cast(result, x.dtype) if half else result, out)


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
    mean: Any = _NO,
    correction: Any = _NO,
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
    return _finish(cast(result, x.dtype) if half else result, out)


@on(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Array:
    top, bottom = largest(a, axis, keepdims=keepdims), smallest(a, axis, keepdims=keepdims)
    return _finish(UFUNCS[np.subtract](top, bottom), out)


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
                w = view(w, "transpose", axes=order)
            shape = tuple(n if i in axes else 1 for i, n in enumerate(x.shape))
            w = emit("reshape", w, shape=shape)
        weighted = UFUNCS[np.multiply](x, w)
        if KIND[weighted.dtype] in "biu":
            weighted = cast(weighted, F64)
        w = emit("broadcast", cast(w, weighted.dtype), shape=x.shape)
        scale = total(w, axis, keepdims=keepdims)
        result = UFUNCS[np.true_divide](total(weighted, axis, keepdims=keepdims), scale)
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
    initial: Any = _NO,
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
    initial: Any = _NO,
    where: Any = True,
) -> Array:
    return product(_without_nans(traced(a), 1), axis, dtype, out, keepdims, initial, where)


def _nan_extreme(op: str, skip: float) -> Callable[..., Array]:
    def apply(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = _NO,
        where: Any = True,
    ) -> Array:
        x = traced(a)
        if KIND[x.dtype] != "f":
            return _finish(fold(op, x, axis, keepdims, initial, where), out)
        result = fold(op, _without_nans(x, skip), axis, keepdims, initial, where)
        empty = every(emit("isnan", x), axis, keepdims=keepdims)
        if not given(initial):
            result = emit("select", empty, number(np.nan, x.dtype), result)
        return _finish(result, out)

    return apply


nanmax = on(np.nanmax)(_nan_extreme("reduce_max", -np.inf))
nanmin = on(np.nanmin)(_nan_extreme("reduce_min", np.inf))


def _present(x: Array, where: Any) -> Any:
    """Which elements a statistic without NaNs takes."""
    if KIND[x.dtype] not in "fc":
        return where
    real = emit("not", emit("isnan", x))
    return real if where is True or where is _NO else emit("and", real, traced(where, BOOL))


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
) -> Array:
    x = traced(a)
    return var(x, axis, dtype, out, ddof, keepdims, where=_present(x, where))


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
) -> Array:
    x = traced(a)
    return std(x, axis, dtype, out, ddof, keepdims, where=_present(x, where))
