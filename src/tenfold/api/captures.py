"""What a function closes over: where its arrays and settings live, so each call can look again.

A function reads closure cells, globals that it names, and fields of the object it is bound to.
`survey` walks these once, before tracing. An array found there becomes a named input of the
graph; a number, string or function found there is guarded: when it changes, the next call traces
anew. Nothing is looked for inside libraries.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tenfold.frozen import frozen
from tenfold.trace.array import Array

_LIBRARIES = {*sys.stdlib_module_names, "numpy", "tenfold", "ml_dtypes", "scipy", "jax", "torch"}
_SETTINGS = (bool, int, float, complex, str, bytes, type(None), np.generic)
_LONGEST = 10_000  # entries of a container that are looked at
_MISSING = object()


@frozen
class Place:
    """A path from something that lasts to a value: how to look at it again."""

    name: str
    root: Any  # a dict (globals), a cell, or the object a method is bound to
    steps: tuple[tuple[str, Any], ...]

    def look(self) -> Any:
        """The value that stands here now, or a mark that there is none."""
        value = self.root
        try:
            for kind, key in self.steps:
                if kind == "key":
                    value = value[key]
                elif kind == "field":
                    value = getattr(value, key)
                else:
                    value = value.cell_contents
        except (KeyError, IndexError, AttributeError, ValueError, TypeError):
            return _MISSING
        return value


@dataclass(slots=True)
class Survey:
    """What a function closes over, as it stood before the trace."""

    arrays: dict[int, tuple[Place, Any]] = field(default_factory=dict)
    settings: list[tuple[Place, Any]] = field(default_factory=list)

    def name(self, array: Any) -> str | None:
        found = self.arrays.get(id(array))
        return found[0].name if found is not None and found[1] is array else None

    def place(self, array: Any) -> Place | None:
        found = self.arrays.get(id(array))
        return found[0] if found is not None and found[1] is array else None


def unchanged(place: Place, before: Any) -> bool:
    """Whether a setting is what it was: the same object, or an equal one of the same type."""
    now = place.look()
    if now is before:
        return True
    if type(now) is not type(before) or not isinstance(before, _SETTINGS):
        return False
    return bool(now == before) or (now != now and before != before)


def survey(function: Callable[..., Any]) -> Survey:
    """Walk what a function closes over, until no new code and no new names turn up."""
    codes: set[CodeType] = set()
    while True:
        known = len(codes)
        found = _walk(function, codes)
        if len(codes) == known:
            return found


def _walk(function: Callable[..., Any], codes: set[CodeType]) -> Survey:
    attributes = {name for code in codes for name in _reads(code)[1]}
    found = Survey()
    seen: set[int] = set()
    stack: list[tuple[Any, Any, str, tuple[tuple[str, Any], ...]]] = []
    _open_callable(function, codes, stack)
    while stack:
        root, value, name, steps = stack.pop()
        place = Place(name, root, steps)
        if isinstance(value, (np.ndarray, Array)):
            found.arrays.setdefault(id(value), (place, value))
            continue
        if isinstance(value, _SETTINGS):
            found.settings.append((place, value))
            continue
        direct = len(steps) == 1
        if direct and not isinstance(value, (ModuleType, list, dict, tuple)):
            found.settings.append((place, value))  # a function or object rebound is another
        if id(value) in seen:
            continue
        seen.add(id(value))
        if _is_library(value):
            continue
        if isinstance(value, (FunctionType, MethodType)) or hasattr(value, "__wrapped__"):
            _open_callable(value, codes, stack)
        elif isinstance(value, (list, tuple)):
            for i, item in enumerate(value[:_LONGEST]):
                stack.append((root, item, f"{name}[{i}]", (*steps, ("key", i))))
        elif isinstance(value, dict):
            for key, item in list(value.items())[:_LONGEST]:
                stack.append((root, item, f"{name}[{key!r}]", (*steps, ("key", key))))
        elif isinstance(value, ModuleType):
            stack.extend(
                (root, vars(value)[key], f"{name}.{key}", (*steps, ("field", key)))
                for key in attributes & vars(value).keys()
            )
        else:
            _open_class(value, codes)
            for key, item in _fields(value, attributes):
                stack.append((root, item, f"{name}.{key}", (*steps, ("field", key))))
    return found


def _open_callable(function: Any, codes: set[CodeType], stack: list[Any]) -> None:
    """Add what a function reads to the walk."""
    while True:
        if isinstance(function, MethodType):
            stack.append((function.__self__, function.__self__, "self", ()))
            function = function.__func__
        elif hasattr(function, "__wrapped__") and not isinstance(function, FunctionType):
            function = function.__wrapped__
        elif hasattr(function, "func") and not isinstance(function, FunctionType):  # a partial
            for i, item in enumerate(function.args):
                stack.append((function, item, f"partial[{i}]", (("field", "args"), ("key", i))))
            for key, item in function.keywords.items():
                steps = (("field", "keywords"), ("key", key))
                stack.append((function, item, f"partial.{key}", steps))
            function = function.func
        else:
            break
    if not isinstance(function, FunctionType):
        if not isinstance(function, type):
            stack.append((function, function, "self", ()))
        return
    if hasattr(function, "__wrapped__"):
        _open_callable(function.__wrapped__, codes, stack)
    codes.add(function.__code__)
    stack.extend(_defaults(function))
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        content = _content(cell)
        if content is not _MISSING:
            stack.append((cell, content, name, (("cell", None),)))
    for code in _nested(function.__code__):
        for name in _reads(code)[0]:
            if name in function.__globals__ and name.isidentifier():  # others are a tool's own
                value = function.__globals__[name]
                stack.append((function.__globals__, value, name, (("key", name),)))


def _defaults(function: FunctionType) -> list[Any]:
    """The defaults of parameters, each as a part of the walk."""
    code = function.__code__
    found: list[Any] = []
    defaults = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    for i, (name, value) in enumerate(
        zip(names[len(names) - len(defaults) :], defaults, strict=True)
    ):
        steps = (("field", "__defaults__"), ("key", i))
        found.append((function, value, name, steps))
    for name, value in (function.__kwdefaults__ or {}).items():
        found.append((function, value, name, (("field", "__kwdefaults__"), ("key", name))))
    return found


def _open_class(value: Any, codes: set[CodeType]) -> None:
    """Add the methods of a user's object to the code that is read."""
    for base in type(value).__mro__:
        if base.__module__.partition(".")[0] not in _LIBRARIES:
            for item in vars(base).values():
                item = getattr(item, "__wrapped__", item)
                if isinstance(item, FunctionType):
                    codes.add(item.__code__)


def _fields(value: Any, attributes: set[str]) -> Iterator[tuple[str, Any]]:
    own = getattr(value, "__dict__", {})
    slots = {s for base in type(value).__mro__ for s in getattr(base, "__slots__", ())}
    for key in attributes:
        if key in own:
            yield key, own[key]
        elif key in slots and hasattr(value, key):
            yield key, getattr(value, key)


def _is_library(value: Any) -> bool:
    """Whether a value comes from a library, where nothing of the user's is looked for."""
    if isinstance(value, (list, dict, tuple, MethodType)) or hasattr(value, "__wrapped__"):
        return False
    if isinstance(value, ModuleType):
        home = value.__name__
    elif isinstance(value, (FunctionType, type)):
        home = value.__module__ or ""
    else:
        home = type(value).__module__
    return home.partition(".")[0] in _LIBRARIES


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return _MISSING


def _nested(code: CodeType) -> list[CodeType]:
    """A code object and those of the functions written inside it."""
    found = [code]
    for outer in found:
        found.extend(c for c in outer.co_consts if isinstance(c, CodeType))
    return found


_reads_of: dict[CodeType, tuple[frozenset[str], frozenset[str]]] = {}


def _reads(code: CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The globals and the attributes that code names, its inner functions included."""
    found = _reads_of.get(code)
    if found is None:
        names: set[str] = set()
        attributes: set[str] = set()
        for inner in _nested(code):
            for step in dis.get_instructions(inner):
                if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                    names.add(step.argval)
                elif step.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
                    attributes.add(step.argval)
        if len(_reads_of) > 4096:
            _reads_of.clear()
        found = _reads_of[code] = frozenset(names), frozenset(attributes)
    return found
