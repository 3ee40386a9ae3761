"""Block rows: two products with work on rows between them, carried out some rows at a time.

What `softmax(q·kᵀ)·v` makes on the way is a square matrix, far larger than what goes in and comes
out. A block of its rows is made, worked on and multiplied while it lies in the cache; the whole is
never in memory. That pays where the right operands are small beside what lies between: every block
reads them again. It is a scan over blocks of rows, inside one over matrices of a batch. Whatever
stands between the products may, as long as it keeps to rows: scales, masks, maxima and sums. Sums
go along rows as before, so bits do not change where the products' do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tenfold.frozen import frozen
from tenfold.graph import Builder, Graph, Node
from tenfold.graph.op import PRODUCT, Routine, Table
from tenfold.ops.algebra.products import inline
from tenfold.types import SHORT, Shape, TensorType

_LEAST = 1 << 21  # bytes between the products; less stays in caches by itself
_BLOCK = 1 << 20  # bytes of a block of them, at most
FEWEST, _MOST = 32, 256  # rows of a block
_LONGEST = 64  # nodes between the products
# Every block reads the right operands again. They may have so many times its bytes: at 2 attention
# is 0 to 20 % faster by blocks, at 4 up to 15 % slower, and a layer of weights up to a half.
_REREAD = 2


@frozen
class Chain:
    """Two products and the nodes between them, by position; the batch that all of them have as
    their first axes, the rows that are the next, and how many of these make a block."""

    first: int
    between: tuple[int, ...]
    second: int
    batch: Shape
    rows: int
    block: int


@frozen
class Operand:
    """A value that the nodes of a chain are given: what it is for one matrix of the batch, and
    whether each matrix, and each block of rows, has a part of its own."""

    value: int
    shape: Shape
    by_batch: bool
    by_rows: bool


def block_rows(graph: Graph, table: Table) -> Graph:
    """The graph with such chains as scans over blocks of rows."""
    chains = {chain.second: chain for chain in _chains(graph, table)}
    if not chains:
        return graph
    inside = {n for chain in chains.values() for n in (chain.first, *chain.between)}
    builder = Builder(table)
    values = [builder.parameter(p.type, p.name) for p in graph.parameters]
    for position, node in enumerate(graph.nodes):
        builder.at = node.source
        if position in inside:
            values += [-1] * len(node.types)  # nobody else reads it
        elif position in chains:
            values.append(_Blocks(graph, table, chains[position]).write(builder, values))
        else:
            values += builder.again(node, [values[v] for v in node.inputs], False)
    return builder.finish([values[v] for v in graph.outputs])


def may_block(graph: Graph, table: Table) -> bool:
    """Whether a graph has two products, whatever their extents."""
    products = (node for node in graph.nodes if _is_product(node, table))
    return next(products, None) is not None and next(products, None) is not None


def _chains(graph: Graph, table: Table) -> list[Chain]:
    large = [
        position
        for position, node in enumerate(graph.nodes)
        if _is_product(node, table) and node.types[0].nbytes >= _LEAST
    ]
    if not large:
        return []
    users: list[list[int]] = [[] for _ in graph.types]
    for position, node in enumerate(graph.nodes):
        for value in set(node.inputs):
            users[value].append(position)
    kept = set(graph.outputs)
    found: list[Chain] = []
    taken: set[int] = set()
    for position in large:
        chain = _chain(graph, table, position, users, kept)
        if chain is None:
            continue
        every = {chain.first, *chain.between, chain.second}
        if taken.isdisjoint(every):  # a product may end one and begin another
            taken |= every
            found.append(chain)
    return found


def _chain(
    graph: Graph, table: Table, first: int, users: Sequence[list[int]], kept: set[int]
) -> Chain | None:
    """The chain that begins with a product, if all that becomes of it goes into one other."""
    node = graph.nodes[first]
    type, count = node.types[0], len(node["lhs_batch"])
    batch, rows = type.shape[:count], type.shape[count] if type.rank > count else 0
    block = _block(rows, type.nbytes // max(1, prod(batch) * rows))
    if not block or not _by_rows(graph, node, count) or SHORT[type.dtype] not in ("f32", "f64"):
        return None
    inside = {graph.starts[first]}
    waiting, between, second = {*users[graph.starts[first]]}, list[int](), -1
    while waiting:
        position = min(waiting)  # what it reads comes before it
        waiting.remove(position)
        one, start = graph.nodes[position], graph.starts[position]
        if second >= 0 or len(between) == _LONGEST:
            return None
        if _is_product(one, table):
            lone = one.inputs[0] in inside and one.inputs[1] not in inside
            if not lone or not _by_rows(graph, one, count):
                return None
            second = position
            continue
        if not _keeps_rows(graph, table, one, inside, (*batch, rows)):
            return None
        between.append(position)
        inside.add(start)
        waiting.update(users[start])
    if second < 0 or not inside.isdisjoint(kept) or prod(batch) * rows == block:
        return None
    right = sum(graph.types[graph.nodes[n].inputs[1]].nbytes for n in (first, second))
    if right * rows > _REREAD * block * type.nbytes:
        return None
    return Chain(first, tuple(between), second, batch, rows, block)


def _block(rows: int, nbytes: int) -> int:
    """How many rows of so many bytes make a block: a divisor of their number; 0 if none suits."""
    most = min(_MOST, _BLOCK // max(nbytes, 1))
    return next((n for n in range(min(most, rows), FEWEST - 1, -1) if rows % n == 0), 0)


def _is_product(node: Node, table: Table) -> bool:
    lowering = table[node.op].lowering
    return isinstance(lowering, Routine) and lowering.name == PRODUCT


def _by_rows(graph: Graph, node: Node, count: int) -> bool:
    """Whether a product is the library's, has the batch first, and takes the left operand row by
    row."""
    types = tuple(graph.types[v] for v in node.inputs)
    first = tuple(range(count))
    laid = node["lhs_batch"] == node["rhs_batch"] == first and node["lhs_contract"] == (count + 1,)
    given = dict(node.attributes)
    return laid and types[0].rank == count + 2 and not inline(types, node.types[0], given)


def _keeps_rows(graph: Graph, table: Table, node: Node, inside: set[int], rows: Shape) -> bool:
    """Whether a row of a node's result is made of one row of each value of a chain."""
    count, given = len(rows), dict(node.attributes)
    if len(node.types) != 1 or node.scopes or node.types[0].shape[:count] != rows:
        return False
    type, read = node.types[0], [graph.types[v] for v in node.inputs if v in inside]
    if any(one.shape[:count] != rows for one in read):
        return False
    if table[node.op].elementwise:
        others = [graph.types[v].shape for v in node.inputs if v not in inside]
        beside = all(_fits(_aligned(shape, type.rank), rows) for shape in others)
        return beside and all(one.rank == type.rank for one in read)
    if len(node.inputs) != 1 or table[node.op].permutes:
        return False
    if "axes" in given:
        left = tuple(n for a, n in enumerate(read[0].shape) if a not in given["axes"])
        return len(given) == 1 and min(given["axes"], default=0) >= count and left == type.shape
    return tuple(given) == ("shape",) and read[0].size == type.size


def _fits(shape: Shape, rows: Shape) -> bool:
    """Whether what is joined to rows is the same for all matrices of the batch or each has its own;
    what some share is repeated, unless rows have their own."""
    batch = shape[: len(rows) - 1]
    return batch in (rows[:-1], (1,) * len(batch)) or shape[len(batch)] == 1


def _aligned(shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + shape


class _Blocks:
    """Writes a chain as loops."""

    def __init__(self, graph: Graph, table: Table, chain: Chain) -> None:
        self.graph, self.table, self.chain = graph, table, chain
        self.count = len(chain.batch)
        self.makers = dict(zip(graph.starts, graph.nodes, strict=True))
        self.operands: dict[Operand, int] = {}  # parameters of the innermost body
        self.body = Builder(table)
        self.made: dict[int, int] = {}
        for position in (chain.first, *chain.between, chain.second):
            node = graph.nodes[position]
            self.body.at = node.source
            (made,) = self.body.node(node.op, self.read(node), self.attributes(node))
            self.made[graph.starts[position]] = made
        self.result = made

    def write(self, builder: Builder, values: Sequence[int]) -> int:
        """The value that the second product has."""
        chain, matrices = self.chain, prod(self.chain.batch)
        given = []
        for operand in self.operands:
            value, shape = values[operand.value], operand.shape
            if operand.by_batch:
                full, shape = (*chain.batch, *shape), (matrices, *shape)
                if builder.types[value].size < prod(full):
                    (value,) = builder.node("broadcast", [value], {"shape": full})
            given.append(_shaped(builder, value, shape))
        result = self.graph.nodes[chain.second].types[0].shape
        sliced = [operand.by_batch for operand in self.operands]
        if matrices == 1:
            return _shaped(builder, self.blocks(builder, given), result)
        inner = Builder(self.table)
        inner.at = builder.at
        types = [TensorType(self.graph.types[o.value].dtype, o.shape) for o in self.operands]
        parameters = [inner.parameter(type) for type in types]
        one = self.blocks(inner, parameters)
        return _shaped(builder, _scan(builder, inner, given, parameters, sliced, one), result)

    def blocks(self, builder: Builder, given: Sequence[int]) -> int:
        """All rows of one matrix."""
        chain = self.chain
        blocks = chain.rows // chain.block
        sliced = [operand.by_rows for operand in self.operands]
        parts = [
            _shaped(builder, value, (blocks, chain.block, *operand.shape[1:]))
            if operand.by_rows
            else value
            for value, operand in zip(given, self.operands, strict=True)
        ]
        parameters = list(self.operands.values())
        made = _scan(builder, self.body, parts, parameters, sliced, self.result)
        return _shaped(builder, made, (chain.rows, *builder.types[made].shape[2:]))

    # The innermost body.

    def read(self, node: Node) -> list[int]:
        if _is_product(node, self.table):
            left, right = node.inputs
            first = self.made.get(left)
            if first is None:
                first = self.operand(left, self.graph.types[left].shape, rows=True)
            return [first, self.right(right)]
        rank = node.types[0].rank
        return [self.made[v] if v in self.made else self.beside(v, rank) for v in node.inputs]

    def right(self, value: int) -> int:
        """A right operand; an order of its axes goes into the product."""
        node = self.makers.get(value)
        moved = node is not None and self.table[node.op].permutes
        if node is None or not moved or node["axes"][: self.count] != tuple(range(self.count)):
            return self.operand(value, self.graph.types[value].shape, rows=False)
        source = self.operand(node.inputs[0], self.graph.types[node.inputs[0]].shape, rows=False)
        axes = tuple(a - self.count for a in node["axes"][self.count :])
        return self.body.node("transpose", [source], {"axes": axes})[0]

    def beside(self, value: int, rank: int) -> int:
        """What is joined to rows, element by element."""
        node = self.makers.get(value)
        if node is not None and self.table[node.op].literal and not node.types[0].shape:
            return self.body.node(node.op, (), dict(node.attributes))[0]
        shape = _aligned(self.graph.types[value].shape, rank)
        return self.operand(value, shape, rows=shape[self.count] == self.chain.rows)

    def operand(self, value: int, shape: Shape, rows: bool) -> int:
        by_batch = max(shape[: self.count], default=1) > 1
        operand = Operand(value, shape[self.count :], by_batch, rows)
        if operand not in self.operands:
            own = (self.chain.block, *operand.shape[1:]) if rows else operand.shape
            type = TensorType(self.graph.types[value].dtype, own)
            self.operands[operand] = self.body.parameter(type)
        return self.operands[operand]

    def attributes(self, node: Node) -> dict[str, Any]:
        """Those of a node without the batch, for a block of rows."""
        given = dict(node.attributes)
        for name in ("axes", "lhs_contract", "rhs_contract"):
            if name in given:
                given[name] = tuple(a - self.count for a in given[name])
        for name in ("lhs_batch", "rhs_batch"):
            if name in given:
                given[name] = ()
        if "shape" in given:
            given["shape"] = (self.chain.block, *given["shape"][self.count + 1 :])
        return given


def _shaped(builder: Builder, value: int, shape: Shape) -> int:
    if builder.types[value].shape == shape:
        return value
    return builder.node("reshape", [value], {"shape": shape})[0]


def _scan(
    builder: Builder,
    body: Builder,
    given: Sequence[int],
    parameters: Sequence[int],
    sliced: Sequence[bool],
    result: int,
) -> int:
    """A scan without carries over those values that are sliced."""
    order = sorted(range(len(given)), key=lambda n: sliced[n])
    graph = body.finish([result], [parameters[n] for n in order])
    length = next(builder.types[v].shape[0] for v, one in zip(given, sliced, strict=True) if one)
    attributes = {
        "captures": len(given) - sum(sliced),
        "carries": 0,
        "length": length,
        "reverse": False,
        "unroll": 1,
    }
    return builder.node("scan", [given[n] for n in order], attributes, [graph])[0]
