"""Lay products out as a library wants them: transposes go into the product, or come before it; and
what it lacks the dtype of is cast to one that it has, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenfold.frozen import frozen
from tenfold.graph import Builder, Graph, Node
from tenfold.graph.op import PRODUCT, Routine, Table
from tenfold.graph.rewrite import rewrite
from tenfold.ops.algebra.products import SIDES, by_library, exact, narrow, sides, wider
from tenfold.types import I64, KIND, SHORT, DType, Shape, TensorType

# Values that are others with axes in another order: which, and that order.
Permuted = dict[int, tuple[int, Shape]]
# Integers before they were cast to wider ones, and the order of axes that they were brought into.
Narrow = dict[int, tuple[int, Shape | None]]


@frozen
class Way:
    """How a product is computed: what its operands are cast to, whether from what they were before
    they were widened, and for `contract_narrow` what is added up."""

    read: Sequence[DType]
    narrow: bool = False
    added: DType | None = None


@frozen
class Operand:
    """One side of a product: the value to read, an order of axes to bring it into first or None,
    its batched and its contracted axes."""

    value: int
    order: Shape | None
    batch: Shape
    over: Shape


def lay_products(graph: Graph, table: Table, multiplied: frozenset[str] = frozenset()) -> Graph:
    """The graph with every product that is the library's in a form that it has: the batch first,
    then the other axes and the contracted ones, or the other way about, each in order.
    `multiplied` as of a backend's capabilities."""
    permuted: Permuted = {}
    changed: set[int] = set()  # ids of nodes
    for node, start in zip(graph.nodes, graph.starts, strict=True):
        if table[node.op].permutes:
            permuted[start] = node.inputs[0], node["axes"]
        elif _by_library(node, graph, table, multiplied):
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


def widen_products(graph: Graph, table: Table, multiplied: frozenset[str] = frozenset()) -> Graph:
    """The graph with every product that is better computed otherwise: sixteen-bit floats, bools,
    and integers of which the sums are exact in floats, cast for the library, unless it multiplies
    them as they are; integers of 8 and 16 bits added up in 32."""
    before: Narrow = {}
    found = False
    for node, start in zip(graph.nodes, graph.starts, strict=True):
        source = _widened(node, graph.types, node.inputs, before, table)
        if source is not None:
            before[start] = source
        way = _otherwise(node, graph.types, node.inputs, before, table, multiplied)
        found = found or way is not None
    if not found:
        return graph
    before = {}

    def visit(builder: Builder, node: Node, inputs: Sequence[int]) -> Sequence[int] | None:
        way = _otherwise(node, builder.types, inputs, before, table, multiplied)
        if way is None:
            source = _widened(node, builder.types, inputs, before, table)
            if source is None:
                return None
            values = builder.node(node.op, inputs, dict(node.attributes))
            before[values[0]] = source
            return values
        read = []
        for number, dtype in zip(inputs, way.read, strict=True):
            value, order = before.get(number, (number, None)) if way.narrow else (number, None)
            if builder.types[value].dtype != dtype:
                (value,) = builder.node("cast", [value], {"dtype": dtype})
            if order is not None:
                (value,) = builder.node("transpose", [value], {"axes": order})
            read.append(value)
        given, dtype = dict(node.attributes), node.types[0].dtype
        if way.added is not None:
            made = builder.node("contract_narrow", read, {**given, "dtype": way.added})
            return made if way.added == dtype else builder.node("cast", made, {"dtype": dtype})
        made = builder.node(node.op, read, given)
        if KIND[dtype] in "iu":  # these wrap; a float that is too large does not
            made = builder.node("cast", made, {"dtype": I64})
        return builder.node("cast", made, {"dtype": dtype})

    return rewrite(graph, table, visit)


def _otherwise(
    node: Node,
    types: Sequence[TensorType],
    inputs: Sequence[int],
    before: Narrow,
    table: Table,
    multiplied: frozenset[str],
) -> Way | None:
    """How a product is better computed; None for one that is not, and for other nodes."""
    if not _is_product(node, table) or SHORT[node.types[0].dtype] in multiplied:
        return None
    given, result = dict(node.attributes), node.types[0]
    operands = [types[v] for v in inputs]
    dtype = wider(operands, result, given)
    if dtype is not None:
        return Way([dtype] * 2)
    sources = [before.get(v, (v,))[0] for v in inputs]
    operands = [TensorType(types[s].dtype, t.shape) for s, t in zip(sources, operands, strict=True)]
    found = narrow(operands, result, given)
    if found is not None:
        return Way(found[1], True, found[0])
    dtype = exact(operands, result, given)
    return None if dtype is None else Way([dtype] * 2, True)


def _widened(
    node: Node, types: Sequence[TensorType], inputs: Sequence[int], before: Narrow, table: Table
) -> tuple[int, Shape | None] | None:
    """The integers that a node casts to wider ones, or brings into another order after that; None
    for other nodes. What keeps the bits keeps the size."""
    op = table[node.op]
    if len(inputs) != 1 or len(node.types) != 1:
        return None
    (source,) = inputs
    if op.permutes and source in before:
        first, order = before[source]
        axes: Shape = node["axes"]
        return first, axes if order is None else tuple(order[a] for a in axes)
    if not op.elementwise or "dtype" not in dict(node.attributes):
        return None
    old, new = types[source].dtype, node.types[0].dtype
    wider = KIND[old] in "iu" and KIND[new] in "iu" and old.itemsize < new.itemsize
    return (source, None) if wider else None


def _is_product(node: Node, table: Table) -> bool:
    lowering = table[node.op].lowering
    product = isinstance(lowering, Routine) and lowering.name == PRODUCT
    return product and bool(node.types[0].size)


def _by_library(node: Node, graph: Graph, table: Table, multiplied: frozenset[str]) -> bool:
    """Whether a node is a product that is the library's."""
    lowering = table[node.op].lowering
    if not _is_product(node, table) or not isinstance(lowering, Routine) or not lowering.inline:
        return False
    types = tuple(graph.types[v] for v in node.inputs)
    if SHORT[node.types[0].dtype] in multiplied:
        return by_library(types, node.types[0], dict(node.attributes), multiplied)
    return not lowering.inline(types, node.types[0], dict(node.attributes))


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
