"""Where the user is: the innermost line that is neither Tenfold's nor NumPy's."""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import sys
from bisect import bisect_right
from types import CodeType

import numpy as np

from tenfold.frames import is_ours
from tenfold.graph import Source

# A raw source is a code object and an offset in it: cheap to take, resolved when a graph is
# finished (asking a frame for its line walks the function's line table each time).
Raw = tuple[CodeType, int]

_NUMPY = os.path.dirname(np.__file__) + os.sep
_FILES = tuple(module.__file__ for module in (contextlib, functools))
_internal: dict[int, bool] = {}  # by id of the code object: hashing one takes long
_held: list[CodeType] = []  # so that no id is used again
_lines: dict[int, tuple[CodeType, list[int], list[int | None]]] = {}  # likewise


def is_internal(code: CodeType) -> bool:
    """Whether code is Tenfold's or NumPy's."""
    found = _internal.get(id(code))
    return _judge(code) if found is None else found


def _judge(code: CodeType) -> bool:
    name = code.co_filename
    found = is_ours(code) or name.startswith(_NUMPY) or name in _FILES
    if len(_held) > 65536:
        _internal.clear()
        _held.clear()
    _held.append(code)
    _internal[id(code)] = found
    return found


def here(depth: int = 1) -> Raw | None:
    """The user's place in the program, or None when there is none.

    The nearest `depth` frames are known to be ours: Python makes no objects of frames that nobody
    asks for.
    """
    frame = sys._getframe(depth)
    known = _internal
    while frame is not None:
        code = frame.f_code
        ours = known.get(id(code))
        if ours is None:
            ours = _judge(code)
        if not ours:
            return code, frame.f_lasti
        frame = frame.f_back  # type: ignore[assignment]
    return None


def blame(error: BaseException) -> Raw | None:
    """The innermost user's place that an error passed through."""
    found, trail = None, error.__traceback__
    while trail is not None:
        code = trail.tb_frame.f_code
        if not is_internal(code):
            found = code, trail.tb_lasti
        trail = trail.tb_next
    return found


def locate(raw: Raw | Source | None) -> Source | None:
    """The line of a raw source; a node that comes from a finished graph has its line already."""
    if raw is None or isinstance(raw, Source):
        return raw
    code, offset = raw
    table = _lines.get(id(code))
    if table is None:
        if len(_lines) > 4096:
            _lines.clear()
        spans = list(code.co_lines())
        table = _lines[id(code)] = code, [s[0] for s in spans], [s[2] for s in spans]
    _, starts, lines = table
    line = lines[max(0, bisect_right(starts, offset) - 1)] or code.co_firstlineno
    return _source(code.co_filename, line, code.co_name)


@functools.lru_cache(maxsize=65536)
def _source(file: str, line: int, function: str) -> Source:
    return Source(file, line, function)


def describe(raw: Raw | Source | None) -> str | None:
    """A raw source as the text of an error: file, line, function and the line itself."""
    source = locate(raw)
    if source is None:
        return None
    text = linecache.getline(source.file, source.line).strip()
    return f"{source}: {text}" if text else str(source)
