"""Scopes: the graphs that are open while a function is traced.

The stack of open scopes belongs to a thread. Every graph is closed: an array of an outer scope
that is used in an inner one becomes a parameter of the inner one, and of each between.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from functools import lru_cache, wraps
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from tenfold.config import config
from tenfold.errors import ScopeError, TenfoldError
from tenfold.frames import hide
from tenfold.frozen import mutable
from tenfold.graph import Attributes, Builder, Graph
from tenfold.ops import TABLE
from tenfold.trace.source import Raw, caller, describe, here, locate
from tenfold.types import DType, Shape, TensorType, as_dtype

F = TypeVar("F", bound=Callable[..., Any])

CONSTANT_SIZE = 16  # arrays up to this size, made while tracing, are constants


@mutable
class Capture:
    """An array from outside the function that became an input of its graph."""

    name: str
    array: np.ndarray[Any, Any]
    value: int
    origin: Any = None  # the lazy array it comes from


@mutable
class Trace:
    """What all the scopes of one trace share."""

    names: Callable[[Any], str | None] = lambda array: None
    captures: list[Capture] = field(default_factory=list)
    captured: dict[int, Capture] = field(default_factory=dict)  # by id of the array
    callbacks: list[Callable[..., Any]] = field(default_factory=list)  # defaults, by number
    numbers: dict[int, int] = field(default_factory=dict)  # of callbacks, by id
    limits: dict[int, set[DType]] = field(default_factory=dict)  # dtypes a weak integer takes
    baked: dict[int, Any] = field(default_factory=dict)  # arrays whose values shaped the graph
    updated: dict[str, Raw | None] = field(default_factory=dict)  # arguments, with the first line
    rebound: set[int] = field(default_factory=set)  # scalars, where arrays would be updated
    # arrays made inside whose values are known, as long as they live
    known: WeakValueDictionary[int, Any] = field(default_factory=WeakValueDictionary)

    def number(self, callback: Callable[..., Any]) -> int:
        """The number of a callable among those of this trace."""
        number = self.numbers.setdefault(id(callback), len(self.callbacks))
        if number == len(self.callbacks):
            self.callbacks.append(callback)
        return number

    def forget(self, known: int) -> None:
        """Let go of the callables beyond these: what named them is traced anew."""
        for callback in self.callbacks[known:]:
            del self.numbers[id(callback)]
        del self.callbacks[known:]


@mutable
class Handle:
    """Where an array stood before a scope inside its own took it over."""

    array: Any
    scope: Scope
    value: Any
    version: int
    seen: int
    inside: int  # the value that it began with inside

    @staticmethod
    def take(array: Any, scope: Scope, inside: int) -> Handle:
        """Move an array into a scope, where it has this value."""
        handle = Handle(array, array._scope, array._value, array._version, array._seen, inside)
        array._scope, array._value = scope, inside
        return handle

    def restore(self) -> None:
        array = self.array
        array._scope, array._value = self.scope, self.value
        array._version, array._seen = self.version, self.seen


def constant_attributes(array: np.ndarray[Any, Any]) -> Attributes:
    """The attributes of a constant with this array's bits."""
    form = _scalar_form if array.ndim == 0 else _constant_form
    return form(array.tobytes(), array.dtype, array.shape)


def _constant_form(data: bytes, dtype: DType, shape: Shape) -> Attributes:
    return TABLE["constant"].normalise({"data": data, "type": TensorType(dtype, shape)})


_scalar_form = lru_cache(4096)(_constant_form)  # a program has the same few at all sizes


class Scope:
    """One open graph."""

    traced = True  # its arrays have values only in a running program

    def __init__(self, label: str, parent: Scope | None = None, trace: Trace | None = None) -> None:
        self.label = label
        self.parent = parent
        self.trace: Trace = trace or (parent.trace if parent else Trace())
        self.builder = Builder(TABLE)
        self.open = True
        self.at: Raw | None = None  # the user's place in the call under way, where one is known
        self.captures: dict[int, int] = {}  # value of the parent -> parameter here
        self.literals: dict[Any, int] = {}  # constants of Python numbers
        # Arrays of outer scopes that were updated in this one, by id; None: that is an error.
        self.taken_over: dict[int, Handle] | None = None
        # How many references to an array, by id, are there while nobody else holds it.
        self.references: dict[int, int] = {}

    def capture(self, outer: int) -> int:
        """The parameter that stands here for a value of the parent."""
        inner = self.captures.get(outer)
        if inner is None:
            assert self.parent is not None
            builder = self.parent.builder
            inner = self.builder.parameter(builder.types[outer], builder.names.get(outer, ""))
            self.captures[outer] = inner
        return inner

    def take_over(self, array: Any) -> bool:
        """Have an array of an outer scope updated here, if this scope hands on what becomes of
        it."""
        chain = self.chain(array._scope)
        if self.taken_over is None or not chain or chain[-1].parent is not array._scope:
            return False
        inside = self.carry_in(array._value, chain)
        self.taken_over[id(array)] = Handle.take(array, self, inside)
        return True

    def node(
        self,
        op: str,
        inputs: Sequence[int] = (),
        attributes: Mapping[str, Any] | Attributes | None = None,
        scopes: Sequence[Graph] = (),
    ) -> tuple[int, ...]:
        """Add a node at the user's line; an error of its types names that line."""
        raw = self.at or here(2)
        try:
            return self.builder.node(op, inputs, attributes, scopes, raw)
        except TenfoldError as error:
            error.at(describe(raw))
            raise

    def constant(self, array: np.ndarray[Any, Any]) -> int:
        """The value of a constant with this array's bits."""
        return self.node("constant", (), constant_attributes(array))[0]

    def foreign(self, array: np.ndarray[Any, Any], origin: Any = None) -> int:
        """The value that stands for an array from outside the trace, or for the array of a lazy
        one, its origin."""
        key = id(array if origin is None else origin)
        found = self.trace.captured.get(key)
        if found is None:
            name = self.trace.names(array if origin is None else origin)
            dtype = as_dtype(array.dtype)
            if name is None and array.size <= CONSTANT_SIZE:
                return self.constant(np.ascontiguousarray(array, dtype).reshape(array.shape))
            root = self.chain(None)[-1]
            name = name or f"made.{len(self.trace.captures)}"
            value = root.builder.parameter(TensorType(dtype, array.shape), name)
            found = Capture(name, array, value, origin)
            self.trace.captures.append(found)
            self.trace.captured[key] = found
        chain = self.chain(None)
        return self.carry_in(found.value, chain[:-1])

    def chain(self, outer: Scope | None) -> list[Scope]:
        """This scope and those around it, up to the outer one (left out) or the root."""
        scopes: list[Scope] = []
        scope: Scope | None = self
        while scope is not None and scope is not outer:
            scopes.append(scope)
            scope = scope.parent
        return scopes

    def carry_in(self, value: int, chain: Sequence[Scope]) -> int:
        """A value of the scope around this chain, captured through each scope of the chain."""
        for scope in reversed(chain):
            value = scope.capture(value)
        return value

    def finish(self, outputs: Sequence[int], parameters: Sequence[int | TensorType]) -> Graph:
        return self.builder.finish(outputs, parameters, locate)

    def holds(self, scope: Scope) -> bool:
        """Whether that scope is this one or around it."""
        at: Scope | None = self
        while at is not None and at is not scope:
            at = at.parent
        return at is scope


class _Local(threading.local):
    scope: Scope | None = None


local = _Local()  # of this thread


def current() -> Scope | None:
    """The innermost open scope of this thread."""
    return local.scope


def is_plain() -> bool:
    """Whether functions run as they are written now (`trace/control/plain`)."""
    return config.disable and local.scope is None


def placed(function: F) -> F:
    """This function, which users call: its nodes have the user's line, and what it raises has the
    user's frames alone."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        scope = local.scope
        if scope is not None:
            before = scope.at
            scope.at = caller(before)
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            hide(error)
            raise
        finally:
            if scope is not None:
                scope.at = before

    return call  # type: ignore[return-value]


@contextmanager
def opened(scope: Scope) -> Generator[Scope]:
    """Make this the innermost scope; it is closed for good at the end."""
    before = local.scope
    local.scope = scope
    try:
        yield scope
    finally:
        scope.open = False
        local.scope = before


@contextmanager
def inside(scope: Scope | None) -> Generator[None]:
    """Make an open scope the innermost for a while."""
    before, local.scope = local.scope, scope
    try:
        yield
    finally:
        local.scope = before


def outside() -> AbstractContextManager[None]:
    """Run host code (a callback) with no scope open."""
    return inside(None)


def leak(array: Any, scope: Scope | None) -> ScopeError:
    """The error of a traced array used where its scope is not open."""
    home: Scope = array._scope
    made = describe(home.builder.source(array._value)) or f"as an argument of {home.label}"
    used = describe(here())
    if home.open and scope is not None:
        reason = f"it belongs to {home.label}, which is being traced apart from {scope.label}"
    else:
        reason = f"it belongs to the trace of {home.label}, which is over"
    return ScopeError(
        f"a traced array leaked: {reason}\n  made at {made}",
        where=f"{used} (where it is used)" if used else None,
        fix="return it from the function that made it instead of keeping it elsewhere",
    )
