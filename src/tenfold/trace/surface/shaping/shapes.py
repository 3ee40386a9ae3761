"""Shapes: functions that give the same elements in another shape or order."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ShapeError, Unsupported, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import (
    axes_of,
    axis_of,
    emit,
    fail,
    on,
    shape_of,
    static_int,
    traced,
)
from tenfold.trace.surface.indexing.key import SliceRange
from tenfold.trace.surface.steps import BasicIndex, Reshape, Strided, alias, view
from tenfold.trace.surface.ufuncs.composed import same
from tenfold.trace.view import Step, View


def _fortran(x: Array, order: Any) -> bool:
    """Whether elements are counted with the first axis fastest."""
    if order not in ("C", "F", "A", "K"):
        fail(ValueProblem, f"order={order!r} is no order", "say 'C' or 'F'")
    if order in ("C", "F"):
        return bool(order == "F")
    if x.size and sum(n > 1 for n in x.shape) > 1:
        fail(
            Unsupported,
            f"order={order!r} of {x.type} asks how it lies in memory, and traced arrays have none",
            "say which order is meant: 'C' counts the last axis fastest, 'F' the first",
        )
    return False


@on(np.reshape)
def reshape(a: Any, /, shape: Any, order: Any = "C", *, copy: Any = None) -> Array:
    x = traced(a)
    if order == "K":
        fail(ValueProblem, "order='K' of a reshape, which has none to keep", "say 'C' or 'F'")
    transposed = _fortran(x, order)
    wanted = shape_of(shape)
    if -1 in wanted:
        known = 1
        for n in wanted:
            known *= n if n != -1 else 1
        fits = wanted.count(-1) == 1 and known > 0 and x.size % known == 0
        if not fits:
            fail(
                ShapeError,
                f"reshape: {x.type} with {x.size} elements does not take the shape {wanted}",
                "give a shape with as many elements and at most one -1",
            )
        wanted = tuple(x.size // known if n == -1 else n for n in wanted)
    if transposed:
        return transpose(_reshaped(transpose(x), wanted[::-1], copy))
    return _reshaped(x, wanted, copy)


def _reshaped(x: Array, shape: tuple[int, ...], copy: Any = None) -> Array:
    """An array in another shape: a view where NumPy gives one, else a copy."""
    step = _shaping(x.shape, shape)
    if copy or not (x._view is None or _lies_so(x._view, step)):
        if copy is False:
            fail(
                ValueProblem,
                f"{x.type} can't be reshaped to {shape} without a copy",
                "leave copy=False out",
            )
        return same(step.read(x))
    return view(x, step)


def _shaping(before: tuple[int, ...], shape: tuple[int, ...]) -> Step:
    """The step to another shape, which joins others where only axes of extent 1 come or go."""
    left = [axis for axis, n in enumerate(before) if n != 1]
    if before == shape or [before[axis] for axis in left] != [n for n in shape if n != 1]:
        return Reshape(before, shape)
    own = iter(left)
    return BasicIndex.whole(before, tuple([None if n == 1 else next(own) for n in shape]))


def _lies_so(own: View, step: Step) -> bool:
    """Whether a view has the strides that another shape of it needs."""
    if isinstance(step, BasicIndex) or (isinstance(step, Reshape) and step.parts):
        return True
    try:
        step.lay(own.layout())
    except ValueError:
        return False
    return True


@on(np.ravel)
def ravel(a: Any, order: Any = "C") -> Array:
    x = traced(a)
    x = transpose(x) if _fortran(x, order) else x
    apart = x._view is not None and not x._view.layout().flags.c_contiguous
    return _reshaped(x, (x.size,), copy=apart or None)


@on(np.transpose)
def transpose(a: Any, axes: Any = None) -> Array:
    x = traced(a)
    if axes is None:
        return view(x, BasicIndex.whole(x.shape, tuple(range(x.ndim))[::-1]))
    order = axes_of(tuple(axes), x.ndim)
    if len(order) != x.ndim:
        fail(
            ShapeError,
            f"transpose: {len(order)} axes given for {x.type}",
            f"name each of its {x.ndim} axes once",
        )
    return view(x, BasicIndex.whole(x.shape, order))


@on(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> Array:
    x = traced(x)
    if x.ndim < 2:
        fail(ShapeError, f"matrix_transpose of {x.type}", "give an array with two or more axes")
    return swapaxes(x, -1, -2)


@on(np.swapaxes)
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Array:
    x = traced(a)
    order = list(range(x.ndim))
    i, j = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    order[i], order[j] = order[j], order[i]
    return view(x, BasicIndex.whole(x.shape, tuple(order)))


@on(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Array:
    x = traced(a)
    sources, targets = axes_of(source, x.ndim), axes_of(destination, x.ndim)
    if len(sources) != len(targets):
        fail(
            ShapeError,
            f"moveaxis: {len(sources)} axes to {len(targets)} places",
            "give as many destinations as sources",
        )
    order = [n for n in range(x.ndim) if n not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return view(x, BasicIndex.whole(x.shape, tuple(order)))


@on(np.rollaxis)
def rollaxis(a: Any, axis: Any, start: Any = 0) -> Array:
    x = traced(a)
    origin = axis_of(axis, x.ndim)
    target = axis_of(start, x.ndim + 1) if start >= 0 else axis_of(start, x.ndim)
    return moveaxis(x, origin, target - 1 if origin < target else target)


@on(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Array:
    x = traced(a)
    if axis is None:
        axes = tuple(i for i, n in enumerate(x.shape) if n == 1)
    else:
        axes = axes_of(axis, x.ndim)
        for i in axes:
            if x.shape[i] != 1:
                fail(
                    ShapeError,
                    f"squeeze: axis {i} of {x.type} has the extent {x.shape[i]}, not 1",
                    "name axes of extent 1 only",
                )
    return view(x, BasicIndex.whole(x.shape, tuple([i for i in range(x.ndim) if i not in axes])))


@on(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Array:
    x = traced(a)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    axes = axes_of(axis, x.ndim + count)
    own = iter(range(x.ndim))
    order = tuple(None if i in axes else next(own) for i in range(x.ndim + count))
    return view(x, BasicIndex.whole(x.shape, order))


@on(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Array:
    x = traced(array)
    return broadcast(x, shape_of(shape))


def broadcast(x: Array, shape: tuple[int, ...]) -> Array:
    """A view that nobody may write to: an element may stand at several places of it."""
    step = Strided(
        lambda base: emit("broadcast", base, shape=shape), lambda base: np.broadcast_to(base, shape)
    )
    return view(x, step, readonly=True)


def together(*arrays: Array) -> tuple[int, ...]:
    """The shape that these arrays broadcast to."""
    try:
        return np.broadcast_shapes(*(x.shape for x in arrays))
    except ValueError:
        shown = ", ".join(str(x.type) for x in arrays)
        fail(ShapeError, f"{shown} do not broadcast together", "reshape them so that they do")


def fit(value: Array, shape: tuple[int, ...]) -> Array:
    """A value broadcast to the place it is written to; leading axes of extent 1 fall away."""
    extra = value.ndim - len(shape)
    if extra > 0 and all(n == 1 for n in value.shape[:extra]):
        value = emit("reshape", value, shape=value.shape[extra:])
    if value.shape == shape:
        return value
    if value.ndim > len(shape) or any(
        n not in (1, m) for n, m in zip(reversed(value.shape), reversed(shape), strict=False)
    ):
        fail(
            ShapeError,
            f"a value of type {value.type} does not broadcast to the shape {shape} it is "
            "assigned to",
            "give a value of that shape, or one that broadcasts to it",
        )
    return emit("broadcast", value, shape=shape)


@on(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Array, ...]:
    arrays = [traced(a) for a in args]
    shape = together(*arrays)
    return tuple(alias(x) if x.shape == shape else broadcast(x, shape) for x in arrays)


def _at_least(rank: int, own: int) -> tuple[int | None, ...]:
    """The axes of an array that has so many, and new ones."""
    axes = tuple(range(own))
    if rank == 3 and own in (1, 2):
        return (None, *axes, None)[own - 1 :]
    return (None,) * (rank - own) + axes


def _lift(rank: int) -> Any:
    def apply(*arys: Any) -> Any:
        made = []
        for a in arys:
            x = traced(a)
            made.append(view(x, BasicIndex.whole(x.shape, _at_least(rank, x.ndim))))
        return made[0] if len(made) == 1 else tuple(made)

    return apply


atleast_1d = on(np.atleast_1d)(_lift(1))
atleast_2d = on(np.atleast_2d)(_lift(2))
atleast_3d = on(np.atleast_3d)(_lift(3))


@on(np.flip)
def flip(m: Any, axis: Any = None) -> Array:
    x = traced(m)
    turned = axes_of(axis, x.ndim)
    return view(
        x,
        BasicIndex.of(
            [
                SliceRange(n - 1, -1, n, n) if i in turned else SliceRange(0, 1, n, n)
                for i, n in enumerate(x.shape)
            ]
        ),
    )


@on(np.flipud)
def flipud(m: Any) -> Array:
    return flip(m, 0)


@on(np.fliplr)
def fliplr(m: Any) -> Array:
    return flip(m, 1)


@on(np.rot90)
def rot90(m: Any, k: Any = 1, axes: Any = (0, 1)) -> Array:
    x = traced(m)
    first, second = axes_of(tuple(axes), x.ndim)
    turns = static_int(k, "k") % 4
    if turns == 0:
        return alias(x)
    if turns == 2:
        return flip(x, (first, second))
    if turns == 1:
        return swapaxes(flip(x, second), first, second)
    return flip(swapaxes(x, first, second), second)


def cut(x: Array, axis: int, start: int, stop: int, step: int = 1) -> Array:
    """A range of one axis."""
    starts, stops, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], stops[axis], steps[axis] = start, stop, step
    return emit("slice", x, starts=tuple(starts), stops=tuple(stops), steps=tuple(steps))


# What is known while tracing.


@on(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    return traced(a).shape


@on(np.ndim)
def ndim(a: Any) -> int:
    return traced(a).ndim


@on(np.size)
def size(a: Any, axis: Any = None) -> int:
    x = traced(a)
    count = 1
    for i in axes_of(axis, x.ndim):
        count *= x.shape[i]
    return count
