"""Reducing: sums, means, extremes and the like of selections.

Over the axis that a mask chose it is a reduction of the dense array in which what is not chosen
does not count; over other axes it is one of the dense array, and gives a selection again.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np

from tenfold.trace.array import Array
from tenfold.trace.surface.emit import ABSENT, axes_of, cast, emit, traced
from tenfold.trace.surface.reducing.reductions import finish, given
from tenfold.trace.surface.selecting.selection import (
    SELECTED,
    Selection,
    aligned,
    arguments,
    elementwise,
    on_selections,
    refused,
)
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.trace.surface.ufuncs.promotion import common
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import BOOL, F64, I64, KIND, DType


class Reduction:
    """A call of a reduction: the selection, its axes in the dense array, the other arguments."""

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        found = arguments(function, args, kwargs)
        source = found.pop(next(iter(found)))
        if not isinstance(source, Selection):
            aligned(tuple(found.values()))[0].needs_size(f"np.{function.__name__} of an array")
        self.function = function
        self.source = s = source
        self.out = found.pop("out", None)
        self.keep = found.pop("keepdims", False) is True
        where = found.pop("where", True)
        self.where = True if where is ABSENT else aligned((s, where))[1][1]
        if given(found.get("mean")):
            found["mean"] = aligned((s, found["mean"]))[1][1]
        self.axis = found.pop("axis", None)
        self.others = found
        axes = axes_of(self.axis, s.ndim)
        self.chosen = s._at in axes  # whether the axis of unknown length is reduced
        self.before = sum(a < s._at for a in axes)
        self.axes: tuple[int, ...] = tuple(b for a in axes for b in dense_axes(s, a))

    def where_chosen(self) -> Any:
        """Which elements count: those that the mask chooses, if its axis is reduced."""
        if not self.chosen:
            return self.where
        mask = self.source.chosen
        return mask if self.where is True else emit("and", mask, traced(self.where, BOOL))

    def of(self, dense: Array, where: Any = True) -> Any:
        """What the function gives on a dense array, the axes of the mask being one again."""
        s = self.source
        more = {} if where is True else {"where": where}
        made = FUNCTIONS[self.function](
            dense, axis=self.axes, keepdims=self.keep, **self.others, **more
        )
        if not self.chosen:
            return s.like(made, s._at if self.keep else s._at - self.before)
        if self.keep and s._mask.ndim > 1:
            lead = made.ndim - s.behind - s._mask.ndim
            shape = (*made.shape[: lead + 1], *made.shape[lead + s._mask.ndim :])
            made = emit("reshape", made, shape=shape)
        return made

    def finish(self, made: Any) -> Any:
        if isinstance(made, Selection) and self.out is not None:
            made.needs_size("out=")
        return finish(made, self.out)


def dense_axes(s: Selection, axis: int) -> range:
    """The axes of the dense array that are one of the selection."""
    width = s._mask.ndim
    if axis == s._at:
        return range(axis, axis + width)
    return range(axis, axis + 1) if axis < s._at else range(axis + width - 1, axis + width)


def _by_where(function: Any) -> None:
    """A function that has where=."""

    @on_selections(function)
    def apply(*args: Any, **kwargs: Any) -> Any:
        call = Reduction(function, args, kwargs)
        return call.finish(call.of(call.source._dense, call.where_chosen()))


for _function in (
    *(np.sum, np.prod, np.mean, np.var, np.std, np.any, np.all),
    *(np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd),
):
    _by_where(_function)


@on_selections(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    truth = elementwise(lambda x: cast(x, BOOL), a)
    return SELECTED[np.sum](truth, axis, keepdims=keepdims)


# What has no value where nothing is chosen.


def extreme(dtype: DType, sign: int) -> Any:
    """What no element lies above (1) or below (-1)."""
    kind = KIND[dtype]
    if kind == "b":
        return sign > 0
    if kind in "iu":
        return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min
    return complex(sign * inf, sign * inf) if kind == "c" else sign * inf


def unless_none(s: Selection, what: str, result: Array) -> Array:
    """The result, with an error in the running program where nothing is chosen."""
    if not result.size:
        return result
    found = emit("reduce_any", s._mask, axes=tuple(range(s._mask.ndim)))
    reason = f"{what} of the elements that a mask chooses, and it chooses none"
    wrong = refused(emit("not", found), reason)
    return emit("select", wrong, number(0, result.dtype), result)


def _extreme(function: Any, sign: int, quiet: bool) -> None:
    @on_selections(function)
    def apply(*args: Any, **kwargs: Any) -> Any:
        call = Reduction(function, args, kwargs)
        s = call.source
        if not call.chosen or given(call.others.get("initial")):
            return call.finish(call.of(s._dense, call.where_chosen()))
        fill = nan if quiet and KIND[s.dtype] in "fc" else extreme(s.dtype, -sign)
        made = call.of(s.filled(fill), call.where)
        return call.finish(unless_none(s, function.__name__, made))


_EXTREMES: tuple[tuple[Any, int, bool], ...] = (
    (np.max, 1, False),
    (np.min, -1, False),
    (np.nanmax, 1, True),
    (np.nanmin, -1, True),
)
for _row in _EXTREMES:
    _extreme(*_row)


@on_selections(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    top, bottom = (SELECTED[f](a, axis, keepdims=keepdims) for f in (np.max, np.min))
    return finish(np.subtract(top, bottom), out)


def merged(s: Selection, dense: Array) -> Array:
    """A dense array with the axes of the mask as one."""
    if s._mask.ndim == 1:
        return dense
    end = dense.ndim - s.behind
    shape = (*dense.shape[: end - s._mask.ndim], s._mask.size, *dense.shape[end:])
    return emit("reshape", dense, shape=shape)


def flat(s: Selection) -> Selection:
    """The selection with one axis, counted as NumPy counts: by a mask over all the axes."""
    if s.ndim == 1:
        return s
    mask = emit("broadcast", s.chosen, shape=s._dense.shape)
    return Selection(s._dense, mask, 0, s._made)


def _position(function: Any, sign: int) -> None:
    @on_selections(function)
    def apply(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        s, keep = flat(a) if axis is None else a, keepdims is True
        (where,) = axes_of(0 if axis is None else axis, s.ndim)
        if where != s._at:
            made = FUNCTIONS[function](s._dense, dense_axes(s, where)[0], keepdims=keep)
            return s.like(made, s._at - (where < s._at and not keep))
        line = merged(s, s.filled(extreme(s.dtype, -sign)))
        found = FUNCTIONS[function](line, where, keepdims=keep)
        # Where what is not chosen was found, all that is chosen is equal: the first is meant.
        mask = emit("reshape", cast(s._mask, I64), shape=(s._mask.size,))
        turn = emit("sub", emit("cumsum", mask, axis=0, reverse=False), number(1, I64))
        turn = emit("max", turn, number(0, I64))
        made = emit("gather", turn, found, axes=(0,), at=0, mode="clip")
        made = unless_none(s, function.__name__, made)
        if axis is None and keep:
            made = emit("reshape", made, shape=(1,) * a.ndim)
        return finish(made, out)


_position(np.argmax, 1)
_position(np.argmin, -1)


def _quantile(function: Any, without_nans: Any) -> None:
    """Quantiles: what is not chosen is NaN to a function that leaves NaNs out."""

    @on_selections(function)
    def apply(*args: Any, **kwargs: Any) -> Any:
        call = Reduction(function, args, kwargs)
        s = call.source
        if not call.chosen:
            return call.finish(call.of(s._dense))
        whole = KIND[s.dtype] in "biu"
        if whole and call.others.get("method", "linear") != "linear":
            s.needs_size(f"np.{function.__name__} of integers by another method than 'linear'")
        wide = elementwise(lambda x: cast(x, F64), s) if whole else s
        call.function = without_nans
        made = call.of(wide.filled(nan))
        if function is not without_nans and KIND[s.dtype] == "f":
            odd = SELECTED[np.any](np.isnan(s), call.axis, keepdims=call.keep)
            made = emit("select", odd, number(nan, made.dtype), made)
        if function in (np.quantile, np.percentile):
            made = unless_none(s, function.__name__, made)
        return call.finish(made)


for _name in ("median", "quantile", "percentile"):
    _other = getattr(np, f"nan{_name}")
    _quantile(getattr(np, _name), _other)
    _quantile(_other, _other)


@on_selections(np.average)
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    s, w = a, weights
    if not isinstance(s, Selection) or returned:
        aligned((a, weights))[0].needs_size("np.average of an array by weights that a mask chose")
    if w is None:
        return SELECTED[np.mean](s, axis, keepdims=keepdims)
    if (
        isinstance(w, Selection)
        and w.ndim == 1
        and s.ndim > 1
        and axes_of(axis, s.ndim) == (s._at,)
    ):
        w = w.like(emit("reshape", w._dense, shape=(*w._mask.shape, *(1,) * s.behind)), 0)
    dtypes = (s.dtype, traced(w).dtype if not isinstance(w, Selection) else w.dtype)
    made = common((*dtypes, *((F64,) if KIND[s.dtype] in "biu" else ())))
    weighted = np.multiply(s, w, dtype=made)
    shared = elementwise(lambda x, y: emit("broadcast", cast(traced(y), made), shape=x.shape), s, w)
    total = SELECTED[np.sum]
    return np.true_divide(
        total(weighted, axis, keepdims=keepdims), total(shared, axis, keepdims=keepdims)
    )


def _running(function: Any, identity: int) -> None:
    @on_selections(function)
    def apply(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        s = flat(a) if axis is None else a
        if out is not None:
            s.needs_size("out=")
        (where,) = axes_of(0 if axis is None else axis, s.ndim)
        if where != s._at:
            return s.like(FUNCTIONS[function](s._dense, dense_axes(s, where)[0], dtype))
        line = merged(s, s.filled(identity))
        made = FUNCTIONS[function](line, where, dtype)
        return s.like(emit("reshape", made, shape=s._dense.shape))


_running(np.cumsum, 0)
_running(np.cumprod, 1)


# Methods of ufuncs.

_FOLDS: dict[np.ufunc, Any] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.logical_or: np.any,
    np.logical_and: np.all,
}
_RUNS: dict[np.ufunc, Any] = {np.add: np.cumsum, np.multiply: np.cumprod}


@on_selections("accumulate")
def accumulate(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None) -> Any:
    function = _RUNS.get(ufunc)
    if function is None:
        array.needs_size(f"np.{ufunc.__name__}.accumulate")
    return SELECTED[function](array, axis, dtype)


@on_selections("reduce")
def reduce(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, **kwargs: Any) -> Any:
    function = _FOLDS.get(ufunc)
    if function is None:
        aligned((array, *kwargs.values()))[0].needs_size(f"np.{ufunc.__name__}.reduce")
    if dtype is not None:
        kwargs["dtype"] = dtype
    return SELECTED[function](array, axis, **kwargs)
