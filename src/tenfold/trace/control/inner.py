"""Inner functions: branches and bodies, traced in scopes of their own and closed.

An inner function is traced on its own arguments; what it uses from outside, its scope captures.
The scopes of one node all take the same captures, those that any of them reads, ordered by
first use, so they are finished together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from tenfold.errors import TraceError, TypeMismatch
from tenfold.frozen import mutable
from tenfold.graph import Graph
from tenfold.trace.array import Array
from tenfold.trace.containers import Structure, flatten
from tenfold.trace.operand import as_value
from tenfold.trace.scope import Scope, current, opened
from tenfold.trace.source import describe, here
from tenfold.types import TensorType

DEEPEST = 1000  # how deep scopes may nest
_EVERY, _FRAMES = 16, 48  # so often more room is made, and for so many Python frames a scope


@mutable
class Inner:
    """An inner function that was traced and whose graph is not finished yet."""

    scope: Scope
    parameters: list[int]  # its own, without captures
    structure: Structure  # of what it returned
    leaves: list[Any]
    outputs: list[int] = field(default_factory=list)

    def give(self, leaf: Any, type: TensorType) -> None:
        """Make this leaf the next output, cast and broadcast to the type."""
        value = as_value(leaf, self.scope, type.dtype)
        if self.scope.builder.types[value].shape != type.shape:
            (value,) = self.scope.node("broadcast", (value,), {"shape": type.shape})
        self.outputs.append(value)

    def captures(self) -> list[int]:
        """The values of the outer scope that count here, by first use in canonical order."""
        outer = {inner: value for value, inner in self.scope.captures.items()}
        return [outer[v] for v in self.scope.builder.used(self.outputs) if v in outer]

    def close(self, captures: Sequence[int], last: bool = False) -> Graph:
        """The graph, its parameters being these captures and then its own, or `last` the other
        way round."""
        assert self.scope.parent is not None
        types = self.scope.parent.builder.types
        taken = [self.scope.captures.get(value, types[value]) for value in captures]
        parameters = [*self.parameters, *taken] if last else [*taken, *self.parameters]
        graph = self.scope.finish(self.outputs, parameters)
        _ = graph.digest  # taken now, so that it never has to be taken through many scopes
        return graph


def trace_inner(what: str, function: Callable[[Scope], Any]) -> Inner:
    """Trace a function in a new scope inside the current one; it is called with that scope."""
    parent = current()
    assert parent is not None
    scope = Scope(what, parent)
    with _room(scope), opened(scope):
        result = function(scope)
        structure, leaves = flatten(result)
        for leaf in leaves:
            if isinstance(leaf, Array):
                leaf._follow()
    captured = set(scope.captures.values())
    own = [value for value in scope.builder.parameters if value not in captured]
    return Inner(scope, own, structure, leaves)


@contextmanager
def _room(scope: Scope) -> Generator[None]:
    """Room on Python's stack for scopes that nest deeply, and an end for those without one."""
    depth = len(scope.chain(None))
    if depth > DEEPEST:
        raise TraceError(
            f"{scope.label}: branches and bodies nest more than {DEEPEST} deep",
            where=describe(here()),
            fix="a function that calls itself in a branch is traced without end, since every "
            "branch is traced: write it with tn.while_loop",
        )
    if depth % _EVERY:
        yield
        return
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + _EVERY * _FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def shared(inners: Sequence[Inner]) -> list[int]:
    """The captures of all these, each once, inner after inner."""
    return list(dict.fromkeys(value for inner in inners for value in inner.captures()))


def called(what: str, name: str, function: Any) -> None:
    """TypeMismatch unless this is a function."""
    if not callable(function):
        raise TypeMismatch(
            f"{what}: {name} is {kind_of(function)}, not a function",
            where=describe(here()),
            fix="wrap what it gives: lambda *args: value",
        )


def label(what: str, function: Any) -> str:
    """How a scope is named in messages: 'scan of step'."""
    name = getattr(function, "__qualname__", "").rpartition("<locals>.")[2]
    return f"{what} of {name}" if name else what


def kind_of(item: Any) -> str:
    """What something is, in the words of a message."""
    if isinstance(item, Array):
        return str(item.type)
    if item is None:
        return "None"
    name = type(item).__name__
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"
