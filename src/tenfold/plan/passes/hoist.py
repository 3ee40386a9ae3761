"""Hoist products: what rounds of a loop multiply by what never changes is multiplied before it.

`xs[t] @ w` in a round reads all of `w` for a few rows. Before the loop it is one product with the
rows of all rounds, and a round reads its own: so go the inputs of an LSTM, a GRU or an RNN. Bits of
a product by panels hang on the number of its terms alone, so there they do not change. The rule:

- the loop is counted and has at least two rounds;
- one operand is computed from slices, and from captures, in a round; the other from captures alone.
  A product of captures alone is made once;
- on the way to the product is what kernels compute, and nothing that may raise, nor another loop,
  nor an effect. It is computed before the loop, and in the rounds too where they need it;
- a library multiplies the whole: what is small even then is better off in the kernels of a round;
- a round has at most a quarter as many rows as a sum has terms, so that to keep its product costs
  little beside reading the other operand; or all that is kept stays in a cache. Of a loop that
  carries nothing, whose rounds may run side by side, it has fewer than 32, as no block of rows has;
- what is kept for all rounds of a loop, products and operands that are computed, has at most
  64 MiB, and no value on the way to them has more.

A product goes out of the loop that it stands in, not of those around that.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tenfold.frozen import frozen
from tenfold.graph import Builder, Graph, Node
from tenfold.graph.op import PRODUCT, Element, Loop, Pointwise, Ranges, Routine, Table
from tenfold.graph.rewrite import rewrite
from tenfold.ops.algebra.products import SIDES, exact, inline, narrow, sides, wider
from tenfold.plan.passes.row_blocks import FEWEST
from tenfold.types import Shape, TensorType

_MOST = 1 << 26  # bytes that are kept for all rounds of a loop
_CACHED = 1 << 20  # bytes that may be kept whatever the rows
_TERMS = 4  # times as many as rows of a round: with twice as many it may take 1.2 times as long

# What a value in a round is computed from: captures alone, slices too, or anything else.
FIXED, SLICED, OTHER = range(3)


@frozen
class HoistedProduct:
    """A product that was hoisted: the user's line, the rounds, and whether all have the same."""

    file: str
    line: int
    rounds: int
    same: bool

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line}: " if self.file else ""
        what = "the same product in" if self.same else "products of"
        return f"{where}{what} {self.rounds} rounds made before the loop, as one"


def hoist(graph: Graph, table: Table) -> tuple[Graph, tuple[HoistedProduct, ...]]:
    """The graph with products before the loops that need not make them, and which these are."""
    found: dict[int, _Hoisting] = {}  # by id of a node
    for node in graph.nodes:
        if _is_counted(node, table):
            hoisting = _Hoisting(node, table)
            if hoisting.products:
                found[id(node)] = hoisting
    if not found:
        return graph, ()

    def visit(builder: Builder, node: Node, inputs: Sequence[int]) -> Sequence[int] | None:
        hoisting = found.get(id(node))
        return None if hoisting is None else hoisting.write(builder, inputs)

    notes = [note for hoisting in found.values() for note in hoisting.notes()]
    return rewrite(graph, table, visit), tuple(notes)


def may_hoist(graph: Graph, table: Table) -> bool:
    """Whether a graph has a loop with a product in it, whatever their extents."""
    return any(
        _is_product(inner, table)
        for node in graph.nodes
        if _is_counted(node, table)
        for inner in node.scopes[0].nodes
    )


def _is_counted(node: Node, table: Table) -> bool:
    lowering = table[node.op].lowering
    return isinstance(lowering, Loop) and lowering.counted


def _is_product(node: Node, table: Table) -> bool:
    lowering = table[node.op].lowering
    return isinstance(lowering, Routine) and lowering.name == PRODUCT


class _Hoisting:
    """The products that go out of one loop.

    `kinds` says of each value of the body what it is computed from; `products` are positions of
    those that go, `needed` of all that is computed before the loop.
    """

    def __init__(self, node: Node, table: Table) -> None:
        self.node, self.table, self.body = node, table, node.scopes[0]
        self.rounds: int = node["length"]
        self.captures: int = node["captures"]
        self.carries: int = node["carries"]
        count = len(self.body.parameters)
        sliced = count - self.captures - self.carries
        self.kinds = [FIXED] * self.captures + [OTHER] * self.carries + [SLICED] * sliced
        self.products: list[int] = []
        if self.rounds >= 2 and any(_is_product(one, table) for one in self.body.nodes):
            self._find()
        self.needed = self._needed()

    # What goes.

    def _find(self) -> None:
        body = self.body
        peaks = [0] * len(body.parameters)  # by value: bytes of the largest one on the way to it
        kept: set[int] = set()  # values that are kept for all rounds
        left = _MOST
        for position, (node, start) in enumerate(zip(body.nodes, body.starts, strict=True)):
            kind = max((self.kinds[v] for v in node.inputs), default=FIXED)
            peak = max((peaks[v] for v in node.inputs), default=0)
            if kind != OTHER and _is_product(node, self.table):
                fresh = {start, *node.inputs} - kept
                size = sum(self._bytes(v, kind) for v in fresh if v >= len(body.parameters))
                if size <= left and peak <= _MOST and self._gains(node, size):
                    self.products.append(position)
                    kept |= fresh
                    left -= size
                else:
                    kind = OTHER
            elif kind != OTHER and not self._is_plain(node):
                kind = OTHER
            self.kinds += [kind] * len(node.types)
            own = max((self._bytes(start + i, kind) for i in range(len(node.types))), default=0)
            peaks += [max(peak, own)] * len(node.types)

    def _bytes(self, value: int, kind: int) -> int:
        """Bytes of a value for all rounds."""
        if value < len(self.kinds):
            kind = self.kinds[value]
        return self.body.types[value].nbytes * (self.rounds if kind == SLICED else 1)

    def _gains(self, node: Node, size: int) -> bool:
        """Whether one product, for which so many bytes are kept, serves better than one a round."""
        left, right = (self.kinds[v] for v in node.inputs)
        if left == right:
            return left == FIXED
        side = 0 if left == SLICED else 1
        type = self.body.types[node.inputs[side]]
        rows = prod(type.shape[a] for a in _free(node, side, type.rank))
        terms = prod(type.shape[a] for a in node[f"{SIDES[side]}_contract"])
        if not self.carries and rows >= FEWEST:
            return False
        return (rows * _TERMS <= terms or size <= _CACHED) and self._by_library(node, side)

    def _by_library(self, node: Node, side: int) -> bool:
        """Whether a library multiplies what all rounds multiply."""
        given = self._whole(node, side)
        types = [self.body.types[node.inputs[i]] for i in (side, 1 - side)]
        types[0] = _stacked(types[0], self.rounds)
        result = _stacked(node.types[0], self.rounds)  # its axes may stand in another order
        if not inline(types, result, given):
            return True
        return any(way(types, result, given) is not None for way in (wider, narrow, exact))

    def _is_plain(self, node: Node) -> bool:
        """Whether a kernel computes a node, and nobody notices when."""
        row = self.table[node.op]
        if row.effect or node.scopes or len(node.types) != 1:
            return False
        types = tuple(self.body.types[v] for v in node.inputs)
        plain = row.elementwise or isinstance(row.lowering, Pointwise | Element | Ranges)
        return plain and not row.heeds(types, dict(node.attributes))

    def _needed(self) -> list[int]:
        """The positions of products and of what they are computed from, in order."""
        body = self.body
        makers = dict(zip(body.starts, range(len(body.nodes)), strict=True))
        found, waiting = set(self.products), list(self.products)
        while waiting:
            for value in body.nodes[waiting.pop()].inputs:
                maker = makers.get(value)
                if maker is not None and maker not in found:
                    found.add(maker)
                    waiting.append(maker)
        return sorted(found)

    # What becomes of it.

    def write(self, builder: Builder, inputs: Sequence[int]) -> list[int]:
        """The values of the loop, without these products."""
        body, table = self.body, self.table
        ready = self._before(builder, inputs)
        at, inner = builder.at, Builder(table)
        values = [inner.parameter(p.type, p.name) for p in body.parameters]
        given = dict(zip(values, inputs, strict=True))  # by parameter
        made: tuple[list[int], ...] = [], []  # parameters for products: captured and sliced
        hoisted = set(self.products)
        for position, (node, start) in enumerate(zip(body.nodes, body.starts, strict=True)):
            inner.at = node.source
            if position in hoisted:
                values.append(inner.parameter(node.types[0]))
                given[values[-1]] = ready[start]
                made[self.kinds[start] == SLICED].append(values[-1])
            else:
                values += inner.again(node, [values[v] for v in node.inputs], False)
        # A product that rounds hand out as it is, is there already.
        whole = {
            output: ready[v]
            for output, v in enumerate(body.outputs)
            if output >= self.carries and v in ready and self.kinds[v] == SLICED
        }
        outputs = [values[v] for i, v in enumerate(body.outputs) if i not in whole]
        read, first = set(inner.used(outputs)), self.captures + self.carries
        captures = [v for v in (*values[: self.captures], *made[0]) if v in read]
        count = len(body.parameters)
        slices = [v for v in (*values[first:count], *made[1]) if v in read]
        parameters = [*captures, *values[self.captures : first], *slices]
        attributes = dict(self.node.attributes) | {"captures": len(captures)}
        scope = inner.finish(outputs, parameters)
        builder.at = at
        results = iter(
            builder.node(self.node.op, [given[p] for p in parameters], attributes, [scope])
        )
        return [whole[i] if i in whole else next(results) for i in range(len(self.node.types))]

    def _before(self, builder: Builder, inputs: Sequence[int]) -> dict[int, int]:
        """Products before the loop, by what they are in its body."""
        body, values = self.body, dict(enumerate(inputs))
        for position in self.needed:
            node, start = body.nodes[position], body.starts[position]
            builder.at = node.source
            read = [values[v] for v in node.inputs]
            sliced = [self.kinds[v] == SLICED for v in node.inputs]
            if not any(sliced):
                made = builder.again(node, read, False)
            elif _is_product(node, self.table):
                made = (self._product(builder, node, read, int(sliced[1])),)
            else:
                given = dict(node.attributes)
                made = self.table[node.op].batch(builder, read, sliced, self.rounds, **given)
            values[start] = made[0]
        return {body.starts[p]: values[body.starts[p]] for p in self.products}

    def _product(self, builder: Builder, node: Node, read: Sequence[int], side: int) -> int:
        """The products of all rounds, which are its first axis. What has rows of all rounds comes
        first: so they are rows of what is made, and lie one after another."""
        other = 1 - side
        (made,) = builder.node(node.op, [read[side], read[other]], self._whole(node, side))
        batch = len(node["lhs_batch"])
        rows = batch + 1 + len(_free(node, side, builder.types[read[side]].rank - 1))
        parts = [range(batch + 1, rows), range(rows, builder.types[made].rank)]
        order = (batch, *range(batch), *parts[side], *parts[other])
        if order == tuple(range(len(order))):
            return made
        return builder.node("transpose", [made], {"axes": order})[0]

    def _whole(self, node: Node, side: int) -> dict[str, Any]:
        """The attributes of the product of all rounds, of which one operand has slices."""
        given: dict[str, Any] = {}
        for name, one, up in ((SIDES[0], side, 1), (SIDES[1], 1 - side, 0)):
            for which in ("_batch", "_contract"):
                given[name + which] = tuple(a + up for a in node[SIDES[one] + which])
        return given

    def notes(self) -> list[HoistedProduct]:
        made = []
        for position in self.products:
            source = self.body.nodes[position].source
            same = self.kinds[self.body.starts[position]] == FIXED
            file, line = (source.file, source.line) if source else ("", 0)
            made.append(HoistedProduct(file, line, self.rounds, same))
        return made


def _free(node: Node, side: int, rank: int) -> Shape:
    """The axes of an operand that are rows or columns of a product."""
    name = SIDES[side]
    return tuple(sides(rank, node[f"{name}_batch"], node[f"{name}_contract"]))


def _stacked(type: TensorType, rounds: int) -> TensorType:
    """What slices of a type are slices of."""
    return TensorType(type.dtype, (rounds, *type.shape))
