"""Graphs with an axis made shorter: the same program on fewer elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tenfold.errors import TenfoldError
from tenfold.graph import Builder, Graph, Node, Parameter
from tenfold.graph.rewrite import rewrite
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

    def parameter(given: Parameter) -> Parameter:
        return Parameter(TensorType(given.type.dtype, cut(given.type.shape)), given.name)

    def visit(builder: Builder, node: Node, inputs: Sequence[int]) -> Sequence[int]:
        given = {
            k: cut(v) if k in _EXTENTS and isinstance(v, tuple)
            else smaller if k in _EXTENTS and v == extent
            else v
            for k, v in node.attributes
        }  # fmt: skip
        return builder.node(node.op, inputs, given, [scopes[s.digest] for s in node.scopes])

    scopes: dict[str, Graph] = {}
    try:
        for one in (*graph.scopes(), graph):  # inner ones first
            scopes[one.digest] = rewrite(one, TABLE, visit, parameter)
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
