"""Applying: a user's function along an axis, over axes, or to pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.errors import ShapeError
from tenfold.trace.array import Array
from tenfold.trace.operand import scope_of
from tenfold.trace.surface.emit import axis_of, emit, fail, on, traced
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import BOOL


@on(np.apply_along_axis)
def apply_along_axis(
    func1d: Callable[..., Any], axis: Any, arr: Any, *args: Any, **kwargs: Any
) -> Array:
    """A scan over the lines: the function is traced once."""
    from tenfold.trace.control.control import scan  # it imports this package

    x = traced(arr)
    at = axis_of(axis, x.ndim)
    rest = tuple(n for i, n in enumerate(x.shape) if i != at)
    count = int(np.prod(rest))
    if not count:
        fail(ShapeError, f"apply_along_axis of {x.type}, which has no lines", None)
    last = FUNCTIONS[np.moveaxis](x, at, -1)
    lines = emit("reshape", last, shape=(count, x.shape[at]))
    _, made = scan(lambda c, line: (c, traced(func1d(line, *args, **kwargs))), (), lines)
    inner = made.ndim - 1
    tall = emit("reshape", made, shape=(*rest, *made.shape[1:]))
    outer = len(rest)
    order = (*range(at), *range(outer, outer + inner), *range(at, outer))
    return emit("transpose", tall, axes=order)


@on(np.apply_over_axes)
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Array:
    x = traced(a)
    rank = x.ndim
    for axis in axes if isinstance(axes, (tuple, list, np.ndarray)) else (axes,):
        at = axis_of(axis, rank)
        scope_of().at = None  # the function has lines of its own
        made = traced(func(x, at))
        if made.ndim != rank:
            made = FUNCTIONS[np.expand_dims](made, at)
        if made.ndim != rank:
            fail(
                ShapeError,
                f"apply_over_axes: the function gave {made.type} for {x.type}",
                "reduce one axis, kept or not",
            )
        x = made
    return x


@on(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """Every function is given the whole array, and its results are taken where the condition
    holds: how many elements that are, only a running program knows."""
    array = traced(x)
    single = not isinstance(condlist, (list, tuple)) and traced(condlist).ndim < 2
    flags = isinstance(condlist, (list, tuple)) and traced(condlist[0]).ndim == 0
    lone = single and traced(condlist).ndim == 0
    rows = [condlist] if lone or ((single or flags) and array.ndim) else list(condlist)
    holds = [traced(c, BOOL) for c in rows]
    for c in holds:
        if c.shape != array.shape:
            fail(ShapeError, f"piecewise: a condition {c.type} for {array.type}", "one for each")
    if len(holds) == len(funclist) - 1:
        any_ = holds[0]
        for c in holds[1:]:
            any_ = emit("or", any_, c)
        holds.append(emit("not", any_))
    if len(holds) != len(funclist):
        fail(
            ShapeError,
            f"piecewise: {len(funclist)} functions for {len(holds)} conditions",
            "give one for each, and at most one for the rest",
        )
    made: Array = FUNCTIONS[np.zeros_like](array)
    for condition, function in zip(holds, funclist, strict=True):
        scope_of().at = None  # functions have lines of their own
        value = function(array, *args, **kw) if callable(function) else function
        made = emit("select", condition, traced(value, array.dtype), made)
    return made
