"""Large arrays judged by a sample of their rows.

The reference takes seconds for arrays of hundreds of megabytes, and nobody waits that long. Where a
program treats the rows of some axis apart, it is run on some of them: the first, the last, and
others at equal distances between. The plan is run on all of them, as it answers calls, in guarded
memory, and has to agree closely in these rows; what it leaves unwritten in others is seen, too.
Nothing is refuted here: what does not agree closely is left to the full check.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.backends.program import Program
from tenfold.frozen import frozen
from tenfold.graph import Graph
from tenfold.parity.find.narrow import narrowed, row_axes
from tenfold.parity.replay.replay import run_whole
from tenfold.parity.rule.agree import closely
from tenfold.parity.rule.bits import raw
from tenfold.reference import Callbacks, evaluate
from tenfold.types import KIND

Array = np.ndarray[Any, Any]

ELEMENTS = 1 << 18  # that the reference computes for a sample, about
_FEWEST = 16  # rows
_NODES = 1000  # of a graph whose rows are followed: it takes some 0.1 ms a node


@frozen(eq=False)
class SampleResult:
    """What a sample gives: the plan's outputs, the largest error of each in units of its largest
    element, and what was looked at."""

    made: list[Array]
    end_to_end: tuple[float, ...]
    note: str


def check_sample(
    program: Program, graph: Graph, arrays: Sequence[Array], steps: int
) -> SampleResult | None:
    """What is found of a plan of so many steps; None where it has to be looked at closer, or has no
    rows of their own."""
    if len(graph.nodes) > _NODES:
        return None
    for extent, which, rows, ends in row_axes(graph):
        count = min(extent * ELEMENTS // sum(type.size for type in graph.types), extent // 4)
        few = narrowed(graph, extent, count, which) if count >= _FEWEST else None
        if few is None:
            continue
        chosen = _chosen(extent, count)
        given = [_taken(array, chosen, axis) for array, axis in zip(arrays, rows, strict=True)]
        wanted = evaluate(few, given)
        made, damage = run_whole(program, arrays, Callbacks())
        if damage is not None or any(map(_unwritten, made)):
            return None
        found = [
            closely(_taken(array, chosen, axis), one, steps)
            for array, one, axis in zip(made, wanted, ends, strict=True)
        ]
        off = tuple(one for one in found if one is not None)
        note = (
            f"by a sample: its kernels were judged, and {count:,} of {extent:,} rows agree closely "
            "with the reference; errors are in units of the largest element"
        )
        return SampleResult(made, off, note) if len(off) == len(found) else None
    return None


def _chosen(extent: int, count: int) -> Array:
    """Rows at both ends, and between."""
    end = count // 4
    between = np.linspace(end, extent - end, count - 2 * end, endpoint=False).astype(np.int64)
    return np.concatenate([np.arange(end), between, np.arange(extent - end, extent)])


def _taken(array: Array, chosen: Array, axis: int | None) -> Array:
    return array if axis is None else np.take(array, chosen, axis)


def _unwritten(made: Array) -> bool:
    """Whether floats are as memory is before a plan is run: no number, and no NaN that is
    computed."""
    if KIND[made.dtype] != "f" or not made.size:
        return False
    words = raw(made).view(f"i{made.dtype.itemsize}")
    return bool((words == -1).any())
