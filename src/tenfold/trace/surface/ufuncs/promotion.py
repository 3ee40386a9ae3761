"""Promotion: the dtypes that operands of different dtypes are brought to, as in NumPy 2.

A key stands for an operand: its dtype, or int, float, complex for a Python number, whose dtype
gives way. NumPy itself is asked for the answer. Only bfloat16 has a rule of its own: it
promotes as float16 does, so that literals take its dtype, and the two together give float32.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tenfold.errors import TypeMismatch
from tenfold.trace.operand import PYTHON, dtype_key
from tenfold.trace.source import describe, here
from tenfold.types import BFLOAT16, DTYPES, F32, KIND, DType, as_dtype

_F16 = DTYPES["f16"]
_ORDER = "buifc"
_WEAK: dict[Any, Any] = {int: 0, float: 0.0, complex: 0j}


def _stand_ins(keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """The keys with a dtype of NumPy's own in the place of bfloat16."""
    stand_in = F32 if _F16 in keys else _F16
    return tuple(stand_in if k == BFLOAT16 else k for k in keys)


@cache
def resolve(ufunc: np.ufunc, keys: tuple[Any, ...]) -> tuple[DType, ...]:
    """The dtypes a ufunc casts operands with these keys to, then those of its results.

    >>> resolve(np.add, (as_dtype("uint8"), int))
    (dtype('uint8'), dtype('uint8'), dtype('uint8'))
    >>> resolve(np.true_divide, (as_dtype("bfloat16"), int))
    (dtype(bfloat16), dtype(bfloat16), dtype(bfloat16))
    """
    if all(k in _WEAK for k in keys):
        keys = tuple(PYTHON[k] for k in keys)
    asked = _stand_ins(keys) if BFLOAT16 in keys else keys
    try:
        found: tuple[DType, ...] = ufunc.resolve_dtypes((*asked, *[None] * ufunc.nout))
    except TypeError as error:
        shown = " and ".join(k.__name__ if isinstance(k, type) else str(k) for k in keys)
        advice = str(error) if "boolean" in str(error) else "cast the operands with .astype"
        raise TypeMismatch(f"np.{ufunc.__name__} does not take {shown}", fix=advice) from None
    if BFLOAT16 in keys and _F16 not in keys:
        found = tuple(BFLOAT16 if d == _F16 else d for d in found)
    return tuple(as_dtype(d) for d in found)


def dtypes_for(ufunc: np.ufunc, keys: tuple[Any, ...]) -> tuple[DType, ...]:
    """As `resolve`, its error at the user's line."""
    try:
        return resolve(ufunc, keys)
    except TypeMismatch as error:
        raise TypeMismatch(error.message, where=describe(here()), fix=error.fix) from None


@cache
def common(keys: tuple[Any, ...]) -> DType:
    """The dtype that holds operands with all these keys.

    >>> common((as_dtype("bfloat16"), as_dtype("f2"))), common((as_dtype("u1"), as_dtype("i1")))
    (dtype('float32'), dtype('int16'))
    """
    asked = _stand_ins(keys) if BFLOAT16 in keys else keys
    found = as_dtype(np.result_type(*(_WEAK.get(k, k) for k in asked)))
    if found == _F16 and BFLOAT16 in keys and _F16 not in keys:
        return BFLOAT16
    return found


def common_dtype(*operands: Any) -> DType:
    """The dtype that holds all these operands."""
    return common(tuple(dtype_key(x) for x in operands))


def same_kind(source: DType, target: DType) -> bool:
    """Whether NumPy casts so without being told to: within a kind, or to a higher one."""
    return _ORDER.index(KIND[source]) <= _ORDER.index(KIND[target])
