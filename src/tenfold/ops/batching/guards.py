"""Guards: how lanes that are not active are kept from raising."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenfold.graph.build import Builder
from tenfold.graph.op import Types
from tenfold.ops.batching.lanes import choose
from tenfold.ops.batching.rules import constant, make
from tenfold.types import SHORT


def zeroed(first: int) -> Callable[..., list[int]]:
    """Inputs from this one on are 0 in lanes that are not active."""

    def guard(
        builder: Builder,
        inputs: Sequence[int],
        batched: Sequence[bool],
        mask: int,
        size: int,
        **attributes: Any,
    ) -> list[int]:
        return [
            choose(builder, mask, v, constant(builder, builder.types[v].dtype, 0))
            if i >= first and own
            else v
            for i, (v, own) in enumerate(zip(inputs, batched, strict=True))
        ]

    return guard


def identity(
    builder: Builder,
    inputs: Sequence[int],
    batched: Sequence[bool],
    mask: int,
    size: int,
    **attributes: Any,
) -> list[int]:
    """The first input is a unit matrix in lanes that are not active: it can be factored, solved
    for and inverted."""
    first, *rest = inputs
    if not batched[0]:
        return [first, *rest]
    type = builder.types[first]
    along = [
        make(builder, "iota", dtype="i64", shape=type.shape[-2:], axis=axis) for axis in (0, 1)
    ]
    unit = make(builder, "cast", make(builder, "eq", *along), dtype=SHORT[type.dtype])
    return [choose(builder, mask, first, unit), *rest]


def never(types: Types, attributes: Mapping[str, Any]) -> bool:
    """The op does not heed which lanes are active: no value makes it raise."""
    return False


def surely(types: Types, attributes: Mapping[str, Any]) -> bool:
    """The op heeds which lanes are active, whatever its inputs and attributes."""
    return True


def raising(types: Types, attributes: Mapping[str, Any]) -> bool:
    """An op of indexing heeds it in mode raise."""
    return bool(attributes["mode"] == "raise")


def signed(types: Types, attributes: Mapping[str, Any]) -> bool:
    """An op that raises for negative integers heeds it where they may be negative."""
    return any(type.kind == "i" for type in types)
