"""Windows: sliding_window_view."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ShapeError
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import axes_of, axis_of, emit, fail, on, shape_of, traced
from tenfold.trace.surface.steps import Strided, view


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


def _along(x: Array, axis: int, extent: int) -> Array:
    """Windows along one axis, their places behind all axes."""
    shape = tuple(extent if a == axis else 1 for a in range(x.ndim))
    one = (1,) * x.ndim
    made = emit("windows", x, window=shape, strides=one, dilation=one)
    return emit("reshape", made, shape=(*made.shape[: x.ndim], extent))
