"""Backend: the same function compiled, for the processor or a GPU, or run by the evaluator that
defines what it means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import tenfold as tn
from tenfold.apps.prover.errors import InputError

DEVICES = ("cuda", "webgpu")  # Tenfold's backends that a run may name; "cuda:1" is the next GPU


def is_device(backend: str) -> bool:
    """Whether functions run on a GPU: one of its calls does much at once.

    >>> is_device("cuda:1"), is_device("compiled"), is_device("cuda:fast")
    (True, False, False)
    """
    name, colon, number = backend.partition(":")
    return name in DEVICES and (number.isdecimal() or not colon)


def check_device(backend: str) -> None:
    """An error where a run names a GPU that can't be used here: it says what is missing."""
    if not is_device(backend):
        return
    why = tn.backends(backend)[backend].get("missing")
    if why:
        raise InputError(
            f"the backend {backend!r} can't be used here: {why}",
            fix="say --backend compiled, which is the processor; tn.backends() says what is here",
        )


def target_of(backend: str) -> str:
    """What code is made for: a GPU where one is named, else the processor.

    >>> target_of("python") == target_of("compiled") != ""
    True
    """
    name = backend if is_device(backend) else "cpu"
    return tn.backends(name)[name].get("target", "none").partition(",")[0]


class TracedFunction:
    """A function that runs on any backend; it is traced for each when it is first called there."""

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

    def _on(self, backend: str) -> tn.Jitted:
        if backend not in self._jitted:
            self._jitted[backend] = self._jitted["compiled"].on(backend)
        return self._jitted[backend]

    def on(self, backend: str) -> Callable[..., Any]:
        """The function on one backend."""
        jitted, watcher = self._on(backend), TracedFunction.watcher
        if watcher is None or backend == "evaluator":
            return jitted
        return lambda *args, **kwargs: watcher(jitted, self.name, args, kwargs)

    def graph(self, backend: str, *args: Any, **kwargs: Any) -> tn.Graph:
        """The program that runs for such arguments; a call with them does not trace it again."""
        return self._on(backend).trace(*args, **kwargs)

    def is_new(self, backend: str, *shapes: object) -> bool:
        """Whether this is the first call with such shapes.

        A plan takes over after the evaluator has confirmed it on the first call's inputs, so a
        first call should be short: one step of a loop, not all of them.
        """
        key = (backend, *shapes)
        new = backend != "evaluator" and key not in self._seen
        self._seen.add(key)
        return new


def traced(*static: str, verify: str = "first") -> Callable[[Callable[..., Any]], TracedFunction]:
    """Make a function run on any backend; `static` names its arguments that are no arrays,
    `verify` is `tn.jit`'s."""
    return lambda function: TracedFunction(function, static, verify)


def padded(count: int, least: int) -> int:
    """A power of two with room for so many: what is as large is traced and compiled once.

    >>> padded(5, 4), padded(1, 4)
    (8, 4)
    """
    return max(least, 1 << max(0, count - 1).bit_length())
