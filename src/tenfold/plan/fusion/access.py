"""How a node reads its inputs, found by asking its element generator once with symbolic axes.

This is what lets one fusion rule serve every op: no op is named here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from tenfold.frozen import frozen
from tenfold.graph.node import Attributes
from tenfold.graph.op import Element, Op, Pointwise, Ranges, Routine, Scatter
from tenfold.kernel import Builder
from tenfold.kernel.analyse.cost import length
from tenfold.kernel.ir.index import AXIS, Index, flat, strides
from tenfold.kernel.ir.kernel import ELEMENTWISE, REDUCED, TRANSCENDENTAL, Instruction
from tenfold.ops.elements import Read, Site
from tenfold.plan.lowering.joining import as_element
from tenfold.types import SHORT, Shape, TensorType

# One read of an input: for each of its axes the axis of the result (or, from the result's rank
# on, the reduced axis) that runs along it, or None where it has extent 1.
Pattern = tuple[int | None, ...]
IDENTITY: Pattern = (-1,)  # the pattern that composes to the other

GATHERED = 16  # the weight of a read at a computed position: not a cheap one

# An elementwise instruction: its name, the dtypes of its operands and of its result.
Named = tuple[str, tuple[str, ...], str]


@frozen
class Access:
    """How one form of node reads its inputs.

    `patterns[i]` are the aligned reads of input i: along whole axes, each once. `moved[i]` counts
    the other reads with positions known before the program runs, `computed[i]` those without.
    `reduced` are the extents of reduced axes. `weight` is about how many instructions it computes
    with, `length` about how many the code of these has.
    A `view` computes nothing: it reads one element of its one input, or none at all; where that
    lies at the same place in memory, it is the `same`.
    """

    patterns: tuple[tuple[Pattern, ...], ...]
    moved: tuple[int, ...]
    computed: tuple[int, ...]
    reduced: tuple[int, ...] = ()
    weight: int = 1
    length: int = 1
    costly: bool = False
    checks: bool = False
    view: bool = False
    same: bool = False
    instructions: frozenset[Named] = frozenset()
    inner: frozenset[tuple[bool, ...]] = frozenset()  # of products: do sums run along last axes?


def composed(pattern: Pattern, through: Pattern | None) -> Pattern | None:
    """How a root is read by who reads a view of it in this pattern."""
    if through is IDENTITY:
        return pattern
    if through is None:
        return None
    return tuple(None if t is None else pattern[t] for t in through)


@cache
def transposes(pattern: Pattern | None) -> bool:
    """Whether the last axis is moved from its place."""
    axes = [a for a in pattern or () if a is not None]
    return bool(axes) and axes[-1] != max(axes)


def broadcast_pattern(shape: Shape, rank: int) -> Pattern:
    """The read of an input that broadcasts to a result of this rank."""
    first = rank - len(shape)
    return tuple([None if n == 1 else first + i for i, n in enumerate(shape)])


def access_of(
    op: Op, types: Sequence[TensorType], attributes: Attributes, result: TensorType
) -> Access:
    """The access of a node with this op, these input types and attributes."""
    if isinstance(op.lowering, Pointwise):
        rank = len(result.shape)
        reads = tuple([broadcast_pattern(t.shape, rank) for t in types])
        dtypes = tuple([SHORT[t.dtype] for t in types])
        return _pointwise(op.lowering.instruction, dtypes, SHORT[result.dtype], reads)
    if isinstance(op.lowering, Ranges):
        return _probe(Element(as_element(op.lowering)), types, dict(attributes), result)
    assert isinstance(op.lowering, Element)
    return _probe(op.lowering, types, dict(attributes), result)


def summed_access(
    lowering: Routine, types: Sequence[TensorType], attributes: dict[str, Any], result: TensorType
) -> Access:
    """The access of a sum of products that is a kernel: from memory, since each element is read
    many times."""
    assert lowering.generate is not None
    found = _probe(Element(lowering.generate), types, attributes, result)
    return Access(((), ()), (0, 0), (1, 1), found.reduced, weight=2)


@cache
def _pointwise(
    instruction: str, dtypes: tuple[str, ...], result: str, reads: tuple[Pattern, ...]
) -> Access:
    """The access of an instruction for each element: whatever the extents."""
    costly = instruction in TRANSCENDENTAL
    return Access(
        tuple((pattern,) for pattern in reads),
        (0,) * len(dtypes),
        (0,) * len(dtypes),
        weight=8 if costly else 1,
        length=length(instruction, dtypes[0]),
        costly=costly,
        instructions=frozenset({(instruction, dtypes, result)}),
    )


def scatter_access(
    lowering: Scatter, types: Sequence[TensorType], attributes: Attributes
) -> Access:
    """How the writes of a scatter read its inputs but the first: for each element of the second."""
    given = dict(attributes)

    def generate(site: Site) -> Any:
        yield Read(1, site.position)
        return (yield from lowering.place(site))

    access = _probe(Element(generate), types, given, types[1])
    named = access.instructions
    update = lowering.update(given)
    if update:
        short = SHORT[types[0].dtype]
        named |= {(update, (short, short), short)}
    return replace(
        access,
        patterns=access.patterns[1:],
        moved=access.moved[1:],
        computed=access.computed[1:],
        instructions=named,
    )


def starts_of(
    lowering: Element, type: TensorType, attributes: Attributes, result: TensorType
) -> tuple[int, ...] | None:
    """Where a range begins, for a node whose result is a range of its one input."""
    builder = Builder()
    position = tuple(builder.axis(extent) for extent in result.shape)
    generator = lowering.generate(Site(builder, position, (type,), dict(attributes)))
    read = next(generator)
    if type.rank != result.rank or read.condition is not None:
        return None
    if any(at.terms != own.terms for at, own in zip(read.position, position, strict=True)):
        return None
    return tuple([at.const for at in read.position])


def _probe(
    lowering: Element, types: Sequence[TensorType], attributes: dict[str, Any], result: TensorType
) -> Access:
    builder = Builder()
    position = tuple(builder.axis(extent) for extent in result.shape)
    patterns: list[list[Pattern]] = [[] for _ in types]
    moved, computed = [0] * len(types), [0] * len(types)
    last: Sequence[Index] = ()
    reads = 0
    generator = lowering.generate(Site(builder, position, types, attributes))
    try:
        read = next(generator)
        while True:
            type = types[read.input]
            last, reads = read.position, reads + 1
            pattern = _pattern(read.position, type.shape, read.condition)
            if pattern is not None:
                if pattern not in patterns[read.input]:
                    patterns[read.input].append(pattern)
            elif any(index.values() for index in read.position):
                computed[read.input] += 1
            else:
                moved[read.input] += 1
            read = generator.send(builder.param(SHORT[type.dtype]))
    except StopIteration:
        pass
    reduced = tuple(a.extent for a in builder.axes if a.kind == REDUCED)
    work = [i for i in builder.instructions if not _is_known(i, builder.instructions)]
    costly = any(i.op in TRANSCENDENTAL for i in work)
    weight = sum(i.op not in ("param", "const", "index") for i in work)
    code = sum(length(i.op, i.dtype) for i in work if i.op in ELEMENTWISE)
    view = not weight and reads <= 1 and len(types) <= 1
    same = (
        view
        and reads == 1
        and (
            flat(last, strides(types[0].shape)) == flat(position, strides(result.shape))
            and types[0].size == result.size
        )
    )
    weight += GATHERED * sum(computed)
    return Access(
        tuple(tuple(p) for p in patterns),
        tuple(moved),
        tuple(computed),
        reduced,
        max(weight, 1),
        max(weight, code),
        costly,
        bool(builder.checks),
        view,
        same,
        frozenset(
            (i.op, tuple(builder.dtype(a) for a in i.args), i.dtype)
            for i in work
            if i.op in ELEMENTWISE
        ),
    )


def _is_known(instruction: Instruction, among: Sequence[Instruction]) -> bool:
    """Whether a number is cast that is known before the program runs: an extent is one, be it an
    integer or a Number."""
    if instruction.op != "cast":
        return False
    source = among[instruction.args[0]]
    if source.op == "index":
        return source.index is not None and not source.index.terms
    return source.op == "const"


def _pattern(position: Sequence[Index], shape: Shape, condition: int | None) -> Pattern | None:
    """The pattern of a read along whole axes, None for any other."""
    if condition is not None:
        return None
    found: list[int | None] = []
    for index, extent in zip(position, shape, strict=True):
        if extent == 1:
            if index.terms or index.const:
                return None
            found.append(None)
            continue
        if len(index.terms) != 1 or index.const:
            return None
        atom, step = index.terms[0]
        if atom.kind != AXIS or step != 1 or atom.bound != extent or atom.of in found:
            return None
        found.append(atom.of)
    return tuple(found)
