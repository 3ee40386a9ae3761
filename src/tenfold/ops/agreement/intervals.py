"""Inputs that are not settled: how far each may go, and what trying their ends tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tenfold.errors import TenfoldError
from tenfold.graph.node import Node
from tenfold.graph.op import ErrorSpread
from tenfold.ops.agreement.evaluation import Ask
from tenfold.ops.agreement.moved import distance, moved
from tenfold.types import KIND

Array = np.ndarray[Any, Any]


class Intervals(NamedTuple):
    """A node on the reference's values that may be off, with the least and the largest that each
    may be, how far away these are, and one of its results, its output of that number."""

    node: Node
    values: Sequence[Array]
    ends: Sequence[tuple[Array, Array]]
    errors: Sequence[Array]
    result: Array
    ask: Ask
    output: int = 0

    @property
    def alike(self) -> bool:
        """Whether both operands are one value."""
        return len(self.node.inputs) == 2 and self.node.inputs[0] == self.node.inputs[1]

    @property
    def kinds(self) -> set[str]:
        return {KIND[v.dtype] for v in self.values}

    @property
    def discrete(self) -> bool:
        """Whether all of it is integers and bools."""
        return self.kinds <= set("biu") and KIND[self.result.dtype] in "biu"


Rule = Callable[[Intervals], Array]


def by_rule(
    rule: Callable[[Intervals], Array | None],
    node: Node,
    values: Sequence[Array],
    errors: Sequence[Array],
    results: Sequence[Array],
    ask: Ask,
) -> list[Array] | None:
    """What the bounds of the inputs make of the results, or None where it is to be tried."""
    ends = [(moved(v, e, -1.0), moved(v, e, 1.0)) for v, e in zip(values, errors, strict=True)]
    within = [
        np.maximum(*(distance(end, v) for end in both)) if KIND[v.dtype] in "biu" else e
        for v, e, both in zip(values, errors, ends, strict=True)
    ]  # an integer is off by no more than its type holds
    found: list[Array] = []
    for output, result in enumerate(results):
        far = rule(Intervals(node, values, ends, within, result, ask, output))
        if far is None:
            return None
        found.append(far)
    return found


def is_open(case: Intervals, above: float) -> Array:
    """Where some operand may be off by more than this."""
    found = np.zeros(case.result.shape, bool)
    for error in case.errors:
        found = found | (error > above)
    return found


def corners(case: Intervals) -> Array:
    """What is tried with every operand left, raised and lowered, in all ways."""
    most = np.zeros(case.result.shape)
    inputs = case.node.inputs
    loose = dict.fromkeys(v for v, e in zip(inputs, case.errors, strict=True) if e.any())
    for ways in product((None, 0, 1), repeat=len(loose)):
        way = dict(zip(loose, ways, strict=True))
        tried = []
        for number, value, ends in zip(inputs, case.values, case.ends, strict=True):
            end = way.get(number)
            tried.append(value if end is None else ends[end])
        try:
            (other,) = case.ask(case.node, tried)
        except TenfoldError:  # a power that is not there
            return np.full(case.result.shape, np.inf)
        most = np.maximum(most, distance(other, case.result))
    return most


def reach(case: Intervals, at: int) -> tuple[Array, Array]:
    """How far an operand may go down and up."""
    low, high = case.ends[at]
    return distance(low, case.values[at]), distance(high, case.values[at])


def on_arc(result: Array, down: Array, up: Array) -> Array:
    """A result that wraps and may be off by this much before it does."""
    far = np.maximum(down, up)
    if KIND[result.dtype] == "b":
        return far
    limits = np.iinfo(result.dtype)
    least, most = (np.full(result.shape, n, result.dtype) for n in (limits.min, limits.max))
    past = (down > distance(least, result)) | (up > distance(most, result))
    return np.where(past, np.inf, far)


def discrete_only(rule: Rule) -> ErrorSpread:
    """A rule for integers and bools; floats are tried."""
    return ErrorSpread(lambda case: rule(case) if case.discrete else None)
