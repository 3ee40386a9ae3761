"""What each value of a graph is to fusion: computed, a view of another, or a constant; how the node
that makes it reads its inputs, and how often it is read itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold.graph import Graph, Node
from tenfold.graph.op import PRODUCT, Element, Pointwise, Ranges, Routine, Scatter, Table
from tenfold.ops.algebra.products import by_library
from tenfold.ops.ranges import updates
from tenfold.plan.capabilities import Capabilities
from tenfold.plan.fusion.access import (
    IDENTITY,
    Access,
    Pattern,
    access_of,
    composed,
    scatter_access,
    starts_of,
    summed_access,
)
from tenfold.plan.lowering.product import product_access, reads_once
from tenfold.types import SHORT, TensorType

UPDATED = 64  # elements; larger values are updated in place, or copied and updated
JOINED = 8  # inputs of a concatenation that are chosen from element by element

CONSTANT = Access((), (), (), view=True)
NOTHING = Access((), (), ())  # of values without elements, or already in memory


class FusionValues:
    """The values of a graph without compositions, and the accesses of its nodes."""

    def __init__(self, graph: Graph, table: Table, capabilities: Capabilities) -> None:
        self.graph = graph
        self.table = table
        self.capabilities = capabilities
        self.types = graph.types
        count = len(self.types)
        self.accesses: list[Access | None] = [None] * len(graph.nodes)  # None: it is no kernel
        self.reasons: dict[str, str] = {}  # op: why it is no kernel
        self.inline = bytearray(count)  # reads nothing: computed wherever it is needed
        self.view = [False] * count
        self.root = list(range(count))  # what a view is a view of
        self.pattern: list[Pattern | None] = [None] * count  # how a view reads its root
        self.alias = list(range(count))  # the value whose memory it shares
        self.maker = [-1] * count
        self.uses = [0] * count  # reads by nodes, through views too
        self.last = [-1] * count  # the last node that reads it, or a view of it
        self.kinds: list[int] = []  # the number of its type
        self.distinct: list[TensorType] = []  # the types, by number
        self.scatters: dict[Any, Access | None] = {}
        self.widened: bytearray | None = None  # whether more is computed from it, once asked for
        self.folded: bytearray | None = None  # whether it goes into a reduction, once asked for
        self.number_types()
        self.classify()
        self.count_uses()
        self.compute_once()

    def number_types(self) -> None:
        numbers: dict[TensorType, int] = {}
        same: dict[int, int] = {}  # by id: most types are the same object as another's
        for type in self.types:
            if id(type) not in same:
                same[id(type)] = numbers.setdefault(type, len(numbers))
        self.kinds = [same[id(type)] for type in self.types]
        self.distinct = list(numbers)

    def classify(self) -> None:
        """How each node reads, and which are views."""
        graph, types, numbered = self.graph, self.types, self.kinds
        forms: dict[Any, Access | None] = {}
        for position, (node, start) in enumerate(zip(graph.nodes, graph.starts, strict=True)):
            self.maker[start : start + len(node.types)] = [position] * len(node.types)
            row = self.table[node.op]
            if row.literal:
                scalar = node.types[0].size == 1
                self.accesses[position] = CONSTANT if scalar else NOTHING
                self.view[start] = scalar
                self.inline[start] = scalar
                continue
            given: Any = node.attributes
            if row.cuts:  # wherever a part begins, it is read alike, but where that is 0
                given = (*map(bool, node["starts"]), numbered[start], node["steps"])
            form = (node.op, given, tuple([numbered[v] for v in node.inputs]))
            try:
                access = forms[form]
            except KeyError:
                access = forms[form] = self.form(node, [types[v] for v in node.inputs])
            self.accesses[position] = access
            if access is not None and access.view:
                self.see(node, start, access)

    def is_widened(self, position: int) -> bool:
        """Whether something that has more elements is computed from what a node makes."""
        if self.widened is None:
            graph, wide = self.graph, bytearray(len(self.types))
            for node, start in zip(reversed(graph.nodes), reversed(graph.starts), strict=True):
                made = range(start, start + len(node.types))
                most = max((one.size for one in node.types), default=0)  # a hook makes none
                for value in node.inputs:
                    wide[value] |= most > self.types[value].size or any(wide[n] for n in made)
            self.widened = wide
        return bool(self.widened[self.graph.starts[position]])

    def is_folded(self, position: int) -> bool:
        """Whether what a node makes goes into a reduction, perhaps in another kernel."""
        if self.folded is None:
            graph, found = self.graph, bytearray(len(self.types))
            for at in range(len(graph.nodes) - 1, -1, -1):
                node, start, access = graph.nodes[at], graph.starts[at], self.accesses[at]
                if access is not None:
                    goes = access.reduced or any(found[start : start + len(node.types)])
                    for value in node.inputs if goes else ():
                        found[value] = True
            self.folded = found
        return bool(self.folded[self.graph.starts[position]])

    def count_uses(self) -> None:
        graph = self.graph
        for position, node in enumerate(graph.nodes):
            for value in node.inputs:
                self.last[self.root[value]] = position
        for value in graph.outputs:
            self.uses[value] += 1
            self.last[self.root[value]] = len(graph.nodes)
        for position in range(len(graph.nodes) - 1, -1, -1):
            node, start = graph.nodes[position], graph.starts[position]
            if len(node.types) == 1 and self.view[start]:
                for value in node.inputs:
                    self.uses[value] += self.uses[start]
            else:
                for value in set(node.inputs):
                    self.uses[value] += 1

    def compute_once(self) -> None:
        """Make kernels of products of vectors by matrices that are computed for them alone, or are
        parts of others: the elements of such a matrix are found on the way, and never stored."""
        for position, node in enumerate(self.graph.nodes):
            lowering = self.table[node.op].lowering
            if not isinstance(lowering, Routine) or lowering.name != PRODUCT:
                continue
            types, given = [self.types[v] for v in node.inputs], dict(node.attributes)
            for operand, value in enumerate(node.inputs):
                apart = self.elementwise_for_one(value) or self.is_part(value)
                if apart and reads_once(types, given, operand):
                    self.accesses[position] = product_access(types, given, operand)

    def is_part(self, value: int) -> bool:
        """Whether a value is a view with no memory of its own, of some elements of another."""
        apart = self.view[value] and self.alias[value] == value != self.root[value]
        return apart and self.pattern[value] is None

    def elementwise_for_one(self, value: int) -> bool:
        """Whether a value is computed element by element, and read by one node alone."""
        if self.maker[value] < 0 or self.view[value] or self.uses[value] > 1:
            return False
        made = self.accesses[self.maker[value]]
        if made is None or made is NOTHING:
            return False
        return not (made.reduced or any(made.moved) or any(made.computed))

    def form(self, node: Node, types: Sequence[TensorType]) -> Access | None:
        op = self.table[node.op]
        lowering = op.lowering
        if len(node.types) == 1 and not node.types[0].size and not (op.effect or op.scopes != 0):
            if any(t.size for t in types) and op.heeds(tuple(types), dict(node.attributes)):
                self.reasons[node.op] = "it gives nothing, but an index may be out of range"
                return None
            return NOTHING
        if isinstance(lowering, Routine) and lowering.inline is not None:
            given = dict(node.attributes)
            multiplied = self.capabilities.multiplied
            if lowering.name == PRODUCT and SHORT[node.types[0].dtype] in multiplied:
                kernel = not by_library(types, node.types[0], given, multiplied)
            else:
                kernel = lowering.inline(types, node.types[0], given)
            if kernel:
                if lowering.name == PRODUCT:
                    return product_access(types, given)
                return summed_access(lowering, types, given, node.types[0])
        if len(node.types) != 1 or not isinstance(lowering, Pointwise | Element | Ranges):
            return None
        if isinstance(lowering, Ranges) and (
            len(types) > JOINED
            or (
                node.types[0].size > UPDATED
                and updates(lowering.ranges(types, dict(node.attributes)))
            )
        ):
            return None
        return self.supported(node, access_of(op, types, node.attributes, node.types[0]))

    def supported(self, node: Node, access: Access) -> Access | None:
        """The access, if there is code for all that it computes."""
        for named in sorted(access.instructions):
            reason = self.capabilities.supports(*named)
            if reason is not None:
                self.reasons[node.op] = reason
                return None
        return access

    def see(self, node: Node, start: int, access: Access) -> None:
        """Take note of a view."""
        self.view[start] = True
        if not node.inputs:
            self.inline[start] = 1
            return
        (source,) = node.inputs
        self.root[start] = self.root[source]
        self.inline[start] = self.inline[source]
        if access.patterns[0]:
            (pattern,) = access.patterns[0]
            through = self.pattern[source] if self.view[source] else IDENTITY
            self.pattern[start] = composed(pattern, through)
        if access.same:
            self.alias[start] = self.alias[source]

    def scatter(self, node: Node, lowering: Scatter) -> Access | None:
        """How a scatter reads what it writes, and where; None where there is no code for it."""
        types = tuple(self.types[v] for v in node.inputs)
        form = (node.op, node.attributes, types)
        if form not in self.scatters:
            access = scatter_access(lowering, types, node.attributes)
            self.scatters[form] = self.supported(node, access)
        return self.scatters[form]

    def range_of(self, value: int, other: int) -> tuple[int, ...] | None:
        """Where the range of another value begins that this one is, if it is one."""
        if not self.view[value]:
            return None
        node = self.graph.nodes[self.maker[value]]
        if node.inputs != (other,):
            return None
        lowering = self.table[node.op].lowering
        assert isinstance(lowering, Element)
        return starts_of(lowering, self.types[other], node.attributes, node.types[0])

    def is_literal(self, value: int) -> bool:
        """Whether a value is one number, written in the graph."""
        node = self.graph.nodes[self.maker[value]] if self.maker[value] >= 0 else None
        return node is not None and self.table[node.op].literal and node.types[0].size == 1

    def known(self, value: int) -> int | None:
        """0 or 1, where a value is one of them in every graph of this structure: other literals
        are not part of it."""
        if not self.is_literal(value):
            return None
        node = self.graph.nodes[self.maker[value]]
        found = int(np.frombuffer(node["data"], node.types[0].dtype)[0])
        return found if found in (0, 1) else None

    def own(self, value: int) -> None:
        """Make a value of its own of a view."""
        self.root[value] = self.alias[value] = value
        self.pattern[value] = None
        self.view[value] = False
        self.inline[value] = 0
