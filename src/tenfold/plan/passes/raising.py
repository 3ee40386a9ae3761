"""Which nodes may raise, as an index that is out of range does: none is left out with what nobody
reads, since the reference would raise at the user's line."""

from __future__ import annotations

from tenfold.graph import Graph
from tenfold.graph.op import Table


def raising(graph: Graph, table: Table) -> dict[str, list[int]]:
    """The positions of nodes that may raise, go on for ever or be noticed, of a graph and of those
    inside it, by digest."""
    found: dict[str, list[int]] = {}
    for one in (*graph.scopes(), graph):
        own = found[one.digest] = []
        for position, node in enumerate(one.nodes):
            types = tuple([one.types[v] for v in node.inputs])
            inside = any(found[scope.digest] for scope in node.scopes)
            if inside or table[node.op].heeds(types, dict(node.attributes)):
                own.append(position)
    return found
