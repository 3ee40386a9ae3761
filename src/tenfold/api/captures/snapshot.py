"""A snapshot from before the trace: what a function changes while it is traced would be changed
once, not in every call. So it is an error, which names what was changed and where.

Some changes are let be, since they only keep what was computed: a new entry of a dict, a
`cached_property` that was asked for the first time, fields of objects of installed packages. They
make the next call trace anew, which sees what has been kept.
"""

from __future__ import annotations

import dis
import functools
import os
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from tenfold.api.captures.captures import Survey
from tenfold.api.captures.places import MISSING, ContainerKeys, Contents, Place, parts, static
from tenfold.api.captures.reads import nested
from tenfold.errors import TraceError
from tenfold.trace.chance import drawn, state_of
from tenfold.trace.exact import same
from tenfold.trace.surface.emit import is_traced

_LARGEST = 65536  # bytes of a captured array that are compared


class Snapshot:
    """What a function could change, as it stood before the trace."""

    def __init__(self, found: Survey) -> None:
        self.found = found
        self.fields = [
            (name, value, self._fields(value))
            for name, value in found.objects
            if not _is_installed(value)
        ]
        self.variables = dict(self._variables())
        self.states = [(name, one, state_of(one)) for name, one in found.generators]
        self.arrays = [
            (places[0].name, array, array.tobytes())
            for array, places in found.arrays.values()
            if isinstance(array, np.ndarray) and array.nbytes <= _LARGEST
        ]

    def check(self, label: str) -> None:
        """TraceError if something was changed since."""
        for name, generator, before in self.states:
            if state_of(generator) != before:
                raise drawn(f"the random state of {name}", label, self.found.codes.values())
        for name, value, before in self.fields:
            now = self._fields(value)
            for key in before.keys() | now.keys():
                new = now.get(key, MISSING)
                if new is not before.get(key, MISSING) and not _kept(value, key, new):
                    raise self._changed(label, f"{name}.{key}", key)
        variables = dict(self._variables())
        for variable, before in self.variables.items():
            if variables[variable] is not before:
                raise self._changed(label, variable[1], variable[1])
        if self.found.reads.changes_items:
            self._check_items(label)
        for name, array, before in self.arrays:
            if array.tobytes() != before:
                raise self._changed(label, name)

    def _check_items(self, label: str) -> None:
        for watched in self.found.watched:
            place = watched.place
            if isinstance(watched, (Contents, ContainerKeys)):
                if not watched.holds() and not _added(watched):
                    raise self._changed(label, place.name)
            elif _is_item(place) and not watched.holds():
                raise self._changed(label, place.name)
        for array, places in self.found.arrays.values():
            for place in places:
                if _is_item(place) and place.look() is not array:
                    raise self._changed(label, place.name)

    def _fields(self, value: Any) -> dict[str, Any]:
        """The fields of an object that code may write."""
        reads = self.found.reads
        own = vars(value) if hasattr(value, "__dict__") else {}
        if reads.any_written and not isinstance(value, (ModuleType, type)):
            found = {key: item for key, item in own.items() if not key.startswith("_tenfold")}
        else:
            found = {key: own[key] for key in reads.written & own.keys()}
        for base in type(value).__mro__:
            slots = vars(base).get("__slots__", ())
            for key in (slots,) if isinstance(slots, str) else slots:
                if hasattr(value, key) and (key in reads.written or reads.any_written):
                    found[key] = getattr(value, key)
        return found

    def _variables(self) -> Iterator[tuple[tuple[int, str], Any]]:
        """The globals and the variables of outer functions that code may write."""
        written = self.found.reads.written
        for function in self.found.codes.values():
            for name in written & set(function.__code__.co_names):
                yield (id(function.__globals__), name), function.__globals__.get(name, MISSING)
            cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
            for name, cell in cells:
                if name in written:
                    yield (id(cell), name), Place(name, cell, (("cell", None),)).look()

    def _changed(self, label: str, name: str, key: str | None = None) -> TraceError:
        return TraceError(
            f"{label} changes {name} while it is traced; it would be changed once, not in every "
            "call",
            where=self._line(key),
            fix="return the new value and keep it outside, or change it in a tn.hook",
        )

    def _line(self, key: str | None) -> str | None:
        """Where code writes something of this name."""
        for code in self.found.codes:
            for inner in nested(code):
                for step in dis.get_instructions(inner):
                    if step.opname in _WRITES and step.argval == key and step.positions:
                        line = step.positions.lineno
                        return f"{inner.co_filename}:{line}, in {inner.co_qualname}"
        return None


_WRITES = ("STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF")


def _is_installed(value: Any) -> bool:
    """Whether an object is of a class from an installed package."""
    home = value if isinstance(value, ModuleType) else sys.modules.get(type(value).__module__)
    path = getattr(home, "__file__", None) or ""
    return f"{os.sep}site-packages{os.sep}" in path or f"{os.sep}dist-packages{os.sep}" in path


def _is_item(place: Place) -> bool:
    return bool(place.steps) and place.steps[-1][0] == "item"


def _kept(value: Any, key: str, new: Any) -> bool:
    """Whether a field only keeps what a property has computed."""
    how = static(type(value), key)
    return isinstance(how, functools.cached_property) and not is_traced(new)


def _added(watched: Contents | ContainerKeys) -> bool:
    """Whether a dict has what it had and more, none of it traced."""
    now = watched.place.look()
    if type(now) is not watched.kind or not isinstance(now, Mapping):
        return False
    items = parts(now)
    if isinstance(watched, Contents):
        before, after, added = watched.items, items, items[len(watched.items) :]
    else:
        before, after = watched.keys or (), items[::2]
        added = items[2 * len(before) :]
    more = len(after) > len(before) and all(map(same, before, after))
    return more and not any(map(is_traced, added))
