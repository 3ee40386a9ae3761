"""Swapping: substitutes in NumPy's place as long as some thread traces.

They are put there when the first trace begins and taken away when the last one ends, however it
ends. Variables that a traced function reads, and that hold such functions (`from numpy import
zeros`), are swapped in the same way. The child of a fork has the traces of the thread that forked,
and no others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cache
from threading import get_ident
from types import CellType
from typing import Any, TypeVar

from tenfold.frozen import frozen, mutable
from tenfold.locks import Lock
from tenfold.trace.swap.constructors import find, substitutes
from tenfold.trace.swap.substitute import Substitute


@frozen
class Variable:
    """Where a name is bound: in a module's globals, or in a cell."""

    holder: dict[str, Any] | CellType
    name: str

    def get(self) -> Any:
        if isinstance(self.holder, CellType):
            return self.holder.cell_contents
        return self.holder.get(self.name)

    def put(self, value: Any) -> None:
        if isinstance(self.holder, CellType):
            self.holder.cell_contents = value
        else:
            self.holder[self.name] = value


Result = TypeVar("Result")


def swapped(work: Callable[[], Result], variables: Iterable[Variable] = ()) -> Result:
    """What `work` gives while NumPy's constructors are swapped, and these variables."""
    swap = _Swap({(id(v.holder), v.name): v for v in variables}, get_ident())
    try:
        swap.begin()
        return work()
    finally:
        try:
            swap.end()
        finally:  # once more: an interrupt may have come in between
            swap.end()


@mutable
class _Swap:
    """What one trace wants to be swapped."""

    variables: dict[tuple[int, str], Variable]
    thread: int
    ended: bool = False

    def begin(self) -> None:
        with _lock:
            _open[id(self)] = self
            _settle()

    def end(self) -> None:
        if not self.ended:
            with _lock:
                _open.pop(id(self), None)
                _settle()
                self.ended = True


_lock = Lock()
_open: dict[int, _Swap] = {}
_variables: dict[tuple[int, str], tuple[Variable, Substitute]] = {}  # what stands where now


def _settle() -> None:
    """Swap what the open traces want, and put back the rest."""
    _settle_numpy(bool(_open))
    if not _variables and not any(swap.variables for swap in _open.values()):
        return
    wanted = {key: v for swap in _open.values() for key, v in swap.variables.items()}
    for key in _variables.keys() - wanted.keys():
        variable, substitute = _variables[key]
        if variable.get() is substitute:
            variable.put(substitute.original)
        del _variables[key]
    for key in wanted.keys() - _variables.keys():
        found = find(wanted[key].get())
        if found is not None:
            _variables[key] = wanted[key], found
            wanted[key].put(found)


@cache
def _numpy() -> list[tuple[dict[str, Any], str, Any, Substitute]]:
    """The names of NumPy's own modules, what they stand for, and the substitutes."""
    return [(vars(one.module), one.name, one.original, one) for one in substitutes()]


def _settle_numpy(swapped: bool) -> None:
    """A name that somebody has bound to something else is let be."""
    for names, name, original, substitute in _numpy():
        if swapped:
            if names[name] is original:
                names[name] = substitute
        elif names[name] is substitute:
            names[name] = original


def _in_child() -> None:
    """Forget the traces of threads that a fork did not take along."""
    others = [key for key, swap in _open.items() if swap.thread != get_ident()]
    for key in others:
        del _open[key]
    if others:
        _settle()


os.register_at_fork(after_in_child=_in_child)
