"""Containers: tuples, lists, dicts, named tuples and dataclasses, nested at will.

`flatten` takes one apart into leaves and a Structure; the Structure puts it together again.
A Structure is a flat tuple of tokens in the order of a walk, so nothing here recurses.
What a function returns may hold arrays of a length that only the run knows: such a one is put
together of two leaves, an array that is long enough and the length it is cut to.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tenfold.errors import TypeMismatch
from tenfold.frozen import frozen
from tenfold.trace.exact import EXACT_TYPES, exact
from tenfold.types import TensorType

LEAF = ("leaf",)

# Values that are part of the structure: they are compared, not traced.
_STATIC = (str, bytes, type(None), enum.Enum, type, slice, type(Ellipsis))
# What most leaves are, traced arrays among them; anything else that is no container is one, too.
LEAVES: set[type] = {np.ndarray, bool, int, float, complex}


@frozen
class Structure:
    """The shape of a container: everything but its leaves."""

    tokens: tuple[Any, ...]

    @property
    def count(self) -> int:
        return self.tokens.count(LEAF)

    @property
    def key(self) -> Any:
        """What is equal for structures that are the same by type and bits."""
        return tuple([_exact_token(token) for token in self.tokens])

    @property
    def closed(self) -> bool:
        """Whether each container has as many parts as it says; one that was read may not."""
        wanted = 1
        for token in self.tokens:
            if wanted <= 0:
                return False
            wanted += -1 + (width(token) if token[0] not in ("leaf", "static") else 0)
        return wanted == 0

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """The container with these leaves.

        >>> structure, leaves = flatten({"b": 1, "a": (2, [3])})
        >>> leaves, structure.unflatten([v * 10 for v in leaves])
        ([1, 2, 3], {'b': 10, 'a': (20, [30])})
        """
        if self.tokens == (LEAF,):
            return leaves[0]
        remaining = list(reversed(leaves))
        open_: list[tuple[Any, int, list[Any]]] = [(("tuple", 1), 1, [])]
        for token in self.tokens:
            kind = token[0]
            if kind == "leaf":
                open_[-1][2].append(remaining.pop())
            elif kind == "static":
                open_[-1][2].append(token[2])
            else:
                open_.append((token, width(token), []))
            while len(open_) > 1 and len(open_[-1][2]) == open_[-1][1]:
                made, _, parts = open_.pop()
                open_[-1][2].append(_build(made, parts))
        return open_[0][2][0]

    def paths(self, root: str = "") -> list[str]:
        """Where each leaf stands, as the user would write it.

        >>> flatten({"w": [1, 2]})[0].paths("params")
        ["params['w'][0]", "params['w'][1]"]
        """
        return [path for path, token in self.walk(root) if token == LEAF]

    def walk(self, root: str = "") -> Iterator[tuple[str, Any]]:
        """Every token, in order, with the path it stands at."""
        open_: list[tuple[Iterator[str], int]] = [(iter([root]), 1)]
        for token in self.tokens:
            while open_[-1][1] == 0:
                open_.pop()
            names, left = open_.pop()
            path = next(names)
            open_.append((names, left - 1))
            yield path, token
            if token[0] not in ("leaf", "static"):
                steps = [path + step for step in _steps(token)]
                open_.append((iter(steps), len(steps)))

    def __str__(self) -> str:
        """The structure as the container written with * for leaves."""
        return repr(self.unflatten([_Star()] * self.count))


def _exact_token(token: Any) -> Any:
    if token[0] == "static" and token[1] not in EXACT_TYPES:
        return "static", exact(token[2])
    if token[0] == "dict" and any(name != "str" for name, _ in token[1]):
        return "dict", exact(tuple([key for _, key in token[1]]))
    return token


class _Star:
    def __repr__(self) -> str:
        return "*"

    def __getitem__(self, key: Any) -> Any:
        return self


def width(token: Any) -> int:
    """How many parts the container of this token has."""
    kind = token[0]
    if kind in ("leaf", "static"):
        return 0
    if kind in ("tuple", "list"):
        return int(token[1])
    if kind == "dict":
        return len(token[1])
    if kind == "cut":
        return 2
    return len(token[2])


def _steps(token: Any) -> list[str]:
    kind = token[0]
    if kind in ("tuple", "list"):
        return [f"[{i}]" for i in range(token[1])]
    if kind == "dict":
        return [f"[{key!r}]" for _, key in token[1]]
    if kind == "cut":
        return ["", ".shape"]
    return [f".{name}" for name in token[2]]


def _build(token: Any, parts: list[Any]) -> Any:
    kind = token[0]
    if kind == "tuple":
        return tuple(parts)
    if kind == "list":
        return parts
    if kind == "dict":
        return {key: part for (_, key), part in zip(token[1], parts, strict=True)}
    if kind == "named":
        return token[1](*parts)
    if kind == "cut":
        return _cut(parts[0], parts[1], token[1])
    made = object.__new__(token[1])
    for name, part in zip(token[2], parts, strict=True):
        object.__setattr__(made, name, part)
    return made


def _cut(array: Any, length: Any, axis: int) -> Any:
    """The first part of an array along an axis, in memory of its own."""
    part = array[(slice(None),) * axis + (slice(length),)]
    return part.copy() if isinstance(part, np.ndarray) else part


def flatten(
    container: Any, is_leaf: Callable[[Any], bool] | None = None, by_key: bool = False
) -> tuple[Structure, list[Any]]:
    """The structure of a container and its leaves, dict entries as they stand, or sorted by key.

    Strings, None, enum members and types are structure; so are the fields of a dataclass that
    are declared with `field(metadata={"static": True})`.

    >>> flatten((1, None, {"a": 2}))[1]
    [1, 2]
    """
    tokens: list[Any] = []
    leaves: list[Any] = []
    stack: list[Any] = [container]
    path: list[int] = []  # the containers that are open, to find one inside itself
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind is _Close:
            path.pop()
            continue
        if is_leaf is not None and is_leaf(item):
            tokens.append(LEAF)
            leaves.append(item)
            continue
        if kind in LEAVES:
            tokens.append(LEAF)
            leaves.append(item)
            continue
        if isinstance(item, _STATIC):
            tokens.append(("static", kind, item))
            continue
        token, parts = _open(item, kind, by_key)
        tokens.append(token)
        if parts is None:
            leaves.append(item)
        elif parts:
            if id(item) in path:
                raise TypeMismatch(
                    f"a {kind.__name__} contains itself", fix="pass a container without cycles"
                )
            path.append(id(item))
            stack.append(_CLOSE)
            stack.extend(reversed(parts))
    return Structure(tuple(tokens)), leaves


class _Close:
    pass


_CLOSE = _Close()


def matched(wanted: Structure, structure: Structure, leaves: Sequence[Any]) -> list[Any] | None:
    """The leaves of one structure in the order of another, which differs at most in the order of
    dicts; None where they differ in more.

    >>> one, other = flatten({"a": 1, "b": 2})[0], flatten({"b": 20, "a": 10})
    >>> matched(one, *other)
    [10, 20]
    """
    if structure == wanted:
        return list(leaves)
    common, places = sorted_keys(wanted)
    other, found = sorted_keys(structure)
    if common != other:
        return None
    made = list(leaves)
    for place, at in zip(places, found, strict=True):
        made[place] = leaves[at]
    return made


def sorted_keys(structure: Structure) -> tuple[Structure, list[int]]:
    """The structure with dicts sorted by key, and where each of its leaves stood."""
    return flatten(structure.unflatten(range(structure.count)), by_key=True)


def _open(item: Any, kind: type, by_key: bool) -> tuple[Any, list[Any] | None]:
    """The token of an item and its parts; a leaf has None."""
    if kind is _Static:
        return ("static", type(item.value), item.value), []
    if kind is tuple or kind is list:
        return (kind.__name__, len(item)), list(item)
    if isinstance(item, dict):
        if not by_key:
            return ("dict", tuple([(type(k).__name__, k) for k in item])), list(item.values())
        keys = sorted(((type(k).__name__, k) for k in item), key=_sortable)
        return ("dict", tuple(keys)), [item[k] for _, k in keys]
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return ("named", kind, item._fields), list(item)
    if dataclasses.is_dataclass(item) and not isinstance(item, (type, TensorType)):
        names, parts = [], []
        for f in dataclasses.fields(item):
            names.append(f.name)
            value = getattr(item, f.name)
            parts.append(_Static(value) if f.metadata.get("static") else value)
        return ("data", kind, tuple(names)), parts
    return LEAF, None


@frozen
class _Static:
    """A field of a dataclass that is declared static, on its way through `flatten`."""

    value: Any


def _sortable(key: tuple[str, Any]) -> tuple[str, Any]:
    name, value = key
    return (name, value) if isinstance(value, (int, float, str, bytes)) else (name, repr(value))
