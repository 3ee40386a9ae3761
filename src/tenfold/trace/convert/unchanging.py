"""What only Python has, and a part of a program must leave alone: fields, globals, lists, dicts.

A part is traced once, or several times, whatever the program makes of it. What it changes then is
found by looking before and after, in all that its variables hold, and put back.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

from tenfold.errors import ControlError
from tenfold.frozen import frozen
from tenfold.trace.convert.region import content
from tenfold.trace.convert.statements import Site
from tenfold.trace.source import describe, here

LIBRARIES = {*sys.stdlib_module_names, "numpy", "tenfold", "ml_dtypes", "scipy", "jax", "torch"}
_CONTAINERS = (list, dict, set, deque, bytearray)
_OURS = "_tenfold"  # what Tenfold keeps in a user's objects
_MOST = 4096  # objects that are looked at


@frozen(eq=False)
class Contents:
    """What a container, or an object in its fields, held."""

    name: str
    kind: str
    container: Any
    items: list[Any]

    @staticmethod
    def of(name: str, kind: str, container: Any) -> Contents:
        return Contents(name, kind, container, _items(container))

    def stand(self) -> bool:
        """Whether it holds the same still; else it does again now."""
        now = _items(self.container)
        if len(now) == len(self.items) and all(map(_is, now, self.items)):
            return True
        self.container.clear()
        if isinstance(self.container, dict):
            half = len(self.items) // 2
            self.container.update(zip(self.items[:half], self.items[half:], strict=True))
        elif isinstance(self.container, set):
            self.container.update(self.items)
        else:
            self.container.extend(self.items)
        return False


@contextmanager
def unchanging(site: Site, *parts: FunctionType) -> Iterator[None]:
    """Refuse parts that change what only Python has."""
    if site.lasting:
        line, what = site.lasting[0]
        raise ControlError(
            f"line {line} sets {what} inside the {site.kind} of line {site.line}, whose outcome "
            "only a running program has",
            where=describe(here()),
            fix="set a local variable there, and the field or global after it",
        )
    kept = _contents(parts)
    changed: list[Contents] = []
    try:
        yield
    finally:
        changed += [one for one in kept if not one.stand()]
    for one in changed:
        raise ControlError(
            f"{one.name}, a {one.kind}, is changed inside the {site.kind} of line {site.line}, "
            "whose outcome only a running program has",
            where=describe(here()),
            fix="keep such values in local variables, or in an array whose size is known",
        )


def iterators(parts: tuple[FunctionType, ...]) -> list[str]:
    """The variables that hold an iterator, of which nobody can tell whether it is advanced."""
    return [name for name, value in _variables(parts) if isinstance(value, Iterator)]


def _contents(parts: tuple[FunctionType, ...]) -> list[Contents]:
    """The containers and objects that the variables of these parts hold, at any depth."""
    found: list[Contents] = []
    stack = _variables(parts)
    seen: set[int] = set()
    while stack and len(seen) < _MOST:
        name, value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        kind = type(value)
        if isinstance(value, _CONTAINERS):
            found.append(Contents.of(name, kind.__name__, value))
        if isinstance(value, dict):
            stack += [(f"{name}[{key!r}]", item) for key, item in value.items()]
        elif isinstance(value, list | tuple | deque):
            stack += [(f"{name}[{number}]", item) for number, item in enumerate(value)]
        elif _is_users(value):
            fields = vars(value)
            found.append(Contents.of(name, kind.__name__, fields))
            stack += [(f"{name}.{key}", item) for key, item in fields.items()]
    return found


def _variables(parts: tuple[FunctionType, ...]) -> list[tuple[str, Any]]:
    return [
        (name, content(cell))
        for part in parts
        for name, cell in zip(part.__code__.co_freevars, part.__closure__ or (), strict=True)
    ]


def _is_users(value: Any) -> bool:
    """Whether this is an object of the user's, with fields."""
    if isinstance(value, ModuleType | FunctionType | type):
        return False
    home = type(value).__module__.partition(".")[0]
    return home not in LIBRARIES and isinstance(getattr(value, "__dict__", None), dict)


def _items(container: Any) -> list[Any]:
    if isinstance(container, dict):
        own = {k: v for k, v in container.items() if not str(k).startswith(_OURS)}
        return [*own.keys(), *own.values()]
    return list(container)


def _is(one: Any, other: Any) -> bool:
    return one is other
