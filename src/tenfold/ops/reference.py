"""What the NumPy references have in common: how they meet sixteen-bit floats and scalars.

Sixteen-bit floats compute in float32 and are rounded after every op. Results are arrays,
zero-dimensional ones too. Warnings are the evaluator's to silence, with np.errstate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import numpy as np

from tenfold.types import BFLOAT16, DTYPES, DType

Array = np.ndarray[Any, Any]
NARROW: frozenset[DType] = frozenset({DTYPES["f16"], BFLOAT16})
F32 = DTYPES["f32"]
_NUMBERS = frozenset(dtype.num for dtype in NARROW)  # quicker to look up than dtypes


# What references come to, but for making an array of the result, where no input is narrow; and
# whether they do so for narrow ones too.
_plain: dict[Callable[..., Any], tuple[Callable[..., Any], bool]] = {}


def plain(reference: Callable[..., Any], dtypes: Iterable[DType]) -> Callable[..., Any]:
    """What a reference comes to for inputs of these dtypes: it may give a scalar for an array."""
    function, narrow = _plain.get(reference, (reference, True))
    return function if narrow or NARROW.isdisjoint(dtypes) else reference


def direct(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reference from a NumPy function that meets every dtype by itself."""

    @wraps(function, assigned=("__doc__",), updated=())
    def reference(*arrays: Array, **attributes: Any) -> Any:
        return np.asarray(function(*arrays, **attributes))

    _plain[reference] = function, True
    return reference


def widened(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reference that computes sixteen-bit floats in float32 and rounds once at the end."""

    @wraps(function, assigned=("__doc__",), updated=())
    def reference(*arrays: Array, **attributes: Any) -> Any:
        for array in arrays:
            if array.dtype.num in _NUMBERS:
                return _rounded(function, arrays, attributes, array.dtype)
        return np.asarray(function(*arrays, **attributes))

    _plain[reference] = function, False
    return reference


def _rounded(
    function: Callable[..., Any], arrays: tuple[Array, ...], attributes: Any, narrow: DType
) -> Array:
    wide = [a.astype(F32) if a.dtype in NARROW else a for a in arrays]
    result = np.asarray(function(*wide, **attributes))
    return result.astype(narrow) if result.dtype == F32 else result


def doubled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reference that computes float32 in float64 and rounds once at the end."""

    def double(*arrays: Array, **attributes: Any) -> Any:
        wide = [a.astype(np.float64) for a in arrays]
        return np.asarray(function(*wide, **attributes)).astype(arrays[0].dtype)

    return widened(double)
