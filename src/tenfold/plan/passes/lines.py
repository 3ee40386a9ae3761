"""Lay sorts out along lines: the axis of a sort becomes the last one, by transposes around it."""

from __future__ import annotations

from tenfold.graph import Builder, Graph, Node
from tenfold.graph.op import Table

LINES = ("sort", "argsort")


def lay_lines(graph: Graph, table: Table) -> Graph:
    """The graph with every sort along the last axis, where elements lie side by side."""
    if not any(map(_across, graph.nodes)):
        return graph
    builder = Builder(table)
    values = [builder.parameter(p.type, p.name) for p in graph.parameters]
    for node in graph.nodes:
        inputs = [values[v] for v in node.inputs]
        attributes = dict(node.attributes)
        if not _across(node):
            values.extend(builder.node(node.op, inputs, attributes, node.scopes, node.source))
            continue
        rank = node.types[0].rank
        order = [*(a for a in range(rank) if a != node["axis"]), node["axis"]]
        back = [order.index(a) for a in range(rank)]
        turned = builder.node("transpose", inputs, {"axes": order}, (), node.source)
        made = builder.node(node.op, turned, {"axis": rank - 1}, (), node.source)
        values.extend(builder.node("transpose", made, {"axes": back}, (), node.source))
    outputs = [values[v] for v in graph.outputs]
    return builder.finish(outputs, locate=lambda source: source)


def _across(node: Node) -> bool:
    """Whether a node sorts along another axis than the last."""
    return node.op in LINES and bool(node["axis"] != node.types[0].rank - 1)
