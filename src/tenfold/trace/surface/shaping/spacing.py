"""Spacing: logspace and geomspace, on linspace."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.trace.array import Array
from tenfold.trace.operand import dtype_key
from tenfold.trace.surface.emit import cast, dtype_of, emit, is_array, on, static_int, traced
from tenfold.trace.surface.shaping.creation import linspace
from tenfold.trace.surface.shaping.joining import concatenate
from tenfold.trace.surface.shaping.shapes import cut, moveaxis
from tenfold.trace.surface.ufuncs.promotion import common
from tenfold.trace.tables import UFUNCS
from tenfold.types import F64


@on(np.logspace)
def logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: Any = 0,
) -> Array:
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    made: Array = UFUNCS[np.power](base, exponents)
    return made if dtype is None else cast(made, dtype)


@on(np.geomspace)
def geomspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: Any = 0
) -> Array:
    """Neither end may be 0, which gives NaN."""
    start, stop = (x if is_array(x) else traced(x) for x in (start, stop))
    given = F64 if dtype is None else dtype_of(dtype)
    inner = common((dtype_key(start), dtype_key(stop), float, given))
    low, high = traced(start, inner), traced(stop, inner)
    sign = UFUNCS[np.sign](low)
    low, high = emit("div", low, sign), emit("div", high, sign)
    first, last = UFUNCS[np.log10](low), UFUNCS[np.log10](high)
    made = cast(logspace(first, last, num, endpoint), inner)
    count = static_int(num, "num")
    if count > 0:
        first = emit("broadcast", low, shape=(1, *made.shape[1:]))
        last = emit("broadcast", high, shape=(1, *made.shape[1:]))
        inside = cut(made, 0, 1, count - 1 if endpoint and count > 1 else count)
        ends_too = [first, inside, last] if endpoint and count > 1 else [first, inside]
        made = concatenate(ends_too)
    made = cast(UFUNCS[np.multiply](made, sign), inner if dtype is None else given)
    return made if axis == 0 else moveaxis(made, 0, axis)
