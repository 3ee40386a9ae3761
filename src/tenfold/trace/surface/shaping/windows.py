"""Windows: sliding_window_view and as_strided."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import IndexProblem, ShapeError
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import axes_of, axis_of, emit, fail, on, shape_of, traced
from tenfold.trace.surface.steps import Strided, address, places, view
from tenfold.trace.view import layout


@on(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Array:
    array = traced(x)
    window = shape_of(window_shape)
    if axis is None:
        axes = axes_of(None, array.ndim)
    else:
        axes = tuple(
            axis_of(a, array.ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))
        )
    if len(axes) != len(window) or any(w < 0 for w in window):
        fail(
            ShapeError,
            f"sliding_window_view: a window {window} for {len(axes)} axes",
            "give one extent for each axis",
        )

    def windows(base: Array) -> Array:
        # An axis that is named twice has a window of windows: one after the other.
        for a, w in zip(axes, window, strict=True):
            if w > base.shape[a]:
                fail(
                    ShapeError,
                    f"sliding_window_view: a window of {w} along axis {a} of {array.type}",
                    "no window may be longer than its axis",
                )
            base = _along(base, a, w)
        return base

    def lay(base: Any) -> Any:
        return np.lib.stride_tricks.sliding_window_view(base, window, axes, writeable=True)

    return view(array, Strided(windows, lay), readonly=not writeable)


@on(np.lib.stride_tricks.as_strided)
def as_strided(
    x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True
) -> Array:
    """A view of the memory that the array would have. What is no view lies in C order."""
    array = traced(x)
    root = array if array._view is None else array._view.root
    whole = layout(root.dtype, root.shape)
    own = whole if array._view is None else array._view.layout(whole)
    shape = own.shape if shape is None else shape_of(shape)
    strides = own.strides if strides is None else shape_of(strides)
    start = address(own) - address(whole)
    if array.dtype != root.dtype:
        fail(ShapeError, f"as_strided of a part of {root.type}", "copy it first: x.copy()")
    if len(shape) != len(strides):
        fail(ShapeError, f"as_strided: strides {strides} for the shape {shape}", "one for each")

    def lay(base: Any) -> Any:
        line = _STRIDED(base, (base.size,), (base.itemsize,))
        return _STRIDED(line[start // base.itemsize :], shape, strides)

    def take(base: Array) -> Array:
        found = places(lay(whole), whole)
        flat = emit("reshape", base, shape=(base.size,))
        return emit("gather", flat, found, axes=(0,), at=0, mode="clip")

    ends = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    low, high = (start + sum(pick(end, 0) for end in ends) for pick in (min, max))
    if 0 not in shape and (
        low < 0 or high >= root.type.nbytes or any(s % own.itemsize for s in strides)
    ):
        fail(
            IndexProblem,
            f"as_strided: the shape {shape} with strides {strides} reaches what is no element of "
            f"{root.type}",
            "strides are in bytes: make them of x.strides, and shape and strides fit the array",
        )
    return view(root, Strided(take, lay), readonly=not writeable or array._readonly)


_STRIDED = np.lib.stride_tricks.as_strided


def _along(x: Array, axis: int, extent: int) -> Array:
    """Windows along one axis, their places behind all axes."""
    shape = tuple(extent if a == axis else 1 for a in range(x.ndim))
    one = (1,) * x.ndim
    made = emit("windows", x, window=shape, strides=one, dilation=one)
    return emit("reshape", made, shape=(*made.shape[: x.ndim], extent))
