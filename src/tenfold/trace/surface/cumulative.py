"""Cumulative: running sums, products and extremes, and ufunc.accumulate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch, Unsupported
from tenfold.trace.array import FUNCTIONS, METHODS, UFUNCS, Array
from tenfold.trace.inner import trace_inner
from tenfold.trace.operand import scope_of, value_of
from tenfold.trace.scope import Scope
from tenfold.trace.surface.composed import filled, number
from tenfold.trace.surface.emit import axis_of, cast, emit, fail, on, traced
from tenfold.trace.surface.into import write
from tenfold.trace.surface.promotion import dtypes_for
from tenfold.types import BOOL, DTYPES, I64, KIND, DType, TensorType

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
        if axis is None:
            if array.ndim != 1:
                fail(
                    ShapeError,
                    f"a cumulative function of {array.type} without an axis",
                    "name one: axis=0",
                )
            axis = 0
        if array.ndim == 0:
            fail(ShapeError, "a cumulative function of a 0-d array", "give it at least one axis")
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
    if ufunc.nin != 2 or ufunc.nout != 1:
        fail(
            Unsupported,
            f"np.{ufunc.__name__}.accumulate",
            "it takes a ufunc of two operands and one result",
        )
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
    if op is not None and (ufunc not in _BITS or x.dtype == BOOL):
        return _finish(_running(op, x, at), out)
    return _finish(_looped(ufunc, x, at), out)


def _looped(ufunc: np.ufunc, x: Array, axis: int) -> Array:
    """One step of the ufunc for each place of the axis, in order."""
    dtypes = dtypes_for(ufunc, (x.dtype, x.dtype))
    if len(set(dtypes)) > 1:
        fail(
            TypeMismatch,
            f"np.{ufunc.__name__}.accumulate of {x.type}, whose results have another dtype",
            "write the loop with tn.scan",
        )
    x = cast(x, dtypes[-1])
    if x.shape[axis] == 0:
        return x
    lines = FUNCTIONS[np.moveaxis](x, axis, 0)
    first, rest = lines[0], lines[1:]
    type = TensorType(x.dtype, first.shape)
    scope = scope_of(x)

    def body(inner: Scope) -> Any:
        held, new = (Array(inner, inner.builder.parameter(type)) for _ in range(2))
        return UFUNCS[ufunc](held, new)

    step = trace_inner(f"np.{ufunc.__name__}.accumulate", body)
    for _ in range(2):  # carried on, and kept
        step.give(step.leaves[0], type)
    given = {
        "captures": 0,
        "carries": 1,
        "length": x.shape[axis] - 1,
        "reverse": False,
        "unroll": 1,
    }
    inputs = [value_of(first, scope), value_of(rest, scope)]
    _, kept = scope.node("scan", inputs, given, [step.close(())])
    tall = emit("reshape", first, shape=(1, *first.shape))
    made = emit("concatenate", tall, Array(scope, kept), axis=0)
    result: Array = FUNCTIONS[np.moveaxis](made, 0, axis)
    return result


METHODS["accumulate"] = accumulate
for _name, _method in (("cumsum", cumsum), ("cumprod", cumprod)):
    setattr(Array, _name, _method)
