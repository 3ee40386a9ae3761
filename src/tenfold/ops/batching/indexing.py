"""Batching rules of indexing: the leading axis becomes one more indexed axis where it must."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.graph.build import Builder
from tenfold.ops.batching.rules import (
    Values,
    constant,
    deepened,
    make,
    move,
    rank_of,
    reshape,
    shape_of,
    spread,
)
from tenfold.types import DTYPES, I64, Shape


def _along(builder: Builder, size: int, rank: int) -> int:
    """0, 1, … along the first of so many axes behind it: the position in the batch."""
    line = make(builder, "iota", dtype="i64", shape=(size,), axis=0)
    return reshape(builder, line, (size, *[1] * rank))


def gather(
    builder: Builder,
    inputs: Sequence[int],
    batched: Sequence[bool],
    size: int,
    axes: Shape,
    at: int,
    mode: str,
) -> Values:
    x, *indices = inputs
    up = tuple(a + 1 for a in axes)
    if not any(batched[1:]):
        given: dict[str, Any] = {"axes": up, "at": at + 1, "mode": mode}
        return builder.node("gather", inputs, given)
    rank = rank_of(builder, indices, batched[1:])
    aligned = [deepened(builder, i, b, rank) for i, b in zip(indices, batched[1:], strict=True)]
    if batched[0]:
        aligned, axes = [_along(builder, size, rank), *aligned], (0, *up)
    taken = make(builder, "gather", x, *aligned, axes=axes, at=at, mode=mode)
    return (move(builder, taken, at, 0),)


def scatter(
    builder: Builder,
    inputs: Sequence[int],
    batched: Sequence[bool],
    size: int,
    axes: Shape,
    at: int,
    mode: str,
    kind: str,
) -> Values:
    x, updates, *indices = inputs
    up = tuple(a + 1 for a in axes)
    x = x if batched[0] else spread(builder, x, size)
    updates = updates if batched[1] else spread(builder, updates, size)
    given: dict[str, Any] = {"mode": mode, "kind": kind}
    if not any(batched[2:]):
        return builder.node("scatter", [x, updates, *indices], {"axes": up, "at": at + 1, **given})
    rank = rank_of(builder, indices, batched[2:])
    aligned = [deepened(builder, i, b, rank) for i, b in zip(indices, batched[2:], strict=True)]
    updates = move(builder, updates, 0, at)
    aligned = [_along(builder, size, rank), *aligned]
    return builder.node("scatter", [x, updates, *aligned], {"axes": (0, *up), "at": at, **given})


def _windows(
    builder: Builder,
    starts: Sequence[int],
    batched: Sequence[bool],
    size: int,
    shape: Shape,
    sizes: Shape,
) -> list[int]:
    """Index arrays that reach, for each element of the batch, its own window of x: they
    broadcast to (size, *sizes), one for each axis."""
    rank = len(shape)
    made = []
    rows = zip(starts, batched, shape, sizes, strict=True)
    for axis, (start, own, extent, count) in enumerate(rows):
        limit = constant(builder, I64, extent - count)
        if builder.types[start].dtype == DTYPES["u64"]:  # may be too great for i64
            most = constant(builder, DTYPES["u64"], extent - count)
            start = make(builder, "min", start, most)
        start = make(builder, "cast", start, dtype="i64")
        start = make(builder, "clip", start, constant(builder, I64, 0), limit)
        if own:
            start = reshape(builder, start, (size, *[1] * rank))
        window = tuple(count if a == axis else 1 for a in range(rank))
        steps = make(builder, "iota", dtype="i64", shape=window, axis=axis)
        made.append(make(builder, "add", start, steps))
    return made


def dynamic_slice(
    builder: Builder,
    inputs: Sequence[int],
    batched: Sequence[bool],
    size: int,
    sizes: Shape,
) -> Values:
    x, *starts = inputs
    if not any(batched[1:]):
        zero = constant(builder, I64, 0)
        return builder.node("dynamic_slice", [x, zero, *starts], {"sizes": (size, *sizes)})
    shape = shape_of(builder, x)[1:] if batched[0] else shape_of(builder, x)
    indices = _windows(builder, starts, batched[1:], size, shape, sizes)
    axes = tuple(range(len(shape)))
    if batched[0]:
        indices = [_along(builder, size, len(shape)), *indices]
        axes = (0, *(a + 1 for a in axes))
    return builder.node("gather", [x, *indices], {"axes": axes, "at": 0, "mode": "clip"})


def dynamic_update(
    builder: Builder,
    inputs: Sequence[int],
    batched: Sequence[bool],
    size: int,
) -> Values:
    x, update, *starts = inputs
    x = x if batched[0] else spread(builder, x, size)
    update = update if batched[1] else spread(builder, update, size)
    if not any(batched[2:]):
        zero = constant(builder, I64, 0)
        return builder.node("dynamic_update", [x, update, zero, *starts])
    shape, sizes = shape_of(builder, x)[1:], shape_of(builder, update)[1:]
    indices = [
        _along(builder, size, len(shape)),
        *_windows(builder, starts, batched[2:], size, shape, sizes),
    ]
    given = {"axes": tuple(range(len(shape) + 1)), "at": 0, "mode": "clip", "kind": "set"}
    return builder.node("scatter", [x, update, *indices], given)
