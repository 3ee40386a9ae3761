"""Conversion: arrays of traced arrays and of nested lists with some inside, and joined by np.r_."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np

from tenfold.errors import Unsupported, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.host.compute import any_traced
from tenfold.trace.operand import dtype_key
from tenfold.trace.surface.emit import cast, dtype_of, fail, on, traced
from tenfold.trace.surface.shaping import creation
from tenfold.trace.surface.shaping.joining import concatenate
from tenfold.trace.surface.shaping.shapes import reshape
from tenfold.trace.surface.steps import alias, lies
from tenfold.trace.surface.ufuncs.composed import same
from tenfold.trace.surface.ufuncs.promotion import common


@on(np.array)
def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
) -> Array:
    made = asarray(object, dtype, order, copy=copy)
    if made.ndim < ndmin:
        return reshape(made, (1,) * (ndmin - made.ndim) + made.shape)
    return made


def _own(made: Array) -> Array:
    """A new array; one without axes is no number: `x += v` updates it."""
    return made if made.shape else alias(made)


@on(np.asarray, np.asanyarray)
def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None
) -> Array:
    """The array itself where it is one of that dtype, and would lie in that order."""
    copy = None if copy in (None, np._CopyMode.IF_NEEDED) else bool(copy)
    wanted = None if dtype is None else dtype_of(dtype)
    if not isinstance(a, Array):
        if copy is False:
            fail(ValueProblem, "an array of a list without a copy", "leave copy=False out")
        return _own(traced(a, wanted))
    if wanted is not None and wanted != a.dtype:
        if copy is False:
            fail(ValueProblem, f"{a.type} as {wanted} without a copy", "leave copy=False out")
        return _own(cast(a, wanted))
    apart = not lies(a, order)
    if apart and copy is False:
        fail(ValueProblem, f"order={order!r} without a copy", "leave copy=False out")
    return _own(same(a)) if copy or apart or a._weak else a


@on(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None) -> Array:
    return array(a, dtype, copy=None, order="C", ndmin=1)


@on(np.asfortranarray)
def asfortranarray(a: Any, dtype: Any = None) -> Array:
    return array(a, dtype, copy=None, order="F", ndmin=1)


@on(np.require)
def require(a: Any, dtype: Any = None, requirements: Any = None) -> Array:
    asked = {str(r).upper()[:1] for r in requirements or ()}
    order = "F" if "F" in asked else "C" if "C" in asked else None
    made = asarray(a, dtype, order)
    apart = ("O" in asked and made._view is not None) or ("W" in asked and made._readonly)
    return same(made) if apart else made


@on(np.full)
def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None
) -> Array:
    return _own(creation.full(shape, fill_value, dtype))


@on(np.fromiter)
def fromiter(iter: Iterable[Any], dtype: Any, count: int = -1) -> Array:
    items = list(iter if count < 0 else islice(iter, count))
    if len(items) < count:
        fail(ValueProblem, f"fromiter: {len(items)} items where {count} are asked for")
    return traced(items, dtype_of(dtype))


def _joined(along: Any) -> None:
    """File np.r_ or np.c_, of a key with traced arrays in it."""

    @on(along)
    def join(key: Any) -> Array:
        items = key if isinstance(key, tuple) else (key,)
        directive = items[:1] if isinstance(items[0], str) else ()
        if directive and directive[0] in ("r", "c"):
            fail(Unsupported, "a matrix of traced arrays", "join them without 'r' or 'c'")
        parts, keys = [], []
        for item in items[len(directive) :]:
            if any_traced((item,)):
                part = traced(item)
                there = along[(*directive, np.empty(part.shape))]  # as NumPy would bring it there
                part = reshape(part, there.shape)
                keys.append(dtype_key(item) if isinstance(item, Array) else part.dtype)
            else:
                part = traced(along[(*directive, item)])
                keys.append(dtype_key(item) if not isinstance(item, slice) else part.dtype)
            parts.append(part)
        dtype = common(tuple(keys))
        axis = int(directive[0].split(",")[0]) if directive else along.axis
        return concatenate([cast(part, dtype) for part in parts], axis)


_joined(np.r_)
_joined(np.c_)
