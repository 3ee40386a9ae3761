"""Batching rules of ops with scopes: switch, while, scan, custom, reduce.

Where all lanes go the same way, the op stays what it is, with batched scopes. Where they part,
every way that some lane goes is gone, under the mask of the lanes that go it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenfold.graph.build import Builder
from tenfold.graph.node import Graph
from tenfold.graph.op import Lift
from tenfold.ops.batching.lanes import (
    BatchLanes,
    Flags,
    Lifting,
    call,
    choose,
    per_lane,
    run,
    run_if,
)
from tenfold.ops.batching.rules import constant, make, move
from tenfold.types import BOOL, DTYPES, I64


def _both(builder: Builder, one: int, other: int | None) -> int:
    return one if other is None else make(builder, "and", one, other)


# Switch.


def switch(
    lanes: BatchLanes,
    inputs: Sequence[int],
    batched: Sequence[bool],
    results: Flags,
    scopes: tuple[Graph, ...],
) -> Lifting:
    builder = lanes.builder
    index, *given = inputs
    flags = tuple(batched[1:])
    if not batched[0]:
        masked = lanes.masks(*scopes)
        branches = []
        for scope in scopes:
            branch = yield Lift(scope, flags, results, masked)
            branches.append(branch)
        return builder.node("switch", [index, *lanes.with_mask(masked, *given)], {}, branches)
    ways = _ways(builder, index, len(scopes))
    made: Sequence[int] | None = None
    for here, scope in zip(ways, scopes, strict=True):
        masked = lanes.heeds(scope)
        if masked or not lanes.small(scope):
            branch = yield Lift(scope, flags, results, masked)
            own = _both(builder, here, lanes.mask)
            some = make(builder, "reduce_any", own, axes=(0,))
            found = run_if(builder, some, branch, [own, *given] if masked else given)
        else:  # nobody notices that all lanes go this way
            found = yield Lift(scope, flags, results, False, tuple(given))
        if made is None:
            made = found
        else:
            made = [choose(builder, here, f, m) for f, m in zip(found, made, strict=True)]
    assert made is not None
    return tuple(made)


def _ways(builder: Builder, index: int, count: int) -> list[int]:
    """For each branch which lanes go that way; the index is clamped to their number."""
    dtype, most = builder.types[index].dtype, count - 1
    if dtype == BOOL and count == 2:
        return [make(builder, "not", index), index]
    if dtype == DTYPES["u64"]:  # may be too great for i64
        index = make(builder, "min", index, constant(builder, dtype, most))
    index = make(builder, "cast", index, dtype="i64")
    index = make(builder, "clip", index, *(constant(builder, I64, n) for n in (0, most)))
    return [make(builder, "eq", index, constant(builder, I64, n)) for n in range(count)]


# While.


def while_(
    lanes: BatchLanes,
    inputs: Sequence[int],
    batched: Sequence[bool],
    results: Flags,
    scopes: tuple[Graph, ...],
    captures: int,
) -> Lifting:
    builder = lanes.builder
    condition, body = scopes
    fixed = list(inputs[:captures])
    carries = lanes.spread(inputs[captures:], batched[captures:], results)
    flags = (*batched[:captures], *results)
    (parts,) = lanes.differs(condition, flags)
    if not parts:
        masked = lanes.masks(condition, body)
        again = yield Lift(condition, flags, (False,), masked)
        round_ = yield Lift(body, flags, results, masked)
        given = [*lanes.with_mask(masked, *fixed), *carries]
        return builder.node("while", given, {"captures": captures + masked}, [again, round_])
    # Lanes end by themselves: the loop carries which of them go on, and goes on while any does.
    test = yield Lift(condition, flags, (True,), lanes.heeds(condition))
    work = yield Lift(body, flags, results, lanes.heeds(body))

    def holds(at: Builder, mask: int, values: Sequence[int]) -> int:
        (found,) = run(at, test, [mask, *values] if lanes.heeds(condition) else values)
        return found

    first = _both(builder, holds(builder, lanes.active(), [*fixed, *carries]), lanes.mask)
    types = [builder.types[v] for v in (*fixed, first, *carries)]
    asks = lanes.scope()
    going = [asks.parameter(type) for type in types][captures]
    loop = lanes.scope()
    values = [loop.parameter(type) for type in types]
    outer, go, before = values[:captures], values[captures], values[captures + 1 :]
    given = [*outer, *before]
    made = run(loop, work, [go, *given] if lanes.heeds(body) else given)
    after = [choose(loop, go, m, b) for m, b in zip(made, before, strict=True)]
    still = make(loop, "and", go, holds(loop, go, [*outer, *after]))
    graphs = [
        asks.finish([make(asks, "reduce_any", going, axes=(0,))]),
        loop.finish([still, *after]),
    ]
    return builder.node("while", [*fixed, first, *carries], {"captures": captures}, graphs)[1:]


# Scan.


def scan(
    lanes: BatchLanes,
    inputs: Sequence[int],
    batched: Sequence[bool],
    results: Flags,
    scopes: tuple[Graph, ...],
    captures: int,
    carries: int,
    **attributes: Any,
) -> Lifting:
    builder = lanes.builder
    (body,) = scopes
    end = captures + carries
    carried = lanes.spread(inputs[captures:end], batched[captures:end], results[:carries])
    rows = zip(inputs[end:], batched[end:], strict=True)
    stacked = [move(builder, v, 0, 1) if own else v for v, own in rows]
    masked = lanes.masks(body)
    flags = (*batched[:captures], *results[:carries], *batched[end:])
    step = yield Lift(body, flags, results, masked)
    given = [*lanes.with_mask(masked, *inputs[:captures]), *carried, *stacked]
    loop = {"captures": captures + masked, "carries": carries, **attributes}
    made = builder.node("scan", given, loop, [step])
    outputs = zip(made[carries:], results[carries:], strict=True)
    return (*made[:carries], *(move(builder, v, 1, 0) if own else v for v, own in outputs))


# Custom.


def custom(
    lanes: BatchLanes,
    inputs: Sequence[int],
    batched: Sequence[bool],
    results: Flags,
    scopes: tuple[Graph, ...],
    name: str,
) -> Lifting:
    masked = lanes.masks(*scopes)
    fallback = yield Lift(scopes[0], tuple(batched), results, masked)
    if masked:  # no version of the op knows of masks
        return call(lanes.builder, fallback, lanes.with_mask(masked, *inputs))
    return lanes.builder.node("custom", inputs, {"name": name}, [fallback])


# Reduce.

_one_by_one = per_lane("reduce")


def fold(
    lanes: BatchLanes,
    inputs: Sequence[int],
    batched: Sequence[bool],
    results: Flags,
    scopes: tuple[Graph, ...],
    axes: tuple[int, ...],
) -> Lifting:
    if tuple(batched) == (True, False) and not lanes.masks(*scopes):
        # The function is one of scalars: another axis that is kept changes nothing for it.
        up = {"axes": tuple(a + 1 for a in axes)}
        return lanes.builder.node("reduce", inputs, up, scopes)
    return (yield from _one_by_one(lanes, inputs, batched, results, scopes, axes=axes))


__all__ = ["custom", "fold", "scan", "switch", "while_"]
