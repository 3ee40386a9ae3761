"""Branches on traced tests: both sides traced, and what they make brought to one type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenfold.errors import ControlError
from tenfold.trace.array import Array
from tenfold.trace.control.branch import truth
from tenfold.trace.control.inner import shared
from tenfold.trace.convert.agreement import Common, Disagreement, common, filled
from tenfold.trace.convert.exits import NOTHING, RETURN, Exit
from tenfold.trace.convert.region import Cells, Part, Region, trace_region
from tenfold.trace.convert.statements import Site
from tenfold.trace.scope import current
from tenfold.trace.source import describe, here

Lost = Callable[[str, str], None]  # told of a variable that is left without a value, and why


def decide(
    site: Site, label: str, test: Any, then: Part, orelse: Part, cells: Cells, lost: Lost
) -> Exit:
    """Carry out the part that the program chooses: how it is left. Variables and arrays take what
    it makes of them."""
    scope = current()
    assert scope is not None
    chosen = truth(f"what the {site.kind} of line {site.line} tests", test, scope)
    before = cells.read()
    one, other = (trace_region(label, cells, lambda _: before, part) for part in (then, orelse))
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
    made = iter(_switch(chosen, one, other))

    def taken(together: Common) -> Any:
        forms = [f for f in together.forms if f is not None]
        return together.value([Array(scope, next(made), weak=f.weak) for f in forms])

    cells.write({name: taken(together) for name, together in merged.items()})
    kind_now = taken(kind) if kind is not None else exit.kind
    value_now = taken(value) if value is not None else exit.value
    for array, _ in updated.values():
        array._update(next(made))
    return Exit(exit.kinds, kind_now, value_now)


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
        raise ControlError(
            f"what is returned depends on the {site.kind} of line {site.line}, and has no one "
            f"type: {str(why).replace('it is', 'the result is', 1)}",
            where=describe(here()),
            fix="return the same type on every path: cast with .astype, or return the same shape",
        ) from None


def _switch(chosen: int, one: Region, other: Region) -> tuple[int, ...]:
    scope = current()
    assert scope is not None
    inners = other.inner, one.inner  # as an index, what is tested is 0 or 1
    captures = shared(inners)
    graphs = [inner.close(captures) for inner in inners]
    return scope.node("switch", (chosen, *captures), {}, graphs)
