"""Backend: the same function compiled, or run by the evaluator that defines what it means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import tenfold as tn


class TracedFunction:
    """A function that runs on either backend; each is traced when it is first called."""

    # what makes compiled calls in our place, given the function, its name and its arguments
    watcher: ClassVar[Callable[[tn.Jitted, str, Any, Any], Any] | None] = None

    def __init__(
        self, function: Callable[..., Any], static: tuple[str, ...], verify: str = "first"
    ) -> None:
        self.__doc__ = function.__doc__
        self.name = function.__name__
        self._jitted = {
            "compiled": tn.jit(function, static=static, verify=verify),
            "evaluator": tn.jit(function, static=static, compile="never"),
        }
        self._seen: set[tuple[object, ...]] = set()

    def on(self, backend: str) -> Callable[..., Any]:
        """The function on one backend."""
        jitted, watcher = self._jitted[backend], TracedFunction.watcher
        if watcher is None or backend != "compiled":
            return jitted
        return lambda *args, **kwargs: watcher(jitted, self.name, args, kwargs)

    def graph(self, backend: str, *args: Any, **kwargs: Any) -> tn.Graph:
        """The program that runs for such arguments; a call with them does not trace it again."""
        return self._jitted[backend].trace(*args, **kwargs)

    def is_new(self, backend: str, *shapes: object) -> bool:
        """Whether this is the first call with such shapes.

        A plan takes over after the evaluator has confirmed it on the first call's inputs, so a
        first call should be short: one step of a loop, not all of them.
        """
        key = (backend, *shapes)
        new = backend == "compiled" and key not in self._seen
        self._seen.add(key)
        return new


def traced(*static: str, verify: str = "first") -> Callable[[Callable[..., Any]], TracedFunction]:
    """Make a function run on either backend; `static` names its arguments that are no arrays,
    `verify` is `tn.jit`'s."""
    return lambda function: TracedFunction(function, static, verify)


def padded(count: int, least: int) -> int:
    """A power of two with room for so many: what is as large is traced and compiled once.

    >>> padded(5, 4), padded(1, 4)
    (8, 4)
    """
    return max(least, 1 << max(0, count - 1).bit_length())
