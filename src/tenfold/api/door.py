"""The door of a jitted function: calls that need no Python go straight to native code.

A flat call of NumPy arrays whose types and captures are those of a plan is answered by the
plan's native entry. What its guards turn away goes to the next door behind it, and last to
Python, which binds, looks up or traces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from inspect import Parameter, Signature
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
_EITHER = Parameter.POSITIONAL_OR_KEYWORD

Tokens = tuple[Any, ...]


def is_flat(call: Call, traced: Traced, signature: Signature) -> bool:
    """Whether calls like this one are arrays in, arrays out, all by position."""
    tokens = traced.outputs.tokens
    return (
        not call.statics
        and not traced.graph.effects
        and call.structure.tokens == _by_position(call, signature)
        and all(isinstance(leaf, (np.ndarray, np.generic)) for leaf in call.leaves)
        and not any(traced.weak)
        and tokens in ((LEAF,), _tuple_of(len(tokens) - 1))
    )


def _by_position(call: Call, signature: Signature) -> Tokens | None:
    """How a call looks whose leaves are just its positional arguments; None where that can't be."""
    given = list(signature.parameters.values())[: len(call.names)]
    if call.names != tuple(p.name for p in given):
        return None
    kinds, count = [p.kind for p in given], len(call.leaves)
    if kinds and kinds[-1] is Parameter.VAR_POSITIONAL:
        before = len(given) - 1
        rest = _tuple_of(count - before)
        return (("tuple", len(given)), *(LEAF,) * before, *rest) if before <= count else None
    if not set(kinds) <= {Parameter.POSITIONAL_ONLY, _EITHER}:
        return None
    return _tuple_of(count)


def _tuple_of(count: int) -> Tokens:
    return (("tuple", count), *(LEAF,) * count)


def by_name(
    signature: Signature, jitted: Callable[..., Any], slow: Callable[..., Any]
) -> Callable[..., Any]:
    """What stands behind all doors: calls with keywords that could be given by position go in
    again that way, for native code takes no keywords; all others go to `slow`."""
    names = ["" if p.kind is not _EITHER else p.name for p in signature.parameters.values()]

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            first = len(args)
            rest = [kwargs[n] for n in names[first : first + len(kwargs)] if n in kwargs]
            if len(rest) == len(kwargs):
                return jitted(*args, *rest)
        return slow(*args, **kwargs)

    return call


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
        if is_flat(self.call, traced, self.signature):
            packed = traced.outputs.tokens != (LEAF,)
            return bind(slow, self.captures, self.watched, packed=packed).call
        native = bind(decline, self.captures, self.watched, packed=True).call
        return unpacker(self.signature, self.call, traced, native, slow)


def _example(leaf: Any) -> Any:
    """A leaf of the same kind that holds no memory of the caller's."""
    return leaf if type(leaf) in (bool, int, float, complex) else np.float64()
