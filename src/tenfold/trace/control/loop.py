"""Loops: bodies traced until their state keeps its types, and the nodes made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.containers import flatten, matched
from tenfold.trace.control.agree import LoopState, form
from tenfold.trace.control.inner import Inner, kind_of, shared, trace_inner
from tenfold.trace.operand import as_value
from tenfold.trace.scope import Scope, current
from tenfold.trace.source import describe, here
from tenfold.types import BOOL, TensorType, as_dtype

Function = Callable[..., Any]


def settle(
    what: str, state: LoopState, trace: Callable[[LoopState], Inner]
) -> tuple[LoopState, Inner]:
    """Trace a body until its state keeps its types: a Python number that the state starts from
    may take another dtype by what the body gives, and then the body is traced anew."""
    scope = current()
    assert scope is not None
    known = len(scope.trace.callbacks)
    while True:
        body = trace(state)
        leaves = matched(state.structure, body.structure, body.leaves)
        if leaves is not None:  # dicts come in the order they went in
            body.structure, body.leaves = state.structure, leaves
        after = state.after(what, body.structure, body.leaves)
        if after.forms == state.forms:
            for leaf, wanted in zip(body.leaves, state.forms, strict=True):
                body.give(leaf, wanted.type)
            return state, body
        scope.trace.forget(known)
        state = after


def start(state: LoopState, scope: Scope) -> list[int]:
    """The values that a loop's state starts from."""
    return [
        as_value(leaf, scope, wanted.type.dtype)
        for leaf, wanted in zip(state.leaves, state.forms, strict=True)
    ]


def finished(state: LoopState, scope: Scope, values: Sequence[int]) -> Any:
    """The state after the loop."""
    count = len(state.forms)
    return state.structure.unflatten(
        [Array(scope, v, weak=f.weak) for v, f in zip(values[:count], state.forms, strict=True)]
    )


def while_node(state: LoopState, body: Inner, condition: Inner) -> tuple[int, ...]:
    """The values of a while with this body and this condition, both traced for the state."""
    scope = current()
    assert scope is not None
    condition.give(condition.leaves[0], TensorType(BOOL, ()))
    captures = shared((condition, body))
    graphs = [condition.close(captures), body.close(captures)]
    inputs = (*captures, *start(state, scope))
    return scope.node("while", inputs, {"captures": len(captures)}, graphs)


def scan_node(
    what: str,
    f: Function,
    state: LoopState,
    xs: Any,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[LoopState, tuple[int, ...], Any]:
    """The state, the node's values and the structure of the ys."""
    scope = current()
    assert scope is not None
    structure, leaves = flatten(xs)
    stacked = [as_value(leaf, scope) for leaf in leaves]
    types = [scope.builder.types[value] for value in stacked]
    length = _rounds(what, structure.paths("xs"), types, length)
    ys: list[Any] = []

    def trace(state: LoopState) -> Inner:
        def call(inner: Scope) -> Any:
            carry = state.arguments(inner)
            slices = [
                Array(inner, inner.builder.parameter(TensorType(t.dtype, t.shape[1:])))
                for t in types
            ]
            carry, y = pair(what, f(carry, structure.unflatten(slices)))
            ys[:] = flatten(y)
            return carry

        return trace_inner(what, call)

    state, body = settle(what, state, trace)
    for leaf in ys[1]:
        body.give(leaf, form(leaf).type)
    captures = shared((body,))
    attributes = {
        "captures": len(captures),
        "carries": len(state.forms),
        "length": length,
        "reverse": bool(reverse),
        "unroll": unroll,
    }
    inputs = (*captures, *start(state, scope), *stacked)
    return state, scope.node("scan", inputs, attributes, [body.close(captures)]), ys[0]


def pair(what: str, result: Any) -> Any:
    """What the function of a scan gave: a carry and a y."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeMismatch(
            f"{what}: f returned {kind_of(result)}, not a pair (carry, y)",
            where=describe(here()),
            fix="return carry, y; where there is nothing to stack return carry, None",
        )
    return result


def rounds_of(what: str, xs: Any, length: int | None = None) -> int:
    """How many rounds a scan along arrays has."""
    structure, leaves = flatten(xs)
    types = [TensorType(as_dtype(a.dtype), a.shape) for a in map(np.asarray, leaves)]
    return _rounds(what, structure.paths("xs"), types, length)


def _rounds(what: str, paths: Sequence[str], types: Sequence[TensorType], given: int | None) -> int:
    """How many rounds: the extent of the first axis of every stacked input."""
    extents = {}
    for path, type in zip(paths, types, strict=True):
        if not type.shape:
            raise ShapeError(
                f"{what}: {path} is a scalar {type}; it goes along the first axis of arrays",
                where=describe(here()),
                fix="stack the entries into one array: np.array([...])",
            )
        extents[path] = type.shape[0]
    if given is not None:
        if not isinstance(given, (int, np.integer)) or given < 0:
            raise ValueProblem(
                f"{what}: length is {given!r}",
                where=describe(here()),
                fix="give the number of rounds, 0 or more",
            )
        extents["length"] = int(given)
    if not extents:
        raise ValueProblem(
            f"{what}: neither xs nor length says how many rounds",
            where=describe(here()),
            fix="pass xs with a first axis, or length=n",
        )
    if len(set(extents.values())) > 1:
        said = ", ".join(f"{path}: {extent}" for path, extent in extents.items())
        raise ShapeError(
            f"{what}: the first axes differ ({said})",
            where=describe(here()),
            fix="give every part of xs the same first axis",
        )
    return next(iter(extents.values()))


def bound(name: str, bound: Any) -> Any:
    """A loop bound: an int where it is known now, else a traced integer scalar."""
    if isinstance(bound, (int, np.integer)):
        return int(bound)
    if isinstance(bound, np.ndarray) and not bound.shape and bound.dtype.kind in "iub":
        return int(bound)
    if isinstance(bound, Array) and not bound.shape and bound.type.kind in "biu":
        return bound
    raise TypeMismatch(
        f"fori_loop: {name} is {kind_of(bound)}, not an integer scalar",
        where=describe(here()),
        fix="give a Python integer or an integer scalar, cast with .astype(int)",
    )
