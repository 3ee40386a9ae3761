"""The text form of graphs: `show` prints one, `parse` reads it back.

    graph (%0: f32[3] 'x') {
      %1 = constant {data=0x0000803f, type='f32'} : f32  # 1.0
      %2 = add %0 %1 : f32[3]  # model.py:12, in f
      return %2
    }

Scopes follow as blocks of their own, `@0 = graph …`, each distinct one once. A node with an
effect starts with `!`. Comments are not read back.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.errors import GraphError
from tenfold.graph.node import Attributes, Graph, Node, Parameter, is_plain
from tenfold.types import parse_type


def show(graph: Graph, limit: int | None = None) -> str:
    scopes = graph.scopes()
    labels = {scope.digest: f"@{i}" for i, scope in enumerate(scopes)}
    lines = _block(graph, "graph", labels, limit)
    for scope in scopes:
        lines += ["", *_block(scope, f"{labels[scope.digest]} = graph", labels, limit)]
    return "\n".join(lines)


def _block(graph: Graph, head: str, labels: dict[str, str], limit: int | None) -> list[str]:
    parameters = ", ".join(
        f"%{i}: {p.type}" + (f" {p.name!r}" if p.name else "")
        for i, p in enumerate(graph.parameters)
    )
    lines = [f"{head} ({parameters}) {{"]
    effects = set(graph.effects)
    shown = len(graph.nodes) if limit is None else min(limit, len(graph.nodes))
    lines.extend("  " + show_node(graph, i, labels, i in effects) for i in range(shown))
    if shown < len(graph.nodes):
        lines.append(f"  … {len(graph.nodes) - shown} more nodes")
    lines.append("  return " + " ".join(f"%{v}" for v in graph.outputs))
    lines.append("}")
    return lines


def show_node(
    graph: Graph, position: int, labels: dict[str, str] | None = None, effect: bool = False
) -> str:
    """One node as a line of text."""
    node, start = graph.nodes[position], graph.starts[position]
    text = "! " if effect else ""
    if node.types:
        text += ", ".join(f"%{start + i}" for i in range(len(node.types))) + " = "
    text += " ".join([node.op, *(f"%{v}" for v in node.inputs)])
    if node.attributes:
        text += " {" + ", ".join(f"{k}={_literal(v)}" for k, v in node.attributes) + "}"
    if node.scopes:
        text += " [" + " ".join((labels or {}).get(s.digest, "@") for s in node.scopes) + "]"
    if node.types:
        text += " : " + ", ".join(map(repr, node.types))
    notes = []
    data = next((value for _, value in node.attributes if isinstance(value, bytes)), None)
    if data is not None:  # the bytes of an array
        (type,) = node.types
        array = np.frombuffer(data, type.dtype).reshape(type.shape)
        # In one line, however many rows it has.
        notes.append(" ".join(np.array2string(array, separator=",").split()))
    if node.source is not None:
        notes.append(str(node.source))
    return text + (f"  # {'; '.join(notes)}" if notes else "")


def _literal(value: Any) -> str:
    return "0x" + value.hex() if isinstance(value, bytes) else repr(value)


_NODE = re.compile(
    r"(?P<effect>! )?(?:(?P<values>%\d+(?:, %\d+)*) = )?(?P<op>\w+)(?P<inputs>(?: %\d+)*)"
    r"(?: \{(?P<attributes>.*)\})?(?: \[(?P<scopes>@\d+(?: @\d+)*)\])?"
    r"(?: : (?P<types>\w+(?:\[[\d,]*\])?(?:, \w+(?:\[[\d,]*\])?)*))?(?:\s+#.*)?"
)
_HEAD = re.compile(r"(?:(?P<label>@\d+) = )?graph \((?P<parameters>.*)\) \{")
_PARAMETER = re.compile(r"%\d+: (\w+(?:\[[\d,]*\])?)(?: ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"))?")
_TYPE = re.compile(r"\w+(?:\[[\d,]*\])?")
_PAIR = re.compile(r"(?:^|, )(\w+)=")


def parse(text: str, check: Callable[[Graph], object]) -> Graph:
    """The graph that this text shows; `check` is called with it."""
    blocks: list[tuple[int, str, list[tuple[int, str]]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        head = _HEAD.fullmatch(stripped)
        if head:
            blocks.append((number, stripped, []))
        elif not blocks:
            raise GraphError(f"line {number}: a graph starts with 'graph (…) {{', not {stripped!r}")
        else:
            blocks[-1][2].append((number, stripped))
    if not blocks:
        raise GraphError("the text holds no graph")
    graphs: dict[str, Graph] = {}
    for number, head_line, lines in [*blocks[1:], blocks[0]]:
        head = _HEAD.fullmatch(head_line)
        assert head is not None
        graph = _parse_block(head["parameters"], lines, graphs, number)
        graphs[head["label"] or ""] = graph
    check(graph)
    return graph


def _parse_block(
    parameters: str, lines: list[tuple[int, str]], graphs: dict[str, Graph], number: int
) -> Graph:
    made = [
        Parameter(parse_type(type), ast.literal_eval(name) if name else "")
        for type, name in _PARAMETER.findall(parameters)
    ]
    nodes: list[Node] = []
    outputs: tuple[int, ...] | None = None
    effects: list[int] = []
    count = len(made)
    for number, line in lines:
        if line == "}":
            continue
        if line == "return" or line.startswith("return "):
            outputs = tuple(int(v[1:]) for v in line.split()[1:])
            continue
        match = _NODE.fullmatch(line)
        if match is None:
            raise GraphError(f"line {number}: {line!r} is no node")
        types = tuple(parse_type(t) for t in _TYPE.findall(match["types"] or ""))
        values = [int(v) for v in re.findall(r"%(\d+)", match["values"] or "")]
        if values != list(range(count, count + len(types))):
            raise GraphError(
                f"line {number}: values are numbered in order; expected %{count} onwards, "
                f"one for each of {len(types)} types"
            )
        try:
            scopes = tuple(graphs[s] for s in (match["scopes"] or "").split())
        except KeyError as error:
            raise GraphError(f"line {number}: no graph {error} stands before its use") from None
        if match["effect"]:
            effects.append(len(nodes))
        inputs = tuple(int(v) for v in re.findall(r"%(\d+)", match["inputs"]))
        nodes.append(
            Node(match["op"], inputs, _attributes(match["attributes"], number), scopes, types)
        )
        count += len(types)
    if outputs is None:
        raise GraphError(f"line {number}: the graph has no return")
    return Graph(tuple(made), tuple(nodes), outputs, tuple(effects))


def _attributes(text: str | None, number: int) -> Attributes:
    if not text:
        return ()
    starts = list(_PAIR.finditer(_blank_strings(text)))
    found = []
    for i, pair in enumerate(starts):
        end = starts[i + 1].start() if i + 1 < len(starts) else len(text)
        literal = text[pair.end() : end]
        try:
            value = bytes.fromhex(literal[2:]) if literal[:2] == "0x" else ast.literal_eval(literal)
        except (ValueError, SyntaxError) as error:
            raise GraphError(f"line {number}: {literal!r} is no attribute value") from error
        found.append((pair[1], value))
    if not is_plain(tuple(found)):
        raise GraphError(f"line {number}: {text!r}: attributes are numbers, strings and tuples")
    return tuple(found)


def _blank_strings(text: str) -> str:
    """The text with the insides of quoted strings blanked, so that ', x=' in one is not a pair."""
    return re.sub(
        r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", lambda m: "'" + "_" * (len(m[0]) - 2) + "'", text
    )
