"""Special: functions with an op of their own that NumPy lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.trace.array import Array
from tenfold.trace.operand import dtype_key
from tenfold.trace.surface.emit import emit, is_array, traced
from tenfold.trace.surface.promotion import dtypes_for


def _float(op: str, says: str) -> Callable[[Any], Array]:
    """A function of floats; integers are promoted as NumPy's sqrt does it."""

    def apply(x: Any) -> Array:
        if not is_array(x):
            x = traced(x)
        dtype, _ = dtypes_for(np.sqrt, (dtype_key(x),))
        return emit(op, traced(x, dtype))

    apply.__name__ = apply.__qualname__ = op
    apply.__doc__ = says
    return apply


erf = _float("erf", "The error function.")
erfc = _float("erfc", "One less the error function, exact also where that is small.")
sigmoid = _float("sigmoid", "1 / (1 + exp(-x)).")
rsqrt = _float("rsqrt", "1 / sqrt(x).")
