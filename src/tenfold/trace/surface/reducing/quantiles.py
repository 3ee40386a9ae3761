"""Quantiles: median, quantile, percentile, and the same with NaNs left out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch, Unsupported, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import axes_of, cast, emit, fail, on, plain, traced
from tenfold.trace.surface.indexing.taking import take, take_along_axis
from tenfold.trace.surface.reducing.reductions import finish
from tenfold.trace.surface.reducing.statistics import mean, nanmean
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.trace.tables import FUNCTIONS, UFUNCS
from tenfold.types import BOOL, I64, KIND

# Where a quantile lies among n sorted elements: a place between two of them, as a float. These
# are written with NumPy's functions, which take numbers known while tracing and traced ones.
Place = Callable[[Any, Any], Any]


def _between(n: Any, q: Any, alpha: float, beta: float) -> Any:
    return n * q + (alpha + q * (1 - alpha - beta)) - 1


def _midway(n: Any, q: Any) -> Any:
    exact = (n - 1) * q
    return 0.5 * (np.floor(exact) + np.ceil(exact))


_PLACES: dict[str, Place] = {
    "linear": lambda n, q: (n - 1) * q,
    "midpoint": _midway,
    "averaged_inverted_cdf": lambda n, q: n * q - 1,
    "interpolated_inverted_cdf": partial(_between, alpha=0, beta=1),
    "hazen": partial(_between, alpha=0.5, beta=0.5),
    "weibull": partial(_between, alpha=0, beta=0),
    "median_unbiased": partial(_between, alpha=1 / 3, beta=1 / 3),
    "normal_unbiased": partial(_between, alpha=3 / 8, beta=3 / 8),
}


def _stepped(place: Any, even: bool) -> Any:
    """The element a place between two stands for: that above, unless the place is exact."""
    below = np.floor(place)
    exact = place == below
    if even:
        exact = exact & (below % 2 == 1)
    return np.maximum(np.where(exact, below, below + 1), 0)


# The element that is the quantile, for methods that take one and do not blend two.
_ELEMENTS: dict[str, Place] = {
    "lower": lambda n, q: np.floor((n - 1) * q),
    "higher": lambda n, q: np.ceil((n - 1) * q),
    "nearest": lambda n, q: np.round((n - 1) * q),
    "inverted_cdf": lambda n, q: _stepped(n * q - 1, False),
    "closest_observation": lambda n, q: _stepped(n * q - 1.5, True),
}
# How much of the upper element is blended in, for methods that do not take the distance itself.
_SHARES: dict[str, Callable[[Any, Any], Any]] = {
    "averaged_inverted_cdf": lambda share, place: np.where(share == 0, 0.5, 1.0),
    "midpoint": lambda share, place: np.where(place % 1 == 0, 0.0, 0.5),
}


def _lines(name: str, a: Any, axis: Any) -> tuple[Array, tuple[int, ...]]:
    """The elements of the axes along the first, sorted; and the shape that keepdims gives."""
    x = traced(a)
    axes = axes_of(axis, x.ndim)
    kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    rest = [i for i in range(x.ndim) if i not in axes]
    transposed = emit("transpose", x, axes=(*axes, *rest))
    n = 1
    for i in axes:
        n *= x.shape[i]
    lines = emit("reshape", transposed, shape=(n, *(x.shape[i] for i in rest)))
    return emit("sort", lines, axis=0), kept


def _present(lines: Array) -> Array:
    """How many elements of each line are no NaN."""
    real = emit("not", emit("isnan", lines))
    return emit("reduce_sum", cast(real, I64), axes=(0,))


def _middle(low: Array, high: Array) -> Array:
    """The mean of two elements, in the dtype a mean has."""
    both = FUNCTIONS[np.stack]([low, high])
    return mean(both, axis=0)


def _median(name: str, skip: bool) -> Callable[..., Array]:
    def apply(
        a: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        keepdims: Any = False,
    ) -> Array:
        lines, kept = _lines(name, a, axis)
        n = lines.shape[0]
        floats = KIND[lines.dtype] in "fc"
        if n == 0:
            result = mean(lines, axis=0)
        elif skip and floats:
            count = _present(lines)
            tall = emit("reshape", count, shape=(1, *count.shape))
            one, two = number(1, I64), number(2, I64)
            low = emit("floordiv", emit("max", emit("sub", tall, one), number(0, I64)), two)
            high = emit("floordiv", tall, two)
            lower, upper = (take_along_axis(lines, i, 0)[0] for i in (low, high))
            odd = emit("eq", low, high)[0]
            result = emit("select", odd, lower, _middle(lower, upper))
        else:
            result = _middle(lines[(n - 1) // 2], lines[n // 2])
            if n % 2:  # the sum of two might overflow
                result = cast(lines[n // 2], result.dtype)
            if floats:
                last = cast(lines[n - 1], result.dtype)
                result = emit("select", emit("isnan", last), last, result)
        if keepdims is True:
            result = emit("reshape", result, shape=kept)
        return finish(result, out)

    return apply


median = on(np.median)(_median("median", False))
nanmedian = on(np.nanmedian)(_median("nanmedian", True))


def _asked(name: str, q: Any, scale: int) -> Any:
    """The quantiles as fractions of 1: an array that is known, or a traced one."""
    q = plain(q)
    if isinstance(q, Array):
        return UFUNCS[np.true_divide](q, scale) if scale != 1 else q
    known = np.true_divide(q, scale) if scale != 1 else np.asarray(q)
    known = np.asarray(known)
    if known.size and not (np.all(known >= 0) and np.all(known <= 1)):
        fail(ValueProblem, f"{name} of {q}", f"give numbers from 0 to {scale}")
    return known


def _blend(lines: Array, place: Any, n: Any, method: str, weak: bool, along: bool) -> Array:
    """Between the elements below and above each place, by the distance."""
    below = np.floor(place)
    over, under = place >= n - 1, place < 0
    lower = np.where(over, n - 1, np.where(under, 0, below))
    upper = np.where(over, n - 1, np.where(under, 0, below + 1))
    share = place - lower
    if method in _SHARES:
        share = _SHARES[method](share, place)
    low = _pick(lines, lower, along)
    high = _pick(lines, upper, along)
    weight = traced(share)
    if weak and KIND[lines.dtype] == "f":
        weight = cast(weight, lines.dtype)
    if not along:
        weight = emit("reshape", weight, shape=(*weight.shape, *(1,) * (lines.ndim - 1)))
    gap = UFUNCS[np.subtract](high, low)
    made = UFUNCS[np.add](low, UFUNCS[np.multiply](gap, weight))
    back = UFUNCS[np.subtract](high, UFUNCS[np.multiply](gap, UFUNCS[np.subtract](1, weight)))
    half = emit("ge", weight, number(0.5, weight.dtype))
    return emit("select", half, cast(back, made.dtype), made)


def _pick(lines: Array, index: Any, along: bool) -> Array:
    """The elements of sorted lines at an index for all of them, or at one of its own for each."""
    index = cast(traced(index), I64)
    if along:
        return take_along_axis(lines, index, 0)
    return take(lines, index, 0, mode="clip")


def _quantile(name: str, scale: int, skip: bool) -> Callable[..., Array]:
    def apply(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: Any = False,
        *,
        weights: Any = None,
    ) -> Array:
        if weights is not None:
            fail(Unsupported, f"np.{name} with weights", "sort, and search the running weights")
        if method not in _PLACES and method not in _ELEMENTS:
            known = ", ".join((*_PLACES, *_ELEMENTS))
            fail(ValueProblem, f"{name}: method={method!r}", f"the methods are {known}")
        lines, kept = _lines(name, a, axis)
        if KIND[lines.dtype] == "c" or (lines.dtype == BOOL and method in _PLACES):
            fail(TypeMismatch, f"{name} of {traced(a).type}", "give real numbers")
        if skip and not traced(a).size:
            return finish(nanmean(a, axis, keepdims=keepdims), out)
        if lines.shape[0] == 0:
            fail(ShapeError, f"{name} over an empty axis", "give at least one element")
        asked = _asked(name, q, scale)
        result = _found(lines, asked, method, type(q) in (int, float), skip)
        if keepdims is True:
            result = emit("reshape", result, shape=(*asked.shape, *kept))
        return finish(result, out)

    return apply


def _found(lines: Array, asked: Any, method: str, weak: bool, skip: bool) -> Array:
    """The quantiles of sorted lines: the quantiles' axes first, then the lines'."""
    rest = lines.shape[1:]
    along = skip and KIND[lines.dtype] == "f"
    n: Any = lines.shape[0]
    q = asked
    if along:  # each line has a count of its own, so the quantiles go along the first axis
        count = _present(lines)
        n = cast(
            emit("max", count, number(1, I64)), I64 if KIND[asked.dtype] in "biu" else asked.dtype
        )
        n = emit("reshape", n, shape=(1, *rest))
        q = asked.reshape(asked.size, *(1,) * len(rest))
    if method in _ELEMENTS or (method == "linear" and KIND[asked.dtype] in "biu"):
        place = (_ELEMENTS.get(method) or _PLACES[method])(n, q)
        result = _pick(lines, place, along)
    else:
        place = _PLACES[method](n, q)
        result = _blend(lines, place, n, method, weak, along)
    if along:
        result = emit("reshape", result, shape=(*asked.shape, *rest))
        empty = emit("eq", count, number(0, I64))
        return emit("select", empty, number(np.nan, result.dtype), result)
    if KIND[lines.dtype] == "f":
        last = cast(lines[-1], result.dtype)
        return emit("select", emit("isnan", last), last, result)
    return result


quantile = on(np.quantile)(_quantile("quantile", 1, False))
percentile = on(np.percentile)(_quantile("percentile", 100, False))
nanquantile = on(np.nanquantile)(_quantile("nanquantile", 1, True))
nanpercentile = on(np.nanpercentile)(_quantile("nanpercentile", 100, True))
