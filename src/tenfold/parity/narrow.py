"""Graphs with an axis made shorter: the same program on fewer elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tenfold.errors import TenfoldError
from tenfold.graph import Builder, Graph
from tenfold.ops import TABLE
from tenfold.plan.rows import follow
from tenfold.types import TensorType

# Attributes that hold extents of axes.
_EXTENTS = frozenset(("shape", "stops", "sizes", "length"))
Rows = tuple[int | None, ...]


def narrowed(graph: Graph, extent: int, smaller: int) -> Graph | None:
    """The graph with every axis of one extent made shorter; None where it does not allow that."""

    def cut(shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(smaller if n == extent else n for n in shape)

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
                given = {k: _cut(k, v, extent, smaller) for k, v in node.attributes}
                inner = [scopes[s.digest] for s in node.scopes]
                inputs = [values[v] for v in node.inputs]
                values += builder.node(node.op, inputs, given, inner, node.source)
            outputs = [values[v] for v in one.outputs]
            scopes[one.digest] = builder.finish(outputs, first, lambda source: source)
    except (TenfoldError, ValueError, IndexError):
        return None
    return scopes[graph.digest]


def _cut(name: str, value: Any, extent: int, smaller: int) -> Any:
    if name not in _EXTENTS:
        return value
    if isinstance(value, tuple):
        return tuple(smaller if n == extent else n for n in value)
    return smaller if value == extent else value


def row_axes(graph: Graph) -> Iterator[tuple[int, Rows, Rows]]:
    """Extents whose axis holds rows that the graph treats apart from each other, the longest first,
    with the axis of rows of each parameter and of each output."""
    extents = {n for v in graph.outputs for n in graph.types[v].shape if n > 1}
    for extent in sorted(extents, reverse=True):
        if any(type.shape.count(extent) > 1 for type in graph.types):
            continue  # which of them holds rows can't be told
        rows = tuple(
            p.type.shape.index(extent) if extent in p.type.shape else None for p in graph.parameters
        )
        fewer = narrowed(graph, extent, extent - 1)
        if fewer is None:
            continue
        try:
            ends = follow(fewer, graph, extent - 1, extent, numbered=False)
        except TenfoldError:
            continue
        if all(axis is not None for axis in ends):
            yield extent, rows, ends
