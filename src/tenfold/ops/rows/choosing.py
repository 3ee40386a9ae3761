"""Rows that choose between values, select and clip; and refuse, which lets none pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.errors import ValueProblem
from tenfold.graph.build import Builder
from tenfold.graph.node import Graph
from tenfold.graph.op import Composition, Element, Op, Sample, Types
from tenfold.ops import attributes as attribute
from tenfold.ops import elements, rules, samples
from tenfold.ops.agreement.named import errors, spreads
from tenfold.ops.batching import guards
from tenfold.ops.batching import rules as batching
from tenfold.ops.reference import Array, direct, widened
from tenfold.types import BOOL, SHORT, TensorType


def _infer_select(types: Types, given: Mapping[str, Any], scopes: tuple[Graph, ...]) -> Types:
    condition, yes, no = types
    rules.require("select: the condition", "b", condition)
    return (TensorType(rules.alike("select", yes, no), rules.broadcast("select", types)),)


def _select(condition: Array, yes: Array, no: Array) -> Array:
    return np.asarray(np.where(condition, yes, no))


def _select_samples(random: samples.Random) -> list[Sample]:
    return [
        Sample(
            (
                samples.anything(random, BOOL, condition),
                samples.anything(random, dtype, yes),
                samples.anything(random, dtype, no),
            ),
            {},
        )
        for dtype in SHORT
        for condition, yes, no in samples.TRIPLES
    ]


def _clip(x: Array, low: Array, high: Array) -> Any:
    return np.minimum(np.maximum(x, low), high)


def _compose_clip(
    builder: Builder, inputs: Sequence[int], attributes: Mapping[str, Any]
) -> tuple[int, ...]:
    x, low, high = inputs
    return builder.node("min", [*builder.node("max", [x, low]), high])


def _refuse(x: Array, reason: str) -> Array:
    if x.any():
        raise ValueProblem(reason)
    return x.copy()


def _refuse_samples(random: samples.Random) -> list[Sample]:
    return [Sample((np.zeros(n, bool),), {"reason": "no"}) for n in ((), (3,), (2, 0))]


ROWS = (
    Op(
        name="select",
        arity=3,
        infer=_infer_select,
        reference=_select,
        lowering=Element(elements.select),
        edges="none: the value not chosen has no say, NaN or not",
        bound=0,
        batch=batching.elementwise("select"),
        samples=_select_samples,
        spread=spreads.CHOSEN,
        elementwise=True,
    ),
    Op(
        name="clip",
        arity=3,
        infer=rules.elementwise("clip", "biuf"),
        reference=widened(_clip),
        lowering=Composition(_compose_clip),
        edges="NaN if any is; where low lies above high, high",
        bound=0,
        batch=batching.elementwise("clip"),
        samples=samples.pointwise("biuf", 3),
        error=errors.EXTREME,
        spread=spreads.ORDERED,
        elementwise=True,
    ),
    Op(
        name="refuse",
        arity=1,
        infer=rules.elementwise("refuse", "b"),
        reference=direct(_refuse),
        lowering=Element(elements.refuse),
        edges="what holds raises ValueProblem, with the reason",
        bound=0,
        batch=batching.elementwise("refuse"),
        samples=_refuse_samples,
        attributes=(attribute.text("reason"),),
        heeds=guards.surely,
        guard=guards.zeroed(0),
    ),
)
