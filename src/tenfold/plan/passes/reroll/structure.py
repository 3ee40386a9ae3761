"""The structure of a graph: what makes each value, who reads it, and which nodes are of one form.

Nodes of one form differ in the values they read, and in what may differ from round to round of a
loop: the data of literals, and where a part begins that is cut out.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from tenfold.graph import Graph, Node
from tenfold.graph.op import Element, Pointwise, Table
from tenfold.locks import cached_property

NONE = -1  # the form of nodes that belong into no loop: those with effects
LOOKS = 64  # at each node, at most: a graph that only seems to repeat itself is left alone


class Structure:
    """Facts of a graph, by value or by position of a node, found in one walk."""

    def __init__(self, graph: Graph, table: Table) -> None:
        self.graph, self.table, self.nodes = graph, table, graph.nodes
        self.looks = LOOKS * len(graph.nodes)  # that are left
        self.forms = self._forms()  # by position
        numbers, given = graph.forms.numbers, graph.forms.forms
        outputs = [range(len(form[2])) for form in given]
        before = [-1] * len(graph.parameters)
        # By value: the position of its node, and the form of that.
        self.makers = before + [p for p, n in enumerate(numbers) for _ in outputs[n]]
        self.made_by = before + [
            form for form, n in zip(self.forms, numbers, strict=True) for _ in outputs[n]
        ]
        self.levels: list[int] = []  # by position: nodes on the longest way to it
        self.deepest: list[int] = []  # by position: the node before it on that way, or -1
        makers, levels, way = self.makers, self.levels, self.deepest
        for node in graph.nodes:
            level, deepest = 0, -1
            for value in node.inputs:
                maker = makers[value]
                if maker >= 0 and levels[maker] > level:
                    level, deepest = levels[maker], maker
            levels.append(level + 1)
            way.append(deepest)

    def _forms(self) -> list[int]:
        """Nodes numbered by what they have in common, and by the types that they read."""
        alike = self.graph.forms
        numbers = dict(alike.types)
        kinds = [numbers.setdefault(p.type, len(numbers)) for p in self.graph.parameters]
        kinds += [kind for n in alike.numbers for kind in alike.forms[n][2]]
        known: dict[Hashable, int] = {}
        common = [self._common(node, known) for node in alike.firsts]
        keys = [
            (common[n], *[kinds[v] for v in node.inputs])
            for node, n in zip(self.nodes, alike.numbers, strict=True)
        ]
        number = {key: n for n, key in enumerate(dict.fromkeys(keys))}
        number.update((key, NONE) for key in number if key[0] == NONE)
        return [number[key] for key in keys]

    def _common(self, node: Node, known: dict[Hashable, int]) -> int:
        """What nodes of one form have in common beside the types that they read, as a number."""
        row = self.table[node.op]
        if row.effect is not None or any(s.effects for s in node.scopes):
            return NONE
        key: Hashable = node.op, node.attributes, node.scopes
        if row.literal:
            key = node.op, node["type"]
        elif row.cuts:
            key = node.op, node["steps"], node.types[0].shape
        return known.setdefault(key, len(known))

    def users(self, value: int) -> list[int]:
        """The nodes that read a value."""
        users, firsts = self._users
        return users[firsts[value] : firsts[value + 1]]

    @cached_property
    def _users(self) -> tuple[list[int], list[int]]:
        """The nodes that read values, in the order of these, and where those of each begin."""
        read = np.array([v for node in self.nodes for v in node.inputs], np.int64)
        users = np.repeat(np.arange(len(self.nodes)), [len(node.inputs) for node in self.nodes])
        order = np.argsort(read, kind="stable")
        firsts = np.searchsorted(read[order], np.arange(len(self.makers) + 1))
        return users[order].tolist(), firsts.tolist()

    def made(self, value: int) -> tuple[int, int]:
        """The position of the node that makes a value, and which of its outputs it is."""
        position = self.makers[value]
        return position, value - self.graph.starts[position] if position >= 0 else 0

    def is_literal(self, position: int) -> bool:
        return position >= 0 and self.table[self.nodes[position].op].literal

    def is_view(self, node: Node) -> bool:
        """Whether a node only moves elements of its one input, so that it may be made again."""
        lowering = self.table[node.op].lowering
        return isinstance(lowering, Element) and not lowering.mixes and len(node.inputs) == 1

    def is_fused(self, node: Node) -> bool:
        """Whether a node becomes part of a kernel with those that it reads."""
        row = self.table[node.op]
        if row.elementwise or isinstance(row.lowering, Pointwise):
            return True
        return self.is_view(node)
