"""Comparisons: exact between uint64 and int64, and for Python integers of any size."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tenfold.trace.array import Array
from tenfold.trace.operand import dtype_key, scope_of, value_of
from tenfold.trace.surface.emit import cast, emit, traced
from tenfold.trace.surface.ufuncs.composed import filled, number
from tenfold.trace.surface.ufuncs.ufuncs import Build, define
from tenfold.types import BOOL, DTYPES, I64, KIND, DType

_U64 = DTYPES["u64"]

# Each comparison's op, the op with its sides swapped, and whether a negative left side holds
# against any unsigned right side.
_ROWS: dict[np.ufunc, tuple[str, str, bool]] = {
    np.equal: ("eq", "eq", False),
    np.not_equal: ("ne", "ne", True),
    np.less: ("lt", "gt", True),
    np.less_equal: ("le", "ge", True),
    np.greater: ("gt", "lt", False),
    np.greater_equal: ("ge", "le", False),
}
_NEGATIVE = {op: holds for op, _, holds in _ROWS.values()}


def _mixed(op: str) -> Callable[[Array, Array], Array]:
    """A comparison of int64 with uint64."""

    def apply(signed: Array, unsigned: Array) -> Array:
        below = emit("lt", signed, number(0, I64))
        found = emit(op, cast(signed, _U64), unsigned)
        if _NEGATIVE[op]:
            return emit("or", below, found)
        return emit("and", emit("not", below), found)

    return apply


def _choice(op: str, swapped: str) -> Callable[[tuple[DType, ...]], Build]:
    def choose(dtypes: tuple[DType, ...]) -> Build:
        if dtypes == (I64, _U64):
            return _mixed(op)
        if dtypes == (_U64, I64):
            return lambda x, y: _mixed(swapped)(y, x)
        return op

    return choose


def _outside(integer: Any, other: Any) -> int:
    """Whether a Python integer lies above (1) or below (-1) all that the other can hold."""
    if type(integer) is not int or type(other) is int:
        return 0
    key = dtype_key(other)
    if isinstance(key, type) or KIND[key] not in "iu":
        return 0
    limits = np.iinfo(key)
    return 1 if integer > limits.max else -1 if integer < limits.min else 0


def _sized(x: Any, other: Any) -> Any:
    """A traced Python integer with a size of its own, so that it is not cut to the other's."""
    if type(x) is Array and x._weak is int:
        key = dtype_key(other)
        if not isinstance(key, type) and KIND[key] in "iu":
            scope = scope_of(x)
            return Array(scope, value_of(x, scope))
    return x


def _outside_first(ufunc: np.ufunc, within: Callable[..., Any]) -> Callable[..., Any]:
    """A comparison that knows what comes of an integer outside the other's dtype."""

    def apply(x: Any, y: Any) -> Any:
        if type(y) is int:
            side = _outside(y, x)
            if side:
                return filled(bool(ufunc(0, side)), BOOL, traced(x).shape)
        elif type(x) is int:
            side = _outside(x, y)
            if side:
                return filled(bool(ufunc(side, 0)), BOOL, traced(y).shape)
        if (type(x) is Array and x._weak) or (type(y) is Array and y._weak):
            x, y = _sized(x, y), _sized(y, x)
        return within(x, y)

    return apply


for _ufunc, (_op, _swapped, _) in _ROWS.items():
    define(_ufunc, _choice(_op, _swapped), choose=True, around=partial(_outside_first, _ufunc))
