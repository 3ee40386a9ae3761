"""Rewrite: a graph rebuilt node by node. Every pass from graph to graph goes through this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_

from tenfold.graph.build import Builder, is_sound
from tenfold.graph.node import Graph, Node, Parameter
from tenfold.graph.op import Table

# Makes a node anew, from the new numbers of the values that it reads: the values that take the
# place of its own, a graph whose nodes do, or None for the node as it is.
Visit = Callable[[Builder, Node, Sequence[int]], Sequence[int] | Graph | None]


def rewrite(
    graph: Graph,
    table: Table,
    visit: Visit,
    parameter: Callable[[Parameter], Parameter] = lambda parameter: parameter,
) -> Graph:
    """The graph with each node as `visit` makes it, and each parameter likewise. What a node
    becomes has its source. The nodes of a graph that takes a node's place are visited, too."""
    builder = Builder(table)
    given = [parameter(p) for p in graph.parameters]
    values = [builder.parameter(p.type, p.name) for p in given]
    below: list[tuple[Graph, int, list[int]]] = []  # graphs that wait: the next node, the values
    position, sound = 0, is_sound(graph, table)
    while True:
        if position == len(graph.nodes):
            outputs = [values[v] for v in graph.outputs]
            if not below:
                return builder.finish(outputs)
            graph, position, values = below.pop()
            sound = is_sound(graph, table)
            values.extend(outputs)
            continue
        node = graph.nodes[position]
        position += 1
        inputs = [values[v] for v in node.inputs]
        builder.at = node.source
        made = visit(builder, node, inputs)
        if isinstance(made, Graph):
            below.append((graph, position, values))
            graph, position, values = made, 0, inputs
            sound = is_sound(graph, table)
            continue
        if made is None:
            before = map(graph.types.__getitem__, node.inputs)
            now = map(builder.types.__getitem__, inputs)
            made = builder.again(node, inputs, sound and all(map(is_, now, before)))
        values.extend(made)
