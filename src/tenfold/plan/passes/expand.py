"""Expand compositions and user ops: what has no lowering of its own becomes other ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.graph import Builder, Graph, Node
from tenfold.graph.op import Composition, Scatter, Table
from tenfold.types import SHORT


class _Sourced(Builder):
    """A builder whose nodes have the source of the node they come from."""

    at: Any = None

    def node(
        self,
        name: str,
        inputs: Sequence[int] = (),
        attributes: Mapping[str, Any] | None = None,
        scopes: Sequence[Graph] = (),
        source: Any = None,
    ) -> tuple[int, ...]:
        return super().node(name, inputs, attributes, scopes, source or self.at)


def expand(graph: Graph, table: Table) -> Graph:
    """The graph without compositions and without `custom`, whose fallback takes its place; and
    with casts around scatters that join values in a wider dtype."""
    while any(_expands(node, table) for node in graph.nodes):
        graph = _once(graph, table)
    return graph


def _expands(node: Node, table: Table) -> bool:
    lowering = table[node.op].lowering
    return (
        node.op == "custom"
        or isinstance(lowering, Composition)
        or (isinstance(lowering, Scatter) and _wider(node, lowering) is not None)
    )


def _wider(node: Node, lowering: Scatter) -> str | None:
    return lowering.wider(node.types[0], dict(node.attributes))


def _widened(builder: Builder, node: Node, inputs: Sequence[int], wide: str) -> tuple[int, ...]:
    """A scatter of values cast to a wider dtype, and its result cast back."""
    x, updates, *indices = inputs
    cast = [builder.node("cast", [v], {"dtype": wide})[0] for v in (x, updates)]
    made = builder.node(node.op, [*cast, *indices], dict(node.attributes))
    return builder.node("cast", made, {"dtype": SHORT[node.types[0].dtype]})


def _once(graph: Graph, table: Table) -> Graph:
    builder = _Sourced(table)
    first = [builder.parameter(p.type, p.name) for p in graph.parameters]
    # Frames of graphs being copied: the graph, the next node, its values' new numbers, where the
    # results go in the frame below.
    stack: list[tuple[Graph, int, list[int]]] = [(graph, 0, first)]
    while True:
        current, position, values = stack.pop()
        nodes = current.nodes
        opened = False
        while position < len(nodes):
            node = nodes[position]
            position += 1
            inputs = [values[v] for v in node.inputs]
            builder.at = node.source
            lowering = table[node.op].lowering
            if node.op == "custom":
                stack.append((current, position, values))
                stack.append((node.scopes[0], 0, inputs))
                opened = True
                break
            if isinstance(lowering, Composition):
                values.extend(lowering.compose(builder, inputs, dict(node.attributes)))
            elif isinstance(lowering, Scatter) and (wide := _wider(node, lowering)) is not None:
                values.extend(_widened(builder, node, inputs, wide))
            else:
                values.extend(
                    builder.node(node.op, inputs, dict(node.attributes), node.scopes, node.source)
                )
        if opened:
            continue
        results = [values[v] for v in current.outputs]
        if not stack:
            return builder.finish(results, locate=lambda source: source)
        stack[-1][2].extend(results)
