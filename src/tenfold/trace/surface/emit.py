"""Emit: adding nodes whose inputs are traced arrays, and filing what NumPy's functions do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from tenfold.errors import (
    AxisError,
    ConcreteError,
    ShapeError,
    TenfoldError,
    TypeMismatch,
    Unsupported,
)
from tenfold.graph import Attributes
from tenfold.trace.array import Array
from tenfold.trace.host.value import HOST
from tenfold.trace.lazy.lazy import LAZY
from tenfold.trace.operand import as_value, scope_of, value_of
from tenfold.trace.scope import local
from tenfold.trace.source import describe, here
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import DType, as_dtype

# What an argument is that was not given.
ABSENT: Any = np._NoValue

F = TypeVar("F", bound=Callable[..., Any])


def on(*functions: Any) -> Callable[[F], F]:
    """File an implementation as what these NumPy functions do on traced arrays."""

    def file(implementation: F) -> F:
        for function in functions:
            FUNCTIONS[function] = implementation
        if implementation.__name__ == "apply":  # made by a function: errors should say which it is
            implementation.__name__ = implementation.__qualname__ = functions[0].__name__
        return implementation

    return file


def emit(op: str, *inputs: Array, **attributes: Any) -> Array:
    """The first value of a node on these arrays."""
    scope = local.scope or LAZY
    values = [
        x._value if x._scope is scope and x._view is None else value_of(x, scope) for x in inputs
    ]
    return Array(scope, scope.node(op, values, attributes)[0])


def emit_normal(op: str, attributes: Attributes, *inputs: Array) -> Array:
    """The first value of a node whose attributes are in their one form and in order already."""
    scope = local.scope or LAZY
    values = [
        x._value if x._scope is scope and x._view is None else value_of(x, scope) for x in inputs
    ]
    return Array(scope, scope.node(op, values, attributes)[0])


def emit_all(op: str, *inputs: Array, **attributes: Any) -> tuple[Array, ...]:
    """All values of a node on these arrays."""
    scope = scope_of(*inputs)
    values = [value_of(x, scope) for x in inputs]
    return tuple(Array(scope, v) for v in scope.node(op, values, attributes))


def traced(operand: Any, dtype: DType | None = None) -> Array:
    """Any operand as a traced array, cast to the dtype if one is given."""
    if type(operand) is Array and (dtype is None or operand.dtype == dtype):
        return operand
    known = isinstance(operand, Array) and operand._scope is HOST
    if isinstance(operand, Array) and not known and (dtype is None or operand.dtype == dtype):
        return operand
    scope = scope_of(operand)
    made = Array(scope, as_value(operand, scope, dtype))
    # What is written to it, or to a view of it, the array would not see.
    made._readonly = known or (isinstance(operand, np.ndarray) and scope.traced)
    return made


def plain(operand: Any) -> Any:
    """An array that is known while tracing as NumPy's; anything else as it is."""
    return np.array(operand) if isinstance(operand, Array) and operand._scope is HOST else operand


def is_array(operand: Any) -> bool:
    """Whether an operand is an array or a number, and no sequence of these."""
    return isinstance(operand, (Array, np.ndarray, np.generic, bool, int, float, complex))


def dtype_of(dtype: Any) -> DType:
    """The dtype meant by a name, a NumPy type or a Python type; an error names the user's line."""
    try:
        return as_dtype(dtype)
    except Unsupported as error:
        raise error.at(describe(here())) from None


def cast(x: Array, dtype: Any) -> Array:
    """An array in another dtype; itself if it has that dtype."""
    own = x.dtype
    if own is dtype:
        return x
    wanted = dtype_of(dtype)
    return x if own == wanted else emit("cast", x, dtype=wanted)


def update(x: Array, made: Array) -> None:
    """Move an array to the value of another of its type."""
    x._update(value_of(made, scope_of()))


def fail(kind: type[TenfoldError], message: str, fix: str | None = None) -> NoReturn:
    """Raise an error at the user's line."""
    raise kind(message, where=describe(here()), fix=fix)


def static_int(value: Any, what: str) -> int:
    """An integer known while tracing."""
    if is_traced(value):
        fail(
            ConcreteError,
            f"{what} is a traced value, which only a running program has",
            "give it a Python integer, or make the argument static: tn.jit(f, static=…)",
        )
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        fail(TypeMismatch, f"{what} has to be an integer, not {type(value).__name__}")


def axis_of(axis: Any, rank: int) -> int:
    """An axis counted from the front."""
    if type(axis) is int and -rank <= axis < rank:
        return axis % rank
    number = static_int(axis, "an axis")
    if not -rank <= number < rank:
        fail(
            AxisError,
            f"axis {number} of an array with {rank} axes",
            f"give an axis from {-rank} to {rank - 1}" if rank else "a 0-d array has no axes",
        )
    return number % rank


def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes meant by None (all), a number or several, counted from the front."""
    if axis is None:
        return tuple(range(rank))
    if isinstance(axis, (tuple, list)):
        axes = tuple([axis_of(a, rank) for a in axis])
        if len(axes) > 1 and len(set(axes)) != len(axes):
            fail(ShapeError, f"axis {tuple(axis)} names an axis twice", "name each axis once")
        return axes
    return (axis_of(axis, rank),)


def is_traced(operand: Any) -> bool:
    """Whether this is an array whose value only a running program has."""
    return isinstance(operand, Array) and operand._scope.traced


def shape_of(shape: Any, what: str = "an extent of the shape") -> tuple[int, ...]:
    """A shape given as one number or several."""
    if isinstance(shape, Array) and not is_traced(shape) and shape.ndim == 1:
        shape = shape.tolist()
    if isinstance(shape, Array) or not isinstance(shape, (Sequence, np.ndarray)):
        return (static_int(shape, what),)
    return tuple([n if type(n) is int else static_int(n, what) for n in shape])
