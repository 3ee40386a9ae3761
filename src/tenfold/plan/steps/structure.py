"""The structure of a graph: all that it is but for its sizes, the data of literals and the user's
lines. Graphs of one structure agree in which of their types and attributes are equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenfold.frozen import frozen
from tenfold.graph import Graph, Node, Parameter, Source
from tenfold.graph.build import Builder, vouch
from tenfold.graph.data import read_data
from tenfold.graph.op import Table
from tenfold.kernel.ir.number import Number
from tenfold.plan.lowering.form import immediates
from tenfold.plan.passes.expand import expands
from tenfold.types import DTYPES, TensorType

_FIRST = -2  # how the first size is written in a structure; integers from -1 on are themselves


@frozen
class Structure:
    """Equal structures have equal keys; `sizes` are the integers that stand as numbers there."""

    key: Any
    sizes: tuple[int, ...]
    least: int  # integers from -1 to this one may be axes, and stand as they are


def structure_of(graph: Graph, table: Table) -> Structure:
    """The structure of a graph with its scopes, and its sizes: equal ones are one."""
    every = (*graph.scopes(), graph)
    numbers = {scope.digest: number for number, scope in enumerate(every)}
    sections = [read_data(scope._canonical) for scope in every]
    least = max([2, *(len(type) - 1 for types, *_ in sections for type in types)])
    # What a composition becomes may have the literals that the graph has.
    exact = any(expands(node, table) for node in graph.nodes)
    sizes: dict[int, int] = {}

    def plain(value: Any) -> Any:
        if type(value) is tuple:
            return tuple([plain(v) for v in value])
        if type(value) is not int or -1 <= value <= least:
            return value
        return _FIRST - sizes.setdefault(value, len(sizes))

    key = []
    for types, scopes, forms, *rest in sections:
        made = []
        for op, attributes, outputs, owned, arity in forms:
            if table[op].literal and not exact:
                given = dict(attributes)
                data = given.pop("data")
                kept = data if data in immediates(DTYPES[types[outputs[0]][0]]) else None
                made.append((op, tuple(given.items()), kept, outputs, arity))
            else:
                made.append((op, plain(attributes), owned, outputs, arity))
        key.append((plain(types), tuple([numbers[s] for s in scopes]), tuple(made), *rest))
    return Structure(tuple(key), tuple(sizes), least)


def resized(graph: Graph, sizes: Mapping[int, int], table: Table) -> Graph:
    """A graph without scopes, with other sizes in place of some. Raises where that is none: the
    data of literals stay, and what follows from a size has to go with it."""

    def plain(value: Any) -> Any:
        if type(value) is tuple:
            return tuple([plain(v) for v in value])
        return sizes.get(value, value) if type(value) is int else value

    builder = Builder(table)
    values = [
        builder.parameter(TensorType(p.type.dtype, plain(p.type.shape))) for p in graph.parameters
    ]
    for node in graph.nodes:
        given = node.attributes if table[node.op].literal else plain(node.attributes)
        values += builder.node(node.op, [values[v] for v in node.inputs], dict(given))
    return builder.finish([values[v] for v in graph.outputs])


def numbered(graph: Graph, numbers: Mapping[int, Number], table: Table) -> Graph:
    """A graph with Numbers for its sizes, its scopes too. The source of each of its nodes is that
    node's position."""
    made: dict[str, Graph] = {}
    for scope in (*graph.scopes(), graph):
        made[scope.digest] = _numbered(scope, numbers, table, made)
    return made[graph.digest]


def _numbered(
    graph: Graph, numbers: Mapping[int, Number], table: Table, scopes: Mapping[str, Graph]
) -> Graph:
    types: dict[TensorType, TensorType] = {}

    def plain(value: Any) -> Any:
        if type(value) is tuple:
            return tuple([plain(v) for v in value])
        return numbers.get(value, value) if type(value) is int else value

    def typed(type: TensorType) -> TensorType:
        made = types.get(type)
        if made is None:
            made = types[type] = TensorType(type.dtype, plain(type.shape))
        return made

    made = Graph(
        tuple([Parameter(typed(p.type), p.name) for p in graph.parameters]),
        tuple(
            [
                Node(
                    node.op,
                    node.inputs,
                    node.attributes if table[node.op].literal else plain(node.attributes),
                    tuple([scopes[scope.digest] for scope in node.scopes]),
                    tuple([typed(type) for type in node.types]),
                    Source("", position, ""),
                )
                for position, node in enumerate(graph.nodes)
            ]
        ),
        graph.outputs,
        graph.effects,
    )
    made.__dict__["digest"] = graph.digest  # scopes are compared by it
    vouch(made, table)
    return made
