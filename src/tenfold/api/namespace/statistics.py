"""Statistics: reductions and running sums, and whether all or any hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.api.namespace.dispatch import apply


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The largest."""
    return apply(np.max, x, axis, keepdims=keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The smallest."""
    return apply(np.min, x, axis, keepdims=keepdims)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The sum."""
    return apply(np.sum, x, axis, dtype=dtype, keepdims=keepdims)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product."""
    return apply(np.prod, x, axis, dtype=dtype, keepdims=keepdims)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The mean."""
    return apply(np.mean, x, axis, keepdims=keepdims)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The standard deviation."""
    return apply(np.std, x, axis, ddof=correction, keepdims=keepdims)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The variance."""
    return apply(np.var, x, axis, ddof=correction, keepdims=keepdims)


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether all elements hold."""
    return apply(np.all, x, axis, keepdims=keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether some element holds."""
    return apply(np.any, x, axis, keepdims=keepdims)


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Running sums, with `include_initial` from 0 on."""
    return apply(np.cumulative_sum, x, axis=axis, dtype=dtype, include_initial=include_initial)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Running products, with `include_initial` from 1 on."""
    return apply(np.cumulative_prod, x, axis=axis, dtype=dtype, include_initial=include_initial)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours, taken n times."""
    ends = {"prepend": prepend, "append": append}
    return apply(np.diff, x, n, axis, **{k: v for k, v in ends.items() if v is not None})
