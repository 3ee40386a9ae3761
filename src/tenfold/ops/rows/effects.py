"""Rows of effects: hook, print and call_host.

A node names its callable; what is called is bound when the program runs. `default` is the
number of the callable that the program came with, or -1; `structure` says how the leaves make
up the user's container.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np

from tenfold.errors import TypeMismatch
from tenfold.graph.node import Graph
from tenfold.graph.op import Attribute, Effect, HostRequest, Op, Routine, Sample, TypeRule, Types
from tenfold.ops import attributes as attribute
from tenfold.ops import samples
from tenfold.ops.batching import differs, guards, lanes
from tenfold.ops.reference import Array
from tenfold.types import DTYPES, SHORT, TensorType, base_array, parse_type

Given = Mapping[str, Any]
Asking = Generator[HostRequest, list[Any], tuple[Array, ...]]


def row(
    name: str,
    infer: TypeRule,
    reference: Any,
    given: Given,
    effect: Effect,
    *attributes: Attribute,
    edges: str,
) -> Op:
    """A row of an op with an effect: under vmap it happens for one active lane after another."""

    def draw(random: samples.Random) -> list[Sample]:
        pair = (
            samples.anything(random, DTYPES["f32"], (3,)),
            samples.anything(random, DTYPES["i64"], ()),
        )
        return [Sample(pair, given), Sample((), given)]

    return Op(
        name=name,
        arity=None,
        infer=infer,
        reference=reference,
        lowering=Routine(name),
        edges=edges,
        bound=0,
        batch=lanes.per_lane(name),
        samples=draw,
        attributes=attributes,
        effect=effect,
        differs=differs.host_call if effect.answers else differs.nothing,
        heeds=guards.surely,
    )


def _nothing(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    return ()


def _hook(inputs: list[Array], scopes: tuple[Graph, ...], **given: Any) -> Asking:
    yield HostRequest("hook", given, inputs)
    return ()


def _print(inputs: list[Array], scopes: tuple[Graph, ...], **given: Any) -> Asking:
    yield HostRequest("print", given, inputs)
    return ()


def _infer_call(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    return tuple(parse_type(text) for text in given["types"])


def _call_host(inputs: list[Array], scopes: tuple[Graph, ...], **given: Any) -> Asking:
    wanted = [parse_type(text) for text in given["types"]]
    results = yield HostRequest("call_host", given, inputs)
    return checked(given["name"], list(results), wanted)


def checked(name: str, results: list[Any], wanted: list[TensorType]) -> tuple[Array, ...]:
    """What a host function gave, copied, if it has the types it was said to have."""
    if len(results) != len(wanted):
        raise TypeMismatch(
            f"call_host {name!r}: {len(results)} results, {len(wanted)} declared",
            fix="return as many arrays as out_types has types",
        )
    made = []
    for i, (result, type) in enumerate(zip(results, wanted, strict=True)):
        array = np.array(base_array(result))  # a copy: the host may write into its own later
        if array.dtype != type.dtype or array.shape != type.shape:
            short = SHORT.get(array.dtype, str(array.dtype))
            dims = f"[{','.join(map(str, array.shape))}]" if array.shape else ""
            raise TypeMismatch(
                f"call_host {name!r}: result {i} is {short}{dims}, {type} declared",
                fix="return what out_types says, or change out_types",
            )
        made.append(array)
    return tuple(made)


_NAMED = (attribute.text("name"), attribute.integer("default"), attribute.text("structure"))

ROWS = (
    row(
        "hook",
        _nothing,
        _hook,
        {"name": "watch", "default": -1, "structure": "*"},
        Effect(),
        *_NAMED,
        edges="runs once each time it is reached, in program order",
    ),
    row(
        "print",
        _nothing,
        _print,
        {"label": "x", "structure": "*"},
        Effect(named=False),
        attribute.text("label"),
        attribute.text("structure"),
        edges="runs once each time it is reached, in program order",
    ),
    row(
        "call_host",
        _infer_call,
        _call_host,
        {"name": "ask", "default": 0, "structure": "*", "types": ("f32[3]", "i64")},
        Effect(answers=True),
        *_NAMED,
        attribute.types("types"),
        edges="results of other types than declared raise TypeMismatch; they are copied",
    ),
)
