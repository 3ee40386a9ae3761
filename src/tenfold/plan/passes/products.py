"""Lay products out as a library wants them: transposes go into the product, or come before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenfold.graph import Builder, Graph, Node
from tenfold.graph.op import Table
from tenfold.plan.lowering.product import inline, sides
from tenfold.types import Shape

_SIDES = ("lhs", "rhs")


def lay_products(graph: Graph, table: Table) -> Graph:
    """The graph with every product that is the library's in a form that it has: the batch first,
    then the other axes and the contracted ones, or the other way about, each in order."""
    makers: dict[int, Node] = {}
    changed: dict[int, list[tuple[int, Shape | None, Shape, Shape]]] = {}
    for position, (node, start) in enumerate(zip(graph.nodes, graph.starts, strict=True)):
        if len(node.types) == 1:
            makers[start] = node
        if node.op == "contract" and node.types[0].size:
            given = dict(node.attributes)
            types = tuple(graph.types[v] for v in node.inputs)
            if not inline(types, node.types[0], given):
                laid = _laid(graph, node, given, makers)
                if any(v != w or turn for v, (w, turn, *_) in zip(node.inputs, laid, strict=True)):
                    changed[position] = laid
    return _rebuilt(graph, table, changed) if changed else graph


def _laid(
    graph: Graph, node: Node, given: Mapping[str, Any], makers: Mapping[int, Node]
) -> list[tuple[int, Shape | None, Shape, Shape]]:
    """For each operand: the value to read, a transpose before it or None, its batched and its
    contracted axes."""
    read = []
    for side, value in zip(_SIDES, node.inputs, strict=True):
        batch, over = given[f"{side}_batch"], given[f"{side}_contract"]
        maker = makers.get(value)
        if maker is not None and maker.op == "transpose":
            axes = maker["axes"]
            free = [axes[a] for a in sides(len(axes), batch, over)]
            if free == sorted(free):
                value = maker.inputs[0]
                batch, over = (tuple(axes[a] for a in some) for some in (batch, over))
        read.append((value, batch, over))
    # Pairs of contracted axes may stand in any order: take the left's.
    order = sorted(range(len(read[0][2])), key=lambda i: read[0][2][i])
    laid: list[tuple[int, Shape | None, Shape, Shape]] = []
    for last, (value, batch, over) in zip((True, False), read, strict=True):
        over = tuple(over[i] for i in order)
        rank = graph.types[value].rank
        rest = tuple(sides(rank, batch, over))
        straight = tuple(range(rank))
        if straight in ((*batch, *rest, *over), (*batch, *over, *rest)):
            laid.append((value, None, batch, over))
            continue
        turn = (*batch, *rest, *over) if last else (*batch, *over, *rest)
        place = {axis: i for i, axis in enumerate(turn)}
        moved = [tuple(place[a] for a in some) for some in (batch, over)]
        laid.append((value, turn, moved[0], moved[1]))
    return laid


def _rebuilt(graph: Graph, table: Table, changed: Mapping[int, Any]) -> Graph:
    builder = Builder(table)
    values = [builder.parameter(p.type, p.name) for p in graph.parameters]
    for position, node in enumerate(graph.nodes):
        inputs = [values[v] for v in node.inputs]
        attributes = dict(node.attributes)
        if position in changed:
            inputs = []
            for side, (value, turn, batch, over) in zip(_SIDES, changed[position], strict=True):
                made = values[value]
                if turn is not None:
                    (made,) = builder.node("transpose", [made], {"axes": turn}, (), node.source)
                inputs.append(made)
                attributes[f"{side}_batch"], attributes[f"{side}_contract"] = batch, over
        values.extend(builder.node(node.op, inputs, attributes, node.scopes, node.source))
    outputs = [values[v] for v in graph.outputs]
    return builder.finish(outputs, locate=lambda source: source)
