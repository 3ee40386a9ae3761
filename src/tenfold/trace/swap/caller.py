"""Callers: whether it is the user's code that calls a substitute, by the frame that is seen.

Code of NumPy's and Tenfold's has frames of its own. Compiled code has none: `np.zeros` called
inside `np.random.default_rng(7)` is seen to come from the line that calls `default_rng`. So the
instruction is looked at: which name it calls.
"""

from __future__ import annotations

import dis
from functools import partial
from types import CodeType, FrameType
from typing import Any

from tenfold.trace.source import is_internal

_VARIABLES = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_FAST", "LOAD_CLASSDEREF")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_LIBRARIES = {"jax", "matplotlib", "numba", "pandas", "scipy", "skimage", "sklearn", "torch"}
# For each call of a code object, by its place: the name it calls, and whether that is an attribute.
Callees = dict[int, tuple[str, bool]]
_callees: dict[int, tuple[CodeType, Callees]] = {}  # by id: hashing a code object takes long


def is_users(frame: FrameType, name: str, substitute: Any) -> bool:
    """Whether a frame that calls a substitute does so itself, and is the user's."""
    code = frame.f_code
    if is_internal(code):
        return False
    found = _callees.get(id(code))
    if found is None:
        if len(_callees) > 4096:
            _callees.clear()
        found = _callees[id(code)] = code, _read(code)
    called, attribute = found[1].get(frame.f_lasti, (name, True))
    if called == name:
        return True
    if attribute:
        return False
    # `map` and Python's other functions call what they are given.
    value = frame.f_locals.get(called, frame.f_globals.get(called, substitute))
    return value is substitute or isinstance(value, partial)


def is_library(frame: FrameType) -> bool:
    """Whether a frame is of a library that hands its arrays on to compiled code, which takes
    NumPy's alone."""
    module: str = frame.f_globals.get("__name__", "")
    return module.partition(".")[0] in _LIBRARIES


def _read(code: CodeType) -> Callees:
    """The names that the calls of a code object call: a call and what it calls begin at one place
    of the text. What is not found is a call of something that has no name."""
    found: Callees = {}
    loaded: dict[Any, tuple[str, bool]] = {}  # what was last loaded, by where its text begins
    before: Any = None  # where the text of the instruction before begins, or of its chain
    for step in dis.get_instructions(code):
        where = step.positions
        kind = step.opname
        if where is None or where.col_offset is None or kind == "PUSH_NULL":
            continue
        begins = where.lineno, where.col_offset
        if kind in _ATTRIBUTES:
            loaded[begins] = loaded[before] = str(step.argval), True
            continue  # the next attribute is of the same chain
        if kind.startswith(_VARIABLES):
            loaded[begins] = str(step.argval), False
        elif kind == "PRECALL" and begins in loaded:
            found[step.offset] = loaded[begins]
        elif kind.startswith("CALL") and begins in loaded:
            found[step.offset] = loaded.pop(begins)
        before = begins
    return found
