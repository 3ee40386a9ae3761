"""Rows: whether a program does the same to each row of an axis, however many there are.

A program is traced at two numbers of rows. A value whose types differ has rows along the axis where
they do; one whose types are equal has none. `follow` shows node by node that what has no rows is
the same at both sizes, and that the rows of the smaller are the first rows of the larger: an
element is computed by the same instructions, from the same row. How a node reads its inputs is
found by asking its generator with symbolic axes, so no op is named here. Then padding is neutral.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from tenfold.errors import ValueProblem
from tenfold.frozen import frozen
from tenfold.graph import Builder as GraphBuilder
from tenfold.graph import Graph, Node
from tenfold.graph.op import Composition, Element, Ranges, Scatter, Scopes
from tenfold.kernel import Builder
from tenfold.kernel.ir.index import ZERO, Index
from tenfold.kernel.ir.kernel import REDUCED, Instruction
from tenfold.ops import TABLE, reads
from tenfold.ops.elements import Read, Site
from tenfold.plan.lowering.joining import as_element
from tenfold.types import SHORT, TensorType

Position = tuple[Index, ...]
Ask = Callable[[Site], Generator[Read, int, Any]]
Types = Sequence[TensorType]


@frozen
class _Side:
    """A node as it is at one of the two sizes."""

    node: Node
    inputs: Types


@frozen
class _GeneratorTrace:
    """What a generator did: where it was asked, what it read, the instructions, what it gave."""

    position: Position
    reads: tuple[Read, ...]
    work: tuple[Any, ...]
    result: Any
    whole: frozenset[int]  # the axes that are read as a whole

    def tells(self, row: Index, inputs: Sequence[int | None]) -> bool:
        """Whether a row's number is computed with, or says where to read what has no rows."""
        instructions: list[Instruction] = self.work[1]
        used = [i.index for i in instructions if i.index is not None]
        used += [at for r in self.reads if inputs[r.input] is None for at in r.position]
        return any(index.axes() & row.axes() for index in used)


def follow(
    few: Graph, many: Graph, rows: int, size: int, *, numbered: bool = True
) -> tuple[int | None, ...]:
    """The axis of rows of each output of a program traced at `rows` and at more, `size`; None
    where it has none. ValueProblem where padding would change a result.

    `numbered`: a row may depend on its number. Without it, any rows may stand for the first.
    """
    pairs = [(few, many)]
    seen: set[tuple[str, str]] = set()
    for one, other in pairs:
        key = one.digest, other.digest
        if one == other or key in seen:
            continue
        seen.add(key)
        _alike(one, other)
        for a, b in zip(one.nodes, other.nodes, strict=True):
            left = _Side(a, [one.types[v] for v in a.inputs])
            right = _Side(b, [other.types[v] for v in b.inputs])
            try:
                pairs.extend(_node(left, right, rows, size, numbered))
            except _RowDependence as mixed:
                raise ValueProblem(
                    f"{a.op} {mixed}, so padding would change its result",
                    where=str(b.source) if b.source else None,
                    fix="leave this argument out of buckets, or make the op work row by row",
                ) from None
    results = zip(few.output_types, many.output_types, strict=True)
    return tuple(_axis(a, b, rows, size) for a, b in results)


def _alike(one: Graph, other: Graph) -> None:
    """Raise unless two graphs have the same nodes, whatever their types and attributes."""
    for a, b in zip(one.nodes, other.nodes, strict=False):
        if (a.op, a.inputs, len(a.types)) != (b.op, b.inputs, len(b.types)):
            raise different(f"{a.op} against {b.op}" if a.op != b.op else a.op, b)
    parts = ("parameters", "nodes", "outputs", "effects")
    if any(len(getattr(one, p)) != len(getattr(other, p)) for p in parts):
        raise different(f"{len(one.nodes)} nodes against {len(other.nodes)}")
    if (one.outputs, one.effects) != (other.outputs, other.effects):
        raise different("what it gives")


def _axis(one: TensorType, other: TensorType, rows: int, size: int) -> int | None:
    """The axis of rows of a value with these types at the two sizes."""
    if one == other:
        return None
    if one.dtype != other.dtype or one.rank != other.rank:
        raise different(f"{one} against {other}")
    pairs = list(zip(one.shape, other.shape, strict=True))
    found = [axis for axis, (n, m) in enumerate(pairs) if n != m]
    if len(found) > 1:
        raise _RowDependence("combines every row with every other")
    if pairs[found[0]] != (rows, size):
        raise _RowDependence("folds the rows into another axis")
    return found[0]


def _node(
    few: _Side, many: _Side, rows: int, size: int, numbered: bool
) -> list[tuple[Graph, Graph]]:
    """Show that a node does the same to each row; gives the graphs that are left to look at."""
    a, b = few.node, many.node
    inputs = [_axis(s, t, rows, size) for s, t in zip(few.inputs, many.inputs, strict=True)]
    results = [_axis(s, t, rows, size) for s, t in zip(a.types, b.types, strict=True)]
    equal = a.attributes == b.attributes
    if equal and a.scopes == b.scopes and few.inputs == many.inputs:
        return []
    row = TABLE[a.op]
    lowering = row.lowering
    if row.effect:
        raise _RowDependence("shows whole arrays to the host")
    if isinstance(lowering, Scatter):
        _written(lowering, few, many, inputs, results[0], rows)
        return []
    if isinstance(lowering, (Element, Ranges)):  # what it does tells what its attributes come to
        ask = as_element(lowering) if isinstance(lowering, Ranges) else lowering.generate
    elif not equal:
        raise _RowDependence("goes from row to row") if a.scopes else different(a.op, b)
    elif row.elementwise:
        ask = reads.elementwise
    elif row.reads is not None and a.scopes == b.scopes:
        ask = row.reads
    elif isinstance(lowering, Composition):
        return [(_composed(few, lowering), _composed(many, lowering))]
    elif isinstance(lowering, Scopes):
        return list(zip(a.scopes, b.scopes, strict=True))
    else:
        raise _RowDependence("does not say how it reads its inputs")
    for type, axis in zip(b.types, results, strict=True):
        shape = tuple(rows if i == axis else n for i, n in enumerate(type.shape))
        if 0 in shape:  # there are no elements
            continue
        asked = _asked(ask, few, shape), _asked(ask, many, shape)
        own = None if axis is None else asked[0].position[axis]
        _same(asked, inputs, own, b)
        if own is not None and not numbered and asked[0].tells(own, inputs):
            raise _RowDependence("tells its rows apart by their numbers")
    return []


def _composed(side: _Side, lowering: Composition) -> Graph:
    """What a composition is made of."""
    builder = GraphBuilder(TABLE, side.node.source)
    inputs = [builder.parameter(type) for type in side.inputs]
    return builder.finish(lowering.compose(builder, inputs, dict(side.node.attributes)))


def _asked(ask: Ask, side: _Side, shape: Sequence[int]) -> _GeneratorTrace:
    """What a generator does for an element of a result of this shape."""
    builder = Builder()
    position = tuple(builder.axis(n) if n != 1 else ZERO for n in shape)
    generator = ask(Site(builder, position, side.inputs, dict(side.node.attributes)))
    found: list[Read] = []
    result: Any = None
    try:
        read = next(generator)
        while True:
            found.append(read)
            read = generator.send(builder.param(SHORT[side.inputs[read.input].dtype]))
    except StopIteration as stop:
        result = stop.value
    work = (builder.axes, builder.instructions, builder.literals, builder.checks)
    whole = frozenset(i for i, axis in enumerate(builder.axes) if axis.kind == REDUCED)
    return _GeneratorTrace(position, tuple(found), work, result, whole)


def _same(
    asked: tuple[_GeneratorTrace, _GeneratorTrace],
    inputs: Sequence[int | None],
    own: Index | None,
    node: Node,
) -> None:
    """Raise unless both do the same, and read rows only from the row `own` that they are in."""
    for one in asked:
        for read in one.reads:
            axis = inputs[read.input]
            if axis is not None and read.position[axis] != own:
                several = len({r.position[axis] for r in one.reads if r.input == read.input}) > 1
                raise _RowDependence(_elsewhere(read.position[axis], one.whole, own, several))
    one, other = asked
    if (one.reads, one.work, one.result) != (other.reads, other.work, other.result):
        where = node.source
        raise different(f"a {node.op} at {where}" if where else node.op, node)


def _elsewhere(index: Index, whole: frozenset[int], own: Index | None, several: bool) -> str:
    """What it is to read rows at this index, one of several or the only one."""
    if index.axes() & whole or (own is None and several and not index.axes()):
        return "runs over the rows"
    if index.values():
        return "picks among the rows"
    return "takes some of the rows" if own is None else "moves the rows"


def _written(
    lowering: Scatter,
    few: _Side,
    many: _Side,
    inputs: Sequence[int | None],
    result: int | None,
    rows: int,
) -> None:
    """Show that a scatter writes each row of its updates into the same row of the result."""
    updates = inputs[1]
    if few.node.attributes != many.node.attributes or updates is None or result is None:
        raise _RowDependence("writes at places that are not rows of their own")

    def ask(site: Site) -> Generator[Read, int, Any]:
        yield Read(1, site.position)
        return (yield from lowering.place(site))

    full = many.inputs[1].shape
    if 0 in full:  # nothing is written
        return
    shape = tuple(rows if i == updates else n for i, n in enumerate(full))
    asked = _asked(ask, few, shape), _asked(ask, many, shape)
    beyond = _asked(ask, many, full)  # what pads must stay out of the rows
    for one in (*asked, beyond):
        if one.result[result] != one.position[updates]:
            raise _RowDependence("writes into other rows")
    _same(asked, inputs, asked[0].position[updates], many.node)


class _RowDependence(Exception):
    """What an op does that lets rows meet, as words that follow its name."""


def different(what: str, node: Node | None = None) -> ValueProblem:
    """The error of a program that is another at another number of rows."""
    return ValueProblem(
        f"the program depends on the number of rows itself ({what})",
        where=str(node.source) if node is not None and node.source else None,
        fix="leave this argument out of buckets",
    )
