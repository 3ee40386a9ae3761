"""A listing of what a function closes over, and how each part is watched."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tenfold.api.captures.captures import Survey
from tenfold.api.captures.places import (
    Absent,
    Alias,
    Constant,
    ContainerKeys,
    Contents,
    Dependency,
    ObjectClass,
    Setting,
)
from tenfold.api.specialisation import Specialisation
from tenfold.types import SHORT

Row = tuple[str, str, str]  # name, kind, how it is watched

_LONGEST = 40  # characters of a value that are shown


def explain(name: str, every: Iterable[Specialisation], found: Survey) -> str:
    """The listing of a function's traces; before the first, of what it names."""
    rows: dict[Row, None] = {}
    every = list(every)
    if not every:
        for array, places in found.arrays.values():
            rows |= dict.fromkeys((p.name, "array", _type(array)) for p in places)
        rows |= dict.fromkeys(map(_watched, found.watched))
        rows |= dict.fromkeys(_unguarded(p.name, value) for p, value in found.unguarded)
    for one in every:
        for captured in one.captures:
            how = _SWAPPED if captured.places else "made while tracing: stays as it was"
            names = [p.name for p in captured.places] or [captured.name]
            rows |= dict.fromkeys((n, "array", f"{_type(captured.array)}; {how}") for n in names)
        rows |= dict.fromkeys(map(_watched, one.watched))
        rows |= dict.fromkeys(_unguarded(p.name, value) for p, value in one.unguarded)
    named = {row[0] for row in rows if row[1] == "not guarded"}
    shown = sorted(r for r in rows if r[1] != "constant" or r[0] not in named)
    if not shown:
        return f"{name} closes over nothing"
    wide = max(len(row[0]) for row in shown)
    lines = [f"{n:{wide}}  {kind:11}  {how}".rstrip() for n, kind, how in shown]
    return "\n".join([f"{name} closes over", *(f"  {line}" for line in lines)])


_SWAPPED = (
    "another array of this type is taken in, one of another type traces anew; "
    "what is written into it is seen after refresh()"
)


def _watched(watched: Dependency) -> Row:
    name = watched.place.name
    match watched:
        case Setting(_, value):
            return name, "setting", f"{_short(value)}; by type and bits"
        case Contents(_, kind, items):
            return name, "setting", f"{_named(kind)} of {len(items)} parts; all by type and bits"
        case ContainerKeys(_, kind, keys, length):
            how = "its length" if keys is None else "its keys in their order"
            return name, "setting", f"{_named(kind)} of {length}; {how}, and its items"
        case ObjectClass(_, value):
            return name, "setting", f"{_named(type(value))}; the fields that are read"
        case Alias(_, other):
            return name, "setting", f"the same as {other.name}"
        case Absent():
            return name, "setting", "not there; traces anew when it is"
        case Constant(_, value):
            if hasattr(value, "dtype") and hasattr(value, "shape"):
                return name, "array", f"{_type(value)}; its values are in the graph: by identity"
            return name, "constant", f"{_what(value)}; by identity"
    raise AssertionError(watched)


def _unguarded(name: str, value: Any) -> Row:
    how = f"{_named(type(value))}; by identity alone, changes inside are not seen"
    return name, "not guarded", how


def _what(value: Any) -> str:
    called = getattr(value, "__qualname__", None)
    return f"{type(value).__name__} {called}" if called else _named(type(value))


def _named(kind: type) -> str:
    return f"a {kind.__qualname__}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _type(array: Any) -> str:
    dtype = array.dtype.newbyteorder("=")
    return f"{SHORT.get(dtype, dtype)}[{','.join(map(str, array.shape))}]"
