"""Tables: what NumPy's functions, ufuncs and methods do on traced arrays, and why some do nothing.

The modules of `tenfold.trace.surface` file it; `tenfold.trace.array` looks it up, and what is
missed is imported from where `tenfold.trace.homes` says.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from tenfold.errors import Unsupported
from tenfold.frozen import frozen
from tenfold.late import Late
from tenfold.trace.homes import HOMES, home_of
from tenfold.trace.source import describe, here


class Filed(Late[Any, Callable[..., Any]]):
    """What modules file when they are imported.

    A thread sees what a module files when the module is there as a whole: what is filed is put by,
    and moves into the table when it is asked for and its module has been imported. A function may
    be asked for by its substitute (`tenfold.trace.swap`), which equals it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._put_by: dict[Any, Callable[..., Any]] = {}

    def __setitem__(self, key: Any, value: Callable[..., Any]) -> None:
        self._put_by[key] = value
        self.pop(key, None)

    def bring(self, key: Any) -> None:
        home = home_of(key)
        if home is not None:
            import_module(f"tenfold.trace.{home}")
        if key not in self._put_by:
            import_all()
        if key in self._put_by:
            super().__setitem__(key, self._put_by[key])

    def whole(self) -> None:
        import_all()
        for key, value in list(self._put_by.items()):
            super().__setitem__(key, value)


@cache
def import_all() -> None:
    """Import whatever files something."""
    for module in HOMES:
        import_module(f"tenfold.trace.{module}")


FUNCTIONS = Filed()
UFUNCS = Filed()
METHODS = Filed()  # reduce, accumulate, outer, at of any ufunc
COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


@frozen
class Reason:
    """Why a NumPy function is not traced, and what to write instead."""

    why: str
    instead: str


REASONS: dict[Any, Reason] = {}


class MissingMethod(Unsupported, AttributeError):
    """A method or attribute of NumPy arrays that traced arrays lack."""


@cache
def keywords(implementation: Callable[..., Any]) -> frozenset[str]:
    """The names an implementation takes arguments by."""
    parameters = inspect.signature(implementation).parameters
    return frozenset(parameters)


def nearest(name: str, prefix: str, names: Iterable[str]) -> str:
    from difflib import get_close_matches  # for this error alone

    near = get_close_matches(name, names, 1, 0.5)
    hint = f"the nearest it has is {prefix}{near[0]}; " if near else ""
    return f"{hint}tn.call_host runs it on the host"


def spelled(ufunc: np.ufunc) -> str:
    """A ufunc as the user names it: NumPy's, SciPy's, or one of somebody else's."""
    name = ufunc.__name__
    for module, prefix in (("numpy", "np"), ("scipy.special", "scipy.special")):
        if getattr(sys.modules.get(module), name, None) is ufunc:
            return f"{prefix}.{name}"
    return f"the ufunc {name}"


def missing(name: str, reason: Reason | None = None) -> Unsupported:
    """The error of a NumPy function that Tenfold lacks: why, or the nearest one it has."""
    if reason is not None:
        return Unsupported(
            f"{name} is not among the NumPy functions that Tenfold traces: {reason.why}",
            where=describe(here()),
            fix=reason.instead,
        )
    function, _, keyword = name.partition(" with ")
    last = function.rpartition(".")[2]
    names = [getattr(f, "__name__", "") for f in (*FUNCTIONS, *UFUNCS) if callable(f)]
    if keyword:
        return Unsupported(
            f"{function} is traced, but not with {keyword}",
            where=describe(here()),
            fix="leave it out, or run the function on the host with tn.call_host",
        )
    if not name.startswith("np."):
        return Unsupported(
            f"{name} is not among the functions that Tenfold traces",
            where=describe(here()),
            fix=f"run it on the host: tn.call_host({last}, out_types, x)",
        )
    return Unsupported(
        f"{name} is not among the NumPy functions that Tenfold traces",
        where=describe(here()),
        fix=nearest(last, "np.", names),
    )
