"""What users call: a function's plans, or one loaded from a file.

Native code answers whatever call an entry point takes (`dispatch`). The rest is Python's, the slow
path: it binds the call, checks what is donated, has a program or the reference run, writes back
what was updated and puts the results together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from inspect import Signature
from typing import TYPE_CHECKING, Any, Self

from tenfold.frames import hide
from tenfold.stats import count
from tenfold.trace.scope import current

if TYPE_CHECKING:  # loaded when something is compiled
    from tenfold.api.call.dispatch import EntryPoints


class Callee:
    """Something to be called. Its class is its own: native code takes the place of `__call__`."""

    _entered: EntryPoints | None = None

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
        count("slow_calls")
        return self._run(args, kwargs)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The results of a call."""
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
        type(self).__call__ = staticmethod(call)  # type: ignore[method-assign]
