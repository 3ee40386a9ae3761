"""Substitutes: what stands for a function of NumPy's while some thread traces.

For a thread that does not trace, and for NumPy and Tenfold themselves, it is that function; for
libraries too, where nothing traced is given to it. It has its name, its text and its signature,
equals it, and is pickled as it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import update_wrapper
from types import ModuleType
from typing import Any

from tenfold.trace.host.compute import any_traced, taken
from tenfold.trace.scope import current
from tenfold.trace.source import is_internal
from tenfold.trace.swap.caller import is_library, is_users


class Substitute:
    """Stands for something in a module of NumPy's; `make` is what it does in a traced function."""

    def __init__(self, module: ModuleType, name: str, make: Callable[..., Any]) -> None:
        self.module, self.name, self.make = module, name, make
        self.original = vars(module)[name]

    def __reduce__(self) -> Any:
        from pkgutil import resolve_name  # few are pickled

        return resolve_name, (f"{self.module.__name__}:{self.name}",)

    def __eq__(self, other: object) -> bool:
        return self.original is original(other)

    def __hash__(self) -> int:
        return hash(self.original)

    def __repr__(self) -> str:
        return repr(self.original)

    def __getattr__(self, name: str) -> Any:
        if name == "original":  # it is being made
            raise AttributeError(name)
        return getattr(self.original, name)


class FunctionSubstitute(Substitute):
    """Stands for a function, or for a class such as np.nditer."""

    def __init__(self, module: ModuleType, name: str, make: Callable[..., Any]) -> None:
        super().__init__(module, name, make)
        update_wrapper(self, self.original, updated=())

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if current() is None or not is_users(sys._getframe(1), self.name, self):
            return self.original(*args, **kwargs)
        if is_library(sys._getframe(1)) and not any_traced((args, kwargs)):
            return self.original(*taken(args, copy=True), **taken(kwargs, copy=True))
        return self.make(*args, **kwargs)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, self.original)

    def __subclasscheck__(self, cls: type) -> bool:
        return issubclass(cls, self.original)

    def __mro_entries__(self, bases: Any) -> tuple[Any, ...]:
        return (self.original,)


class IndexSubstitute(Substitute):
    """Stands for an object that makes arrays when it is indexed, as np.r_ does."""

    def __getitem__(self, key: Any) -> Any:
        if current() is None or is_internal(sys._getframe(1).f_code):
            return self.original[key]
        return self.make(key)

    def __len__(self) -> int:
        return len(self.original)


def original(value: Any) -> Any:
    """What a substitute stands for; anything else stands for itself."""
    return value.original if isinstance(value, Substitute) else value
