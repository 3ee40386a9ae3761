"""Graphs with an axis made shorter: the same program on fewer elements."""

from __future__ import annotations

from collections.abc import Iterator

from tenfold.errors import TenfoldError
from tenfold.graph import Builder, Graph
from tenfold.ops import TABLE
from tenfold.plan.rows import follow
from tenfold.types import TensorType

# Attributes that hold extents of axes.
_EXTENTS = frozenset(("shape", "stops", "sizes", "length"))
Rows = tuple[int | None, ...]


def narrowed(graph: Graph, extent: int, smaller: int, which: int | None = None) -> Graph | None:
    """The graph with every axis of this extent made shorter, or with `which` the first or a later
    one in each shape; None where it does not allow that."""

    def cut(shape: tuple[int, ...]) -> tuple[int, ...]:
        if which is None:
            return tuple(smaller if n == extent else n for n in shape)
        at = _place(shape, extent, which)
        return shape if at is None else (*shape[:at], smaller, *shape[at + 1 :])

    scopes: dict[str, Graph] = {}
    try:
        for one in (*graph.scopes(), graph):  # inner ones first
            builder = Builder(TABLE)
            first = [
                builder.parameter(TensorType(p.type.dtype, cut(p.type.shape)), p.name)
                for p in one.parameters
            ]
            values = list(first)
            for node in one.nodes:
                given = {
                    k: cut(v) if k in _EXTENTS and isinstance(v, tuple)
                    else smaller if k in _EXTENTS and v == extent
                    else v
                    for k, v in node.attributes
                }  # fmt: skip
                inner = [scopes[s.digest] for s in node.scopes]
                inputs = [values[v] for v in node.inputs]
                values += builder.node(node.op, inputs, given, inner, node.source)
            outputs = [values[v] for v in one.outputs]
            scopes[one.digest] = builder.finish(outputs, first, lambda source: source)
    except (TenfoldError, ValueError, IndexError):
        return None
    return scopes[graph.digest]


def _place(shape: tuple[int, ...], extent: int, which: int) -> int | None:
    """Which axis is the one of this extent that is meant, if there is one."""
    found = [axis for axis, n in enumerate(shape) if n == extent]
    return found[which] if which < len(found) else None


def row_axes(graph: Graph) -> Iterator[tuple[int, int, Rows, Rows]]:
    """Extents whose axis holds rows that the graph treats apart from each other, the longest first,
    with which of several is meant, and the axis of rows of each parameter and of each output."""
    shapes = [graph.types[v].shape for v in graph.outputs]
    extents = {(n, shape[:a].count(n)) for shape in shapes for a, n in enumerate(shape) if n > 1}
    for extent, which in sorted(extents, key=lambda pair: (-pair[0], pair[1])):
        rows = tuple(_place(p.type.shape, extent, which) for p in graph.parameters)
        fewer = narrowed(graph, extent, extent - 1, which)
        if fewer is None:
            continue
        try:
            ends = follow(fewer, graph, extent - 1, extent, numbered=False)
        except TenfoldError:
            continue
        if all(axis is not None for axis in ends):
            yield extent, which, rows, ends
