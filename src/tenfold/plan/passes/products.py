"""Lay products out as a library wants them: transposes go into the product, or come before it; and
what it lacks the dtype of is cast to one that it has, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenfold.frozen import frozen
from tenfold.graph import Builder, Graph, Node
from tenfold.graph.op import PRODUCT, Routine, Table
from tenfold.graph.rewrite import rewrite
from tenfold.ops.algebra.products import SIDES, exact, inline, sides, wider
from tenfold.types import I64, KIND, DType, Shape, TensorType

# Values that are others with axes in another order: which, and that order.
Permuted = dict[int, tuple[int, Shape]]


@frozen
class Operand:
    """One side of a product: the value to read, an order of axes to bring it into first or None,
    its batched and its contracted axes."""

    value: int
    order: Shape | None
    batch: Shape
    over: Shape


def lay_products(graph: Graph, table: Table) -> Graph:
    """The graph with every product that is the library's in a form that it has: the batch first,
    then the other axes and the contracted ones, or the other way about, each in order."""
    permuted: Permuted = {}
    changed: set[int] = set()  # ids of nodes
    for node, start in zip(graph.nodes, graph.starts, strict=True):
        if table[node.op].permutes:
            permuted[start] = node.inputs[0], node["axes"]
        elif _by_library(node, graph, table):
            laid = _laid(node, node.inputs, graph.types, permuted)
            if any(o.value != v or o.order for v, o in zip(node.inputs, laid, strict=True)):
                changed.add(id(node))
    permuted = {}

    def visit(builder: Builder, node: Node, inputs: Sequence[int]) -> Sequence[int] | None:
        if table[node.op].permutes:
            values = builder.node(node.op, inputs, dict(node.attributes))
            permuted[values[0]] = inputs[0], node["axes"]
            return values
        if id(node) not in changed:
            return None
        attributes, read = dict(node.attributes), []
        for side, one in zip(SIDES, _laid(node, inputs, builder.types, permuted), strict=True):
            value = one.value
            if one.order is not None:
                (value,) = builder.node("transpose", [value], {"axes": one.order})
            read.append(value)
            attributes[f"{side}_batch"], attributes[f"{side}_contract"] = one.batch, one.over
        return builder.node(node.op, read, attributes)

    return rewrite(graph, table, visit) if changed else graph


def widen_products(graph: Graph, table: Table) -> Graph:
    """The graph with every product that is better cast for the library computed so: sixteen-bit
    floats, bools, and integers of which the sums are exact in floats."""
    narrow: dict[int, int] = {}  # integers before they were cast to wider ones, by what they are
    found = False
    for node, start in zip(graph.nodes, graph.starts, strict=True):
        if _widens(node, graph.types, node.inputs, table):
            narrow[start] = node.inputs[0]
        found = found or _as_floats(node, graph.types, node.inputs, narrow, table) is not None
    if not found:
        return graph
    narrow = {}

    def visit(builder: Builder, node: Node, inputs: Sequence[int]) -> Sequence[int] | None:
        if _widens(node, builder.types, inputs, table):
            values = builder.node(node.op, inputs, dict(node.attributes))
            narrow[values[0]] = inputs[0]
            return values
        floats = _as_floats(node, builder.types, inputs, narrow, table)
        if floats is None:
            return None
        dtype, read = floats
        given = [builder.node("cast", [v], {"dtype": dtype})[0] for v in read]
        made = builder.node(node.op, given, dict(node.attributes))
        if KIND[node.types[0].dtype] in "iu":  # these wrap; a float that is too large does not
            made = builder.node("cast", made, {"dtype": I64})
        return builder.node("cast", made, {"dtype": node.types[0].dtype})

    return rewrite(graph, table, visit)


def _as_floats(
    node: Node,
    types: Sequence[TensorType],
    inputs: Sequence[int],
    narrow: Mapping[int, int],
    table: Table,
) -> tuple[DType, Sequence[int]] | None:
    """The dtype that a product is cast to, and the values that are; None for one that is not."""
    if not _is_product(node, table):
        return None
    given = dict(node.attributes)
    for read in (inputs, [narrow.get(v, v) for v in inputs]):
        rule = wider if read is inputs else exact
        dtype = rule([types[v] for v in read], node.types[0], given)
        if dtype is not None:
            return dtype, read
    return None


def _widens(node: Node, types: Sequence[TensorType], inputs: Sequence[int], table: Table) -> bool:
    """Whether a node is a cast of integers to wider ones; what keeps the bits keeps the size."""
    if not table[node.op].elementwise or len(inputs) != 1 or len(node.types) != 1:
        return False
    old, new = types[inputs[0]].dtype, node.types[0].dtype
    integers = KIND[old] in "iu" and KIND[new] in "iu"
    return integers and old.itemsize < new.itemsize and "dtype" in dict(node.attributes)


def _is_product(node: Node, table: Table) -> bool:
    lowering = table[node.op].lowering
    product = isinstance(lowering, Routine) and lowering.name == PRODUCT
    return product and bool(node.types[0].size)


def _by_library(node: Node, graph: Graph, table: Table) -> bool:
    """Whether a node is a product that is the library's."""
    if not _is_product(node, table):
        return False
    types = tuple(graph.types[v] for v in node.inputs)
    return not inline(types, node.types[0], dict(node.attributes))


def _laid(
    node: Node,
    inputs: Sequence[int],
    types: Sequence[TensorType],
    permuted: Mapping[int, tuple[int, Shape]],
) -> list[Operand]:
    """How each operand of a product is read."""
    read = []
    for side, value in zip(SIDES, inputs, strict=True):
        batch, over = node[f"{side}_batch"], node[f"{side}_contract"]
        if value in permuted:
            source, axes = permuted[value]
            free = [axes[a] for a in sides(len(axes), batch, over)]
            if free == sorted(free):
                value = source
                batch, over = (tuple(axes[a] for a in some) for some in (batch, over))
        read.append((value, batch, over))
    # Pairs of contracted axes may stand in any order: take the left's.
    order = sorted(range(len(read[0][2])), key=lambda i: read[0][2][i])
    laid: list[Operand] = []
    for last, (value, batch, over) in zip((True, False), read, strict=True):
        over = tuple(over[i] for i in order)
        rank = types[value].rank
        rest = tuple(sides(rank, batch, over))
        straight = tuple(range(rank))
        if straight in ((*batch, *rest, *over), (*batch, *over, *rest)):
            laid.append(Operand(value, None, batch, over))
            continue
        turn = (*batch, *rest, *over) if last else (*batch, *over, *rest)
        place = {axis: i for i, axis in enumerate(turn)}
        moved = [tuple(place[a] for a in some) for some in (batch, over)]
        laid.append(Operand(value, turn, moved[0], moved[1]))
    return laid
