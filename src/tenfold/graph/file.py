"""The file form of graphs: one section a distinct graph, names and lines beside it.

A section lists each distinct type, form (op, attributes, types, scopes) and scope once; a node
is the number of its form and, for each input, how many values back that input lies. So a node
of a long chain takes some four bytes. The bytes of a section are what the digest is taken of;
a scope stands in it as its own digest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgpack

from tenfold.digest import sha256
from tenfold.errors import FileError
from tenfold.graph.data import read_data
from tenfold.graph.node import Graph, Node, Parameter, Source, is_plain
from tenfold.types import SHORT, parse_type

MAGIC = b"TFGRAPH\n"
VERSION = 1
_HEADER = len(MAGIC) + 2 + 32
# A node takes a byte or two, and its form may have any number of outputs. They are for other nodes
# to read, which takes a byte each.
_FREE, _EACH = 1 << 16, 64


class _Numbers(dict[Any, int]):
    """Numbers its keys by first use."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


def canonical_bytes(graph: Graph) -> bytes:
    """The section of this graph: all that makes it the program it is, and nothing else."""
    # This stands in the way of every first call: it is written for speed.
    forms = graph.forms
    flat: list[int] = []
    for node, number, start in zip(graph.nodes, forms.numbers, graph.starts, strict=True):
        flat.append(number)
        flat += [start - value for value in node.inputs]
    types = dict(forms.types)
    parameters = [types.setdefault(p.type, len(types)) for p in graph.parameters]
    data = (
        [(SHORT[t.dtype], *t.shape) for t in types],
        list(forms.scopes),
        forms.forms,
        parameters,
        flat,
        graph.outputs,
        graph.effects,
    )
    packed: bytes = msgpack.packb(data, use_bin_type=True)
    return packed


def write(graph: Graph, *, bare: bool = False) -> bytes:
    payload = pack((graph,), bare=bare)
    return MAGIC + VERSION.to_bytes(2, "little") + sha256(payload).digest() + payload


def pack(graphs: Sequence[Graph], *, bare: bool = False) -> bytes:
    """These graphs and all inside them, each distinct one once, inner ones first."""
    distinct: dict[str, Graph] = {}
    for graph in graphs:
        for one in (*graph.scopes(), graph):
            distinct.setdefault(one.digest, one)
    notes = [] if bare else [_notes(g) for g in distinct.values()]
    sections = [g._canonical for g in distinct.values()]
    payload: bytes = msgpack.packb((sections, notes), use_bin_type=True)
    return payload


def _notes(graph: Graph) -> tuple[Any, ...]:
    files, sources = _Numbers(), _Numbers()
    per_node = [
        0
        if n.source is None
        else 1 + sources[files[n.source.file], n.source.line, n.source.function]
        for n in graph.nodes
    ]
    return [p.name for p in graph.parameters], list(files), list(sources), per_node


def read(data: bytes) -> Graph:
    if data[: len(MAGIC)] != MAGIC:
        raise FileError(
            "this is no graph file: its first bytes are not a graph's",
            fix="read bytes that Graph.to_bytes wrote",
        )
    version = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 2], "little")
    if version != VERSION:
        raise FileError(
            f"graph file of version {version}; this Tenfold reads version {VERSION}",
            fix="trace the program again, or read the file with the Tenfold that wrote it",
        )
    payload = data[_HEADER:]
    if sha256(payload).digest() != data[_HEADER - 32 : _HEADER]:
        raise FileError(
            "damaged graph file: the checksum does not fit", fix="fetch or write the file again"
        )
    graphs = unpack(payload)
    if not graphs:
        raise FileError("the graph file holds no graph", fix="write the file again")
    return list(graphs.values())[-1]


def unpack(payload: bytes) -> dict[str, Graph]:
    """The graphs that `pack` wrote, by digest, in their order."""
    graphs: dict[str, Graph] = {}
    try:
        sections, notes = read_data(payload)
        for i, section in enumerate(sections):
            graph = _read_section(section, graphs, notes[i] if notes else None)
            graphs[graph.digest] = graph
    except FileError:
        raise
    except Exception as error:  # whatever a malformed file makes of unpacking it
        raise FileError(f"malformed graph file: {error!r}", fix="write the file again") from error
    return graphs


def _read_section(section: bytes, graphs: dict[str, Graph], notes: Any) -> Graph:
    types, scopes, forms, parameters, flat, outputs, effects = read_data(section)
    types = [parse_type(f"{t[0]}[{','.join(map(str, t[1:]))}]" if t[1:] else t[0]) for t in types]
    names, files, table, per_node = notes or ((), (), (), ())
    lines: list[Source | None] = [None]
    lines.extend(Source(str(files[f]), int(line), str(function)) for f, line, function in table)
    scopes = [graphs[s] for s in scopes]
    made = [
        (op, attributes, tuple(types[t] for t in out), tuple(scopes[s] for s in owned), count)
        for op, attributes, out, owned, count in forms
    ]
    if not all(isinstance(form[0], str) and is_plain(form[1]) for form in made):
        raise FileError("malformed graph file: an op or its attributes are no plain data")
    number, at = len(parameters), 0
    nodes: list[Node] = []
    while at < len(flat):
        op, attributes, out, owned, count = made[flat[at]]
        inputs = tuple([number - back for back in flat[at + 1 : at + 1 + count]])
        if len(inputs) != count or any(not 0 <= v < number for v in inputs):
            raise FileError(f"malformed graph file: node {len(nodes)} reads a value not yet made")
        source = lines[per_node[len(nodes)]] if per_node else None
        nodes.append(Node(op, inputs, attributes, owned, out, source))
        number += len(out)
        at += 1 + count
        if number > _FREE + _EACH * len(section):
            raise FileError("malformed graph file: more values than its length allows")
    if any(not 0 <= v < number for v in outputs):
        raise FileError("malformed graph file: an output is no value of the graph")
    if any(not 0 <= e < len(nodes) for e in effects):
        raise FileError("malformed graph file: an effect is no node of the graph")
    graph = Graph(
        tuple(
            Parameter(types[t], str(names[i]) if i < len(names) else "")
            for i, t in enumerate(parameters)
        ),
        tuple(nodes),
        outputs,
        effects,
    )
    if graph._canonical != section:
        raise FileError("malformed graph file: a section is not in canonical form")
    return graph
