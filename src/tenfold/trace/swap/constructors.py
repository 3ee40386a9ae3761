"""Constructors: the functions of NumPy's that are substituted, and what each does in a traced one.

Of what is known NumPy makes the array, which stays known until something traced is written to it.
Of traced arrays the surface makes it, where it has the function.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np

from tenfold.errors import ConcreteError, Unsupported
from tenfold.frames import for_users
from tenfold.trace.array import Array
from tenfold.trace.host.compute import any_traced, compute, fresh, leaves, taken
from tenfold.trace.host.value import HOST, compact
from tenfold.trace.scope import current
from tenfold.trace.source import describe, here
from tenfold.trace.surface.emit import fail, is_traced
from tenfold.trace.swap.substitute import FunctionSubstitute, IndexSubstitute, Substitute
from tenfold.trace.tables import FUNCTIONS

# One number everywhere. What np.empty leaves open is zero, so that no run differs from another.
_FILLED = ("zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "empty", "empty_like")
_ZERO: dict[Any, Callable[..., Any]] = {np.empty: np.zeros, np.empty_like: np.zeros_like}
_MADE = (
    *("arange", "eye", "identity", "tri", "indices", "linspace", "logspace", "geomspace"),
    *("bartlett", "blackman", "hamming", "hanning", "kaiser", "vander", "meshgrid"),
    *("diag_indices", "mask_indices", "tril_indices", "triu_indices"),
    *("array", "asarray", "asanyarray", "asarray_chkfinite", "ascontiguousarray"),
    *("asfortranarray", "require", "copy", "fromfunction"),
    *("tile", "repeat", "diag", "diagflat", "tril", "triu", "concatenate", "stack", "vstack"),
    *("hstack", "dstack", "column_stack", "block", "atleast_1d", "atleast_2d", "atleast_3d"),
)
_OF_FFT = ("fftfreq", "rfftfreq")
_INDEXED = ("r_", "c_", "mgrid", "ogrid")
_FROMITER, _NDENUMERATE, _NDITER = np.fromiter, np.ndenumerate, np.nditer
_EMPTY = np.empty
_AS_STRIDED = np.lib.stride_tricks.as_strided


@cache
def substitutes() -> tuple[Substitute, ...]:
    """A substitute for each."""
    return (
        *(FunctionSubstitute(np, name, partial(_fill, getattr(np, name))) for name in _FILLED),
        *(FunctionSubstitute(np, name, partial(_make, getattr(np, name))) for name in _MADE),
        *(FunctionSubstitute(np.fft, n, partial(_make, getattr(np.fft, n))) for n in _OF_FFT),
        *(IndexSubstitute(np, name, partial(_index, getattr(np, name))) for name in _INDEXED),
        FunctionSubstitute(np, "fromiter", _fromiter),
        FunctionSubstitute(np, "ndenumerate", _ndenumerate),
        FunctionSubstitute(np, "nditer", _nditer),
        FunctionSubstitute(np.lib.stride_tricks, "as_strided", partial(compute, _as_strided)),
    )


def find(value: Any) -> Substitute | None:
    """What stands for something of NumPy's, if anything does."""
    return _by_id().get(id(value))


@cache
def _by_id() -> dict[int, Substitute]:
    return {id(one.original): one for one in substitutes()}


def _make(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """What a function gives: on the host of what is known, else in the program."""
    if isinstance(kwargs.get("like"), Array):
        del kwargs["like"]
    if any_traced((args, kwargs)):
        for array in leaves((args, kwargs)):
            if isinstance(array, Array) and type(array) is not Array and array._scope is not HOST:
                return array.__array_function__(function, (type(array),), args, kwargs)
        found = FUNCTIONS.get(function)
        if found is not None:
            return found(*args, **kwargs)
    try:
        return compute(function, *args, **kwargs)
    except TypeError:
        _check_known(f"np.{function.__name__}", (args, kwargs))
        raise


@for_users
def _fill(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """An array of one number, which takes no memory for each element before it is written to."""
    if isinstance(kwargs.get("like"), Array):
        del kwargs["like"]
    if args and type(args[0]) is Array and args[0]._scope.traced and args[0].ndim:
        args = (_in_shape_of(args[0]), *args[1:])
    if any_traced((args, kwargs)):
        return _make(function, *args, **kwargs)
    value = args[1] if len(args) > 1 else kwargs.get("fill_value")
    made = _ZERO.get(function, function)(*taken(args), **taken(kwargs))
    if function not in (np.full, np.full_like) or not np.ndim(taken(value)):
        made = compact(made)
    scope = current()
    assert scope is not None
    return fresh(made, scope)


def _in_shape_of(x: Array) -> Any:
    """A NumPy array of which there is nothing but shape and dtype."""
    return np.broadcast_to(np.zeros((), x.dtype), x.shape)


def _fromiter(iter: Iterable[Any], dtype: Any, count: int = -1, **kwargs: Any) -> Any:
    """np.fromiter of a list of the items, of which some may be traced."""
    items = list(iter if count < 0 else islice(iter, count))
    return _make(_FROMITER, items, dtype, count, **kwargs)


@for_users
def _ndenumerate(arr: Any) -> Any:
    """Pairs of places and elements."""
    if any_traced((arr,)):
        return ((place, arr[place]) for place in np.ndindex(arr.shape))
    return _NDENUMERATE(arr)


@for_users
def _nditer(op: Any, *args: Any, **kwargs: Any) -> Any:
    if any_traced((op,)):
        raise Unsupported(
            "np.nditer walks through memory, which traced arrays have not",
            where=describe(here()),
            fix="write it of whole arrays; or go over np.ndindex(x.shape), or tn.scan",
        )
    return _NDITER(op, *args, **kwargs)


@for_users
def _as_strided(x: Any, *args: Any, **kwargs: Any) -> Any:
    found = FUNCTIONS[_AS_STRIDED] if any_traced((x,)) else _AS_STRIDED
    return found(x, *args, **kwargs)


def _index(indexed: Any, key: Any) -> Any:
    if any_traced((key,)):
        if indexed in FUNCTIONS:
            return FUNCTIONS[indexed](key)
        _check_known("a grid", key)
    return compute(operator.getitem, indexed, key)


def _check_known(what: str, items: Any) -> None:
    """Refuse traced values where NumPy asks for them."""
    if any(map(is_traced, leaves(items))):
        fail(
            ConcreteError,
            f"{what}: an argument is a traced value, which only a running program has",
            "give it Python numbers, or make the argument static: tn.jit(f, static=…); to look at "
            "the values of an array, run it on the host: tn.call_host",
        )


@for_users
def ndarray(shape: Any, dtype: Any = float, *args: Any, **kwargs: Any) -> Any:
    """np.ndarray called as a function. The class itself is never substituted: who asks for a type
    at that moment would keep another one."""
    if args or kwargs.keys() - {"order"}:  # a view of somebody's memory
        return np.ndarray(shape, dtype, *args, **kwargs)
    return _fill(_EMPTY, shape, dtype, **kwargs)
