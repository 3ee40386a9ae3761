"""Dispatch: NumPy's functions on arrays, by the surface where it has them, else on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ValueProblem
from tenfold.trace.lazy.host import on_host
from tenfold.trace.lazy.recall import recall
from tenfold.trace.scope import current
from tenfold.trace.source import describe, here
from tenfold.trace.surface.selecting.selection import Selection
from tenfold.trace.tables import FUNCTIONS, UFUNCS, missing

CPU = "cpu"


def apply(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What a NumPy function gives on arrays; one that has no op runs on lazy arrays' values."""
    if any(type(x) is Selection for x in args):
        return function(*args, **kwargs)  # NumPy asks it
    found = UFUNCS.get(function) if isinstance(function, np.ufunc) else FUNCTIONS.get(function)
    if found is not None:
        return recall(found, args, kwargs) if current() is None else found(*args, **kwargs)
    if current() is not None:
        raise missing(f"np.{function.__name__}")
    return on_host(function, args, kwargs)


def check_device(device: Any) -> None:
    """Arrays live on the CPU."""
    if device is not None and device != CPU:
        raise ValueProblem(
            f"there is no device {device!r}", where=describe(here()), fix=f"use {CPU!r}"
        )
