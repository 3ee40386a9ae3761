"""What a function closes over: where its arrays and settings live, so each call can look again.

A function reads closure cells, globals that it names, fields of the object it is bound to, and
what is reached through these. `survey` walks them once, before tracing. An array found there
becomes a named input of the graph; what else is found is watched (`places`): when it changes, the
next call traces anew. Nothing is looked for inside libraries; their objects are taken for what
they are by identity, and those that may change inside are named as not guarded.
"""

from __future__ import annotations

import enum
import functools
import sys
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from tenfold.api.captures.places import (
    MISSING,
    Absent,
    Alias,
    Constant,
    ContainerKeys,
    Contents,
    Dependency,
    ObjectClass,
    Place,
    Setting,
    parts,
)
from tenfold.api.captures.reads import Reads, reads_of
from tenfold.frozen import mutable
from tenfold.trace.array import Array
from tenfold.trace.convert.source import as_written
from tenfold.trace.swap.constructors import find
from tenfold.trace.swap.substitute import original
from tenfold.trace.swap.swap import Variable

_LIBRARIES = {*sys.stdlib_module_names, "numpy", "tenfold", "ml_dtypes", "scipy", "jax", "torch"}
_SETTINGS = (bool, int, float, complex, str, bytes, type(None), np.generic, enum.Enum, range, slice)
_SEQUENCES = (tuple, list, deque)
_MAPPINGS = (dict, MappingProxyType)
_FLAT = (set, frozenset, bytearray)  # whose parts have no place of their own
_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType, np.ufunc, type(len), type(str.join))
# Objects of Python's library that hold a user's settings, and the field they hold them in.
_HOLDERS: tuple[tuple[str, str, str], ...] = (
    ("os", "_Environ", "_data"),
    (UserDict.__module__, UserDict.__name__, "data"),
    (UserList.__module__, UserList.__name__, "data"),
    (ChainMap.__module__, ChainMap.__name__, "maps"),
)
_NAMESPACES = {("types", "SimpleNamespace"), ("argparse", "Namespace"), ("_thread", "_local")}
# Methods that Python calls without a name, and that do not make the object or show it.
_NOT_CALLED = {"__init__", "__new__", "__init_subclass__", "__repr__", "__str__", "__del__"}


@mutable
class Survey:
    """What a function closes over, as it stood before the trace."""

    arrays: dict[int, tuple[Any, list[Place]]] = field(default_factory=dict)
    watched: list[Dependency] = field(default_factory=list)
    unguarded: list[tuple[Place, Any]] = field(default_factory=list)
    objects: list[tuple[str, Any]] = field(default_factory=list)  # whose fields may be written
    generators: list[tuple[str, Any]] = field(default_factory=list)  # of random numbers
    variables: list[Variable] = field(default_factory=list)  # that hold constructors of NumPy's
    codes: dict[CodeType, FunctionType] = field(default_factory=dict)
    reads: Reads = field(default_factory=Reads)

    def name(self, array: Any) -> str | None:
        places = self.places(array)
        return places[0].name if places else None

    def places(self, array: Any) -> list[Place]:
        """Everywhere that this array is found."""
        found = self.arrays.get(id(array))
        return found[1] if found is not None and found[0] is array else []


def survey(function: Callable[..., Any], statics: Iterable[tuple[str, Any]] = ()) -> Survey:
    """Walk what a function closes over, until no new code and no new names turn up."""
    codes: dict[CodeType, FunctionType] = {}
    if isinstance(function, FunctionType):  # most read no other code: one walk will do
        own = as_written(function)
        codes[own.__code__] = own
    statics = list(statics)
    while True:
        known = len(codes)
        walk = _Walk(codes)
        walk.callable(function)
        for name, value in statics:
            if not isinstance(value, _SETTINGS):
                walk.stack.append((Place(name, value), value))
        walk.run()
        if len(codes) == known:
            return walk.found


class _Walk:
    """One walk over what is reached, with the names that code found so far reads."""

    def __init__(self, codes: dict[CodeType, FunctionType]) -> None:
        self.codes = codes
        self.reads = Reads.join([reads_of(code) for code in codes])
        self.found = Survey(codes=codes, reads=self.reads)
        self.stack: list[tuple[Place, Any]] = []
        self.seen: dict[int, tuple[Place, Any]] = {}
        self.opened: set[int] = set()

    def run(self) -> None:
        while self.stack:
            place, value = self.stack.pop()
            self.visit(place, value)

    def visit(self, place: Place, value: Any) -> None:
        found, value = self.found, original(value)
        if find(value) is not None:
            self.constructor(place)
        if isinstance(value, (np.ndarray, Array)):
            found.arrays.setdefault(id(value), (value, []))[1].append(place)
            return
        if isinstance(value, _SETTINGS):
            found.watched.append(Setting(place, value))
            if is_library(value):
                return
        first, _ = self.seen.setdefault(id(value), (place, value))
        again = first is not place
        if isinstance(value, ModuleType):
            if not again:
                self.module(place, value)
        elif isinstance(value, _FUNCTIONS) or _is_wrapper(value):
            found.watched.append(Constant(place, value))
            if not again and (value is _getenv() or not is_library(value)):
                self.callable(value)
        elif isinstance(value, type):
            found.watched.append(Constant(place, value))
            if not again and not is_library(value):
                self.type(place, value)
        elif again:
            found.watched.append(Alias(place, first))
        elif isinstance(value, (*_SEQUENCES, *_MAPPINGS, *_FLAT)):
            self.container(place, value)
            if not is_library(value):
                self.object(place, value)
        elif isinstance(value, functools.partial):
            found.watched.append(Constant(place, value))
            self.partial(value)
        elif _is_random(value):
            found.watched.append(Constant(place, value))
            found.generators.append((place.name, value))
        elif not is_library(value) or _kind(value) in _NAMESPACES:
            if not isinstance(value, _SETTINGS):
                found.watched.append(ObjectClass(place, value))
            self.object(place, value)
        else:
            self.foreign(place, value)

    # -- callables

    def callable(self, function: Any) -> None:
        """Add what a function reads to the walk."""
        while True:
            if id(function) in self.opened:
                return
            self.opened.add(id(function))
            if isinstance(function, MethodType):
                self.stack.append((Place("self", function.__self__), function.__self__))
                function = function.__func__
            elif isinstance(function, FunctionType):
                self.function(function)
                if not hasattr(function, "__wrapped__"):
                    return
                function = function.__wrapped__
            elif _is_wrapper(function):
                function = function.__wrapped__
            elif isinstance(function, functools.partial):
                self.partial(function)
                return
            elif isinstance(function, type):
                self.type(Place(function.__name__, function), function)
                return
            elif function is _getenv():
                self.environment()
                return
            else:
                self.stack.append((Place("self", function), function))
                return

    def partial(self, partial: functools.partial[Any]) -> None:
        self.callable(partial.func)
        for name in ("args", "keywords"):
            place = Place("partial", partial, (("field", name),))
            self.stack.append((place, getattr(partial, name)))

    def function(self, function: FunctionType) -> None:
        function = as_written(function)
        self.codes.setdefault(function.__code__, function)
        self.defaults(function)
        cells = function.__closure__ or ()
        for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
            content = _content(cell)
            if content is not MISSING:
                self.stack.append((Place(name, cell, (("cell", None),)), content))
        reads = reads_of(function.__code__)
        for name in sorted(reads.globals):
            if name in function.__globals__ and name.isidentifier():  # others are a tool's own
                place = Place(name, function.__globals__, (("name", name),))
                self.stack.append((place, function.__globals__[name]))
        for name in sorted(reads.modules & sys.modules.keys()):
            self.stack.append((Place(name, sys.modules, (("name", name),)), sys.modules[name]))

    def defaults(self, function: FunctionType) -> None:
        code = function.__code__
        defaults = function.__defaults__ or ()
        names = code.co_varnames[: code.co_argcount]
        for i, value in enumerate(defaults):
            name = names[len(names) - len(defaults) + i]
            steps = (("field", "__defaults__"), ("item", i))
            self.stack.append((Place(name, function, steps), value))
        named = function.__kwdefaults__
        if named:
            place = Place("keyword defaults", function, (("field", "__kwdefaults__"),))
            self.found.watched.append(ContainerKeys(place, type(named), tuple(named), len(named)))
            for name, value in named.items():
                self.stack.append((Place(name, function, place.item(name).steps), value))

    # -- what has fields

    def module(self, place: Place, module: ModuleType) -> None:
        if is_library(module):
            if module.__name__ == "os" and self.named("environ", "getenv"):
                self.environment()
            if module.__name__ == "numpy" and self.named("random"):
                import numpy.random  # noqa: F401  so that its state is compared from the start
            return
        own = vars(module)
        self.found.objects.append((place.name, module))
        for key in self.keys(own):
            self.stack.append((place.field(key), own[key]))

    def environment(self) -> None:
        import os

        self.stack.append((Place("os.environ", os.environ), os.environ))

    def type(self, place: Place, cls: type) -> None:
        """A class that code names: it may be called, and its attributes read."""
        self.found.objects.append((place.name, cls))
        for key in sorted(self.reads.attributes | self.reads.texts):
            value = _users(cls, key)
            if value is not MISSING:
                self.attribute(place, cls, key, value)
        for base in cls.__mro__:
            if not is_library(base):
                for key, value in vars(base).items():
                    if key.startswith("__") and isinstance(value, FunctionType):
                        self.callable(value)

    def object(self, place: Place, value: Any) -> None:
        """An object of the user's: the fields that are named, its own or its class's."""
        self.found.objects.append((place.name, value))
        own = getattr(value, "__dict__", {})
        cls = type(value)
        for key in self.keys(own):
            if not hasattr(type(_users(cls, key)), "__set__"):  # else the descriptor goes before
                self.stack.append((place.field(key), own[key]))
        for key in sorted((self.reads.attributes | self.reads.texts) - own.keys()):
            inherited = _users(cls, key)
            if inherited is not MISSING:
                self.attribute(place, value, key, inherited)
            elif self.reads.any_field and key in self.reads.texts:
                self.found.watched.append(Absent(place.field(key)))
        for base in cls.__mro__:
            if not is_library(base):
                for key, method in vars(base).items():
                    called = key.startswith("__") and key not in _NOT_CALLED
                    if called and isinstance(method, FunctionType):
                        self.stack.append((place.of_type(key), method))

    def attribute(self, place: Place, owner: Any, key: str, value: Any) -> None:
        """What a class has under a name, read through one of its objects or itself."""
        if isinstance(value, MemberDescriptorType):
            held = getattr(owner, key, MISSING)
            if held is not MISSING and held is not value:
                self.stack.append((place.field(key), held))
        elif isinstance(value, (FunctionType, staticmethod, classmethod)):
            function = value if isinstance(value, FunctionType) else value.__func__
            self.stack.append((place.field(key, "method"), function))
        elif isinstance(value, (property, functools.cached_property)):
            getter = value.fget if isinstance(value, property) else value.func
            if not isinstance(owner, type):
                self.found.watched.append(Constant(place.of_type(key), value))
                if isinstance(value, functools.cached_property):
                    self.found.watched.append(Absent(place.field(key, "own")))
            self.callable(getter)
        elif not hasattr(type(value), "__get__"):
            self.stack.append((place.field(key), value))
        elif not isinstance(owner, type) and not is_library(value):
            self.stack.append((place.of_type(key), value))

    def keys(self, own: Mapping[str, Any]) -> list[str]:
        """The fields of an object that code may read."""
        if self.reads.any_field:
            return [key for key in own if not key.startswith(("__", _OURS))]
        return sorted(self.reads.attributes & own.keys())

    def named(self, *names: str) -> bool:
        reads = self.reads
        return any(n in reads.attributes or n in reads.globals for n in names)

    def constructor(self, place: Place) -> None:
        """A name of one of NumPy's constructors, which is swapped while the function is traced."""
        kind, name = place.steps[-1] if place.steps else ("", "")
        holder = Place(place.name, place.root, place.steps[:-1]).look()
        if kind == "field":
            holder = getattr(holder, "__dict__", None)
        if kind == "cell" or (kind in ("name", "field") and isinstance(holder, dict)):
            self.found.variables.append(Variable(holder, name))

    # -- containers, and what is not looked into

    def container(self, place: Place, value: Any) -> None:
        items = parts(value)
        if isinstance(value, _FLAT) or all(type(item) in _EXACT for item in items):
            self.found.watched.append(Contents(place, type(value), items))
            return
        if isinstance(value, _MAPPINGS):
            keys = items[::2]
            self.found.watched.append(ContainerKeys(place, type(value), keys, len(keys)))
            self.stack += [(place.item(k), v) for k, v in zip(keys, items[1::2], strict=True)]
            return
        self.found.watched.append(ContainerKeys(place, type(value), None, len(items)))
        self.stack += [(place.item(i), item) for i, item in enumerate(items)]

    def foreign(self, place: Place, value: Any) -> None:
        """An object of a library."""
        self.found.watched.append(Constant(place, value))
        from tenfold.trace.control.custom import Custom

        if isinstance(value, Custom):
            self.callable(value.fallback)
            return
        for base in type(value).__mro__:
            for module, name, key in _HOLDERS:
                if (base.__module__, base.__name__) == (module, name):
                    self.stack.append((place.field(key), getattr(value, key)))
                    return
        hashed: Any = type(value).__hash__
        if type(value) is not object and hashed in (None, object.__hash__):
            self.found.unguarded.append((place, value))  # it is not a value by itself


_OURS = "_tenfold"
_EXACT = frozenset((bool, int, float, complex, str, bytes, type(None)))


def is_library(value: Any) -> bool:
    """Whether a value comes from a library, where nothing of the user's is looked for."""
    if isinstance(value, ModuleType):
        home = value.__name__
    elif isinstance(value, MethodType) or _is_wrapper(value):
        return False
    elif isinstance(value, (FunctionType, type)):
        home = value.__module__ or ""
    else:
        home = type(value).__module__
    return home.partition(".")[0] in _LIBRARIES


def _kind(value: Any) -> tuple[str, str]:
    return type(value).__module__, type(value).__name__


def _is_random(value: Any) -> bool:
    """Whether this is a generator of random numbers; whoever has one has loaded its module."""
    names = {"numpy.random": ("Generator", "RandomState", "BitGenerator"), "random": ("Random",)}
    # Another thread may be importing one: then it has nothing yet.
    kinds = [getattr(sys.modules.get(m), n, None) for m, parts in names.items() for n in parts]
    return isinstance(value, tuple(kind for kind in kinds if kind is not None))


def _getenv() -> Any:
    return getattr(sys.modules.get("os"), "getenv", None)


def _is_wrapper(value: Any) -> bool:
    """Whether this stands for a function inside it. Asked of its own fields: some objects answer
    to any name."""
    own = getattr(value, "__dict__", None)
    return isinstance(own, dict) and "__wrapped__" in own


def _users(cls: type, key: str) -> Any:
    """What a class of the user's or one of its bases has under a name."""
    for base in cls.__mro__:
        if key in vars(base):
            return MISSING if is_library(base) else vars(base)[key]
    return MISSING


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return MISSING
