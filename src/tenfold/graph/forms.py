"""The forms of a graph's nodes: nodes of one form are alike in all but what they read.

Digests, searches for loops and fusion all go by forms. Most nodes are of a form that was met
before, and nodes that one builder made have their parts in common with others of their form, so
attributes and types are hashed once for each form, and numbers stand for them from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.frozen import frozen
from tenfold.graph.node import Node
from tenfold.types import TensorType

# Op, attributes, numbers of the types, numbers of the scopes, how many inputs.
Form = tuple[str, Any, tuple[int, ...], tuple[int, ...], int]


@frozen(eq=False)
class Forms:
    """Things are numbered by first use."""

    numbers: tuple[int, ...]  # by position: the form of a node
    forms: tuple[Form, ...]
    firsts: tuple[Node, ...]  # of each form
    types: dict[TensorType, int]
    scopes: dict[str, int]  # by digest


def forms_of(nodes: Sequence[Node]) -> Forms:
    types: dict[TensorType, int] = {}
    scopes: dict[str, int] = {}
    forms: dict[Form, int] = {}
    firsts: list[Node] = []
    numbers: list[int] = []
    met: dict[tuple[str, int, int, int, int], int] = {}  # by ids of parts, which nodes keep alive
    numbered: dict[int, int] = {}  # types by id
    for node in nodes:
        given, made, owned, reads = node.attributes, node.types, node.scopes, len(node.inputs)
        parts = node.op, id(given), id(made), id(owned), reads
        number = met.get(parts)
        if number is None:
            kinds = []
            for type in made:
                kind = numbered.get(id(type))
                if kind is None:
                    kind = numbered[id(type)] = types.setdefault(type, len(types))
                kinds.append(kind)
            inner = tuple([scopes.setdefault(s.digest, len(scopes)) for s in owned])
            form = node.op, given, tuple(kinds), inner, reads
            number = met[parts] = forms.setdefault(form, len(forms))
            if number == len(firsts):
                firsts.append(node)
        numbers.append(number)
    return Forms(tuple(numbers), tuple(forms), tuple(firsts), types, scopes)
