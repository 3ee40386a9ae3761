"""Rows of control flow: switch, while, scan, and custom, an op of the user's own.

Their references hand the list of arguments over with each `ScopeRequest` and keep nothing of it, so
that a carry can die inside the body that reads it last. The list of inputs is theirs to empty.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.errors import GraphError, ShapeError, ValueProblem
from tenfold.graph.build import Builder
from tenfold.graph.node import Graph, Node
from tenfold.graph.op import (
    Attribute,
    Branch,
    Inline,
    Loop,
    Lowering,
    Op,
    Sample,
    ScopeRequest,
    TypeRule,
    Types,
)
from tenfold.ops import attributes as attribute
from tenfold.ops import rules, samples
from tenfold.ops.batching import control as batch_control
from tenfold.ops.batching import differs
from tenfold.ops.batching import rules as batching
from tenfold.ops.reference import Array
from tenfold.types import BOOL, DTYPES, TensorType

Given = Mapping[str, Any]
Running = Generator[ScopeRequest, list[Array], tuple[Array, ...]]


def row(
    name: str,
    infer: TypeRule,
    reference: Any,
    draw: samples.Samples,
    lowering: Lowering,
    *attributes: Attribute,
    scopes: int | None,
    edges: str,
    batch: Callable[..., Any],
    differs: Callable[..., Sequence[int]],
    endless: bool = False,
) -> Op:
    """A row of an op that runs scopes; `endless` if that may take for ever."""
    return Op(
        name=name,
        arity=None,
        infer=infer,
        reference=reference,
        lowering=lowering,
        edges=edges,
        bound=0,
        batch=batch,
        samples=draw,
        attributes=attributes,
        scopes=scopes,
        differs=differs,
        heeds=lambda types, given: endless,
    )


# Switch.


def _infer_switch(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    if not types:
        raise GraphError("switch: no index")
    if not scopes:
        raise ValueProblem("switch: no branches", fix="give at least one")
    index, *arguments = types
    rules.scalar("switch", "the index", index, "biu")
    for i, branch in enumerate(scopes):
        rules.takes("switch", f"branch {i}", branch, arguments)
        rules.given("switch", f"branch {i}", branch.output_types, scopes[0].output_types)
    return scopes[0].output_types


def _switch(inputs: list[Array], scopes: tuple[Graph, ...]) -> Running:
    chosen = min(max(int(inputs.pop(0)), 0), len(scopes) - 1)
    return tuple((yield ScopeRequest(scopes[chosen], inputs)))


# While.


def _split(name: str, types: Types, **parts: int) -> None:
    if sum(parts.values()) > len(types):
        said = " and ".join(f"{count} {part}" for part, count in parts.items())
        raise GraphError(f"{name}: {said} of {len(types)} inputs")


def _infer_while(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    _split("while", types, captures=given["captures"])
    condition, body = scopes
    carries = types[given["captures"] :]
    rules.takes("while", "the condition", condition, types)
    rules.takes("while", "the body", body, types)
    rules.given("while", "the condition", condition.output_types, (TensorType(BOOL, ()),))
    rules.given("while", "the body's result", body.output_types, carries)
    return carries


def _while(inputs: list[Array], scopes: tuple[Graph, ...], captures: int) -> Running:
    condition, body = scopes
    fixed, carries = inputs[:captures], inputs[captures:]
    inputs.clear()
    while True:
        (again,) = yield ScopeRequest(condition, [*fixed, *carries])
        if not again:
            return tuple(carries)
        arguments = [*fixed, *carries]
        carries.clear()
        carries = list((yield ScopeRequest(body, arguments)))


# Scan.


def _infer_scan(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    captures, carries, length = given["captures"], given["carries"], given["length"]
    _split("scan", types, captures=captures, carries=carries)
    if given["unroll"] < 1:
        raise ValueProblem("scan: unroll is less than 1", fix="1 unrolls nothing")
    (body,) = scopes
    slices = []
    for type in types[captures + carries :]:
        if not type.shape or type.shape[0] != length:
            raise ShapeError(
                f"scan: a stacked input is {type}, and the length is {length}",
                fix="the first axis of every stacked input must have that extent",
            )
        slices.append(TensorType(type.dtype, type.shape[1:]))
    rules.takes("scan", "the body", body, (*types[: captures + carries], *slices))
    carried = types[captures : captures + carries]
    rules.given("scan", "the carry that the body gives", body.output_types[:carries], carried)
    stacked = body.output_types[carries:]
    return (*carried, *(TensorType(t.dtype, (length, *t.shape)) for t in stacked))


def _scan(
    inputs: list[Array],
    scopes: tuple[Graph, ...],
    captures: int,
    carries: int,
    length: int,
    reverse: bool,
    unroll: int,
) -> Running:
    (body,) = scopes
    fixed, carried = inputs[:captures], inputs[captures : captures + carries]
    stacked = inputs[captures + carries :]
    inputs.clear()
    made = [np.empty((length, *t.shape), t.dtype) for t in body.output_types[carries:]]
    for at in reversed(range(length)) if reverse else range(length):
        arguments = [*fixed, *carried, *(x[at : at + 1].reshape(x.shape[1:]) for x in stacked)]
        carried.clear()
        results = list((yield ScopeRequest(body, arguments)))
        for whole in reversed(made):
            whole[at] = results.pop()
        carried = results
    return (*carried, *made)


def rounds_of(node: Node, loop: Loop, length: int) -> Node:
    """The first rounds of any loop as a scan of that length, which reads values 0, 1, 2, …"""
    carried = loop.carries(node)
    attributes = (
        ("captures", carried.start),
        ("carries", len(carried)),
        ("length", length),
        ("reverse", loop.reversed(node)),
        ("unroll", 1),
    )
    stacked = [TensorType(t.dtype, (length, *t.shape[1:])) for t in node.types[len(carried) :]]
    types = (*node.types[: len(carried)], *stacked)
    inputs = tuple(range(len(node.inputs)))
    return Node("scan", inputs, attributes, (node.scopes[-1],), types, node.source)


# Custom.


def _infer_custom(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
    (fallback,) = scopes
    rules.takes(f"custom {given['name']}", "the fallback", fallback, types)
    return fallback.output_types


def _custom(inputs: list[Array], scopes: tuple[Graph, ...], name: str) -> Running:
    return tuple((yield ScopeRequest(scopes[0], inputs)))


# Samples.

_F32, _I32 = DTYPES["f32"], DTYPES["i32"]


def _sum(builder: Builder, values: Sequence[int]) -> Sequence[int]:
    return builder.node("add", values)


def _product(builder: Builder, values: Sequence[int]) -> Sequence[int]:
    return builder.node("mul", values)


def _switch_samples(random: samples.Random) -> list[Sample]:
    made = []
    for shape in ((3,), (), (0, 2)):
        type = TensorType(_F32, shape)
        branches = (samples.scope((type, type), _sum), samples.scope((type, type), _product))
        for index in (np.array(True), np.array(False), np.array(-3), np.array(7, np.uint8)):
            pair = (samples.ordinary(random, _F32, shape), samples.ordinary(random, _F32, shape))
            made.append(Sample((index, *pair), {}, branches))
    return made


def _while_samples(random: samples.Random) -> list[Sample]:
    """Add a captured step until a captured limit is passed; count the rounds."""
    one = TensorType(_F32, ())
    count = TensorType(_I32, ())

    def condition(builder: Builder, values: Sequence[int]) -> Sequence[int]:
        limit, _, x, _ = values
        return builder.node("lt", [x, limit])

    def body(builder: Builder, values: Sequence[int]) -> Sequence[int]:
        _, step, x, n = values
        (more,) = builder.node("add", [x, step])
        return [more, *builder.node("add", [n, batching.constant(builder, _I32, 1)])]

    types = (one, one, one, count)
    scopes = (samples.scope(types, condition), samples.scope(types, body))
    return [
        Sample(
            (
                np.float32(limit).reshape(()),
                np.array(1.5, _F32),
                np.array(0, _F32),
                np.array(0, _I32),
            ),
            {"captures": 2},
            scopes,
        )
        for limit in (4, -1, np.nan)
    ]


def _scan_samples(random: samples.Random) -> list[Sample]:
    """Running sums of scaled rows: a capture, a carry, stacked inputs and outputs."""
    row, one = TensorType(_F32, (2,)), TensorType(_F32, ())

    def body(builder: Builder, values: Sequence[int]) -> Sequence[int]:
        scale, carry, x = values
        (scaled,) = builder.node("mul", [scale, x])
        (total,) = builder.node("add", [carry, scaled])
        return [total, total, *builder.node("reduce_sum", [total], {"axes": (0,)})]

    scope = samples.scope((one, row, row), body)
    return [
        Sample(
            (
                samples.ordinary(random, _F32, ()),
                samples.ordinary(random, _F32, (2,)),
                samples.ordinary(random, _F32, (length, 2)),
            ),
            {"captures": 1, "carries": 1, "length": length, "reverse": reverse, "unroll": unroll},
            (scope,),
        )
        for length, reverse, unroll in ((3, False, 1), (4, True, 2), (0, False, 1), (1, True, 1))
    ]


def _custom_samples(random: samples.Random) -> list[Sample]:
    type = TensorType(_F32, (3,))
    pair = (samples.ordinary(random, _F32, (3,)), samples.ordinary(random, _F32, (3,)))
    return [Sample(pair, {"name": "mine"}, (samples.scope((type, type), _product),))]


ROWS = (
    row(
        "switch",
        _infer_switch,
        _switch,
        _switch_samples,
        Branch(),
        scopes=None,
        edges="a bool counts as 0 or 1; an index out of range is clamped; one branch alone runs",
        batch=batch_control.switch,
        differs=differs.switch,
    ),
    row(
        "while",
        _infer_while,
        _while,
        _while_samples,
        Loop(counted=False),
        attribute.count("captures"),
        scopes=2,
        edges="the condition is asked first: no round at all gives the carries as they came",
        batch=batch_control.while_,
        differs=differs.while_,
        endless=True,
    ),
    row(
        "scan",
        _infer_scan,
        _scan,
        _scan_samples,
        Loop(counted=True),
        attribute.count("captures"),
        attribute.count("carries"),
        attribute.count("length"),
        attribute.flag("reverse"),
        attribute.count("unroll"),
        scopes=1,
        edges="length 0 gives the carries as they came and empty stacks; reverse keeps places",
        batch=batch_control.scan,
        differs=differs.scan,
    ),
    row(
        "custom",
        _infer_custom,
        _custom,
        _custom_samples,
        Inline(),
        attribute.text("name"),
        scopes=1,
        edges="those of its fallback",
        batch=batch_control.custom,
        differs=differs.custom,
    ),
)
