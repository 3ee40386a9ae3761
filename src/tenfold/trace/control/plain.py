"""Plain: control flow as Python runs it, on NumPy's arrays. It is what `tn.config.disable` has.

Branches and bodies are called with values, each time they are run: a debugger stops in them, and
`print` shows numbers. Results are what they give: nothing brings both branches, or all rounds, to
one dtype and shape. Where there are no rounds or lanes, and so no values, and for the function of a
`reduce_window`, they are traced even so. Hooks, prints, host calls and random numbers are as they
always are outside a trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.errors import TypeMismatch
from tenfold.trace.array import Array
from tenfold.trace.containers import flatten
from tenfold.trace.control.loop import pair

if TYPE_CHECKING:
    from collections.abc import Generator

Function = Callable[..., Any]


def own(given: Any) -> Any:
    """These containers with copies of the arrays in them, as NumPy's."""
    structure, leaves = flatten(given)
    copies = [np.array(a) if isinstance(a, (np.ndarray, Array)) else a for a in leaves]
    return structure.unflatten(copies)


def stacked(what: str, results: Sequence[Any], axes: Sequence[int | None] | None = None) -> Any:
    """Equal containers as one, their leaves stacked: along these axes, the first unless given. A
    leaf without an axis is that of the first."""
    found = [flatten(result) for result in results]
    first = found[0][0]
    if any(structure.key != first.key for structure, _ in found):
        raise TypeMismatch(f"{what}: what it gives differs in its containers from call to call")
    leaves = list(zip(*(leaves for _, leaves in found), strict=True))
    if axes is None:
        axes = [0] * len(leaves)
    pairs = zip(leaves, axes, strict=True)
    return first.unflatten([parts[0] if a is None else np.stack(parts, a) for parts, a in pairs])


def cond(pred: Any, true_fn: Function, false_fn: Function, operands: Any) -> Any:
    return (true_fn if pred else false_fn)(*own(operands))


def switch(index: Any, branches: Sequence[Function], operands: Any) -> Any:
    return branches[min(max(int(index), 0), len(branches) - 1)](*own(operands))


def while_loop(cond_fn: Function, body_fn: Function, init: Any) -> Any:
    state = own(init)
    while cond_fn(state):
        state = body_fn(state)
    return state


def fori_loop(lower: Any, upper: Any, body_fn: Function, init: Any) -> Any:
    state = own(init)
    for i in range(int(lower), int(upper)):
        state = body_fn(i, state)
    return state


def scan(what: str, f: Function, init: Any, xs: Any, rounds: int, reverse: bool) -> tuple[Any, Any]:
    """`rounds` is more than 0: else nothing says what f gives."""
    structure, leaves = flatten(xs)
    carry, ys = own(init), []
    order = range(rounds)[::-1] if reverse else range(rounds)
    for i in order:
        entries = structure.unflatten([leaf[i] for leaf in leaves])
        carry, y = pair(what, f(carry, own(entries)))
        ys.append(own(y))
    return carry, stacked(what, ys[::-1] if reverse else ys)


def reduce(f: Function, x: Any, init: Any, axes: tuple[int, ...]) -> Any:
    array = np.asarray(x)
    dtype = np.result_type(array, init)
    array = np.moveaxis(array.astype(dtype), axes, range(len(axes)))
    rows = array.reshape(-1, *array.shape[len(axes) :])
    made = np.empty(rows.shape[1:], dtype)
    for place in np.ndindex(made.shape):
        found = np.asarray(init, dtype)[()]
        for value in rows[(slice(None), *place)]:
            found = f(found, value)
        made[place] = found
    return made[()]


# Hooks that a call replaces.

_hooks: ContextVar[Mapping[str, Any]] = ContextVar("hooks", default={})  # noqa: B039  never changed


@contextmanager
def replacing(hooks: Mapping[str, Any]) -> Generator[None]:
    """Have hooks of these names call these functions."""
    before = _hooks.set(hooks)
    try:
        yield
    finally:
        _hooks.reset(before)


def replaced(name: str, function: Function | None) -> Function | None:
    """What the hook of this name calls."""
    found: Function | None = _hooks.get().get(name, function)
    return found
