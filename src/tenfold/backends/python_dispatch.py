"""Dispatch in Python: which of many bound programs answers a call, found by the types of its
arguments. For backends, and for platforms, that have no native one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tenfold.backends.program import BoundProgram, NoMatch
from tenfold.frames import hide
from tenfold.types import DTYPES, SHORT


class PythonDispatch:
    """A callable over programs that are bound with `decline` as their own slow path."""

    def __init__(self, slow: Callable[..., Any], own: type[Any] = np.generic) -> None:
        """`own` are arrays in a device's memory."""
        self.slow = slow
        self._typed = (np.generic, own)
        self._plans: dict[Any, list[BoundProgram]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._plans.values()))

    def add(self, plan: BoundProgram) -> None:
        self._list(plan, plan)

    def remove(self, plan: BoundProgram) -> None:
        self._list(plan)

    def _list(self, plan: BoundProgram, *last: BoundProgram) -> None:
        kinds = _kinds_of(plan)
        others = [one for one in self._plans.pop(kinds, ()) if one is not plan]
        if others or last:
            self._plans[kinds] = [*others, *last]

    def clear(self) -> None:
        self._plans.clear()

    def __call__(self, *args: Any, **names: Any) -> Any:
        array, typed = np.ndarray, self._typed
        kinds = tuple(
            (a.dtype.type, a.shape) if (t := type(a)) is array or issubclass(t, typed) else t
            for a in args
        )
        for plan in self._plans.get(kinds, ()) if not names else ():
            given: Iterable[Any] = args
            if not plan.binding.writes:
                given = (a if _is_packed(a) else np.array(a, order="C") for a in args)
            try:
                return plan.call(*given)
            except NoMatch:
                continue
        try:
            return self.slow(*args, **names)
        except BaseException as error:
            hide(error)
            raise


def _kinds_of(plan: BoundProgram) -> tuple[Any, ...]:
    return tuple((DTYPES[SHORT[type.dtype]].type, type.shape) for type in plan.binding.types)


def _is_packed(given: Any) -> bool:
    return type(given) is not np.ndarray or (given.flags.c_contiguous and given.flags.aligned)
