"""What a node's row says of errors: its own, and what those of its inputs make of its results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tenfold.graph import Node
from tenfold.graph.op import ErrorRule, ErrorSpread
from tenfold.ops import TABLE
from tenfold.ops.agreement.errors import BY_BOUND
from tenfold.ops.agreement.evaluation import Ask, Evaluation
from tenfold.ops.agreement.intervals import by_rule

Array = np.ndarray[Any, Any]


@cache
def error_of(op: str) -> ErrorRule:
    """What an op may be off by."""
    row = TABLE[op]
    return BY_BOUND if row.error is None else row.error()


@cache
def spread_of(op: str) -> ErrorSpread:
    """What inputs that may be off make of an op's results."""
    row = TABLE[op]
    return _TRIED if row.spread is None else row.spread()


_TRIED = ErrorSpread()


def own_bound(
    node: Node, values: Sequence[Array], errors: Sequence[Array], result: Array, ask: Ask
) -> Array:
    """What a compiled result may differ by on inputs that may be off by these errors, beyond what
    those errors make of it."""
    case = Evaluation(node, TABLE[node.op], values, errors, result, ask)
    return np.asarray(error_of(node.op).own(case))


def usual_bound(
    node: Node, values: Sequence[Array], result: Array, ask: Ask
) -> tuple[Array, Array]:
    """What rounding makes of most results on inputs that are right, and what it is off from."""
    rule = error_of(node.op)
    case = Evaluation(
        node, TABLE[node.op], values, [np.zeros(np.shape(v)) for v in values], result, ask
    )
    if rule.usual is not None:
        return rule.usual(case)
    own = rule.own(case)
    own = np.where(np.isfinite(own), own, 0.0)
    return result, own if rule.unrounded is None else np.maximum(own, rule.unrounded(case))


def unrounded(node: Node, values: Sequence[Array], result: Array, ask: Ask) -> Array | float:
    """What a product may be off by where it goes straight into a sum: it is not rounded then, and
    does not overflow. Where it is stored, it is rounded like any other."""
    rule = error_of(node.op).unrounded
    if rule is None:
        return 0.0
    found: Array | float = rule(Evaluation(node, TABLE[node.op], values, (), result, ask))
    return found


def settled_spread(
    node: Node, values: Sequence[Array], errors: Sequence[Array], results: Sequence[Array], ask: Ask
) -> list[Array] | None:
    """What the bounds of the inputs make of the results, or None where it is to be tried."""
    rule = spread_of(node.op).rule
    if rule is None:
        return None
    return by_rule(rule, node, values, errors, results, ask)
