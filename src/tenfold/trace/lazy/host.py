"""The host: functions of NumPy's on the values of lazy arrays, and results as lazy arrays again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.frozen import frozen
from tenfold.trace.array import Array
from tenfold.trace.lazy.lazy import LAZY, Host, leaf, own
from tenfold.trace.view import View, layout


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
                return array if whole else _view(array, result, function, args, kwargs)
    return given_back(result)


@frozen
class HostPart:
    """What a function of NumPy's gives as a view, by that function."""

    function: Callable[[Host], Host]
    like: Host
    trivial = False

    def read(self, base: Array) -> Array:
        return lazy(self.function(base._host()))

    def write(self, base: Array, part: Array) -> Array:
        copied = base._host().copy()
        self.function(copied)[...] = part._host()
        return fresh(copied)

    def lay(self, base: Any) -> Any:
        return layout(self.like.dtype, self.like.shape)

    def join(self, step: Any) -> None:
        return None


def _view(array: Array, found: Host, function: Any, args: Any, kwargs: Any) -> Array:
    given = [x if x is array else taken(x) for x in args]
    named = {k: x if x is array else taken(x) for k, x in kwargs.items()}

    def call(host: Host) -> Host:
        put = [host if x is array else x for x in given]
        result: Host = function(*put, **{k: host if x is array else x for k, x in named.items()})
        return result

    view = (array._view or View(array)).then(HostPart(call, found))
    return Array(LAZY, leaf(own(found)), view=view)


def method(name: str, *args: Any, **kwargs: Any) -> Any:
    return on_host(getattr(np.ndarray, name), args, kwargs)
