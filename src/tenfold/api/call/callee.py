"""What users call: a function's plans, or one loaded from a file.

Native code answers whatever call an entry point takes (`dispatch`). The rest is Python's, the slow
path: it binds the call, checks what is written to, has a program or the reference run, writes back
what was updated and puts the results together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from inspect import Signature
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from tenfold.config import config, on_disable
from tenfold.frames import hide
from tenfold.stats import count
from tenfold.trace.scope import current

if TYPE_CHECKING:  # loaded when something is compiled
    from tenfold.api.call.dispatch import EntryPoints


class Callee:
    """Something to be called. Its class is its own: native code takes the place of `__call__`."""

    _entered: EntryPoints | None = None
    _native: staticmethod[..., Any]  # what takes calls, once there is something

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        return object.__new__(type(cls.__name__, (cls,), {"__module__": cls.__module__}))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._call(*args, **kwargs)
        except BaseException as error:
            hide(error)
            raise

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """A call that no entry point takes."""
        if current() is not None:
            return self._inline(args, kwargs)
        if config.disable:
            return self._plain(args, kwargs)
        count("slow_calls")
        return self._run(args, kwargs)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The results of a call."""
        raise NotImplementedError

    def _plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The results of a call while `tn.config.disable` has functions run as written."""
        raise NotImplementedError

    def _inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The results of a call inside a trace."""
        return self._run(args, kwargs)

    def _parameters(self) -> tuple[Signature, Collection[str]]:
        """Its parameters, and the names of the static ones."""
        raise NotImplementedError

    @property
    def _dispatch(self) -> EntryPoints:
        if self._entered is None:
            from tenfold.api.call.dispatch import EntryPoints

            self._entered = EntryPoints(self, self._call, self._answered_by, *self._parameters())
        return self._entered

    def _answered_by(self, call: Callable[..., Any]) -> None:
        self._native = staticmethod(call)
        _answered.add(self)
        if not config.disable:
            type(self).__call__ = self._native  # type: ignore[method-assign]


_answered: WeakSet[Callee] = WeakSet()  # those for which native code takes calls


def _switch(disabled: bool) -> None:
    """Let native code take no calls, or take them again: it does not look at the setting."""
    for callee in list(_answered):
        type(callee).__call__ = Callee.__call__ if disabled else callee._native  # type: ignore[method-assign]


on_disable.append(_switch)
