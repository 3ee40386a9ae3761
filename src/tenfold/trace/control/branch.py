"""Branches: the functions of a cond or switch, traced and brought to one type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch
from tenfold.trace.array import Array
from tenfold.trace.containers import LEAF, flatten
from tenfold.trace.control.agree import merge
from tenfold.trace.control.inner import kind_of, label, shared, trace_inner
from tenfold.trace.operand import as_value, weak_of
from tenfold.trace.scope import Scope, current
from tenfold.trace.source import describe, here
from tenfold.trace.tables import UFUNCS
from tenfold.types import BOOL

Function = Callable[..., Any]


def switch_node(
    what: str, index: int, named: dict[str, Function], operands: Any, flip: bool = False
) -> Any:
    """The results of a switch over these branches, which are traced, merged and closed here.

    `flip` puts the last branch first in the node; messages keep the order given."""
    scope = current()
    assert scope is not None
    structure, leaves = flatten(operands)

    def call(function: Function) -> Callable[[Scope], Any]:
        # An operand is a capture like any other, so that it is handed over once however it comes.
        return lambda inner: function(
            *structure.unflatten(
                [Array(inner, as_value(leaf, inner), weak=weak_of(leaf)) for leaf in leaves]
            )
        )

    inners = [trace_inner(label(what, f), call(f)) for f in named.values()]
    forms = merge(what, list(named), inners)
    for inner in inners:
        for leaf, wanted in zip(inner.leaves, forms, strict=True):
            inner.give(leaf, wanted.type)
    ordered = inners[::-1] if flip else inners
    captures = shared(ordered)
    graphs = [inner.close(captures) for inner in ordered]
    values = scope.node("switch", (index, *captures), {}, graphs)
    return inners[0].structure.unflatten(
        [Array(scope, v, weak=f.weak) for v, f in zip(values, forms, strict=True)]
    )


def one_array(what: str, item: Any, scope: Scope) -> int:
    """The value of something that has to be one array, not a container."""
    if flatten(item)[0].tokens != (LEAF,):
        raise TypeMismatch(
            f"{what} is {kind_of(item)}, not a scalar", where=describe(here()), fix="give one array"
        )
    return as_value(item, scope)


def truth(what: str, pred: Any, scope: Scope) -> int:
    """The value of a predicate, as a bool; a number holds where it is not 0."""
    value = one_array(what, pred, scope)
    type = scope.builder.types[value]
    if type.shape:
        raise ShapeError(
            f"{what} is {type}, not a scalar",
            where=describe(here()),
            fix="reduce it with .any() or .all(); to choose element by element use np.where",
        )
    if type.dtype == BOOL:
        return value
    return as_value(UFUNCS[np.not_equal](Array(scope, value), 0), scope)
