"""Structures as text: how a graph says which container a hook or a host call is given.

The text is plain data, a Python literal. Reading it imports nothing: a class is looked up among
those met in this process, and where it is unknown a tuple or a dict stands in.

>>> from tenfold.trace.containers import flatten
>>> text = encode(flatten({"a": 1, "b": (2, None)})[0])
>>> text
"[('dict', 'a', 'b'), '*', ('tuple', 2), '*', ('static', None)]"
>>> decode(text).unflatten([10, 20])
{'a': 10, 'b': (20, None)}
"""

from __future__ import annotations

import ast
import enum
from typing import Any
from weakref import WeakValueDictionary

from tenfold.errors import GraphError
from tenfold.trace.containers import LEAF, Structure

_classes: WeakValueDictionary[str, type] = WeakValueDictionary()
_values: dict[str, Any] = {}  # static values that have no literal, by how they print

_LITERALS = (type(None), bool, int, float, complex, str, bytes)


def encode(structure: Structure) -> str:
    """The text of a structure; one leaf alone is '*'."""
    if structure.tokens == (LEAF,):
        return "*"
    made: list[Any] = []
    for token in structure.tokens:
        match token:
            case ("leaf",):
                made.append("*")
            case ("static", _, value):
                made.append(("static", _write(value)))
            case ("dict", keys):
                made.append(("dict", *(_write(key) for _, key in keys)))
            case ("named" | "data" as kind, cls, fields):
                made.append((kind, _name(cls), fields))
            case _:
                made.append(token)
    return repr(made)


def decode(text: str) -> Structure:
    """The structure that this text says."""
    if text == "*":
        return Structure((LEAF,))
    tokens: list[Any] = []
    try:
        for item in ast.literal_eval(text):
            match item:
                case "*":
                    tokens.append(LEAF)
                case ("static", written):
                    value = _read(written)
                    tokens.append(("static", type(value), value))
                case ("dict", *keys):
                    found = [_read(key) for key in keys]
                    tokens.append(("dict", tuple((type(k).__name__, k) for k in found)))
                case ("named" | "data" as kind, name, fields):
                    tokens.append(_known(kind, name, fields))
                case ("tuple" | "list" | "cut", int()):
                    tokens.append(item)
                case _:
                    raise ValueError(f"{item!r} is no part of a structure")
        return Structure(tuple(tokens))
    except (ValueError, SyntaxError, TypeError) as error:
        raise GraphError(f"{text!r} is no structure: {error}") from error


def _known(kind: str, name: str, fields: tuple[str, ...]) -> Any:
    """The token of a class, or of what stands in for one that this process has not met."""
    cls = _classes.get(name)
    have = getattr(cls, "_fields" if kind == "named" else "__dataclass_fields__", None)
    if cls is not None and have is not None and tuple(have) == fields:
        return (kind, cls, fields)
    if kind == "named":
        return ("tuple", len(fields))
    return ("dict", tuple(("str", field) for field in fields))


def _name(cls: type) -> str:
    name = f"{cls.__module__}.{cls.__qualname__}"
    _classes[name] = cls
    return name


def _write(value: Any) -> Any:
    """A static value as a literal. What has none is written as it prints, after its type."""
    if isinstance(value, enum.Enum):
        return ("enum", _name(type(value)), value.name)
    if type(value) in _LITERALS and value == value and value not in (_INF, -_INF):
        return value
    if isinstance(value, type):
        return ("class", _name(value))
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    printed = repr(value)
    _values[f"{name} {printed}"] = value
    return ("value", name, printed)


_INF = float("inf")


def _read(written: Any) -> Any:
    match written:
        case ("enum", name, member):
            cls = _classes.get(name)
            if cls is not None and member in cls.__members__:  # type: ignore[attr-defined]
                return cls[member]  # type: ignore[index]
            return member
        case ("class", name):
            return _classes.get(name, name)
        case ("value", name, printed):
            return _values.get(f"{name} {printed}", printed)
    return written
