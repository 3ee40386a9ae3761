"""Lay routines out along lines: their axis becomes the last one, by transposes around them."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.graph import Builder, Graph, Node
from tenfold.graph.op import Routine, Table
from tenfold.graph.rewrite import rewrite


def lay_lines(graph: Graph, table: Table) -> Graph:
    """The graph with every sort along the last axis, where elements lie side by side."""

    def visit(builder: Builder, node: Node, inputs: Sequence[int]) -> Sequence[int] | None:
        if not _across(node, table):
            return None
        rank = node.types[0].rank
        order = [*(a for a in range(rank) if a != node["axis"]), node["axis"]]
        back = [order.index(a) for a in range(rank)]
        transposed = builder.node("transpose", inputs, {"axes": order})
        made = builder.node(node.op, transposed, {"axis": rank - 1})
        return builder.node("transpose", made, {"axes": back})

    if not any(_across(node, table) for node in graph.nodes):
        return graph
    return rewrite(graph, table, visit)


def over_lines(node: Node, table: Table) -> bool:
    """Whether a node is a routine over lines."""
    lowering = table[node.op].lowering
    return isinstance(lowering, Routine) and lowering.lines


def _across(node: Node, table: Table) -> bool:
    """Whether a node goes along another axis than the last."""
    return over_lines(node, table) and bool(node["axis"] != node.types[0].rank - 1)
