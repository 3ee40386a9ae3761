"""Which results differ between lanes, for ops with scopes or effects.

What a value depends on is a set, kept as the bits of an integer: bit i + 1 is parameter i of
the graph, and bit 0 says that lanes differ whatever the parameters are. A rule is
`differs(inputs, scopes, **attributes)`: the sets of the inputs, and for each scope those of its
outputs by its own parameters. So one walk over a graph answers for every choice of batched
parameters, loops included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import Any

ALWAYS = 1

Sets = Sequence[int]


def union(sets: Sets) -> int:
    return reduce(or_, sets, 0)


def through(found: int, inputs: Sets) -> int:
    """What an output of a scope depends on, outside; `found` is by the scope's parameters."""
    made = found & ALWAYS
    found >>= 1
    while found:
        low = found & -found
        made |= inputs[low.bit_length() - 1]
        found ^= low
    return made


def settled(carries: Sets, step: Callable[[Sets], Sets]) -> list[int]:
    """What the carries of a loop depend on after any number of rounds."""
    now = list(carries)
    while True:
        after = [c | s for c, s in zip(now, step(now), strict=True)]
        if after == now:
            return now
        now = after


def nothing(inputs: Sets, scopes: Sequence[Sets], **_: Any) -> list[int]:
    """There are no results."""
    return []


def host_call(inputs: Sets, scopes: Sequence[Sets], types: Sequence[str], **_: Any) -> list[int]:
    """The host may answer each lane as it likes."""
    return [ALWAYS] * len(types)


def switch(inputs: Sets, scopes: Sequence[Sets]) -> list[int]:
    index, *given = inputs
    return [
        index | union([through(f, given) for f in found]) for found in zip(*scopes, strict=True)
    ]


def while_(inputs: Sets, scopes: Sequence[Sets], captures: int) -> list[int]:
    (condition,), body = scopes
    fixed = inputs[:captures]

    def step(carries: Sets) -> Sets:
        given = [*fixed, *carries]
        ends = through(condition, given)  # a lane that ends by itself has carries of its own
        return [ends | through(found, given) for found in body]

    return settled(inputs[captures:], step)


def scan(inputs: Sets, scopes: Sequence[Sets], captures: int, carries: int, **_: Any) -> list[int]:
    (body,) = scopes
    fixed, slices = inputs[:captures], inputs[captures + carries :]

    def step(carried: Sets) -> Sets:
        return [through(found, [*fixed, *carried, *slices]) for found in body[:carries]]

    last = settled(inputs[captures : captures + carries], step)
    return [*last, *(through(found, [*fixed, *last, *slices]) for found in body[carries:])]


def custom(inputs: Sets, scopes: Sequence[Sets], name: str) -> list[int]:
    return [through(found, inputs) for found in scopes[0]]


def fold(inputs: Sets, scopes: Sequence[Sets], axes: Sequence[int]) -> list[int]:
    return [union(inputs) | (scopes[0][0] & ALWAYS)]
