"""Tracing a function: run it once on traced arrays and finish the graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.errors import ConcreteError, TenfoldError
from tenfold.frozen import frozen
from tenfold.graph import Graph
from tenfold.trace import surface  # noqa: F401  fills the tables of NumPy's functions
from tenfold.trace.array import Array
from tenfold.trace.chance import by_no_chance
from tenfold.trace.containers import LEAF, Structure, flatten
from tenfold.trace.host.array import known
from tenfold.trace.operand import as_value, literal
from tenfold.trace.scope import Capture, Scope, Trace, opened
from tenfold.trace.source import Raw, blame, describe
from tenfold.trace.swap.swap import Variable, swapped
from tenfold.types import DType, TensorType


@frozen
class Leaf:
    """What tracing knows of one leaf of the arguments."""

    type: TensorType
    name: str = ""
    weak: Any = None  # int, float or complex for a Python number
    array: bool = True  # else a scalar, which is not updated in place but bound anew


@frozen
class FunctionTrace:
    """What tracing a function gave: the graph's parameters are the leaves, then the captures; its
    outputs are the results, then what became of the leaves that were updated in place. A result
    that is such a leaf, whole, is no output of its own: the caller's object is given back."""

    graph: Graph
    outputs: Structure
    weak: tuple[type | None, ...]  # which outputs are Python numbers
    captures: tuple[Capture, ...]  # in the order of the parameters
    callbacks: tuple[Callable[..., Any], ...]
    limits: tuple[tuple[int, DType], ...] = ()  # integer dtypes that Python integers must fit
    baked: tuple[Any, ...] = ()  # arrays whose values, not only types, shaped the graph
    updates: tuple[int, ...] = ()  # the leaves that were updated, in the order of the outputs
    returned: tuple[int | None, ...] = ()  # of each result: the updated leaf that it is, or None
    lines: tuple[Raw | None, ...] = ()  # of each update: where it happens first
    rebound: tuple[int, ...] = ()  # scalars that were bound anew, where arrays would be updated

    def check_limits(self, leaves: Sequence[Any]) -> None:
        """Raise as NumPy does when a Python integer does not fit the array it meets."""
        for position, dtype in self.limits:
            literal(leaves[position], dtype)

    def takes(self, leaves: Sequence[Any]) -> bool:
        """Whether these are scalars where the trace found scalars, and arrays where it found
        arrays, as far as that makes a difference."""
        return not any(isinstance(leaves[n], np.ndarray) for n in self.rebound) and not any(
            isinstance(leaves[n], np.generic) for n in self.updates
        )

    def results(
        self,
        outputs: Sequence[Any],
        leaves: Sequence[Any] = (),
        give: Callable[[Any], Any] | None = None,
    ) -> Any:
        """The graph's outputs as the function gives them: in its containers, arrays as `give`
        makes them (0-d ones as NumPy scalars), Python numbers as such, and updated leaves as the
        caller has them."""
        return results(self.outputs, self.weak, self.returned, outputs, leaves, give or scalar)


def results(
    structure: Structure,
    weak: Sequence[type | None],
    returned: Sequence[int | None],
    outputs: Sequence[Any],
    leaves: Sequence[Any],
    give: Callable[[Any], Any],
) -> Any:
    """The first outputs in their containers: Python numbers where they are weak, leaves that are
    returned whole among them."""
    own, made = iter(outputs), []
    for kind, leaf in zip(weak, returned, strict=True):
        if leaf is not None:
            made.append(leaves[leaf])
        else:
            made.append(kind(next(own).item()) if kind else give(next(own)))
    return structure.unflatten(made)


def scalar(array: Any) -> Any:
    """An array as NumPy gives results: a 0-d one is a scalar."""
    return array[()] if array.ndim == 0 else array


def trace_function(
    function: Callable[..., Any],
    leaves: Sequence[Leaf],
    call: Callable[[list[Array]], Any],
    names: Callable[[Any], str | None] = lambda array: None,
    variables: Sequence[Variable] = (),
) -> FunctionTrace:
    """Trace `call`, which calls the function with traced arrays for these leaves. `variables` are
    those it reads that hold constructors of NumPy's."""
    trace = Trace(names)
    scope = Scope(getattr(function, "__qualname__", repr(function)), None, trace)
    arguments = [
        Array(
            scope,
            scope.builder.parameter(leaf.type, leaf.name),
            weak=leaf.weak,
            argument=leaf.name if leaf.array else None,
        )
        for leaf in leaves
    ]
    parameters: list[int | TensorType] = [a._value for a in arguments]
    structure, found, values = swapped(lambda: _run(function, call, scope, arguments), variables)
    weak = tuple(_weak(item) for item in found)
    updates = tuple(n for n, a in enumerate(arguments) if a._value != parameters[n])
    leaves_of = {id(arguments[n]): n for n in updates}
    returned = tuple(leaves_of.get(id(item)) for item in found)
    outputs = [v for v, leaf in zip(values, returned, strict=True) if leaf is None]
    outputs += [arguments[n]._value for n in updates]
    captures = _in_use(trace.captures, scope, outputs)
    graph = scope.finish(outputs, [*parameters, *(c.value for c in captures)])
    limits = [
        (parameters.index(value), dtype)
        for value, dtypes in trace.limits.items()
        if value in parameters
        for dtype in dtypes
    ]
    return FunctionTrace(
        graph,
        structure,
        weak,
        tuple(captures),
        tuple(trace.callbacks),
        tuple(limits),
        tuple(trace.baked.values()),
        updates,
        returned,
        tuple(trace.updated.get(leaves[n].name) for n in updates),
        tuple(n for n, p in enumerate(parameters) if p in trace.rebound and not leaves[n].array),
    )


def _in_use(captures: list[Capture], scope: Scope, outputs: list[int]) -> list[Capture]:
    """The captures that count, by first use."""
    if not captures:
        return []
    order = {value: i for i, value in enumerate(scope.builder.used(outputs))}
    return sorted((c for c in captures if c.value in order), key=lambda c: order[c.value])


def _run(
    function: Callable[..., Any],
    call: Callable[[list[Array]], Any],
    scope: Scope,
    arguments: list[Array],
) -> tuple[Structure, list[Any], list[int]]:
    """What a call gives on traced arrays: its containers, their leaves, and the leaves' values."""
    with by_no_chance(scope.label, function), opened(scope), known(scope.trace):
        try:
            result = call(arguments)
        except TenfoldError as error:
            error.at(describe(blame(error)))
            raise
        except ValueError as error:  # NumPy's, of an array that took no traced value: ours says why
            if isinstance(error.__cause__, ConcreteError):
                raise error.__cause__.at(describe(blame(error))) from None
            raise
        try:
            structure, found = _outputs(*flatten(result))
            outputs = [as_value(item, scope) for item in found]
        except TenfoldError as error:
            error.where = f"{_place(function)} (in what it returns)"
            raise
        return structure, found, outputs


def _outputs(structure: Structure, found: Sequence[Any]) -> tuple[Structure, list[Any]]:
    """What a function returns, with the outputs that stand for each of its arrays."""
    items, tokens, outputs = iter(found), [], []
    for token in structure.tokens:
        leaves = []
        if token == LEAF:
            item = next(items)
            token, leaves = item._outputs() if isinstance(item, Array) else (LEAF, [item])
        tokens += [token, *[LEAF] * (len(leaves) if token != LEAF else 0)]
        outputs += leaves
    return Structure(tuple(tokens)), outputs


def _place(function: Any) -> str:
    """Where a function is written."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    name = getattr(function, "__qualname__", type(function).__name__)
    return f"{code.co_filename}:{code.co_firstlineno}, in {name}" if code else name


def _weak(item: Any) -> type | None:
    if isinstance(item, Array):
        return item._weak
    return type(item) if type(item) in (bool, int, float, complex) else None
