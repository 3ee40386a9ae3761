"""The checker: a graph that passes keeps every rule of graphs, at any depth."""

from __future__ import annotations

from tenfold.errors import GraphError, TenfoldError
from tenfold.graph.build import infer, is_sound, vouch
from tenfold.graph.node import Graph
from tenfold.graph.op import Table


def check(graph: Graph, table: Table) -> Graph:
    """This graph, if it keeps the rules: values made before they are read, types as the rows
    say, attributes in their one form, every effect listed in order. Else GraphError, with the
    text around the fault."""
    for scope in (*graph.scopes(), graph):
        if not is_sound(scope, table):
            _check_one(scope, table)
            vouch(scope, table)
    return graph


def _check_one(graph: Graph, table: Table) -> None:
    effects = []
    types = graph.types
    for position, (node, start) in enumerate(zip(graph.nodes, graph.starts, strict=True)):
        try:
            if any(not 0 <= v < start for v in node.inputs):
                raise GraphError(f"{node.op} reads a value that is not made before it")
            given = tuple(types[v] for v in node.inputs)
            expected = infer(node.op, table, given, node.attributes, node.scopes)
            op = table[node.op]
            normal = op.normalise(dict(node.attributes))
            if repr(normal) != repr(node.attributes):  # repr: True is not 1
                raise GraphError(f"{node.op}: attributes {node.attributes} should be {normal}")
            if expected != node.types:
                raise GraphError(f"{node.op}: types {node.types} should be {expected}")
        except (TenfoldError, KeyError, TypeError, ValueError, IndexError) as error:
            raise GraphError(f"{error}\n{_window(graph, position)}") from error
        if op.effect or any(scope.effects for scope in node.scopes):
            effects.append(position)
    if tuple(effects) != graph.effects:
        raise GraphError(f"effects {graph.effects} should be {tuple(effects)}")
    if any(not 0 <= v < len(types) for v in graph.outputs):
        raise GraphError(f"outputs {graph.outputs} are not all values of the graph")


def _window(graph: Graph, position: int) -> str:
    from tenfold.graph.text import show_node  # for faults alone

    lines = []
    for i in range(max(0, position - 3), min(len(graph.nodes), position + 2)):
        mark = ">" if i == position else " "
        lines.append(f" {mark} {show_node(graph, i)}")
    return "\n".join(lines)
