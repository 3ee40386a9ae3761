"""The structure of a graph: what makes each value, who reads it, and which nodes are of one form.

Nodes of one form differ in the values they read, and in what may differ from round to round of a
loop: the data of literals, and where a part begins that is cut out.
"""

from __future__ import annotations

from collections.abc import Hashable

from tenfold.graph import Graph, Node
from tenfold.graph.op import Element, Pointwise, Table
from tenfold.types import TensorType

NONE = -1  # the form of nodes that belong into no loop: those with effects
LOOKS = 64  # at each node, at most: a graph that only seems to repeat itself is left alone


class _Kinds(dict[TensorType, int]):
    """Numbers types; equal ones are mostly the same object, and looked up without a comparison."""

    def __missing__(self, type: TensorType) -> int:
        self[type] = number = len(self)
        return number


class Structure:
    """Facts of a graph, by value or by position of a node, found in one walk."""

    def __init__(self, graph: Graph, table: Table) -> None:
        self.graph, self.table, self.nodes = graph, table, graph.nodes
        self.looks = LOOKS * len(graph.nodes)  # that are left
        count = len(graph.parameters)
        self.makers = makers = [-1] * count  # by value: the position of its node
        self.users: list[list[int]] = [[] for _ in range(count)]  # by value: positions
        self.forms: list[int] = []  # by position
        self.levels: list[int] = []  # by position: nodes on the longest way to it
        self.deepest: list[int] = []  # by position: the node before it on that way, or -1
        users, levels = self.users, self.levels
        forms: dict[Hashable, int] = {}
        kinds = _Kinds()  # of types
        numbers = [kinds[p.type] for p in graph.parameters]
        for position, node in enumerate(graph.nodes):
            level, deepest = 0, -1
            reads = []
            for value in node.inputs:
                users[value].append(position)
                reads.append(numbers[value])
                maker = makers[value]
                if maker >= 0 and levels[maker] > level:
                    level, deepest = levels[maker], maker
            levels.append(level + 1)
            self.deepest.append(deepest)
            for type in node.types:
                makers.append(position)
                numbers.append(kinds[type])
                users.append([])
            self.forms.append(forms.setdefault(self._key(node, tuple(reads)), len(forms)))
        effect = forms.get(None)
        if effect is not None:
            self.forms = [NONE if form == effect else form for form in self.forms]

    def _key(self, node: Node, reads: tuple[int, ...]) -> Hashable:
        """What nodes of one form have in common; None for one with an effect."""
        row = self.table[node.op]
        if row.effect is not None or (node.scopes and any(s.effects for s in node.scopes)):
            return None
        if row.literal:
            return node.op, node["type"]
        if row.cuts:
            return node.op, node["steps"], reads, node.types[0].shape
        return node.op, node.attributes, reads, node.scopes

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
