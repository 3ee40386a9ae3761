"""frozen and mutable: dataclasses with slots, whose methods are written when needed.

`dataclasses` writes and compiles the methods of a class when the class is made, which takes as
long as importing a small module does. Here a class costs a tenth of that. Its methods go field by
field, and are written and compiled when they have been called a few times: of most classes a
program makes one object or two. Every name with an annotation is a field.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields
from inspect import get_annotations
from typing import Any, TypeVar, dataclass_transform, overload

C = TypeVar("C", bound=type)
Method = Callable[..., Any]

FEW = 8  # calls of a method before it is written
_FIELD: Any = vars(dataclasses)["_FIELD"]  # what marks a field that is no more than that


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: C) -> C: ...


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(*, eq: bool = True, order: bool = False, kw_only: bool = False) -> Callable[[C], C]: ...


def frozen(cls: Any = None, *, eq: bool = True, order: bool = False, kw_only: bool = False) -> Any:
    """The class as a frozen dataclass with slots; `fields`, `replace` and `asdict` work on it.

    >>> @frozen
    ... class Point:
    ...     "A place."
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0), hash(Point(1)) == hash(Point(1, 0))
    (Point(x=1, y=0), True, True)
    """
    if cls is None:
        return lambda cls: _made(cls, eq, order, kw_only)
    return _made(cls, eq, order, kw_only)


@overload
@dataclass_transform(field_specifiers=(field,))
def mutable(cls: C) -> C: ...


@overload
@dataclass_transform(field_specifiers=(field,))
def mutable(*, weak: bool = False) -> Callable[[C], C]: ...


def mutable(cls: Any = None, *, weak: bool = False) -> Any:
    """The class as a dataclass with slots whose fields may change; each object equals itself alone.
    `weak`: it may be referred to weakly.

    >>> @mutable
    ... class Count:
    ...     "How many."
    ...     n: int = 0
    >>> count = Count()
    >>> count.n += 1
    >>> count
    Count(n=1)
    """
    if cls is None:
        return lambda cls: _made(cls, False, False, False, fixed=False, weak=weak)
    return _made(cls, False, False, False, fixed=False, weak=weak)


def _made(
    cls: Any, eq: bool, order: bool, kw_only: bool, *, fixed: bool = True, weak: bool = False
) -> Any:
    own = get_annotations(cls)
    inherited = {name for base in cls.__mro__[1:] for name in vars(base).get("__slots__", ())}
    body = {k: v for k, v in vars(cls).items() if k not in own and k not in _UNSLOTTED}
    slots = [name for name in own if name not in inherited]
    body["__slots__"] = (*slots, "__weakref__") if weak else tuple(slots)
    body["__dataclass_fields__"] = _LateFields(cls, own, kw_only)
    body["__match_args__"] = _MATCH_ARGS
    if fixed:
        body |= {"__setattr__": _refuse, "__delattr__": _refuse}
        body |= {"__getstate__": _state, "__setstate__": _restore}
    body.setdefault("__repr__", _show)
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__

    names = ["__init__"]
    if eq:
        names += ["__eq__", "__hash__"]
    if order:
        names += _SIGNS
    for name in names:
        if body.get(name) is None:
            setattr(made, name, _late(made, name))
    body["__dataclass_fields__"].cls = made
    return made


_UNSLOTTED = ("__dict__", "__weakref__")
_SIGNS = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


class _LateFields:
    """The fields of the bases, then the class's own: made when somebody asks for them, and put in
    the place of this."""

    __slots__ = ("cls", "given", "kw_only", "types")

    cls: Any  # that has them

    def __init__(self, given: Any, types: dict[str, Any], kw_only: bool) -> None:
        self.given = {name: vars(given)[name] for name in types if name in vars(given)}
        self.types, self.kw_only = types, kw_only

    def __get__(self, instance: Any, owner: Any) -> dict[str, Field[Any]]:
        found: dict[str, Any] = {}
        for base in self.cls.__mro__[:0:-1]:
            if "__dataclass_fields__" in vars(base):
                found |= base.__dataclass_fields__
        for name, type_ in self.types.items():
            given = self.given.get(name, MISSING)
            one: Any = given if isinstance(given, Field) else field(default=given)
            one.name, one.type, one._field_type = name, type_, _FIELD
            one.kw_only = self.kw_only if one.kw_only is MISSING else one.kw_only
            found[name] = one
        self.cls.__dataclass_fields__ = found
        return found


class _LateMatchArgs:
    """The names of the arguments that are given by place, as `match` wants them."""

    __slots__ = ()

    def __get__(self, instance: Any, owner: Any) -> tuple[str, ...]:
        return tuple([f.name for f in fields(owner) if f.init and not f.kw_only])


_MATCH_ARGS = _LateMatchArgs()


class _LateMethod:
    """What stands for a method until it is written."""

    __slots__ = ("calls", "cls", "name")

    def __init__(self, cls: Any, name: str) -> None:
        self.cls, self.name, self.calls = cls, name, 0

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Go field by field a few times, and then write the method that takes this one's place;
        where that is not known, at once."""
        self.calls += 1
        by_field = _BY_FIELD.get(self.name)
        if by_field is not None and self.calls <= FEW:
            found = by_field(self.cls, *args, **kwargs)
            if found is not NotImplemented:
                return found
        written = _WRITE[self.name](self.cls)
        setattr(self.cls, self.name, written)
        return written(*args, **kwargs)


def _late(cls: Any, name: str) -> Any:
    late = _LateMethod(cls, name)

    def method(*args: Any, **kwargs: Any) -> Any:
        return late.call(*args, **kwargs)

    return method


def _init_by_field(cls: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """NotImplemented where the arguments do not fit; who writes the method has the error too."""
    values, taken, named = {}, 0, 0
    for f in fields(cls):
        if f.init and not f.kw_only and taken < len(args):
            values[f.name] = args[taken]
            taken += 1
        elif f.init and f.name in kwargs:
            values[f.name] = kwargs[f.name]
            named += 1
        elif f.default is not MISSING:
            values[f.name] = f.default
        elif f.default_factory is not MISSING:
            values[f.name] = f.default_factory()
        else:
            return NotImplemented
    if taken < len(args) or named < len(kwargs):
        return NotImplemented
    for name, value in values.items():
        object.__setattr__(self, name, value)
    if hasattr(cls, "__post_init__"):
        self.__post_init__()
    return None


def _eq_by_field(cls: Any, self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    names = [f.name for f in fields(cls) if f.compare]
    return [getattr(self, n) for n in names] == [getattr(other, n) for n in names]


def _hash_by_field(cls: Any, self: Any) -> int:
    return hash(tuple([getattr(self, f.name) for f in _hashed(cls)]))


_BY_FIELD: dict[str, Method] = {
    "__init__": _init_by_field,
    "__eq__": _eq_by_field,
    "__hash__": _hash_by_field,
}


def _compiled(cls: type, name: str, text: str, names: dict[str, Any]) -> Any:
    exec(compile(text, f"{__file__}:{cls.__name__}", "exec"), names)
    method = names[name]
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    return method


def _init(cls: Any) -> Any:
    names: dict[str, Any] = {"_missing": MISSING}
    plain: list[str] = ["self"]
    keyword: list[str] = []
    lines: list[str] = []
    for f in fields(cls):
        n = f.name
        names[f"_set_{n}"] = getattr(cls, n).__set__  # of the slot: the class refuses
        names[f"_default_{n}"], names[f"_make_{n}"] = f.default, f.default_factory
        made = f"_default_{n}" if f.default_factory is MISSING else f"_make_{n}()"
        if not f.init:
            lines.append(f"_set_{n}(self, {made})")
            continue
        takes = keyword if f.kw_only else plain
        if f.default is not MISSING:
            takes.append(f"{n}=_default_{n}")
        elif f.default_factory is not MISSING:
            takes.append(f"{n}=_missing")
            lines.append(f"if {n} is _missing: {n} = {made}")
        else:
            takes.append(n)
        lines.append(f"_set_{n}(self, {n})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    takes = [*plain, "*", *keyword] if keyword else plain
    text = f"def __init__({', '.join(takes)}):\n " + "\n ".join(lines or ["pass"])
    return _compiled(cls, "__init__", text, names)


def _hash(cls: Any) -> Any:
    text = f"def __hash__(self):\n return hash({_values('self', _hashed(cls))})"
    return _compiled(cls, "__hash__", text, {})


def _hashed(cls: Any) -> list[Field[Any]]:
    return [f for f in fields(cls) if (f.compare if f.hash is None else f.hash)]


def _compare(name: str, sign: str) -> Method:
    def write(cls: Any) -> Any:
        compared = [f for f in fields(cls) if f.compare]
        text = (
            f"def {name}(self, other):\n"
            f" if other.__class__ is not self.__class__: return NotImplemented\n"
            f" return {_values('self', compared)} {sign} {_values('other', compared)}"
        )
        return _compiled(cls, name, text, {})

    return write


def _values(of: str, chosen: list[Field[Any]]) -> str:
    return f"({''.join(f'{of}.{f.name}, ' for f in chosen)})"


def _show(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse(self: Any, name: str, value: Any = None) -> None:
    raise FrozenInstanceError(f"{type(self).__name__}.{name} can't be changed")


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


_WRITE: dict[str, Method] = {
    "__init__": _init,
    "__eq__": _compare("__eq__", "=="),
    "__hash__": _hash,
    **{name: _compare(name, sign) for name, sign in _SIGNS.items()},
}
