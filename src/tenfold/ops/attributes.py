"""Attributes: how each kind of attribute value is brought into its one form.

Values are plain data: bool, int, str, bytes, and tuples of these. Axes are non-negative here;
whoever knows the rank has counted negative ones from the end already. Whether an axis is there
is the type rule's question.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from functools import cache
from operator import index
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch, ValueProblem
from tenfold.graph.op import Attribute
from tenfold.kernel.ir.number import Number
from tenfold.types import TensorType, parse_type, short_name

_INTS = frozenset({int}).issuperset
_class = builtins.type


def _int(name: str, value: Any) -> Any:
    try:
        return value if value.__class__ is Number else index(value)
    except TypeError:
        raise TypeMismatch(
            f"attribute {name}: {value!r} is no integer", fix="give an int"
        ) from None


def _ints(name: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeMismatch(
            f"attribute {name}: {value!r} is no row of integers", fix="give a tuple of ints"
        )
    return tuple(_int(name, v) for v in value)


def _row(name: str, *, natural: bool = True, distinct: bool = False) -> Attribute:
    """A tuple of integers, each 0 or more, perhaps no two alike."""

    def normalise(value: Any) -> tuple[int, ...]:
        if value.__class__ is not tuple or not _INTS(map(_class, value)):  # as most are
            value = _ints(name, value)
        if natural and value and min(value) < 0:
            raise ShapeError(
                f"attribute {name}: {min(value)} is negative",
                fix="count it from the start: 0, 1, …",
            )
        if distinct and len(value) > 1 and len(set(value)) != len(value):
            raise ShapeError(f"attribute {name}: {value} names an axis twice", fix="name it once")
        made: tuple[int, ...] = value
        return made

    return Attribute(name, normalise)


def integer(name: str) -> Attribute:
    """Any integer."""
    return Attribute(name, lambda value: _int(name, value))


def count(name: str) -> Attribute:
    """An integer, 0 or more."""
    row = _row(name)
    return Attribute(name, lambda value: row.normalise((_int(name, value),))[0])


axis = count


def integers(name: str) -> Attribute:
    """A tuple of integers."""
    return _row(name, natural=False)


def extents(name: str) -> Attribute:
    """A tuple of integers, each 0 or more: a shape."""
    return _row(name)


def axes(name: str) -> Attribute:
    """A set of axes, as a sorted tuple."""

    row = _row(name, distinct=True)
    return Attribute(name, lambda value: tuple(sorted(row.normalise(value))))


def ordered_axes(name: str) -> Attribute:
    """Distinct axes whose order counts."""
    return _row(name, distinct=True)


def flag(name: str) -> Attribute:
    """True or False."""

    def normalise(value: Any) -> bool:
        if not isinstance(value, bool | np.bool_):
            raise TypeMismatch(
                f"attribute {name}: {value!r} is neither True nor False", fix="give one of these"
            )
        return bool(value)

    return Attribute(name, normalise)


def text(name: str) -> Attribute:
    """Any string."""

    def normalise(value: Any) -> str:
        if not isinstance(value, str):
            raise TypeMismatch(f"attribute {name}: {value!r} is no string", fix="give a str")
        return str(value)

    return Attribute(name, normalise)


def choice(name: str, *options: str) -> Attribute:
    """One of these strings."""

    def normalise(value: Any) -> str:
        if value not in options:
            raise ValueProblem(
                f"attribute {name}: {value!r} is none of {', '.join(options)}",
                fix=f"say {name}={options[0]!r}, for one",
            )
        return str(value)

    return Attribute(name, normalise)


def dtype(name: str) -> Attribute:
    """A dtype, as its short name."""
    return Attribute(name, short_name)


@cache
def _type(value: TensorType | str) -> str:
    return repr(value if isinstance(value, TensorType) else parse_type(value))


def _printed(value: TensorType | str) -> str:
    if value.__class__ is TensorType and value.shape:  # its extents are written down, and so fixed
        value = TensorType(value.dtype, tuple(map(index, value.shape)))
    return _type(value)


def type(name: str) -> Attribute:
    """A type, as it prints: 'f32[3]'."""
    return Attribute(name, _printed)


def types(name: str) -> Attribute:
    """A tuple of types, as they print."""
    return Attribute(name, lambda value: tuple(_printed(v) for v in value))


_BYTES = (bytes, bytearray, memoryview)


def raw(name: str) -> Attribute:
    """Bytes."""

    def normalise(value: Any) -> bytes:
        if not isinstance(value, _BYTES):
            raise TypeMismatch(f"attribute {name}: {value!r} is no bytes", fix="give bytes")
        return bytes(value)

    return Attribute(name, normalise)
