"""Creation: arrays from objects, from other libraries, from one number, from a range."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from tenfold.api.call.kinds import from_library
from tenfold.api.namespace.dispatch import apply, check_device
from tenfold.errors import ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.lazy.host import fresh, lazy
from tenfold.trace.scope import current
from tenfold.trace.source import describe, here
from tenfold.trace.surface.emit import cast, dtype_of, traced
from tenfold.trace.surface.indexing.key import has_traced
from tenfold.trace.surface.shaping import creation
from tenfold.trace.surface.ufuncs.composed import same
from tenfold.types import base_array


def asarray(
    obj: Any,
    /,
    dtype: Any = None,
    *,
    device: Any = None,
    copy: builtins.bool | None = None,
) -> Array:
    """An array of a number, a nested list, an array of NumPy's or of another library.

    Outside a trace it is lazy: what is done with it is run when a value is needed.

    >>> import tenfold as tn
    >>> x = tn.asarray([1.0, 4.0])
    >>> y = tn.sqrt(x) + 1
    >>> y.tolist()
    [2.0, 3.0]
    """
    check_device(device)
    wanted = None if dtype is None else dtype_of(dtype)
    if isinstance(obj, Array):
        if wanted is None or wanted == obj.dtype:
            return same(obj) if copy else obj
        if copy is False:
            raise _needs_copy(f"{obj.type} as {wanted}")
        return cast(obj, wanted)
    if has_traced(obj):
        made = traced(obj)
        return made if wanted is None else cast(made, wanted)
    given = base_array(obj)
    if not isinstance(obj, (np.ndarray, np.generic)) and hasattr(obj, "__dlpack__"):
        given = from_library(obj)
    host = np.array(given, wanted, copy=False if copy is False else None)
    host = host.astype(dtype_of(host.dtype), copy=False)  # in the machine's byte order
    if current() is not None:
        return traced(host)
    return fresh(host) if copy is False or not _shared(obj) else lazy(host)


def _shared(obj: Any) -> builtins.bool:
    """Whether NumPy's array of an object may lie in the object's memory."""
    return not isinstance(obj, (builtins.bool, int, float, complex, list, tuple, np.generic))


def _needs_copy(what: str) -> ValueProblem:
    return ValueProblem(
        f"asarray: {what} needs a copy", where=describe(here()), fix="leave copy=False out"
    )


def from_dlpack(x: Any, /, *, device: Any = None, copy: builtins.bool | None = None) -> Array:
    """An array of another library, on the CPU, by DLPack. With copy=False it lies in the same
    memory, which then must not change.

    >>> import numpy as np, tenfold as tn
    >>> tn.from_dlpack(np.arange(3)).tolist()
    [0, 1, 2]
    """
    check_device(device)
    if isinstance(x, Array):
        return same(x) if copy else x
    host = from_library(x)
    if current() is not None:
        return traced(host)
    return fresh(host) if copy is False else lazy(host)


def zeros(shape: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """An array of zeros."""
    check_device(device)
    return creation.zeros(shape, np.float64 if dtype is None else dtype)


def ones(shape: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """An array of ones."""
    check_device(device)
    return creation.ones(shape, np.float64 if dtype is None else dtype)


def empty(shape: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """An array to be written to; it is of zeros, so that no run differs from another."""
    return zeros(shape, dtype, device=device)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """An array of one value, or of an array's values broadcast."""
    check_device(device)
    return creation.full(shape, fill_value, dtype)


def arange(
    start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None
) -> Array:
    """Evenly spaced values from start to stop, stop left out."""
    check_device(device)
    return creation.arange(start, stop, step, dtype)


def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: builtins.bool = True,
    dtype: Any = None,
    *,
    device: Any = None,
) -> Array:
    """Evenly spaced values from start to stop."""
    check_device(device)
    made: Array = creation.linspace(start, stop, num, endpoint, dtype=dtype)
    return made


def eye(
    n_rows: Any, n_cols: Any = None, k: Any = 0, dtype: Any = None, *, device: Any = None
) -> Array:
    """A matrix with ones on a diagonal and zeros elsewhere."""
    check_device(device)
    return creation.eye(n_rows, n_cols, k, np.float64 if dtype is None else dtype)


def zeros_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Array:
    """Zeros in the shape and dtype of another array."""
    check_device(device)
    return creation.zeros_like(x, dtype)


def ones_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Array:
    """Ones in the shape and dtype of another array."""
    check_device(device)
    return creation.ones_like(x, dtype)


def empty_like(x: Any, /, dtype: Any = None, *, device: Any = None) -> Array:
    """An array like another, to be written to."""
    check_device(device)
    return creation.zeros_like(x, dtype)


def full_like(x: Any, /, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Array:
    """One value in the shape and dtype of another array."""
    check_device(device)
    return creation.full_like(x, fill_value, dtype)


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Any]:
    """The coordinates of a grid, from those of its axes."""
    return list(apply(np.meshgrid, *arrays, indexing=indexing))


def tril(x: Any, /, *, k: int = 0) -> Any:
    """The part on and below a diagonal; zeros elsewhere."""
    return apply(np.tril, x, k)


def triu(x: Any, /, *, k: int = 0) -> Any:
    """The part on and above a diagonal; zeros elsewhere."""
    return apply(np.triu, x, k)
