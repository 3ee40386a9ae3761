"""Special: functions with an op of their own that NumPy lacks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tenfold.trace.operand import dtype_key
from tenfold.trace.scope import current
from tenfold.trace.surface.emit import emit, is_array, traced
from tenfold.trace.surface.selecting.selection import Selection, elementwise
from tenfold.trace.surface.ufuncs.promotion import dtypes_for


def _float(op: str, x: Any) -> Any:
    """An op of floats; integers are promoted as NumPy's sqrt does it."""
    if current() is None:
        from tenfold.trace.control.eager import at_once  # stands above this file

        return at_once(lambda y: _float(op, y), x)
    if isinstance(x, Selection):
        return elementwise(partial(_float, op), x)
    if not is_array(x):
        x = traced(x)
    dtype, _ = dtypes_for(np.sqrt, (dtype_key(x),))
    return emit(op, traced(x, dtype))


def erf(x: Any) -> Any:
    """The error function.

    >>> import numpy as np, tenfold as tn
    >>> tn.erf(np.array([0.0, 1.0])).round(4)
    array([0.    , 0.8427])
    """
    return _float("erf", x)


def erfc(x: Any) -> Any:
    """One less the error function, exact also where that is small.

    >>> import numpy as np, tenfold as tn
    >>> float(tn.erfc(np.float64(10)))
    2.088487583762545e-45
    """
    return _float("erfc", x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)).

    >>> import numpy as np, tenfold as tn
    >>> tn.sigmoid(np.array([0.0, 100.0]))
    array([0.5, 1. ])
    """
    return _float("sigmoid", x)


def rsqrt(x: Any) -> Any:
    """1 / sqrt(x).

    >>> import numpy as np, tenfold as tn
    >>> tn.rsqrt(np.array([4.0, 0.0]))
    array([0.5, inf])
    """
    return _float("rsqrt", x)


def erf_inv(x: Any) -> Any:
    """The number whose error function is x.

    >>> import numpy as np, tenfold as tn
    >>> tn.erf_inv(np.array([0.0, 0.5, 1.0])).round(4)
    array([0.    , 0.4769,    inf])
    """
    return _float("erf_inv", x)


def lgamma(x: Any) -> Any:
    """The logarithm of the magnitude of the gamma function.

    >>> import numpy as np, tenfold as tn
    >>> np.exp(tn.lgamma(np.array([1.0, 5.0]))).round(4)
    array([ 1., 24.])
    """
    return _float("lgamma", x)


def digamma(x: Any) -> Any:
    """The derivative of lgamma.

    >>> import numpy as np, tenfold as tn
    >>> tn.digamma(np.array([1.0, 0.0])).round(4)
    array([-0.5772,    -inf])
    """
    return _float("digamma", x)
