"""Units in the last place, and what the types of floats are: what bounds are measured in."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.types import KIND, SHORT

Array = np.ndarray[Any, Any]

EPS = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52, "c64": 2.0**-23,
       "c128": 2.0**-52}  # fmt: skip
TINY = {"f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149, "f64": 2.0**-1074, "c64": 2.0**-149,
        "c128": 2.0**-1074}  # fmt: skip
SIGN = 2.0**-1074  # the sign is not settled
WIDER = {"f16": "f8", "bf16": "f8", "f32": "f8", "c64": "c16", "f64": "g", "c128": "G"}
_SUM_IN = {"f64": np.finfo(np.float64), "c128": np.finfo(np.float64)}  # or else float32
_FLOAT32 = np.finfo(np.float32)


def size_of(value: Array) -> Array:
    """Magnitudes in float64; a complex one as the sum of its parts', those not finite left out."""
    if KIND[value.dtype] == "c":
        parts = [np.where(np.isfinite(p), np.abs(p), 0.0) for p in (value.real, value.imag)]
        return np.asarray(parts[0].astype(np.float64) + parts[1])
    return np.abs(value.astype(np.float64))


def finite_size(value: Array) -> Array:
    """Magnitudes, 0 for what is not finite."""
    size = size_of(value)
    return np.where(np.isfinite(size), size, 0.0)


def unit(value: Array) -> Array:
    """The unit in the last place of each element, the smallest there is for what is not finite."""
    short = SHORT[np.dtype(value.dtype)]
    size = size_of(value)
    size = np.where(np.isfinite(size) & (size > 0), size, 0.0)
    made = np.ldexp(EPS[short], np.frexp(size)[1] - 1)
    return np.where(size > 0, np.maximum(made, TINY[short]), TINY[short])


def added_in(short: str) -> Any:
    """The type in which sums and products are taken."""
    return _SUM_IN.get(short, _FLOAT32)
