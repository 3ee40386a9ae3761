"""Folding: reduce and accumulate of ufuncs that no row of the op table reduces by.

Where the order is free, neighbours are reduced in pairs, half as many each time: a few nodes for
each doubling. Else it is a loop along the axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch, Unsupported, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.control.inner import trace_inner
from tenfold.trace.operand import scope_of, value_of
from tenfold.trace.scope import Scope, current
from tenfold.trace.surface.emit import axes_of, cast, emit, fail, traced
from tenfold.trace.surface.reducing.reductions import given, whole
from tenfold.trace.surface.shaping.shapes import together
from tenfold.trace.surface.ufuncs.composed import filled
from tenfold.trace.surface.ufuncs.promotion import dtypes_for
from tenfold.trace.tables import FUNCTIONS, UFUNCS
from tenfold.types import BOOL, KIND, DType, TensorType

_TRUTHS = (np.logical_or, np.logical_and, np.logical_xor)
# Those without an identity that NumPy still takes over several axes.
_ANY_ORDER = (np.maximum, np.minimum, np.fmax, np.fmin)
# Those that may be taken in any order.
_FREE = (
    *(np.bitwise_or, np.bitwise_and, np.bitwise_xor, np.logical_or, np.logical_and),
    *(np.logical_xor, np.logaddexp, np.logaddexp2, np.hypot, np.gcd, np.lcm),
    *_ANY_ORDER,
)


def foldable(ufunc: np.ufunc, method: str, x: Array) -> tuple[Array, DType]:
    """The operand in the dtype that the ufunc gives and takes on, and that of what is new."""
    if ufunc.nin != 2 or ufunc.nout != 1 or ufunc.signature is not None:
        fail(
            Unsupported,
            f"np.{ufunc.__name__}.{method}",
            "it takes a ufunc of two operands and one result",
        )
    if ufunc in _TRUTHS:
        return cast(x, BOOL), BOOL
    held, new, made = dtypes_for(ufunc, (x.dtype, x.dtype))
    if held != made or (new != made and method != "reduce"):  # as NumPy has it
        fail(
            TypeMismatch,
            f"np.{ufunc.__name__}.{method} of {x.type}, whose results have another dtype",
            "write the loop with tn.scan",
        )
    return cast(x, made), new


def steps(ufunc: np.ufunc, method: str, first: Array, rest: Array, keep: bool) -> Array:
    """The last result along the first axis, or with `keep` that of every step."""
    if current() is None:  # of lazy arrays: a program of its own
        from tenfold.trace.control.eager import at_once  # it imports this package

        made_at_once: Array = at_once(lambda a, b: steps(ufunc, method, a, b, keep), first, rest)
        return made_at_once
    type = TensorType(first.dtype, first.shape)
    newer = TensorType(rest.dtype, first.shape)
    scope = scope_of(first)

    def body(inner: Scope) -> Any:
        held, new = (Array(inner, inner.builder.parameter(t)) for t in (type, newer))
        return UFUNCS[ufunc](held, new)

    step = trace_inner(f"np.{ufunc.__name__}.{method}", body)
    for _ in range(2 if keep else 1):  # carried on, and kept
        step.give(step.leaves[0], type)
    attributes = {
        "captures": 0,
        "carries": 1,
        "length": rest.shape[0],
        "reverse": False,
        "unroll": 1,
    }
    inputs = [value_of(first, scope), value_of(rest, scope)]
    made = scope.node("scan", inputs, attributes, [step.close(())])
    return Array(scope, made[-1])


def reduce_by_steps(
    ufunc: np.ufunc, x: Array, axis: Any, keepdims: Any, initial: Any, where: Any
) -> Array:
    """ufunc.reduce where no reduction of the op table is it."""
    x, new = foldable(ufunc, "reduce", x)
    if where is not True:
        x = _left_out(ufunc, x, initial, where)
    axes = axes_of(whole(axis, x), x.ndim)
    if len(axes) > 1 and ufunc.identity is None and ufunc not in _ANY_ORDER:
        fail(
            ValueProblem,
            f"np.{ufunc.__name__}.reduce over several axes, whose order counts",
            "reduce one axis at a time",
        )
    rest = [i for i in range(x.ndim) if i not in axes]
    transposed = emit("transpose", x, axes=(*axes, *rest))
    shape = tuple(x.shape[i] for i in rest)
    count = int(np.prod([x.shape[i] for i in axes]))
    lines = emit("reshape", transposed, shape=(count, *shape))
    result = _folded(ufunc, lines, initial, new)
    if keepdims is True:
        kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
        result = emit("reshape", result, shape=kept)
    return result


def _folded(ufunc: np.ufunc, lines: Array, initial: Any, new: DType) -> Array:
    shape = lines.shape[1:]
    if given(initial):
        first = emit("broadcast", traced(initial, lines.dtype), shape=shape)
        lines = emit("concatenate", emit("reshape", first, shape=(1, *shape)), lines, axis=0)
    if lines.shape[0] == 0:
        if ufunc.identity is None and 0 not in shape:
            fail(
                ShapeError,
                f"np.{ufunc.__name__}.reduce over an empty axis",
                "give initial=, the result of nothing",
            )
        nothing = identity(ufunc, lines)
        return emit("broadcast", nothing, shape=shape) if shape else nothing
    if lines.shape[0] == 1:
        only = emit("reshape", lines, shape=shape)
        if ufunc in (np.gcd, np.hypot) and not given(
            initial
        ):  # one with the identity is its absolute value
            only = UFUNCS[ufunc](identity(ufunc, lines), only)
        return only
    if ufunc in _FREE:
        return _paired(ufunc, lines)
    return steps(ufunc, "reduce", lines[0], cast(lines[1:], new), False)


def _paired(ufunc: np.ufunc, lines: Array) -> Array:
    while (count := lines.shape[0]) > 1:
        half = count // 2
        made = UFUNCS[ufunc](lines[:half], lines[half : 2 * half])
        lines = emit("concatenate", made, lines[2 * half :], axis=0) if count % 2 else made
    return emit("reshape", lines, shape=lines.shape[1:])


def identity(ufunc: np.ufunc, x: Array) -> Array:
    """The result of a ufunc of nothing, in an array's dtype."""
    if ufunc.identity == -1 and KIND[x.dtype] in "bu":  # all bits
        return emit("not", filled(0, x.dtype, ()))
    return filled(0 if ufunc.identity is None else ufunc.identity, x.dtype, ())


def _left_out(ufunc: np.ufunc, x: Array, initial: Any, where: Any) -> Array:
    if ufunc.identity is None:
        fail(
            ValueProblem,
            f"np.{ufunc.__name__}.reduce has no identity, so it takes no where=",
            "choose before: np.where",
        )
    shape = together(x, traced(where))
    wide = emit("broadcast", x, shape=shape) if x.shape != shape else x
    nothing = emit("broadcast", identity(ufunc, x), shape=shape) if shape else identity(ufunc, x)
    return emit("select", traced(where, BOOL), wide, nothing)


def accumulate_by_steps(ufunc: np.ufunc, x: Array, axis: int) -> Array:
    """ufunc.accumulate where no cumulative row of the op table is it."""
    x, new = foldable(ufunc, "accumulate", x)
    if x.shape[axis] == 0:
        return x
    lines = FUNCTIONS[np.moveaxis](x, axis, 0)
    first = lines[0]
    kept = steps(ufunc, "accumulate", first, cast(lines[1:], new), True)
    tall = emit("reshape", first, shape=(1, *first.shape))
    made = emit("concatenate", tall, kept, axis=0)
    result: Array = FUNCTIONS[np.moveaxis](made, 0, axis)
    return result
