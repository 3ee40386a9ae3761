"""Dtypes: the names, what they hold, how they promote."""

from __future__ import annotations

import builtins
from typing import Any

import ml_dtypes
import numpy as np

from tenfold.api.namespace.dispatch import check_device
from tenfold.errors import TypeMismatch, ValueProblem
from tenfold.frozen import frozen
from tenfold.trace.array import Array
from tenfold.trace.operand import PYTHON
from tenfold.trace.surface.emit import cast, dtype_of, traced
from tenfold.trace.surface.ufuncs.composed import same
from tenfold.trace.surface.ufuncs.promotion import common
from tenfold.types import DTYPES, KIND, DType

NAMES: dict[str, DType] = {dtype.name: dtype for dtype in DTYPES.values()}

_KINDS: dict[str, str] = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


@frozen
class FloatInfo:
    """The limits of a floating dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@frozen
class IntegerInfo:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype(given: Any) -> DType:
    return given.dtype if isinstance(given, (Array, np.ndarray, np.generic)) else dtype_of(given)


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating or complex dtype, or of an array's.

    >>> finfo("float32").bits
    32
    """
    dtype = _dtype(type)
    if KIND[dtype] not in "fc":
        raise TypeMismatch(f"finfo of {dtype}, which is no floating dtype", fix="use tn.iinfo")
    part = np.dtype(f"f{dtype.itemsize // 2}") if KIND[dtype] == "c" else dtype
    limits: Any = ml_dtypes.finfo  # it knows bfloat16 too
    found = limits(part)
    return FloatInfo(
        part.itemsize * 8,
        float(found.eps),
        float(found.max),
        float(found.min),
        float(found.smallest_normal),
        part,
    )


def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer dtype, or of an array's.

    >>> iinfo("int8").max
    127
    """
    dtype = _dtype(type)
    if KIND[dtype] not in "iu":
        raise TypeMismatch(f"iinfo of {dtype}, which is no integer dtype", fix="use tn.finfo")
    found = np.iinfo(dtype)
    return IntegerInfo(dtype.itemsize * 8, int(found.max), int(found.min), dtype)


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """Whether a dtype is of a kind: another dtype, a name like "integral", or one of several.

    >>> isdtype("int8", "signed integer"), isdtype("int8", ("bool", "real floating"))
    (True, False)
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    found = dtype_of(dtype)
    for one in kinds:
        if isinstance(one, str) and one in _KINDS:
            if KIND[found] in _KINDS[one]:
                return True
        elif isinstance(one, str):
            raise ValueProblem(f"{one!r} is no kind of dtype", fix=f"use one of {list(_KINDS)}")
        elif found == dtype_of(one):
            return True
    return False


def can_cast(from_: Any, to: Any, /) -> builtins.bool:
    """Whether a dtype, or an array's, promotes to another."""
    return bool(np.can_cast(_dtype(from_), dtype_of(to)))


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype that operands promote to; Python numbers give way."""
    keys = []
    for item in arrays_and_dtypes:
        if isinstance(item, Array):
            keys.append(item._weak or item.dtype)
        elif isinstance(item, (builtins.bool, int, float, complex)):
            keys.append(PYTHON[builtins.bool] if isinstance(item, builtins.bool) else type(item))
        else:
            keys.append(_dtype(item))
    return common(tuple(keys))


def astype(x: Any, dtype: Any, /, *, copy: builtins.bool = True, device: Any = None) -> Array:
    """An array in another dtype."""
    check_device(device)
    array = traced(x)
    made = cast(array, dtype)
    return same(made) if copy and made is array else made
