"""Reductions over windows: tn.reduce_window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.errors import ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.control.control import reduce
from tenfold.trace.surface.algebra.convolution import padding_of, per_axis
from tenfold.trace.surface.anywhere import anywhere
from tenfold.trace.surface.emit import cast, emit, fail, traced
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.trace.surface.ufuncs.promotion import common_dtype
from tenfold.types import BOOL, DTYPES, F64, I64, KIND, DType

_KINDS: dict[Any, str] = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.sum: "sum",
    np.prod: "prod",
    np.max: "max",
    np.min: "min",
    np.mean: "mean",
}
_NAMES = ("sum", "prod", "max", "min", "mean")


@anywhere
def reduce_window(
    x: Any,
    f: str | Callable[..., Any],
    window: Any,
    *,
    initial: Any = None,
    strides: Any = 1,
    padding: Any = "valid",
    dilation: Any = 1,
) -> Array:
    """What `f` makes of each window of an array: one result for each place of the window.

    `f` is 'sum', 'prod', 'max', 'min' or 'mean' (or np.add, np.maximum, … for these), or an
    associative function of two scalars, which starts from `initial` and sees it outside of the
    array. Outside of the array there is nothing for the others: a mean is over what is inside.
    `window`, `strides` and `dilation` are one number or one for each axis; `padding` is 'valid',
    'same', a number, or a pair (before, behind) for each axis.

    >>> import numpy as np, tenfold as tn
    >>> tn.reduce_window(np.array([1.0, 5.0, 2.0, 4.0]), "max", 2, strides=2)
    array([5., 4.])
    >>> tn.reduce_window(np.arange(4), lambda a, b: a + 2 * b, 2, initial=0)
    array([ 2,  6, 10])
    """
    array = traced(x)
    rank = array.ndim
    kind = f if isinstance(f, str) else _KINDS.get(f)
    if kind not in _NAMES and not (kind is None and callable(f)):
        fail(ValueProblem, f"reduce_window with f={f!r}", f"say {', '.join(_NAMES)}, or a function")
    extents = per_axis("reduce_window", "window", window, rank)
    steps = per_axis("reduce_window", "strides", strides, rank)
    spaced = per_axis("reduce_window", "dilation", dilation, rank)
    spans = [(w - 1) * d + 1 for w, d in zip(extents, spaced, strict=True)]
    pairs = padding_of("reduce_window", padding, array.shape, spans, steps)

    def windows(x: Array, outside: Any) -> Array:
        low, high = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
        if any((*low, *high)):
            fill = traced(outside, x.dtype)
            x = emit("pad", x, fill, low=low, high=high, interior=(0,) * rank)
        return emit("windows", x, window=extents, strides=steps, dilation=spaced)

    inner = tuple(range(rank, 2 * rank))
    if kind is None:
        if initial is None:
            fail(ValueProblem, "reduce_window with a function and no initial", "give initial=")
        array = cast(array, common_dtype(array, initial))
        assert callable(f)
        result: Array = reduce(f, windows(array, initial), initial, inner)
        return result
    if kind == "mean":
        return _mean(array, windows, inner, any(n for pair in pairs for n in pair))
    if kind in ("sum", "prod"):
        array = cast(array, _wide(array.dtype))
    made = emit(f"reduce_{kind}", windows(array, _OUTSIDE[kind](array.dtype)), axes=inner)
    if initial is None:
        return made
    step = {"sum": "add", "prod": "mul"}.get(kind, kind)
    return emit(step, made, traced(initial, made.dtype))


def _wide(dtype: DType) -> DType:
    """The dtype NumPy sums in."""
    return DTYPES["u64"] if KIND[dtype] == "u" else I64 if KIND[dtype] in "bi" else dtype


def _least(dtype: DType) -> Any:
    if KIND[dtype] in "iu":
        return int(np.iinfo(dtype).min)
    return False if dtype == BOOL else -np.inf


def _most(dtype: DType) -> Any:
    if KIND[dtype] in "iu":
        return int(np.iinfo(dtype).max)
    return True if dtype == BOOL else np.inf


_OUTSIDE: dict[str, Callable[[DType], Any]] = {
    "sum": lambda dtype: 0,
    "prod": lambda dtype: 1,
    "max": _least,
    "min": _most,
}


def _mean(
    x: Array, windows: Callable[[Array, Any], Array], inner: Sequence[int], padded: bool
) -> Array:
    x = cast(x, F64) if KIND[x.dtype] in "biu" else x
    seen = windows(x, 0)
    total = emit("reduce_sum", seen, axes=tuple(inner))
    if padded:
        ones = emit("broadcast", number(1, x.dtype), shape=x.shape)
        count = emit("reduce_sum", windows(ones, 0), axes=tuple(inner))
    else:
        size = 1
        for extent in seen.shape[len(inner) :]:
            size *= extent
        count = number(size, x.dtype)
    return emit("div", total, count)
