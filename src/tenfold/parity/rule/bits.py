"""Bits: arrays as the bytes that they are."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_BLOCK = 1 << 18  # bytes that are compared at once, in a cache


def same_bits(got: Array, value: Array) -> bool:
    """Whether two arrays are equal bit for bit."""
    if got.dtype != value.dtype or got.shape != value.shape:
        return False
    one, other = raw(got), raw(value)
    blocks = (slice(at, at + _BLOCK) for at in range(0, one.size, _BLOCK))
    return all(one[block].tobytes() == other[block].tobytes() for block in blocks)


def raw(array: Array) -> Array:
    """The bytes of an array."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
