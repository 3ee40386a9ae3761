"""Places: where something that a function closes over is found, and what must hold there.

Each `Dependency` looks again at what stood at a place before the trace. What changed by type and
bits makes the trace unfit; the same bits in another object do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import is_
from types import MappingProxyType
from typing import Any

from tenfold.frozen import frozen
from tenfold.trace.exact import exact, same
from tenfold.trace.swap.substitute import original

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "nothing"})()


@frozen
class Place:
    """A path from something that lasts to a value: how to look at it again."""

    name: str
    root: Any  # a dict (globals), a cell, a function, or an object
    steps: tuple[tuple[str, Any], ...] = ()

    def look(self) -> Any:
        """The value that stands here now, or a mark that there is none."""
        value = self.root
        try:
            for kind, key in self.steps:
                value = step(value, kind, key)
        except (LookupError, AttributeError, ValueError, TypeError):
            return MISSING
        return original(value)  # while another thread traces, it may be swapped

    def item(self, key: Any) -> Place:
        return Place(f"{self.name}[{key!r}]", self.root, (*self.steps, ("item", key)))

    def field(self, key: str, kind: str = "field") -> Place:
        return Place(f"{self.name}.{key}", self.root, (*self.steps, (kind, key)))

    def of_type(self, key: str) -> Place:
        """What the class has under this name: a method, a property."""
        return self.field(key, "static")


def step(value: Any, kind: str, key: Any) -> Any:
    """One step along a path."""
    if kind == "cell":
        return value.cell_contents
    if kind == "static":
        return static(type(value), key)
    if kind in ("item", "name"):
        return value[key]
    if kind == "own":
        return vars(value)[key]
    value = getattr(value, key)
    return getattr(value, "__func__", value) if kind == "method" else value


def static(cls: type, key: str) -> Any:
    """What a class or one of its bases has under a name, without asking descriptors."""
    for base in cls.__mro__:
        if key in vars(base):
            return vars(base)[key]
    return MISSING


def parts(container: Any) -> tuple[Any, ...]:
    """All that a container holds: its items, or its keys and values in turn."""
    if isinstance(container, (Mapping, MappingProxyType)):
        return tuple([part for pair in container.items() for part in pair])
    if isinstance(container, Iterable) and not isinstance(container, (bytearray, memoryview)):
        return tuple(container)
    return (bytes(container),)


@frozen
class Dependency:
    """Something that a trace depends on."""

    place: Place

    def holds(self) -> bool:
        """Whether it is as it was."""
        raise NotImplementedError


@frozen
class Setting(Dependency):
    """A number or a text, by type and bits."""

    value: Any

    def holds(self) -> bool:
        return same(self.place.look(), self.value)


@frozen
class Constant(Dependency):
    """A function, a class, an object whose inside is not looked at: by identity."""

    value: Any

    def holds(self) -> bool:
        return self.place.look() is self.value


@frozen
class ObjectClass(Dependency):
    """An object whose fields are watched by themselves: by its class."""

    value: Any

    def holds(self) -> bool:
        return type(self.place.look()) is type(self.value)


@frozen
class Alias(Dependency):
    """The same object as at another place, where it is looked into."""

    other: Place

    def holds(self) -> bool:
        return self.place.look() is self.other.look()


@frozen
class Absent(Dependency):
    """A field that is asked for and not there."""

    def holds(self) -> bool:
        return self.place.look() is MISSING


@frozen
class Contents(Dependency):
    """A container of numbers and texts, all of them by type and bits, in their order."""

    kind: type
    items: tuple[Any, ...]

    def holds(self) -> bool:
        now = self.place.look()
        if type(now) is not self.kind:
            return False
        items = parts(now)
        if len(items) != len(self.items):
            return False
        if all(map(is_, items, self.items)):
            return True
        if issubclass(self.kind, (set, frozenset)):  # which have no order
            return {exact(item) for item in items} == {exact(item) for item in self.items}
        return all(map(same, items, self.items))


@frozen
class ContainerKeys(Dependency):
    """A container whose items are watched by themselves: its length, its keys in their order."""

    kind: type
    keys: tuple[Any, ...] | None
    length: int

    def holds(self) -> bool:
        now = self.place.look()
        if type(now) is not self.kind:
            return False
        if self.keys is None:
            return len(parts(now)) == self.length
        return same(parts(now)[::2], self.keys)
