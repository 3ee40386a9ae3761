"""Conversions: floats to integers saturate, and NaN gives 0."""

from __future__ import annotations

import numpy as np

from tenfold.kernel.ir.legal import kind
from tenfold.kernel.passes.rewrite import Rewriter
from tenfold.types import DTYPES

_DIGITS = {"f32": 24, "f64": 53}


def cast(b: Rewriter, x: int, dtype: str) -> int:
    """A value in another dtype."""
    source = b.dtype(x)
    if dtype == "bool":
        return x if source == "bool" else b.do("ne", x, b.like(x, 0))
    if kind(source) == "f" and kind(dtype) in "iu":
        return _saturated(b, x, dtype)
    return b.cast(x, dtype)


def bitcast(b: Rewriter, x: int, dtype: str) -> int:
    """The same bits in another dtype; of a bool they are a byte."""
    if b.dtype(x) == "bool":
        return b.cast(x, dtype)
    return b.do("ne", x, b.like(x, 0)) if dtype == "bool" else b.bitcast(x, dtype)


def _saturated(b: Rewriter, x: int, dtype: str) -> int:
    info = np.iinfo(DTYPES[dtype])
    low, high, zero = b.like(x, info.min), b.like(x, info.max), b.like(x, 0.0)
    if int(info.max).bit_length() <= _DIGITS[b.dtype(x)]:
        inside = b.select(b.do("gt", x, low), x, low)  # the lowest for a NaN
        inside = b.select(b.do("lt", inside, high), inside, high)
        if info.min:
            inside = b.select(b.do("eq", x, x), inside, zero)
        return b.cast(inside, dtype)
    # The highest is no float, the one after it is: what is not below goes its own way.
    inside = b.select(b.do("lt", x, high), x, zero)
    inside = b.select(b.do("gt", inside, low), inside, low)
    return b.select(b.do("ge", x, high), b.const(dtype, info.max), b.cast(inside, dtype))
