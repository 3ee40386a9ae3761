"""Indexing of lazy arrays at hand by Python's numbers and slices: what loops over elements do.

NumPy reads and writes the part itself; no node is made, and a key that was never met costs no more
than one that was. Parts that are read have at most `tn.config.direct` elements; one number is
written to any array, in place unless somebody else holds that. What is not as plain as that is left
to `indexing`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.config import config
from tenfold.trace.array import Array
from tenfold.trace.lazy.compute import small_copy
from tenfold.trace.lazy.lazy import LAZY, Host, LazyValue, is_unshared, kind_of
from tenfold.trace.source import here
from tenfold.trace.surface.steps import BasicIndex, view_of
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import KIND


def read(x: Array, key: Any) -> Array | None:
    """x[key], or None."""
    host = _host(x)
    if host is None:
        return None
    if _is_place(key, host.ndim):
        try:
            found = np.asarray(host[key])
        except IndexError:
            return None
        type, number = kind_of(found)
        return Array(LAZY, LazyValue(type, number, None, here(3), found))
    step = BasicIndex.plain(host.shape, key)
    if step is None:
        return None
    part = host[key]
    if part.size > config.direct:
        return None
    type, number = kind_of(part)
    made = Array(LAZY, LazyValue(type, number, None, here(3), small_copy(part)))
    return view_of(x, step, made)


def write(x: Array, key: Any, value: Any) -> bool:
    """x[key] = value, if it is plain: whether it was done."""
    if x._view is not None or x._readonly or x._scope is not LAZY:
        return False
    unshared = is_unshared(x._value)
    host = _host(x)
    if host is None:
        return False
    kind = type(value)
    if kind is Array:
        part = _host(value)
        if part is None or value._view is not None or part.dtype != host.dtype or part.ndim:
            return False
        value = part
    elif (kind is not float and kind is not int) or KIND[host.dtype] != "f":
        return False
    if not _is_place(key, host.ndim) and BasicIndex.plain(host.shape, key) is None:
        return False
    made = host if unshared else host.copy()
    try:
        made[key] = value
    except (IndexError, OverflowError):
        return False
    before = x._value
    x._update(LazyValue(before.type, before.number, None, here(3), made))
    return True


def _host(x: Array) -> Host | None:
    """The array of a lazy array at hand, if operations on it are not to wait."""
    if x._scope is not LAZY or LAZY.recorded or config.compile == "always":
        return None
    if x._view is not None:
        x._follow()
    found: Host | None = x._value.array
    return found


def _is_place(key: Any, rank: int) -> bool:
    """Whether a key names one element."""
    kind = type(key)
    if kind is int:
        return rank == 1
    return kind is tuple and len(key) == rank and all(type(item) is int for item in key)


FUNCTIONS["read"], FUNCTIONS["write"] = read, write
