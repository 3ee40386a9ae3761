"""Guards: what a call looks at besides its arguments.

A guard is where to look, a key, and the object that has to be found there. Which kind it is follows
from these: an entry of a dict, what a closure cell holds (no key), an attribute; all items of a
list or dict (`ITEMS`; expected is a tuple of them, keys and values in turn); or a function that
says whether something holds (`HOLDS`). An attribute that is a bound method may be expected as its
function: Python makes a new method each time.
"""

from __future__ import annotations

from typing import Any

Guard = tuple[Any, Any, Any]
ITEMS: Any = type("Items", (), {"__repr__": lambda self: "all items"})()
HOLDS: Any = type("Holds", (), {"__repr__": lambda self: "asked"})()

KINDS = ("dict", "cell", "attribute", "list", "items", "asked")


def kind_of(guard: Guard) -> str:
    """The kind of a guard, one of KINDS."""
    where, key, _ = guard
    if key is None:
        return "cell"
    if key is HOLDS:
        return "asked"
    if key is ITEMS:
        return "items" if isinstance(where, dict) else "list"
    return "dict" if isinstance(where, dict) else "attribute"


def holds(guard: Guard) -> bool:
    """Whether the object is there that is expected."""
    where, key, expected = guard
    match kind_of(guard):
        case "cell":
            try:
                found = where.cell_contents
            except ValueError:  # empty
                return False
        case "asked":
            found = where()
        case "attribute":
            found = getattr(where, key, None)
            if found is not expected:
                found = getattr(found, "__func__", found)
        case "dict":
            found = where.get(key)
        case "list":
            return _alike(list(where), expected)
        case _:
            return _alike([part for pair in dict.items(where) for part in pair], expected)
    return found is expected


def _alike(found: list[Any], expected: tuple[Any, ...]) -> bool:
    return len(found) == len(expected) and all(a is b for a, b in zip(found, expected, strict=True))
