"""The host: functions of NumPy's on the values of lazy arrays, and results as lazy arrays again."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.trace.array import Array
from tenfold.trace.lazy.lazy import LAZY, leaf, own


def lazy(array: Any) -> Array:
    """A lazy array of what can be made an array; later changes of that are not seen."""
    return Array(LAZY, leaf(own(array)))


def fresh(array: Any) -> Array:
    """A lazy array of an array that was made for it: nobody else holds it."""
    return Array(LAZY, leaf(np.asarray(array)))


def given_back(result: Any) -> Any:
    """What a host function gave, its arrays and NumPy scalars as lazy arrays."""
    if isinstance(result, (np.ndarray, np.generic)):
        return lazy(result)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*map(given_back, result))
    if isinstance(result, (list, tuple)):
        return type(result)(map(given_back, result))
    return result


def taken(item: Any) -> Any:
    """An argument of a host function, its lazy arrays as NumPy's."""
    if isinstance(item, Array):
        return item._host()
    if isinstance(item, (list, tuple)) and not hasattr(item, "_fields"):
        return type(item)(map(taken, item))
    return item


def on_host(function: Any, args: Any, kwargs: Any) -> Any:
    """Call a function of NumPy's on the values of lazy arrays: for what has no op, or a shape
    that depends on values."""
    given = {k: taken(v) for k, v in kwargs.items()}
    result = function(*taken(args), **given)
    if isinstance(result, np.ndarray):  # some give a view of what they are given, or that itself
        for array in (*args, *kwargs.values()):
            if isinstance(array, Array) and np.may_share_memory(result, array._host()):
                whole = result.shape == array.shape and result.dtype == array.dtype
                return array if whole else Array(LAZY, leaf(own(result)), base=array)
    return given_back(result)


def method(name: str, *args: Any, **kwargs: Any) -> Any:
    return on_host(getattr(np.ndarray, name), args, kwargs)
