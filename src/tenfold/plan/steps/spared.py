"""What a copy may leave out: the range of an update that begins as it, which is written anyway.

A step of a stencil writes all but the border of an array. Where its result lies beside what it is
computed from, only the border is copied.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tenfold.frozen import frozen
from tenfold.graph import Graph
from tenfold.graph.op import Ranges
from tenfold.ops import TABLE
from tenfold.ops.ranges import Start

Array = np.ndarray[Any, Any]

_DEEPEST = 2  # axes along which rows lie apart


@frozen
class SparedRows:
    """Rows of so many bytes, the first at an offset; others lie along axes of so many of them, each
    a number of bytes apart, the outermost first."""

    offset: int
    bytes: int
    axes: tuple[tuple[int, int], ...]

    def of(self, array: Array) -> Array:
        """The bytes of them, in an array that has its elements in order."""
        raw = array.reshape(-1).view(np.uint8)[self.offset :]
        counts, apart = zip(*self.axes, (self.bytes, 1), strict=True)
        return as_strided(raw, counts, apart)

    @property
    def total(self) -> int:
        """The bytes of all of them."""
        found = self.bytes
        for count, _ in self.axes:
            found *= count
        return found


def spared_rows(graph: Graph, position: int) -> SparedRows | None:
    """The rows that an update writes; None where it is no update, or where they begin is known only
    when it runs, or where they lie along many axes."""
    if position < 0:
        return None
    node = graph.nodes[position]
    lowering = TABLE[node.op].lowering
    if not isinstance(lowering, Ranges) or len(node.types) != 1:
        return None
    types = [graph.types[v] for v in node.inputs]
    parts = lowering.ranges(types, dict(node.attributes))
    if len(parts) != 2 or parts[0].input != 0 or types[0] != node.types[0]:
        return None
    starts = [_start(graph, node.inputs, start) for start in parts[1].starts]
    whole, part = node.types[0], types[parts[1].input]
    if None in starts or not part.size:
        return None
    offset, step, run = 0, whole.dtype.itemsize, whole.dtype.itemsize
    axes: list[tuple[int, int]] = []
    apart = False  # rows do not fill an axis further in
    for start, extent, own in zip(
        reversed(starts), reversed(whole.shape), reversed(part.shape), strict=True
    ):
        assert start is not None
        offset += start * step
        if not apart:
            run = own * step
        elif axes and axes[0][0] * axes[0][1] == step:
            axes[0] = own * axes[0][0], axes[0][1]
        elif own > 1:
            axes.insert(0, (own, step))
        apart = apart or own < extent
        step *= extent
    return SparedRows(offset, run, tuple(axes)) if len(axes) <= _DEEPEST else None


def _start(graph: Graph, inputs: tuple[int, ...], start: int | Start) -> int | None:
    """Where a range begins, if a literal says it."""
    if not isinstance(start, Start):
        return start
    value = inputs[start.input]
    if value < len(graph.parameters):
        return None
    node = graph.nodes[bisect_right(graph.starts, value) - 1]
    if not TABLE[node.op].literal:
        return None
    found = int(np.frombuffer(node["data"], node.types[0].dtype)[0])
    return min(max(found, 0), start.limit)
