"""Reductions: over one axis, several or all, with NumPy's dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import (
    ABSENT,
    axes_of,
    axis_of,
    cast,
    emit,
    emit_normal,
    fail,
    on,
    traced,
)
from tenfold.trace.surface.into import write
from tenfold.trace.surface.ufuncs.composed import filled
from tenfold.trace.tables import METHODS
from tenfold.types import BFLOAT16, BOOL, DTYPES, I64, KIND, DType

_U64 = DTYPES["u64"]
_HALVES = (DTYPES["f16"], BFLOAT16)


def given(value: Any) -> bool:
    """Whether an argument was given at all."""
    return value is not ABSENT and value is not None


def whole(axis: Any, x: Array) -> Any:
    """The axis; of a 0-d array None for the first or last, which NumPy lets it have."""
    if x.ndim:
        return axis
    alone = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
    return None if type(alone) is int and alone in (0, -1) else axis


def _kept(x: Array, result: Array, axes: tuple[int, ...], keepdims: Any) -> Array:
    if keepdims is ABSENT or not keepdims:
        return result
    shape = tuple([1 if a in axes else n for a, n in enumerate(x.shape)])
    return emit_normal("reshape", (("shape", shape),), result)


def finish(result: Array, out: Any) -> Array:
    if isinstance(out, tuple):
        (out,) = out
    return result if out is None else write(out, result)


def fold(
    op: str,
    x: Array,
    axis: Any = None,
    keepdims: Any = False,
    initial: Any = ABSENT,
    where: Any = True,
    identity: Any = None,
) -> Array:
    """Reduce an array in its own dtype; what `where` leaves out counts as the identity."""
    axis = whole(axis, x)
    axes = axes_of(axis, x.ndim)
    if given(initial):
        initial = traced(initial, x.dtype)
        if initial.ndim:
            fail(ShapeError, f"initial= of type {initial.type}", "give one number")
    if where is not True and where is not ABSENT:
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
    if identity is None and 0 in x.shape and any(x.shape[a] == 0 for a in axes):
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
            result = emit("broadcast", initial, shape=shape)
        return _kept(x, result, axes, keepdims)
    result = emit_normal(op, (("axes", tuple(sorted(axes))),), x)
    if given(initial):
        result = emit(_PAIR[op], result, initial)
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
        initial: Any = ABSENT,
        where: Any = True,
    ) -> Array:
        x = traced(a)
        x = cast(x, _wide(x.dtype) if dtype is None else dtype)
        if x.dtype == BOOL:
            op_here = {"reduce_sum": "reduce_any", "reduce_prod": "reduce_all"}[op]
        else:
            op_here = op
        return finish(fold(op_here, x, axis, keepdims, initial, where, identity), out)

    return apply


total = on(np.sum)(_total("reduce_sum", 0))
product = on(np.prod)(_total("reduce_prod", 1))


def _extreme(op: str, ufunc: np.ufunc) -> Callable[..., Array]:
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
        return finish(fold(op, x, axis, keepdims, initial, where), out)

    return apply


def unordered(
    ufunc: np.ufunc, x: Array, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any
) -> Array:
    """The extreme of complex numbers, for which the op table has no reduction."""
    made: Array = METHODS["reduce"](
        ufunc, x, axis, None, out, keepdims is True, initial=initial, where=where
    )
    return made


largest = on(np.max, np.amax)(_extreme("reduce_max", np.maximum))
smallest = on(np.min, np.amin)(_extreme("reduce_min", np.minimum))


def _truth(op: str, identity: bool) -> Callable[..., Array]:
    def apply(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
    ) -> Array:
        x = traced(a, BOOL)
        return finish(fold(op, x, axis, keepdims, where=where, identity=identity), out)

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
        return finish(result, out)

    return apply


argmax = on(np.argmax)(_position("argmax"))
argmin = on(np.argmin)(_position("argmin"))
