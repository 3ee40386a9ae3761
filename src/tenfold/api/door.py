"""The door of a jitted function: calls that need no Python go straight to native code.

A flat call of NumPy arrays whose types and captures are those of a plan is answered by the
plan's native entry. What its guards turn away goes to the next door behind it, and last to
Python, which binds, looks up or traces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from inspect import Signature
from typing import Any

import numpy as np

from tenfold.api.arguments import Call
from tenfold.api.captures import Place
from tenfold.api.unpack import decline, unpacker
from tenfold.backends.cpu.bind import Guard
from tenfold.execute import Program
from tenfold.trace.containers import LEAF
from tenfold.trace.function import Traced

DOORS = 4  # how many stand one behind another


def is_flat(call: Call, traced: Traced, names: tuple[str, ...]) -> bool:
    """Whether calls like this one are arrays in, arrays out, all by position."""
    count = len(call.leaves)
    tokens = traced.outputs.tokens
    tuple_of_arrays = (("tuple", len(tokens) - 1), *(LEAF,) * (len(tokens) - 1))
    return (
        not call.statics
        and not traced.graph.effects
        and call.names == names[: len(call.names)]
        and call.structure.tokens == (("tuple", count), *(LEAF,) * count)
        and all(isinstance(leaf, (np.ndarray, np.generic)) for leaf in call.leaves)
        and not any(traced.weak)
        and tokens in ((LEAF,), tuple_of_arrays)
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


class Door:
    """A program with its captures bound, answering calls that its guards let through."""

    def __init__(
        self,
        program: Program,
        captures: list[np.ndarray[Any, Any]],
        watched: list[Guard],
        call: Call,
        traced: Traced,
        signature: Signature,
    ) -> None:
        self.program = program
        self.captures = captures
        self.watched = watched
        self.call = replace(call, leaves=[_example(leaf) for leaf in call.leaves])
        self.traced = traced
        self.signature = signature

    def still(self, captures: list[np.ndarray[Any, Any]], watched: list[Guard]) -> bool:
        """Whether these are the captures and guards that it is bound to."""
        return (
            len(watched) == len(self.watched)
            and all(a is b for a, b in zip(captures, self.captures, strict=True))
            and all(
                all(x is y for x, y in zip(a, b, strict=True))
                for a, b in zip(watched, self.watched, strict=True)
            )
        )

    def before(self, slow: Callable[..., Any]) -> Callable[..., Any]:
        """A callable that goes on to `slow` with what it does not take."""
        bind, traced = self.program.bind, self.traced
        if is_flat(self.call, traced, tuple(self.signature.parameters)):
            packed = traced.outputs.tokens != (LEAF,)
            return bind(slow, self.captures, self.watched, packed=packed).call
        native = bind(decline, self.captures, self.watched, packed=True).call
        return unpacker(self.signature, self.call, traced, native, slow)


def _example(leaf: Any) -> Any:
    """A leaf of the same kind that holds no memory of the caller's."""
    return leaf if type(leaf) in (bool, int, float, complex) else np.float64()
