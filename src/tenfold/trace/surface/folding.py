"""Folding: ufunc.reduce of the ufuncs that have no reduction of their own.

Where the order is free, neighbours are folded in pairs, half as many each time: a few nodes for
each doubling. Else it is a loop along the axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch, ValueProblem
from tenfold.trace.array import METHODS, UFUNCS, Array
from tenfold.trace.inner import trace_inner
from tenfold.trace.operand import scope_of, value_of
from tenfold.trace.scope import Scope
from tenfold.trace.surface.composed import filled
from tenfold.trace.surface.emit import ABSENT, axes_of, cast, emit, fail, traced
from tenfold.trace.surface.into import write
from tenfold.trace.surface.promotion import dtypes_for
from tenfold.trace.surface.ufunc_methods import _REDUCE
from tenfold.trace.surface.ufunc_methods import reduce as by_row
from tenfold.types import BOOL, KIND, TensorType

# Ufuncs that may be folded in any order.
_FREE = (
    *(np.bitwise_or, np.bitwise_and, np.bitwise_xor, np.logical_xor, np.fmax, np.fmin),
    *(np.logaddexp, np.logaddexp2, np.hypot, np.gcd, np.lcm),
)


def reduce(
    ufunc: np.ufunc,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = ABSENT,
    where: Any = True,
) -> Array:
    """ufunc.reduce, of any ufunc of two operands."""
    if ufunc in _REDUCE:
        more = {} if initial is ABSENT else {"initial": initial}
        more |= {} if where is True else {"where": where}
        return by_row(ufunc, array, axis, dtype, out, keepdims, **more)
    x = traced(array)
    x = cast(x, BOOL) if ufunc is np.logical_xor else x if dtype is None else cast(x, dtype)
    axes = () if not x.ndim and axis in (0, -1) else axes_of(axis, x.ndim)
    if len(axes) > 1 and ufunc not in _FREE:
        fail(
            ValueProblem,
            f"np.{ufunc.__name__}.reduce over {len(axes)} axes, whose order counts",
            "name one axis",
        )
    lines = _lines(ufunc, x, axes, initial, where)
    if not lines.shape[0]:
        if ufunc.identity is None:
            fail(
                ShapeError,
                f"np.{ufunc.__name__}.reduce of {x.type} over an empty axis",
                "give initial=, the result of nothing",
            )
        result = filled(_identity(ufunc, lines), lines.dtype, lines.shape[1:])
    else:
        result = (_paired if ufunc in _FREE else _looped)(ufunc, lines)
    if keepdims:
        shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape))
        result = emit("reshape", result, shape=shape)
    if isinstance(out, tuple):
        (out,) = out
    return result if out is None else write(out, result)


def _lines(ufunc: np.ufunc, x: Array, axes: tuple[int, ...], initial: Any, where: Any) -> Array:
    """What is folded, along the first axis, in the dtype that the ufunc gives."""
    dtypes = dtypes_for(ufunc, (x.dtype, x.dtype))
    if len(set(dtypes)) > 1:
        fail(
            TypeMismatch,
            f"np.{ufunc.__name__}.reduce of {x.type}, whose results have another dtype",
            "write the loop with tn.scan",
        )
    x = cast(x, dtypes[-1])
    if where is not True:
        if ufunc.identity is None:
            fail(
                ValueProblem,
                f"np.{ufunc.__name__}.reduce has no identity, so it takes no where=",
                "choose with np.where before",
            )
        x = emit("select", traced(where, BOOL), x, filled(_identity(ufunc, x), x.dtype, x.shape))
    rest = tuple(a for a in range(x.ndim) if a not in axes)
    count = 1
    for a in axes:
        count *= x.shape[a]
    turned = emit("transpose", x, axes=(*axes, *rest))
    lines = emit("reshape", turned, shape=(count, *(x.shape[a] for a in rest)))
    if initial is ABSENT or initial is None:
        return lines
    first = emit("broadcast", traced(initial, x.dtype), shape=(1, *lines.shape[1:]))
    return emit("concatenate", first, lines, axis=0)


def _identity(ufunc: np.ufunc, x: Array) -> Any:
    if ufunc is np.bitwise_and:
        return True if x.dtype == BOOL else -1 if KIND[x.dtype] == "i" else np.iinfo(x.dtype).max
    return ufunc.identity


def _paired(ufunc: np.ufunc, lines: Array) -> Array:
    while (count := lines.shape[0]) > 1:
        half = count // 2
        made = UFUNCS[ufunc](lines[:half], lines[half : 2 * half])
        lines = emit("concatenate", made, lines[2 * half :], axis=0) if count % 2 else made
    return emit("reshape", lines, shape=lines.shape[1:])


def _looped(ufunc: np.ufunc, lines: Array) -> Array:
    first, rest = lines[0], lines[1:]
    type = TensorType(lines.dtype, first.shape)
    scope = scope_of(lines)

    def body(inner: Scope) -> Any:
        held, new = (Array(inner, inner.builder.parameter(type)) for _ in range(2))
        return UFUNCS[ufunc](held, new)

    step = trace_inner(f"np.{ufunc.__name__}.reduce", body)
    step.give(step.leaves[0], type)
    given = {"captures": 0, "carries": 1, "length": rest.shape[0], "reverse": False, "unroll": 1}
    inputs = [value_of(first, scope), value_of(rest, scope)]
    (made,) = scope.node("scan", inputs, given, [step.close(())])
    return Array(scope, made)


METHODS["reduce"] = reduce
