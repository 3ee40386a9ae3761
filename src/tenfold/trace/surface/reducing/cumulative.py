"""Cumulative: running sums, products and extremes, and ufunc.accumulate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.errors import ShapeError
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import axis_of, cast, emit, fail, on, traced
from tenfold.trace.surface.into import write
from tenfold.trace.surface.reducing.folding import accumulate_by_steps
from tenfold.trace.surface.ufuncs.composed import filled, number
from tenfold.trace.tables import METHODS
from tenfold.types import BOOL, DTYPES, I64, KIND, DType

_OF_NOTHING = {"cumsum": 0, "cumprod": 1}


def _wide(dtype: DType) -> DType:
    """The dtype NumPy sums in."""
    return DTYPES["u64"] if KIND[dtype] == "u" else I64 if KIND[dtype] in "bi" else dtype


def _flat(x: Array, axis: Any) -> tuple[Array, int]:
    if axis is None:
        return emit("reshape", x, shape=(x.size,)), 0
    if x.ndim == 0:
        axis_of(axis, 1)
        return emit("reshape", x, shape=(1,)), 0
    return x, axis_of(axis, x.ndim)


def _finish(result: Array, out: Any) -> Array:
    if isinstance(out, tuple):
        (out,) = out
    return result if out is None else write(out, result)


def _running(op: str, x: Array, axis: int) -> Array:
    if x.dtype == BOOL and op in _OF_NOTHING:
        op = "cummax" if op == "cumsum" else "cummin"
    if op == "cumprod" and KIND[x.dtype] == "c":  # with infinities the order counts, and so does 1
        return accumulate_by_steps(np.multiply, x, axis)
    return emit(op, x, axis=axis, reverse=False)


def _total(op: str) -> Callable[..., Array]:
    def apply(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
        x = traced(a)
        x, at = _flat(cast(x, _wide(x.dtype) if dtype is None else dtype), axis)
        return _finish(_running(op, x, at), out)

    return apply


cumsum = on(np.cumsum)(_total("cumsum"))
cumprod = on(np.cumprod)(_total("cumprod"))


def _without_nans(op: str, plain: Callable[..., Array]) -> Callable[..., Array]:
    def apply(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
        x = traced(a)
        if KIND[x.dtype] in "fc":
            x = emit("select", emit("isnan", x), number(_OF_NOTHING[op], x.dtype), x)
        return plain(x, axis, dtype, out)

    return apply


nancumsum = on(np.nancumsum)(_without_nans("cumsum", cumsum))
nancumprod = on(np.nancumprod)(_without_nans("cumprod", cumprod))


def _standard(op: str, plain: Callable[..., Array]) -> Callable[..., Array]:
    def apply(
        x: Any,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: bool = False,
    ) -> Array:
        array = traced(x)
        if array.ndim == 0:
            array = emit("reshape", array, shape=(1,))
        if axis is None:
            if array.ndim != 1:
                fail(
                    ShapeError,
                    f"a cumulative function of {array.type} without an axis",
                    "name one: axis=0",
                )
            axis = 0
        result = plain(array, axis, dtype)
        if include_initial:
            at = axis_of(axis, array.ndim)
            shape = (*array.shape[:at], 1, *array.shape[at + 1 :])
            first = filled(_OF_NOTHING[op], result.dtype, shape)
            result = emit("concatenate", first, result, axis=at)
        return _finish(result, out)

    return apply


cumulative_sum = on(np.cumulative_sum)(_standard("cumsum", cumsum))
cumulative_prod = on(np.cumulative_prod)(_standard("cumprod", cumprod))


_ROWS: dict[np.ufunc, str] = {
    np.add: "cumsum",
    np.multiply: "cumprod",
    np.maximum: "cummax",
    np.minimum: "cummin",
    np.logical_or: "cummax",
    np.logical_and: "cummin",
    np.bitwise_or: "cummax",
    np.bitwise_and: "cummin",
}
_TRUTHS = (np.logical_or, np.logical_and, np.logical_xor)
_BITS = (np.bitwise_or, np.bitwise_and)


def accumulate(
    ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None
) -> Array:
    """ufunc.accumulate: one op where there is one, else a loop along the axis."""
    x = traced(array)
    if x.ndim == 0:
        fail(ShapeError, "accumulate of a 0-d array", "give it at least one axis")
    at = axis_of(axis, x.ndim)
    if ufunc in _TRUTHS:
        x = cast(x, BOOL)
    elif dtype is not None:
        x = cast(x, dtype)
    elif ufunc in (np.add, np.multiply):
        x = cast(x, _wide(x.dtype))
    op = _ROWS.get(ufunc)
    bits = ufunc in _BITS and x.dtype != BOOL
    unordered = KIND[x.dtype] == "c" and ufunc in (np.maximum, np.minimum)
    if op is not None and not bits and not unordered:
        return _finish(_running(op, x, at), out)
    return _finish(accumulate_by_steps(ufunc, x, at), out)


METHODS["accumulate"] = accumulate
