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
internal: dict[int, bool] = {}  # by id of the code object: hashing one takes long
_held: list[CodeType] = []  # so that no id is used again
_lines: dict[int, CodeLines] = {}  # likewise


def is_internal(code: CodeType) -> bool:
    """Whether code is Tenfold's or NumPy's."""
    found = internal.get(id(code))
    return _judge(code) if found is None else found


def _judge(code: CodeType) -> bool:
    name = code.co_filename
    found = is_ours(code) or name.startswith(_NUMPY) or name in _FILES
    if len(_held) > 65536:
        internal.clear()
        _held.clear()
    _held.append(code)
    internal[id(code)] = found
    return found


def here(depth: int = 1) -> Raw | None:
    """The user's place in the program, or None when there is none.

    The nearest `depth` frames are known to be ours: Python makes no objects of frames that nobody
    asks for.
    """
    frame = sys._getframe(depth)
    known = internal
    while frame is not None:
        code = frame.f_code
        ours = known.get(id(code))
        if ours is None:
            ours = _judge(code)
        if not ours:
            return code, frame.f_lasti
        frame = frame.f_back  # type: ignore[assignment]
    return None


def caller(under_way: Raw | None) -> Raw | None:
    """The user's place that calls the function that asks. Where our own code calls it, that is
    part of the call under way."""
    frame = sys._getframe(2)
    code = frame.f_code
    ours = internal.get(id(code))
    if ours is None:
        ours = _judge(code)
    if ours:
        return under_way or here(3)
    return code, frame.f_lasti


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
    if raw.__class__ is not tuple:
        return raw  # type: ignore[return-value]
    code, offset = raw
    lines = _lines.get(id(code))
    if lines is None:
        if len(_lines) > 4096:
            _lines.clear()
        lines = _lines[id(code)] = CodeLines(code)
    return lines.found.get(offset) or lines.find(offset)


class CodeLines:
    """The lines of a code object, by offset; those that were asked for are at hand."""

    def __init__(self, code: CodeType) -> None:
        self.code = code  # held, so that no other has its id
        spans = list(code.co_lines())
        self._starts = [start for start, _, _ in spans]
        self._sources: dict[int, Source] = {}  # by line
        self._lines = [line or code.co_firstlineno for _, _, line in spans]
        self.found: dict[int, Source] = {}  # by offset

    def find(self, offset: int) -> Source:
        line = self._lines[max(0, bisect_right(self._starts, offset) - 1)]
        source = self._sources.get(line)
        if source is None:
            source = Source(self.code.co_filename, line, self.code.co_name)
            self._sources[line] = source
        self.found[offset] = source
        return source


def describe(raw: Raw | Source | None) -> str | None:
    """A raw source as the text of an error: file, line, function and the line itself."""
    source = locate(raw)
    if source is None:
        return None
    text = linecache.getline(source.file, source.line).strip()
    return f"{source}: {text}" if text else str(source)
