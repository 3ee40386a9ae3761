"""The door of a jitted function: calls that need no Python go straight to native code.

A flat call of NumPy arrays whose types and captures are those of a plan is answered by the
plan's native entry. What its guards turn away goes to the next door behind it, and last to
Python, which binds, looks up or traces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tenfold.api.arguments import Call
from tenfold.api.captures import Place
from tenfold.backends.cpu.bind import Bound, Guard
from tenfold.execute import Program
from tenfold.trace.containers import LEAF
from tenfold.trace.function import Traced

DOORS = 4  # how many stand one behind another


def is_flat(call: Call, traced: Traced, names: tuple[str, ...]) -> bool:
    """Whether calls like this one are arrays in, arrays out, all by position."""
    count = len(call.leaves)
    tokens = traced.outputs.tokens
    return (
        not call.statics
        and not traced.graph.effects
        and call.names == names[: len(call.names)]
        and call.structure.tokens == (("tuple", count), *(LEAF,) * count)
        and all(isinstance(leaf, (np.ndarray, np.generic)) for leaf in call.leaves)
        and not any(traced.weak)
        and (tokens == (LEAF,) or tokens == (("tuple", len(tokens) - 1), *(LEAF,) * (len(tokens) - 1)))
        and len(tokens) > 0
    )


def guards(places: Iterable[tuple[Place, Any]]) -> list[Guard] | None:
    """What native code looks at for these places and the objects to be found there.

    None where a step can't be looked at from native code: an item of a list, a property.
    """
    found: dict[tuple[int, Any], Guard] = {}
    for place, expected in places:
        value = place.root
        for kind, key in place.steps:
            if kind == "cell":
                where, key, value = value, None, value.cell_contents
            elif kind == "key" and isinstance(value, dict):
                where, value = value, value[key]
            elif kind == "key" and isinstance(value, tuple):
                value = value[key]
                continue
            elif kind == "field" and key in getattr(value, "__dict__", {}):
                where, value = value.__dict__, value.__dict__[key]
            elif kind == "field" and key in ("__defaults__", "__kwdefaults__"):
                value = getattr(value, key)
                continue
            else:
                return None
            if type(where) not in (dict, _CELL):
                return None
            found[id(where), key] = (where, key, value)
        if value is not expected:
            return None
    return list(found.values())


_CELL = type((lambda x: lambda: x)(0).__closure__[0])  # type: ignore[index]


def open_door(
    program: Program,
    slow: Callable[..., Any],
    captures: list[np.ndarray[Any, Any]],
    watched: list[Guard],
    packed: bool,
) -> Bound:
    """A native callable in front of `slow`."""
    return program.bind(slow, captures, watched, packed=packed)
