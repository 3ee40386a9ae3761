"""Operands: how Python numbers, NumPy arrays and traced arrays become values of a graph."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tenfold.errors import OverflowProblem, TypeMismatch, Unsupported, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.host.value import HOST
from tenfold.trace.lazy.lazy import LAZY
from tenfold.trace.lazy.realise import realised
from tenfold.trace.scope import Scope, leak, local
from tenfold.trace.source import describe, here
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import DTYPES, KIND, DType, as_dtype, base_array

PYTHON = {bool: DTYPES["bool"], int: DTYPES["i64"], float: DTYPES["f64"], complex: DTYPES["c128"]}


_BASES: tuple[type, ...] = (int, float, complex)


def _known(array: Any) -> DType:
    """The dtype of a plain array or NumPy scalar, if Tenfold has it."""
    try:
        return as_dtype(_checked(array).dtype)
    except Unsupported as error:
        raise error.at(describe(here())) from None


def _checked(array: Any) -> Any:
    """An array, or a list of arrays, that is of no subclass with another meaning."""
    try:
        return base_array(array)
    except TypeMismatch as error:
        raise error.at(describe(here())) from None


def scope_of(*operands: Any) -> Scope:
    """The scope an operation on these operands belongs to: the innermost that is open, else that
    of lazy arrays."""
    return local.scope or LAZY


def value_of(array: Array, scope: Scope) -> int:
    """The value of an array in this scope: its own, or a capture of it. A lazy array in a trace
    is captured as a NumPy array is."""
    if array._view is not None:
        array._follow()
    if array._scope is scope:
        value: int = array._value  # or a Value, if the array is lazy: only its scope can tell
        return value
    if array._scope is HOST:
        return array._value.in_graph(scope)  # type: ignore[no-any-return]
    if array._scope is LAZY:
        return scope.foreign(realised(array._value), array)
    if scope is LAZY:
        raise leak(array, None)
    chain = scope.chain(array._scope)
    if chain[-1].parent is not array._scope:
        raise leak(array, scope)
    return scope.carry_in(array._value, chain)


def dtype_key(operand: Any) -> Any:
    """What promotion looks at: a dtype, or int, float, complex for a weak number."""
    kind = type(operand)
    if kind is Array:
        return operand._weak or operand._scope.builder.types[operand._value].dtype
    if kind in PYTHON:
        return PYTHON[bool] if kind is bool else kind
    if isinstance(operand, (np.ndarray, np.generic)):
        return _known(operand)
    if isinstance(operand, Array) and operand._scope is HOST:
        return operand.dtype
    for base in _BASES:  # an enumeration, say, which NumPy does not take for a weak number
        if isinstance(operand, base):
            return PYTHON[base]
    if not is_operand(operand):
        raise refusal(operand)
    return _known(np.asarray(operand))


def weak_of(operand: Any) -> type | None:
    """int, float or complex where an operand is a Python number, whose dtype gives way."""
    if isinstance(operand, Array):
        return operand._weak
    return type(operand) if type(operand) in (int, float, complex) else None


def as_value(operand: Any, scope: Scope, dtype: DType | None = None) -> int:
    """The value of any operand in this scope, cast to the dtype if one is given."""
    kind = type(operand)
    if kind is Array:
        own = operand._scope is scope and operand._view is None
        value = operand._value if own else value_of(operand, scope)
    elif kind in PYTHON:
        return literal_value(operand, scope, dtype or PYTHON[kind])
    elif isinstance(operand, np.ndarray):
        _known(operand)
        value = scope.foreign(operand)
    elif isinstance(operand, np.generic):
        if dtype is not None and KIND[dtype] in "iu" and operand.dtype.kind == "f":
            stored(operand.item(), dtype)  # raises where there is no such integer
        value = scope.constant(np.asarray(operand, _known(operand)))
    elif isinstance(operand, Array) and operand._scope is HOST:
        value = value_of(operand, scope)
    elif isinstance(operand, _BASES):
        base = next(b for b in _BASES if isinstance(operand, b))
        return literal_value(base(operand), scope, dtype or PYTHON[base])
    else:
        value = _from_sequence(operand, scope, dtype)
    if dtype is None:
        return value
    found = scope.builder.types[value].dtype
    if found is dtype or found == dtype:
        return value
    if type(operand) is Array and operand._weak:
        _check_weak(operand, scope, dtype)
    return scope.node("cast", (value,), {"dtype": dtype})[0]


def _check_weak(operand: Array, scope: Scope, dtype: DType) -> None:
    """A Python number that is an argument must fit, as NumPy demands: each call is checked."""
    if operand._weak is complex and KIND[dtype] in "iuf":
        raise TypeMismatch(
            f"a Python complex number is put into an array of {dtype}",
            where=describe(here()),
            fix="take its real part: z.real",
        )
    if KIND[dtype] in "iu" and operand._scope.parent is None:
        scope.trace.limits.setdefault(operand._value, set()).add(dtype)


def literal_value(number: Any, scope: Scope, dtype: DType) -> int:
    """The constant of a Python number, which the scope remembers: zeros by their signs."""
    kind = type(number)
    key = (number or repr(number), kind, dtype)
    value = scope.literals.get(key)
    if value is None:
        signed = not number and kind is not int and kind is not bool  # a zero: of which sign?
        made = literal(number, dtype) if signed else _literal(number, dtype)
        value = scope.literals[key] = scope.constant(made)
    return value


FUNCTIONS["literal"] = literal_value


def _from_sequence(operand: Any, scope: Scope, dtype: DType | None) -> int:
    if isinstance(operand, (list, tuple)):
        if any(isinstance(item, (Array, list, tuple)) for item in operand):
            parts = [wrap(scope, as_value(item, scope, dtype)) for item in operand]
            if parts:
                return value_of(FUNCTIONS[np.stack](parts), scope)
        plain_items = _checked(operand)
        return scope.foreign(
            np.asarray(plain_items) if dtype is None else stored(plain_items, dtype)
        )
    if hasattr(operand, "__array__") or hasattr(operand, "__dlpack__"):
        return scope.foreign(np.asarray(operand))
    raise refusal(operand)


def refusal(operand: Any) -> TypeMismatch:
    """The error of an operand that can't be one."""
    return TypeMismatch(
        f"an operand of type {type(operand).__name__} is no array and no number",
        where=describe(here()),
        fix="pass an array, a number or a nested list of these",
    )


def is_operand(item: Any) -> bool:
    """Whether something may stand for an array; a list may still turn out to hold what may not."""
    known = (Array, np.ndarray, np.generic, bool, int, float, complex, list, tuple)
    return isinstance(item, known) or hasattr(item, "__array__") or hasattr(item, "__dlpack__")


def literal(number: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """A Python number as a 0-d array of the dtype; a number that does not fit is an error."""
    kind = KIND[dtype]
    if kind in "iu" and isinstance(number, int):
        bits = 8 * dtype.itemsize
        least, most = (0, (1 << bits) - 1) if kind == "u" else (-1 << bits - 1, (1 << bits - 1) - 1)
        if not least <= number <= most:
            raise OverflowProblem(
                f"the Python integer {number} does not fit {dtype} ({least} to {most})",
                where=describe(here()),
                fix=f"cast the array to a wider dtype, or write np.array({number}).astype"
                f"('{dtype}') if wrapping around is meant",
            )
        return np.asarray(number, dtype)
    if (isinstance(number, float) and kind in "iu") or (
        isinstance(number, complex) and kind in "iuf"
    ):
        return stored(number, dtype)
    try:
        with np.errstate(all="ignore"):
            if type(number) is int and kind in "fc":
                number = float(number)
            return np.asarray(number).astype(dtype)
    except OverflowError:
        raise OverflowProblem(
            f"a Python integer of {number.bit_length()} bits does not fit a float",
            where=describe(here()),
            fix="write it as a float, or scale it down",
        ) from None


@lru_cache(4096, typed=True)
def _literal(number: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """`literal`, kept: a program has the same few at all sizes. Zeros of both signs are equal, so
    floats that are zero are none of them."""
    made = literal(number, dtype)
    made.flags.writeable = False
    return made


def stored(given: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """Python numbers as NumPy puts them into an array of the dtype; what it refuses is an error.

    An integer out of range, NaN or infinity as an integer, a complex number as a real one.
    """
    kinds = {OverflowError: OverflowProblem, ValueError: ValueProblem, TypeError: TypeMismatch}
    try:
        with np.errstate(all="ignore"):
            return np.asarray(given, dtype)
    except tuple(kinds) as error:
        kind = next(kinds[k] for k in kinds if isinstance(error, k))
        raise kind(
            f"what is put into an array of {dtype} does not fit it: {error}",
            where=describe(here()),
            fix="give numbers of its range, or an array cast to it with .astype",
        ) from None


def wrap(scope: Scope, value: int) -> Array:
    """A traced array over a value."""
    return Array(scope, value)
