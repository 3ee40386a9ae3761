"""Exactness: what a value is, by type and bits.

Python takes 1, 1.0 and True for equal, 0.0 and -0.0 too, and a NaN for unlike itself. A trace that
was shaped by one of them does not serve for another.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Any

import numpy as np

# Equal ones of one type have equal bits.
EXACT_TYPES = frozenset((bool, int, str, bytes, type(None)))


def exact(value: Any) -> Any:
    """A key that is equal for values of the same type and bits, and for no others.

    >>> exact((2,)) == exact((2.0,)), exact(0.0) == exact(-0.0)
    (False, False)
    >>> exact(float("nan")) == exact(float("nan"))
    True
    """
    kind = type(value)
    if kind in EXACT_TYPES:
        return kind, value
    if kind is float:
        return kind, struct.pack("d", value)
    if kind is complex:
        return kind, struct.pack("dd", value.real, value.imag)
    if isinstance(value, np.generic):
        return kind, value.dtype.str, value.tobytes()
    if isinstance(value, tuple):
        return kind, tuple([exact(item) for item in value])
    if isinstance(value, frozenset):
        return kind, frozenset([exact(item) for item in value])
    if kind is slice:
        return kind, exact((value.start, value.stop, value.step))
    if dataclasses.is_dataclass(kind) and kind.__eq__ is not object.__eq__:
        fields = [f.name for f in dataclasses.fields(kind) if f.compare]
        return kind, value, tuple([exact(getattr(value, name)) for name in fields])
    return kind, value


def same(one: Any, other: Any) -> bool:
    """Whether two values are of the same type and bits."""
    return one is other or (type(one) is type(other) and bool(exact(one) == exact(other)))
