"""Kinds: arrays of other libraries, taken by DLPack, and results given back as their kind."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.errors import TypeMismatch
from tenfold.trace.array import Array, fresh
from tenfold.trace.lazy import LAZY
from tenfold.trace.realise import realise

Give = Callable[[Any], Any]
_OURS = (np.ndarray, np.generic, Array, bool, int, float, complex)


def taken_in(leaves: list[Any]) -> Give | None:
    """Bring the arguments of a call to NumPy arrays and numbers, in place, and say how results
    are given back: as lazy arrays where one was given, as arrays of another library where one
    of its was; None: as NumPy gives them."""
    give: Give | None = None
    lazy = []
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Array):
            if leaf._scope is LAZY:
                leaf._check_readable()
                lazy.append(i)
                give = give or fresh
        elif not isinstance(leaf, _OURS) and hasattr(leaf, "__dlpack__"):
            leaves[i] = from_library(leaf)
            if give is None or give is fresh:
                give = _giver(leaf)
    if lazy:
        realise([leaves[i]._value for i in lazy])  # all of them together
        for i in lazy:
            leaves[i] = leaves[i]._host()
    return give


def from_library(array: Any) -> np.ndarray[Any, Any]:
    """An array of another library as NumPy's, on the same memory where that can be."""
    if hasattr(array, "detach"):  # torch does not export what it takes gradients of
        array = array.detach()
    try:
        return np.from_dlpack(array)
    except (BufferError, RuntimeError, TypeError) as error:
        raise TypeMismatch(
            f"a {type(array).__module__}.{type(array).__name__} can't be taken by DLPack: {error}",
            fix="move it to the CPU, or convert it to a NumPy array",
        ) from error


def _giver(array: Any) -> Give | None:
    """What makes an array of this one's library."""
    module = sys.modules.get(type(array).__module__.partition(".")[0])
    make = getattr(module, "from_dlpack", None)
    if make is None and hasattr(array, "__array_namespace__"):
        make = getattr(array.__array_namespace__(), "from_dlpack", None)
    return None if make is None else lambda made: make(np.asarray(made))
