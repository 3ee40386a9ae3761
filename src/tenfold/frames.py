"""Frames: which of them are the user's. Tracebacks show those alone, and warnings point at them.

An error leaves Tenfold through an entry, the function that the user called; there the frames of
ours are taken out of its traceback, above and below the user's own. What works does not notice: an
entry costs a call, and where that is too much the entry is written out.

An error that is none of ours and arose in our own frames is a fault of ours, and keeps them all.
`tn.config.traceback = "full"` keeps them always.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any, TypeVar

import numpy as np

from tenfold.config import config
from tenfold.errors import TenfoldError

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_APPS = os.path.join(OURS, "apps") + os.sep  # applications are users too
_NUMPY = os.path.dirname(np.__file__) + os.sep
_PYTHON = os.path.dirname(os.__file__) + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

# What users bring about, and what is raised on purpose.
_EXPECTED = (TenfoldError, Warning, OSError)


def is_ours(code: CodeType) -> bool:
    """Whether this is code of Tenfold's."""
    name = code.co_filename
    return name.startswith(OURS) and not name.startswith(_APPS)


def _is_beneath(code: CodeType) -> bool:
    """Whether this is code of Python's library or NumPy's: ours and the user's stand above it."""
    name = code.co_filename
    if name.startswith(("<frozen ", _NUMPY)):
        return True
    return name.startswith(_PYTHON) and not any(part in name for part in _INSTALLED)


# Errors.


def hide(error: BaseException) -> None:
    """Take the frames of ours out of the tracebacks of an error and of those that led to it."""
    if config.traceback == "full":
        return
    todo, known = [error], set()
    while todo:
        one = todo.pop()
        if id(one) in known:
            continue
        known.add(id(one))
        if isinstance(one, _EXPECTED) or not _is_fault(one, one.__traceback__):
            one.__traceback__ = _without_ours(one.__traceback__)
        todo += [e for e in (one.__cause__, one.__context__) if e is not None]
        if isinstance(one, BaseExceptionGroup):
            todo += one.exceptions


_FOR_USERS: set[CodeType] = set()


def for_users(function: F) -> F:
    """This function, which calls NumPy as the user would: what that raises is no fault of ours."""
    _FOR_USERS.add(function.__code__)
    return function


def _is_fault(error: BaseException, trail: TracebackType | None) -> bool:
    """Whether an error arose in frames of ours, or beneath them; not in an entry itself, whose
    arguments do not fit, nor in a call of the user's function that those do not fit."""
    if trail is not None and trail.tb_next is None:
        return False
    last: FrameType | None = None  # of ours
    while trail is not None:
        code = trail.tb_frame.f_code
        if is_ours(code):
            last = None if code in _FOR_USERS else trail.tb_frame
        elif not _is_beneath(code):
            last = None
        trail = trail.tb_next
    return last is not None and not (isinstance(error, TypeError) and _did_not_fit(error, last))


def _did_not_fit(error: TypeError, frame: FrameType) -> bool:
    """Whether Python says of a function of the user's that it was called with other arguments
    than it takes; the frame called it."""
    name, called, _ = str(error).partition("() ")
    return bool(called) and any(
        isinstance(value, FunctionType)
        and value.__qualname__ == name
        and not is_ours(value.__code__)
        for value in frame.f_locals.values()
    )


def _without_ours(trail: TracebackType | None) -> TracebackType | None:
    kept = []
    while trail is not None:
        if not is_ours(trail.tb_frame.f_code):
            kept.append(trail)
        trail = trail.tb_next
    made: TracebackType | None = None
    for one in reversed(kept):
        made = TracebackType(made, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return made


def entry(function: F) -> F:
    """This function, which users call: what it raises has the user's frames alone."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            hide(error)
            raise  # adds no frame of its own

    return call  # type: ignore[return-value]


def entries(cls: C) -> C:
    """The class, whose public methods users call."""
    for name, method in list(vars(cls).items()):
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(cls, name, entry(method))
    return cls


_ENTRY = entry(lambda: None).__code__  # of all entries


def published(found: Any) -> Any:
    """What a public name stands for: a function as an entry, in its own module too, where pickle
    looks for it."""
    if not isinstance(found, FunctionType):
        return found
    function: Callable[..., Any] = found
    home, name = vars(sys.modules[found.__module__]), found.__name__
    if home.get(name) is not function or found.__code__ is _ENTRY:  # one may have several names
        return function
    home[name] = entry(function)
    return home[name]


def calling_module() -> str:
    """The name of the user's module that called us."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code):
        frame = frame.f_back
    return "" if frame is None else frame.f_globals.get("__name__", "")


# Warnings.


class _Local(threading.local):
    kept: list[tuple[str, type[Warning]]] | None = None


_local = _Local()


def warn(message: str, category: type[Warning]) -> None:
    """A warning at the user's line, the innermost that called us."""
    if _local.kept is not None:
        _local.kept.append((message, category))
        return
    frame = at = sys._getframe(1)
    while at is not None and (is_ours(at.f_code) or _is_beneath(at.f_code)):
        at = at.f_back  # type: ignore[assignment]
    _warn_at(at or frame, message, category)


def _warn_at(frame: FrameType, message: str, category: type[Warning]) -> None:
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__", "<unknown>"),
        frame.f_globals.setdefault("__warningregistry__", {}),
    )


@contextmanager
def kept_warnings() -> Generator[list[tuple[str, type[Warning]]]]:
    """Keep the warnings of this thread, which has no line of the user's: to be said by a call."""
    before, _local.kept = _local.kept, []
    try:
        yield _local.kept
    finally:
        _local.kept = before
