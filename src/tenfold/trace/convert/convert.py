"""Conversion: a function whose control flow may test traced values."""

from __future__ import annotations

import functools
import os
import sysconfig
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from tenfold.errors import ControlError
from tenfold.trace.convert.builtin import scalar
from tenfold.trace.convert.operators import Control
from tenfold.trace.convert.source import OWN, compiled, definition, refusal, with_code
from tenfold.trace.convert.statements import Site, rewrite
from tenfold.trace.convert.unchanging import LIBRARIES
from tenfold.trace.scope import current
from tenfold.trace.swap.constructors import ndarray

_INSTALLED = tuple({sysconfig.get_path(p) + os.sep for p in ("purelib", "platlib", "stdlib")})

_codes: dict[CodeType, tuple[CodeType, list[Site]]] = {}
_KEPT = "_tenfold_converted"  # a function keeps what was made of it


def convert_control(function: Any) -> Any:
    """The function, with control flow that may test traced values.

    `if`, `while`, `for`, `break`, `continue`, `return`, `and`, `or`, `not`, chained comparisons,
    conditional expressions, `min`, `max`, `range`, `int`, `float`, `bool`, `assert` and `raise`
    become `tn.cond` and `tn.while_loop` where what they test is traced. Where it is a Python value
    they stay what they are, and outside a trace everything does. Classes of NumPy's that are called
    (`np.ndarray(shape)`, `np.float32(x)`) make arrays of the program. A decorator for functions
    that a traced one calls; `tn.jit(f, control="convert")` does it for f and for those it calls.

    >>> import numpy as np, tenfold as tn
    >>> @tn.convert_control
    ... def collatz(n):
    ...     steps = 0
    ...     while n != 1:
    ...         n = n // 2 if n % 2 == 0 else 3 * n + 1
    ...         steps += 1
    ...     return steps
    >>> collatz(6), int(tn.jit(collatz)(np.int64(6)))
    (8, 8)
    """
    if isinstance(function, staticmethod | classmethod):
        return type(function)(convert_control(function.__func__))
    if isinstance(function, functools.partial):
        return functools.partial(
            convert_control(function.func), *function.args, **function.keywords
        )
    if isinstance(function, MethodType):
        return MethodType(convert_control(function.__func__), function.__self__)
    if isinstance(function, FunctionType):
        return _converted(function)
    call = getattr(function, "__call__", None)  # noqa: B004  its code is asked for
    if isinstance(call, MethodType) and not isinstance(function, type):
        return convert_control(call)
    raise ControlError(
        f"control='convert': {function!r} is not written in Python",
        fix="give a function, a method or an object with a __call__ of Python",
    )


def _converted(function: FunctionType) -> FunctionType:
    code = function.__code__
    if OWN in code.co_freevars:
        return function
    found: FunctionType | None = function.__dict__.get(_KEPT)
    if found is not None:
        return found
    if code not in _codes:
        if code.co_flags & _ASYNC:
            raise refusal(function, "is a coroutine", "trace a plain function")
        written = definition(function)
        tree, sites = rewrite(written.tree)
        _codes[code] = compiled(code, written, tree), sites
    made, sites = _codes[code]
    found = function.__dict__[_KEPT] = with_code(function, made, Control(function, sites, callee))
    return found


_ASYNC = 0x80 | 0x200  # a coroutine, an asynchronous generator


def callee(function: Any) -> Any:
    """A function that a converted one calls: converted too if it is the user's own; in the place of
    a class of NumPy's what makes an array of the program."""
    if isinstance(function, MethodType):
        inner = callee(function.__func__)
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    if isinstance(function, type) and current() is not None:
        if function is np.ndarray:
            return ndarray
        return functools.partial(scalar, function) if issubclass(function, np.generic) else function
    if not isinstance(function, FunctionType) or not _is_users(function):
        return function
    try:
        return _converted(function)
    except ControlError:  # without a source it is called as it is
        return function


def _is_users(function: FunctionType) -> bool:
    """Whether a function is the user's own: of no installed package."""
    home = (function.__module__ or "").partition(".")[0]
    return home not in LIBRARIES and not function.__code__.co_filename.startswith(_INSTALLED)
