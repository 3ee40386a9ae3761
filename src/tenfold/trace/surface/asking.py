"""Asking: functions of dtypes and shapes, whose answers are known while tracing, or nearly."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ConcreteError
from tenfold.trace.array import Array
from tenfold.trace.lazy.host import on_host
from tenfold.trace.operand import dtype_key
from tenfold.trace.surface.emit import fail, is_traced, on, traced
from tenfold.trace.surface.reducing.reductions import every
from tenfold.trace.surface.steps import alias
from tenfold.trace.surface.ufuncs.composed import filled
from tenfold.trace.tables import UFUNCS
from tenfold.types import BOOL, KIND


@on(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    source = from_.dtype if isinstance(from_, Array) else from_
    return np.can_cast(source, to, casting)


@on(np.min_scalar_type)
def min_scalar_type(a: Any) -> Any:
    x = traced(a)
    if x.ndim == 0 and not is_traced(x):
        return on_host(np.min_scalar_type, (x,), {})
    if x.ndim == 0:
        fail(
            ConcreteError,
            "np.min_scalar_type of a traced number, whose value only a running program knows",
            "ask for x.dtype",
        )
    return x.dtype


@on(np.common_type)
def common_type(*arrays: Any) -> Any:
    return np.common_type(*(np.empty(0, traced(x).dtype) for x in arrays))


@on(np.real_if_close)
def real_if_close(a: Any, tol: Any = 100) -> Array:
    x = traced(a)
    if KIND[x.dtype] == "c" and not is_traced(x):
        made: Array = on_host(np.real_if_close, (x, tol), {})
        return made
    if KIND[x.dtype] == "c":
        fail(
            ConcreteError,
            "np.real_if_close of complex numbers: its dtype hangs on values that only a running "
            "program knows",
            "take x.real, or keep them complex",
        )
    return alias(x)


@on(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Array:
    x, y = traced(a1), traced(a2)
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return filled(False, BOOL, ())
    return every(UFUNCS[np.equal](x, y))


@on(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    """NumPy's own answer, which looks at shapes alone."""
    stand_ins = [
        np.broadcast_to(np.zeros((), dtype_key(x)), x.shape) if isinstance(x, Array) else x
        for x in operands
    ]
    ask: Any = np.einsum_path
    return ask(*stand_ins, optimize=optimize, einsum_call=einsum_call)
