"""Builtins that ask for a value, as they are on traced ones."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tenfold.errors import ControlError
from tenfold.trace.array import Array
from tenfold.trace.containers import flatten
from tenfold.trace.control.agree import form
from tenfold.trace.control.control import scan
from tenfold.trace.convert.agreement import Disagreement, agreed
from tenfold.trace.convert.rounds import Enumerate, Range, Reversed, Zip
from tenfold.trace.operand import as_value
from tenfold.trace.scope import current
from tenfold.trace.source import describe, here
from tenfold.trace.surface.emit import is_traced
from tenfold.trace.surface.selecting.selection import Selection
from tenfold.types import BOOL, C128, F64, I64


def truth(value: Any) -> Any:
    """Whether a value is true, as a bool; of an array that is no scalar the array."""
    if not is_traced(value):
        return bool(value)
    return value if value.dtype == BOOL or value.shape else value != 0


def asked(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What a builtin gives: Python's own where nothing is traced."""
    found = _TRACED[function]
    if function in (builtins.any, builtins.all, builtins.min, builtins.max) and len(args) == 1:
        args = (args[0] if isinstance(args[0], Array | np.ndarray) else list(args[0]),)
    if not any(map(is_traced, flatten(args)[1])):
        return function(*args, **kwargs)
    return found(*args, **kwargs)


def _convert(weak: type, dtype: Any, name: str, value: Any, *more: Any) -> Any:
    if more or not is_traced(value):
        raise ControlError(f"{name}() of traced values with more arguments", where=describe(here()))
    if value.size != 1:
        raise ControlError(
            f"{name}() of {value.type}, not a scalar",
            where=describe(here()),
            fix=f"convert it as a whole: x.astype({name})",
        )
    scope = current()
    assert scope is not None
    scalar = value.reshape(()) if value.shape else value
    if weak is int and value.type.kind == "f":
        scalar = np.trunc(scalar)
    return Array(scope, as_value(scalar.astype(dtype), scope), weak=weak)


def scalar(kind: type[np.generic], *args: Any) -> Any:
    """What a class of NumPy's scalars gives: of one value a cast."""
    if len(args) == 1 and is_traced(args[0]):
        return args[0].astype(kind)
    return kind(*args)


def _bool(value: Any) -> Any:
    if value.size != 1:
        raise ControlError(
            f"bool() of {value.type}, not a scalar",
            where=describe(here()),
            fix="reduce it with .any() or .all()",
        )
    return truth(value.reshape(()) if value.shape else value)


def _len(items: Any) -> Any:
    """len of a container; of what a mask chooses along its first axis a traced number."""
    chosen = isinstance(items, Selection) and not items._at
    return items.length if chosen else len(items)


def _best(better: np.ufunc, name: str, *items: Any, **kwargs: Any) -> Any:
    """min and max: the first of those that are best, whatever is not a number."""
    if kwargs:
        raise ControlError(
            f"{name}() of traced values with {', '.join(kwargs)}",
            where=describe(here()),
            fix="write np.where, or np.argmin and an index",
        )
    if len(items) == 1:
        only = items[0]
        if is_traced(only) and only.ndim == 1 and len(only):
            return scan(lambda a, b: (np.where(better(b, a), b, a), ()), only[0], only[1:])[0]
        items = tuple(only)
    best = items[0]
    for item in items[1:]:
        best = _choose(better, name, best, item)
    return best


def _choose(better: np.ufunc, name: str, best: Any, item: Any) -> Any:
    try:
        wanted = agreed(form(best), form(item))
    except Disagreement as why:
        raise ControlError(
            f"{name}() may give either of two types: {why}",
            where=describe(here()),
            fix=f"cast one of them with .astype, or write np.{better.__name__}",
        ) from None
    if wanted.type.shape:
        raise ControlError(
            f"{name}() of arrays {wanted.type} compares them as a whole",
            where=describe(here()),
            fix=f"write np.{'maximum' if name == 'max' else 'minimum'}(a, b)",
        )
    scope = current()
    assert scope is not None
    chosen = np.where(better(item, best), item, best)
    return Array(scope, as_value(chosen, scope, wanted.type.dtype), weak=wanted.weak)


def _any(items: Any, every: bool = False) -> Any:
    if is_traced(items) and items.ndim == 1:
        return items.all() if every else items.any()
    found: Any = every
    for item in items:
        part = truth(item)
        if not is_traced(part):
            if bool(part) is not every:
                return not every
        else:
            found = part if not is_traced(found) else found & part if every else found | part
    return found


_TRACED: dict[Any, Callable[..., Any]] = {
    builtins.min: partial(_best, np.less, "min"),
    builtins.max: partial(_best, np.greater, "max"),
    builtins.int: partial(_convert, int, I64, "int"),
    builtins.float: partial(_convert, float, F64, "float"),
    builtins.complex: partial(_convert, complex, C128, "complex"),
    builtins.bool: _bool,
    builtins.range: Range,
    builtins.any: _any,
    builtins.all: partial(_any, every=True),
}
# These are Python's but for what knows its rounds, or has a number of elements that is traced.
_GOING: dict[Any, Callable[..., Any]] = {
    builtins.enumerate: Enumerate,
    builtins.len: _len,
    builtins.zip: Zip,
    builtins.reversed: Reversed,
}


def builtin(function: Any) -> Any:
    """What stands for a builtin while a function is traced; anything else stands for itself."""
    if current() is None or not isinstance(function, _KINDS):
        return function
    if function in _GOING:
        return _GOING[function]
    return partial(asked, function) if function in _TRACED else function


_KINDS = (type, type(len))
