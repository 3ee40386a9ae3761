"""Manipulation: the same elements in another shape or order."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.api.namespace.dispatch import apply
from tenfold.trace.surface.emit import traced


def broadcast_arrays(*arrays: Any) -> list[Any]:
    """Arrays broadcast to one shape."""
    return list(apply(np.broadcast_arrays, *arrays))


def broadcast_to(x: Any, /, shape: Any) -> Any:
    """An array broadcast to a shape."""
    return apply(np.broadcast_to, x, shape)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """Arrays joined along an axis; None: flattened first."""
    return apply(np.concatenate, list(arrays), axis)


def expand_dims(x: Any, /, axis: Any = 0) -> Any:
    """An array with new axes of extent 1."""
    return apply(np.expand_dims, x, axis)


def flip(x: Any, /, *, axis: Any = None) -> Any:
    """An array turned round along axes."""
    return apply(np.flip, x, axis)


def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """An array with axes moved to other places."""
    return apply(np.moveaxis, x, source, destination)


def permute_dims(x: Any, /, axes: Any) -> Any:
    """An array with its axes in another order."""
    return apply(np.transpose, x, axes)


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Any:
    """Each element as often as it is to be repeated."""
    return apply(np.repeat, x, repeats, axis)


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Any:
    """An array in another shape."""
    return apply(np.reshape, x, shape, copy=copy)


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """An array moved along axes, what falls off coming in at the other end."""
    return apply(np.roll, x, shift, axis)


def squeeze(x: Any, /, axis: Any) -> Any:
    """An array without axes of extent 1."""
    return apply(np.squeeze, x, axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Any:
    """Arrays side by side along a new axis."""
    return apply(np.stack, list(arrays), axis)


def tile(x: Any, repetitions: Any, /) -> Any:
    """An array again and again along each axis."""
    return apply(np.tile, x, repetitions)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The parts of an array along an axis."""
    moved = apply(np.moveaxis, traced(x), axis, 0)
    return tuple(moved[i] for i in range(moved.shape[0]))


def matrix_transpose(x: Any, /) -> Any:
    """An array with its last two axes exchanged."""
    return apply(np.matrix_transpose, x)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Products summed over several axes."""
    return apply(np.tensordot, x1, x2, axes)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Products of vectors along an axis, the first conjugated."""
    left, right = traced(x1), traced(x2)
    if axis != -1:
        left, right = (apply(np.moveaxis, x, axis, -1) for x in (left, right))
    return apply(np.vecdot, left, right)
