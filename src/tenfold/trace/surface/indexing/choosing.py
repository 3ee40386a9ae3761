"""Choosing: where, select, choose, clip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch
from tenfold.trace.array import Array
from tenfold.trace.operand import dtype_key
from tenfold.trace.surface.emit import ABSENT, cast, emit, fail, is_array, on, traced
from tenfold.trace.surface.indexing.taking import take_along_axis
from tenfold.trace.surface.into import as_kind, write
from tenfold.trace.surface.methods import nonzero
from tenfold.trace.surface.shaping.joining import stack
from tenfold.trace.surface.shaping.shapes import together
from tenfold.trace.surface.ufuncs.promotion import common
from tenfold.trace.tables import UFUNCS
from tenfold.types import BOOL, I64, KIND


def _operands(*operands: Any) -> list[Any]:
    return [x if is_array(x) else traced(x) for x in operands]


@on(np.where)
def where(condition: Any, x: Any = ABSENT, y: Any = ABSENT, /) -> Array:
    if x is ABSENT and y is ABSENT:
        return nonzero(condition)  # type: ignore[no-any-return]
    if y is ABSENT:
        fail(TypeMismatch, "where with one of its two values", "write np.where(c, x, y)")
    x, y = _operands(x, y)
    dtype = common((dtype_key(x), dtype_key(y)))
    chosen = traced(condition, BOOL)
    return emit("select", chosen, traced(x, dtype), traced(y, dtype))


@on(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    if len(condlist) != len(choicelist) or not condlist:
        fail(
            ShapeError,
            f"select: {len(condlist)} conditions for {len(choicelist)} choices",
            "give as many, at least one",
        )
    choices = _operands(*choicelist)
    (rest,) = _operands(default)
    dtype = common(tuple(dtype_key(x) for x in (*choices, rest)))
    result = traced(rest, dtype)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        result = emit("select", traced(condition, BOOL), traced(choice, dtype), result)
    shape = together(*(traced(x) for x in (*condlist, *choices)))
    return emit("broadcast", result, shape=shape) if result.shape != shape else result


@on(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Array:
    index = cast(traced(a), I64)
    if isinstance(choices, Array):
        choices = [choices[i] for i in range(len(choices))]
    items = _operands(*choices)
    dtype = common(tuple(dtype_key(x) for x in items))
    arrays = [traced(x, dtype) for x in items]
    shape = together(index, *arrays)
    tall = stack([emit("broadcast", x, shape=shape) for x in arrays])
    index = emit("broadcast", index, shape=shape)
    if mode == "clip":
        index = UFUNCS[np.minimum](UFUNCS[np.maximum](index, 0), len(arrays) - 1)
    elif mode == "wrap":
        index = UFUNCS[np.remainder](index, len(arrays))
    picked = take_along_axis(tall, emit("reshape", index, shape=(1, *shape)), 0)
    result = emit("reshape", picked, shape=shape)
    return result if out is None else write(out, result)


@on(np.clip)
def clip(
    a: Any,
    a_min: Any = ABSENT,
    a_max: Any = ABSENT,
    out: Any = None,
    *,
    min: Any = ABSENT,
    max: Any = ABSENT,
    dtype: Any = None,
) -> Array:
    low, high = (min if a_min is ABSENT else a_min), (max if a_max is ABSENT else a_max)
    low, high = (None if low is ABSENT else low), (None if high is ABSENT else high)
    x = as_kind(a, dtype) if dtype is not None else traced(a)
    if KIND[x.dtype] in "iu" and not x._weak:  # an integer that no element passes is no bound
        limits = np.iinfo(x.dtype)
        low = None if type(low) is int and low < limits.min else low
        high = None if type(high) is int and high > limits.max else high
    bounds = _operands(*(b for b in (low, high) if b is not None))
    made = common(tuple(dtype_key(b) for b in (x, *bounds)))
    wide = cast(x, made)
    if low is None and high is None:
        result = UFUNCS[np.positive](x)
    elif high is None:
        result = UFUNCS[np.maximum](wide, bounds[0])
    elif low is None:
        result = UFUNCS[np.minimum](wide, bounds[0])
    elif KIND[made] == "c":
        result = UFUNCS[np.minimum](UFUNCS[np.maximum](wide, bounds[0]), bounds[1])
    else:
        result = emit("clip", wide, *(traced(b, made) for b in bounds))
    return result if out is None else write(out, result)
