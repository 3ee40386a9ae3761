"""Branches on traced tests: both sides traced, and what they make brought to one type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.errors import ControlError
from tenfold.graph import Graph
from tenfold.ops import TABLE
from tenfold.trace.array import Array
from tenfold.trace.control.branch import truth
from tenfold.trace.control.inner import shared
from tenfold.trace.convert.agreement import Common, Disagreement, common, filled
from tenfold.trace.convert.exits import NOTHING, RETURN, Exit
from tenfold.trace.convert.region import Cells, Part, Region, trace_region
from tenfold.trace.convert.statements import Site
from tenfold.trace.host.array import HostArray
from tenfold.trace.operand import as_value
from tenfold.trace.scope import current
from tenfold.trace.source import describe, here

Lost = Callable[[str, str], None]  # told of a variable that is left without a value, and why


def decide(
    site: Site, label: str, test: Any, then: Part, orelse: Part, cells: Cells, lost: Lost
) -> tuple[Exit, str]:
    """Carry out the part that the program chooses: how it is left, and what chooses. Variables
    and arrays take what it makes of them."""
    scope = current()
    assert scope is not None
    chosen = truth(f"what the {site.kind} of line {site.line} tests", test, scope)
    aliased = cells.aliased()
    before = cells.read()
    one, other = (
        trace_region(label, cells, lambda _: before, part, aliased=aliased)
        for part in (then, orelse)
    )
    merged: dict[str, Common] = {}
    for name in before:
        a, b = one.values[name], other.values[name]
        if a is b:
            cells.write({name: a})
            continue
        try:
            merged[name] = common(a, b)
        except Disagreement as why:
            cells.write({name: NOTHING})
            lost(name, str(why))
    exit, kind, value = _exit(site, one.exit, other.exit)
    extra = [c for c in (kind, value) if c is not None]
    updated = {**one.updated, **other.updated}
    for number, side in enumerate((one, other)):
        for together in (*merged.values(), *extra):
            for leaf, form in zip(together.leaves[number], together.forms, strict=True):
                if form is not None:
                    side.give(leaf, form)
        for key, (array, _) in updated.items():
            side.inner.give(side.updated.get(key, (array, array))[1], array.type)
    values, how = _switch(chosen, one, other)
    made = iter(values)

    known: dict[tuple[int, int], Array] = {}  # one array under two names stays one

    def taken(together: Common, own: Any = NOTHING) -> Any:
        arrays = []
        for a, b, f in zip(*together.leaves, together.forms, strict=True):
            if f is None:
                continue
            array = Array(scope, next(made), weak=f.weak)
            array._readonly = any(
                is_alias(leaf, side, own) for leaf, side in ((a, one), (b, other))
            )
            arrays.append(known.setdefault((id(a), id(b)), array) if f.type.shape else array)
        return together.value(arrays)

    own = {name: NOTHING if name in aliased else before[name] for name in merged}
    cells.write({name: taken(both, own[name]) for name, both in merged.items()})
    kind_now = taken(kind) if kind is not None else exit.kind
    value_now = taken(value) if value is not None else exit.value
    for array, _ in updated.values():
        array._update(next(made))
    return Exit(exit.kinds, kind_now, value_now), how


def is_alias(leaf: Any, region: Region, own: Any) -> bool:
    """Whether a leaf that a region gives is another array under a new name, so that writing to it
    would have to reach that one. A variable's own array, which no one else names, is none."""
    if not isinstance(leaf, Array | np.ndarray) or not leaf.shape:
        return False
    if not isinstance(leaf, Array) or leaf._view is not None or leaf._argument is not None:
        return True
    home = leaf._scope
    if isinstance(leaf, HostArray):
        if leaf._root() is not leaf:
            return True
        home = leaf._value.owner.home
    return home is not region.inner.scope and leaf is not own


def _exit(site: Site, one: Exit, other: Exit) -> tuple[Exit, Common | None, Common | None]:
    """How two sides are left, together; and what their kinds and values have in common."""
    kinds = one.kinds | other.kinds
    kind = None if len(kinds) == 1 else common(one.kind, other.kind)
    if RETURN not in kinds:
        return Exit(kinds, one.kind), kind, None
    a, b = one.value, other.value
    if a is NOTHING and b is NOTHING:
        return Exit(kinds, one.kind), kind, None
    if a is NOTHING or b is NOTHING:
        return Exit(kinds, one.kind), kind, filled(b if a is NOTHING else a, a is NOTHING)
    return Exit(kinds, one.kind), kind, returns(site, a, b)


def returns(site: Site, one: Any, other: Any) -> Common:
    """What two returned values have in common."""
    try:
        return common(one, other)
    except Disagreement as why:
        what = f"the {site.kind} of line {site.line}"
        if site.kind in ("if", "while", "for"):
            what = f"what is returned depends on {what}, and"
        raise ControlError(
            f"{what} has no one type: {why}",
            where=describe(here()),
            fix="give the same dtype and shape either way: cast with .astype",
        ) from None


def _switch(chosen: int, one: Region, other: Region) -> tuple[tuple[int, ...], str]:
    """What the chosen one of two sides gives, and what does the choosing."""
    scope = current()
    assert scope is not None
    inners = other.inner, one.inner  # as an index, what is tested is 0 or 1
    captures = shared(inners)
    graphs = [inner.close(captures) for inner in inners]
    if not all(map(_is_small, graphs)):
        return scope.node("switch", (chosen, *captures), {}, graphs), "cond"
    sides = [scope.builder.inline(graph, captures) for graph in graphs]
    test = Array(scope, chosen)
    made = [np.where(test, Array(scope, a), Array(scope, b)) for b, a in zip(*sides, strict=True)]
    return tuple([as_value(array, scope) for array in made]), "select, both sides being small"


def _is_small(graph: Graph) -> bool:
    """Whether both sides may as well be computed, and one selected: a few operations on scalars,
    none of which can fail or be noticed."""
    if len(graph.nodes) > _SMALL or graph.effects:
        return False
    types = [parameter.type for parameter in graph.parameters]
    for node in graph.nodes:
        op = TABLE[node.op]
        inputs = tuple([types[value] for value in node.inputs])
        types += node.types
        if not (op.elementwise or op.literal) or any(t.shape for t in node.types):
            return False
        if op.heeds(inputs, dict(node.attributes)):
            return False
    return True


_SMALL = 32  # nodes of a side
