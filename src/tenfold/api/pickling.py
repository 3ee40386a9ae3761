"""Pickling: a jitted function travels as functions do, by the name that leads to it.

Neither code nor arrays are in the pickle: who reads it imports the module, and traces and compiles
anew or finds the plan in its cache. What has no name of its own travels as the plain function by
its name, and the options beside it. A method travels with its object. Picklers that write functions
down, as cloudpickle does for those of `__main__`, are given the plain function to write down.
"""

from __future__ import annotations

import pickle
import sys
from importlib import import_module
from types import FrameType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from tenfold.errors import PickleProblem

if TYPE_CHECKING:
    from tenfold.api.jit import Jitted


def reduced(jitted: Jitted, pickler: FrameType) -> str | tuple[Any, ...]:
    """What `__reduce_ex__` gives for a function; `pickler` is the frame that asks."""
    from tenfold.api.jit import Jitted

    function, written = jitted.__wrapped__, _writes_functions(pickler)
    module, qualname = jitted.__module__, str(jitted.__qualname__)
    named = _named(module, qualname)
    if named is jitted and not (written and module == "__main__"):
        return qualname
    if not (written and jitted.home == "__main__"):
        for name, value in list(getattr(sys.modules.get(jitted.home), "__dict__", {}).items()):
            if value is jitted:
                return _found, (jitted.home, name)
    if isinstance(function, MethodType):
        owner, name = function.__self__, function.__name__
        if getattr(owner, name, None) is jitted:
            return getattr, (owner, name)
    elif isinstance(function, FunctionType) and not written:
        if isinstance(named, Jitted) and named.__wrapped__ is function:
            function = named  # with other options
        else:
            _check(function)
    return Jitted, (function, jitted.options)


def _found(module: str, name: str) -> Any:
    """The function of this name in a module."""
    return getattr(import_module(module), name)


def _named(module: str, qualname: str) -> Any:
    """What a name of a module stands for; None where it stands for nothing."""
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def _writes_functions(frame: FrameType | None) -> bool:
    """Whether the pickler whose frame this is writes functions down that no name leads to."""
    while frame is not None and frame.f_globals.get("__name__") == "pickle":
        frame = frame.f_back
    name = "" if frame is None else frame.f_globals.get("__name__", "")
    return "cloudpickle" in name or name.partition(".")[0] == "dill"


def _check(function: FunctionType) -> None:
    """Raise what pickle raises for this function, with the remedy."""
    try:
        pickle.dumps(function)
    except (pickle.PicklingError, AttributeError) as error:
        raise PickleProblem(
            str(error),
            fix="a function is pickled by its name: define it at the top of a module, with @tn.jit "
            "above it, or as g = tn.jit(f)",
        ) from None
