"""Indexing of lazy arrays at hand by Python's numbers and slices: what loops over elements do.

NumPy reads and writes the part itself; no node is made, and a key that was never met costs no more
than one that was. Parts that are read are contiguous or have at most `tn.config.direct` elements;
one number is written to any array, in place unless somebody else holds that. What is not as plain
as that is left to `indexing`.
"""

from __future__ import annotations

from sys import _getframe
from typing import Any

import numpy as np

from tenfold.config import config
from tenfold.trace.array import Array
from tenfold.trace.lazy.compute import SMALL
from tenfold.trace.lazy.lazy import LAZY, Host, LazyValue, is_unshared
from tenfold.trace.source import here, internal
from tenfold.trace.surface.steps import BasicIndex, KeyView, view_of
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import KIND


def read(x: Array, key: Any) -> Array | None:
    """x[key], or None."""
    if x._scope is not LAZY or LAZY.recorded or config.compile == "always":
        return None
    view = x._view
    if view is not None and x._seen != view.root._version:
        x._follow()
    host: Host | None = x._value.array
    if host is None:
        return None
    kind = type(key)
    if kind is slice:
        if not (
            (key.start is None or type(key.start) is int)
            and (key.stop is None or type(key.stop) is int)
            and (key.step is None or type(key.step) is int)
        ):
            return None
    elif kind is tuple:
        for item in key:
            if not (item is None or type(item) is int or _is_range(item)):
                return None
    elif kind is not int and key is not None:
        return None
    try:
        part = host[key]
    except (IndexError, ValueError):
        return None
    frame = _getframe(2)
    code = frame.f_code
    raw = (code, frame.f_lasti) if internal.get(id(code)) is False else here(3)
    if part.__class__ is not np.ndarray:  # an element, which is no view
        return Array(LAZY, LazyValue(None, None, raw, np.asarray(part)))
    if part.nbytes <= SMALL:
        part = part.copy()  # lest it keep a large one alive
    elif part.size > config.direct and not part.flags.c_contiguous:
        return None  # a plan takes it from the whole
    value = LazyValue(None, None, raw, part)
    if view is not None:
        step = BasicIndex.plain(host.shape, key)
        return None if step is None else view_of(x, step, Array(LAZY, value))
    made = Array(LAZY, value, None, KeyView(x, host.shape, key))
    made._readonly = x._readonly
    return made


def _is_range(item: Any) -> bool:
    """Whether this is a slice by Python's numbers."""
    if type(item) is not slice:
        return False
    return all(n is None or type(n) is int for n in (item.start, item.stop, item.step))


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
    x._update(LazyValue(before.kind, None, here(3), made))
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
