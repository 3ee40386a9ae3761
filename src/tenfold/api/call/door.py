"""The door of a jitted function: calls that need no Python go straight to native code.

A flat call of NumPy arrays whose types and captures are those of a plan is answered by the
plan's native entry. What its guards turn away goes on to what stands behind it (`doors`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from tenfold.api.call.arguments import Call
from tenfold.api.call.unpack import SCALARS, can_unpack
from tenfold.backends.guard import Guard, holds
from tenfold.backends.program import Program
from tenfold.trace.containers import LEAF
from tenfold.trace.exact import exact
from tenfold.trace.function import Traced

_EITHER = Parameter.POSITIONAL_OR_KEYWORD

Tokens = tuple[Any, ...]
Types = tuple[tuple[Any, tuple[int, ...]] | None, ...]


def is_flat(call: Call, traced: Traced, signature: Signature) -> bool:
    """Whether calls like this one are arrays in, arrays out, all by position."""
    tokens = traced.outputs.tokens
    return (
        not call.statics
        and not traced.graph.effects
        and call.structure.tokens == _by_position(call, signature)
        and all(isinstance(leaf, (np.ndarray, np.generic)) for leaf in call.leaves)
        and not any(traced.weak)
        and not traced.updates
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


class Door:
    """A program with its captures bound, answering calls that its guards let through.

    `watched` is None where native code can't look: then Python looks first, and there are no
    guards. `types` are those of a call's leaves, None where its leaves can't be taken out quickly;
    doors that are `alike` differ in these alone.
    """

    def __init__(
        self,
        program: Program,
        captures: list[np.ndarray[Any, Any]],
        watched: list[Guard] | None,
        call: Call,
        traced: Traced,
        signature: Signature,
        apart: Sequence[tuple[int, Any]] = (),
    ) -> None:
        """`apart`: leaves that are written into, with captured arrays that they must not be."""
        self.program = program
        self.apart = apart
        self.captures = captures
        self.watched = watched
        self.call = replace(call, leaves=[_example(leaf) for leaf in call.leaves])
        self.traced = traced
        self.signature = signature
        self.flat = is_flat(call, traced, signature) and not apart
        quick = self.flat or can_unpack(signature, call, traced)
        self.types: Types | None = tuple(map(_type_of, call.leaves)) if quick else None
        numbers = tuple(type(leaf) if type(leaf) in SCALARS else None for leaf in call.leaves)
        statics = tuple([(name, exact(value)) for name, _, value in call.statics])
        takes = (call.names, call.structure.key, statics, numbers)
        others = tuple((n, id(array)) for n, array in apart)
        self.alike = (self.flat, takes, traced.outputs, traced.weak, traced.updates, others)

    def has(self, captures: list[np.ndarray[Any, Any]]) -> bool:
        """Whether these are the captures that it is bound to."""
        return all(a is b for a, b in zip(captures, self.captures, strict=True))

    def lets_through(self, captures: list[np.ndarray[Any, Any]]) -> bool:
        """Whether its guards hold now: an equal setting may stand where another stood."""
        return all(map(holds, self.watched or ())) and self.has(captures)

    def still(self, captures: list[np.ndarray[Any, Any]], watched: list[Guard] | None) -> bool:
        """Whether these are the captures and guards that it is bound to."""
        if watched is None or self.watched is None:
            return watched is self.watched and self.has(captures)
        return (
            len(watched) == len(self.watched)
            and self.has(captures)
            and all(
                all(x is y for x, y in zip(a, b, strict=True))
                for a, b in zip(watched, self.watched, strict=True)
            )
        )

    def native(self, slow: Callable[..., Any]) -> Callable[..., Any]:
        """A callable over leaves, which goes on to `slow` with those it does not take."""
        packed = not self.flat or self.traced.outputs.tokens != (LEAF,)
        return self.program.bind(slow, self.captures, self.watched or (), packed=packed).call


def _type_of(leaf: Any) -> tuple[Any, tuple[int, ...]]:
    kind = SCALARS.get(type(leaf))
    return (leaf.dtype, leaf.shape) if kind is None else (np.dtype(kind), ())


def _example(leaf: Any) -> Any:
    """A leaf of the same kind that holds no memory of the caller's."""
    return leaf if type(leaf) in (bool, int, float, complex) else np.float64()
