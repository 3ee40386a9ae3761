"""Rewrite: a graph rebuilt node by node. Every pass from graph to graph goes through this, but for
those that only put values in place of others (`substitute`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_

from tenfold.graph.build import Builder, is_sound, vouch
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


def substitute(
    graph: Graph, table: Table, instead: Mapping[int, int], changed: Mapping[int, Node]
) -> Graph:
    """The graph with values `instead` of others, each of the same type and made before, without
    nodes that nobody needs then; `changed` has nodes in place of others, by position. What is left
    stays in order: three walks over plain lists, where all the rest is as it was."""
    parameters, starts = len(graph.parameters), graph.starts
    into = list(range(len(graph.types)))
    for value, other in sorted(instead.items()):
        into[value] = into[other]
    nodes = list(graph.nodes)
    for position, node in changed.items():
        nodes[position] = node
    needed = bytearray(len(into))
    for value in graph.outputs:
        needed[into[value]] = 1
    stays = set(graph.effects)  # positions: what has an effect may give nothing
    for position in range(len(nodes) - 1, -1, -1):
        node, start = nodes[position], starts[position]
        if position in stays or any(needed[start : start + len(node.types)]):
            stays.add(position)
            for value in node.inputs:
                needed[into[value]] = 1
    number, kept = list(range(parameters)), parameters
    made: list[Node] = []
    place: dict[int, int] = {}
    for position, node in enumerate(nodes):
        count = len(node.types)
        if position in stays:
            place[position] = len(made)
            reads = tuple([number[into[v]] for v in node.inputs])
            if reads != node.inputs:
                node = Node(node.op, reads, node.attributes, node.scopes, node.types, node.source)
            made.append(node)
            number += range(kept, kept + count)
            kept += count
        else:
            number += [-1] * count
    outputs = tuple([number[into[v]] for v in graph.outputs])
    result = Graph(graph.parameters, tuple(made), outputs, tuple([place[e] for e in graph.effects]))
    if is_sound(graph, table):
        vouch(result, table)
    return result
