"""Libraries that are none: objects whose functions are called as ctypes would call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _Function:
    """A function as ctypes has them: with places for types."""

    def __init__(self, call: Callable[..., int]) -> None:
        self.call, self.argtypes, self.restype = call, (), None

    def __call__(self, *args: Any) -> int:
        assert not self.argtypes or len(args) == len(self.argtypes)
        return self.call(*args)


class FakeLibrary:
    """Methods that begin with `prefix` are its functions. Calls are written down."""

    prefix = ""

    def __init__(self) -> None:
        self.calls: list[str] = []
        for name in dir(self):
            if name.startswith(self.prefix):
                setattr(self, name[1:], _Function(self._noted(name[1:], getattr(self, name))))

    def _noted(self, name: str, call: Callable[..., int]) -> Callable[..., int]:
        def noted(*args: Any) -> int:
            self.calls.append(name)
            return call(*args)

        return noted
