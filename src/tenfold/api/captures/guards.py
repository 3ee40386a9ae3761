"""Guards: what native code looks at, so that a call whose captures stand as they stood needs no
Python.

Along the path to each capture it compares objects by identity; of lists and dicts, all items. What
it can't look into, such as a set or a deque, it asks a Python function about.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from types import ModuleType
from typing import Any

from tenfold.api.captures.places import MISSING, Absent, ContainerKeys, Contents, Place, parts, step
from tenfold.api.specialisation import Specialisation
from tenfold.backends.guard import HOLDS, ITEMS, Guard


def guards(of: Specialisation) -> list[Guard] | None:
    """What native code looks at as things stand now; None if they do not stand."""
    found: dict[tuple[int, Any], Guard] = {}
    try:
        for watched in of.watched:
            if isinstance(watched, Absent):
                _add(found, (watched.holds, HOLDS, True))
                continue
            value = _along(found, watched.place)
            if isinstance(watched, (Contents, ContainerKeys)) and not isinstance(value, _FIXED):
                raw = isinstance(value, (list, dict))
                _add(found, (value, ITEMS, parts(value)) if raw else (_same(value), HOLDS, True))
        for captured in of.captures:
            for place in captured.places:
                _along(found, place)
    except (LookupError, AttributeError, ValueError, TypeError):  # changed meanwhile
        return None
    return list(found.values()) if of.stands() else None


_FIXED = (tuple, frozenset)  # the same object has the same items


def _add(found: dict[tuple[int, Any], Guard], guard: Guard) -> None:
    where, key, _ = guard
    found.setdefault((id(where), key), guard)


def _along(found: dict[tuple[int, Any], Guard], place: Place) -> Any:
    """Add a guard for each step of a path; the value at its end."""
    value = place.root
    for kind, key in place.steps:
        where, value = value, step(value, kind, key)
        if kind == "cell":
            _add(found, (where, None, value))
        elif kind == "name":
            _add(found, (where, key, value))
        elif kind == "static":
            cls = type(where)
            if getattr(cls, key, MISSING) is value:
                _add(found, (cls, key, value))
            else:
                _add(found, (_at(where, key, value), HOLDS, True))
        elif kind != "item":  # items are compared with their container
            module = isinstance(where, ModuleType)
            _add(found, (vars(where) if module else where, key, value))
    return value


def _at(where: Any, key: str, value: Any) -> Callable[[], bool]:
    return lambda: step(where, "static", key) is value


def _same(container: Any) -> Callable[[], bool]:
    """Whether a container holds the objects that it holds now."""
    items = parts(container)

    def holds() -> bool:
        now = parts(container)
        return len(now) == len(items) and all(map(is_, now, items))

    return holds
