"""Expand compositions and user ops: what has no lowering of its own becomes other ops."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.graph import Builder, Graph, Node
from tenfold.graph.op import Composition, Inline, Scatter, Table
from tenfold.graph.rewrite import rewrite
from tenfold.types import SHORT


def expand(graph: Graph, table: Table) -> Graph:
    """The graph without compositions and without ops whose scope takes their place; and with casts
    around scatters that join values in a wider dtype."""

    def visit(builder: Builder, node: Node, inputs: Sequence[int]) -> Sequence[int] | Graph | None:
        lowering = table[node.op].lowering
        if isinstance(lowering, Inline):
            return node.scopes[0]
        if isinstance(lowering, Composition):
            return lowering.compose(builder, inputs, dict(node.attributes))
        wide = _wider(node, table)
        return None if wide is None else _widened(builder, node, inputs, wide)

    while any(expands(node, table) for node in graph.nodes):
        graph = rewrite(graph, table, visit)
    return graph


def expands(node: Node, table: Table) -> bool:
    """Whether other ops take the place of a node."""
    inline = isinstance(table[node.op].lowering, (Inline, Composition))
    return inline or _wider(node, table) is not None


def _wider(node: Node, table: Table) -> str | None:
    """The dtype in which a scatter joins its values, if it is not their own."""
    lowering = table[node.op].lowering
    if not isinstance(lowering, Scatter):
        return None
    return lowering.wider(node.types[0], dict(node.attributes))


def _widened(builder: Builder, node: Node, inputs: Sequence[int], wide: str) -> tuple[int, ...]:
    """A scatter of values cast to a wider dtype, and its result cast back."""
    x, updates, *indices = inputs
    cast = [builder.node("cast", [v], {"dtype": wide})[0] for v in (x, updates)]
    made = builder.node(node.op, [*cast, *indices], dict(node.attributes))
    return builder.node("cast", made, {"dtype": SHORT[node.types[0].dtype]})
