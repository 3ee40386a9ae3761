"""Anywhere: functions of Tenfold's own that work inside a trace and outside of one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from tenfold.frames import entry
from tenfold.trace.array import Array
from tenfold.trace.scope import current

F = TypeVar("F", bound=Callable[..., Any])


def anywhere(function: F) -> F:
    """This function, which outside a trace is traced for its arrays and run at once.

    Arguments that are NumPy's arrays are traced; all others are known while tracing.
    On lazy arrays it is as lazy as they are.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if current() is not None or any(isinstance(a, Array) for a in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        from tenfold.trace.control.eager import at_once  # it imports this package

        given = {i: a for i, a in enumerate(args) if isinstance(a, np.ndarray)}
        named = {k: a for k, a in kwargs.items() if isinstance(a, np.ndarray)}

        def traced(arrays: Any, others: Any) -> Any:
            found = dict(zip(given, arrays, strict=True))
            return function(
                *(found.get(i, a) for i, a in enumerate(args)),
                **{**kwargs, **dict(zip(named, others, strict=True))},
            )

        return at_once(traced, list(given.values()), list(named.values()))

    return entry(call)  # type: ignore[return-value]
