"""Padding: arrays with borders of a constant or of their own elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ShapeError, Unsupported
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import ABSENT, axis_of, emit, fail, on, plain, traced
from tenfold.trace.surface.shaping.shapes import cut
from tenfold.trace.surface.ufuncs.composed import same


@on(np.pad)
def pad(
    array: Any, pad_width: Any, mode: Any = "constant", *, constant_values: Any = ABSENT
) -> Array:
    x = traced(array)
    widths = _pairs(pad_width, x.ndim, "pad_width")
    if any(n < 0 for pair in widths for n in pair):
        fail(ShapeError, f"pad by a negative width: {widths}", "give widths of 0 or more")
    if mode == "constant":
        return _pad_constant(x, widths, 0 if constant_values is ABSENT else constant_values)
    if mode not in _EDGES or constant_values is not ABSENT:
        fail(
            Unsupported,
            f"np.pad with mode={mode!r}",
            f"the modes are constant, {', '.join(_EDGES)}",
        )
    for axis, (low, high) in enumerate(widths):
        if low or high:
            parts = _EDGES[mode](x, axis, low, high)
            x = emit("concatenate", *parts, axis=axis)
    return same(x)


def _pairs(given: Any, rank: int, what: str) -> list[tuple[int, int]]:
    """A pair of numbers for each axis, as NumPy's pad broadcasts them."""
    if isinstance(given, dict):
        pairs: list[Any] = [0] * rank
        for axis, pair in given.items():
            pairs[axis_of(axis, rank)] = pair
        given = [tuple(np.broadcast_to(p, (2,))) for p in pairs]
    try:
        wide = np.broadcast_to(np.asarray(given), (rank, 2))
    except ValueError:
        fail(ShapeError, f"{what}={given} for {rank} axes", "give (before, after) for each axis")
    return [(int(a), int(b)) for a, b in wide]


def _pad_constant(x: Array, widths: list[tuple[int, int]], value: Any) -> Array:
    zeros = (0,) * x.ndim
    value = plain(value)
    if isinstance(value, Array) or np.ndim(value) == 0:
        fill = traced(value, x.dtype)
        low, high = tuple(a for a, _ in widths), tuple(b for _, b in widths)
        return emit("pad", x, fill, low=low, high=high, interior=zeros)
    wide = np.broadcast_to(np.asarray(value), (x.ndim, 2))
    for axis, (low_, high_) in enumerate(widths):
        for side, width in ((0, low_), (1, high_)):
            if width:
                grow = tuple(width if i == axis else 0 for i in range(x.ndim))
                fill = traced(wide[axis, side], x.dtype)
                low, high = (grow, zeros) if side == 0 else (zeros, grow)
                x = emit("pad", x, fill, low=low, high=high, interior=zeros)
    return x


def _need(x: Array, axis: int, width: int, most: int, mode: str) -> None:
    if width > most:
        fail(
            Unsupported,
            f"np.pad with mode={mode!r} by {width} of axis {axis} of {x.type}",
            f"pad by at most {most} at a time",
        )


def _edge(x: Array, axis: int, low: int, high: int) -> list[Array]:
    n = x.shape[axis]
    if n == 0:
        fail(ShapeError, f"np.pad with mode='edge' of the empty axis {axis} of {x.type}", None)

    def wide(part: Array, width: int) -> Array:
        shape = tuple(width if i == axis else m for i, m in enumerate(x.shape))
        return emit("broadcast", part, shape=shape)

    return [wide(cut(x, axis, 0, 1), low), x, wide(cut(x, axis, n - 1, n), high)]


def _reflect(x: Array, axis: int, low: int, high: int) -> list[Array]:
    n = x.shape[axis]
    _need(x, axis, max(low, high), n - 1, "reflect")
    before = emit("reverse", cut(x, axis, 1, low + 1), axes=(axis,))
    after = emit("reverse", cut(x, axis, n - 1 - high, n - 1), axes=(axis,))
    return [before, x, after]


def _symmetric(x: Array, axis: int, low: int, high: int) -> list[Array]:
    n = x.shape[axis]
    _need(x, axis, max(low, high), n, "symmetric")
    before = emit("reverse", cut(x, axis, 0, low), axes=(axis,))
    after = emit("reverse", cut(x, axis, n - high, n), axes=(axis,))
    return [before, x, after]


def _wrap(x: Array, axis: int, low: int, high: int) -> list[Array]:
    n = x.shape[axis]
    _need(x, axis, max(low, high), n, "wrap")
    return [cut(x, axis, n - low, n), x, cut(x, axis, 0, high)]


_EDGES = {"edge": _edge, "reflect": _reflect, "symmetric": _symmetric, "wrap": _wrap}
