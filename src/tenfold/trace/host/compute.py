"""Compute: NumPy called on arrays that are known while tracing, and its results as such again.

A result that lies in the memory of an operand is a view of it. How it was made is kept, so that it
can be made again when the operand's memory moves, or the operand itself into the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.frames import for_users
from tenfold.frozen import frozen
from tenfold.trace.array import Array
from tenfold.trace.host.value import HOST, HostValue
from tenfold.trace.scope import Scope, current
from tenfold.types import SHORT

if TYPE_CHECKING:
    from tenfold.trace.host.array import HostArray
    from tenfold.trace.lazy.lazy import Host

serial = count()  # of known arrays, in the order they are made


@frozen
class Derivation:
    """A call that gives a view, of NumPy arrays as of traced ones; `part` chooses among several."""

    call: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    part: tuple[int, ...] = ()

    def on_host(self) -> Any:
        return self._part(self.call(*taken(self.args), **taken(self.kwargs)))

    def traced(self) -> Any:
        return self._part(self.call(*self.args, **self.kwargs))

    def _part(self, result: Any) -> Any:
        for place in self.part:
            result = result[place]
        return result


@for_users
def compute(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What NumPy gives for a call whose arrays are all known."""
    result = call(*taken(args), **taken(kwargs))
    scope = current()
    if scope is None:
        return result
    return _Results(scope, Derivation(call, args, kwargs)).given(result)


def taken(item: Any, copy: bool = False) -> Any:
    """An argument with NumPy's arrays in the place of known ones, or copies of them."""
    if isinstance(item, Array):  # one that is traced NumPy asks for what it has not
        if item._scope is not HOST:
            return item
        return np.array(item._value.array) if copy else item._value.array
    if isinstance(item, (list, tuple)) and not hasattr(item, "_fields"):
        return type(item)([taken(part, copy) for part in item])
    if isinstance(item, dict):
        return {key: taken(part, copy) for key, part in item.items()}
    if isinstance(item, slice):
        return slice(taken(item.start), taken(item.stop), taken(item.step))
    return item


def leaves(item: Any) -> Iterator[Any]:
    """What an argument is made of."""
    if isinstance(item, (list, tuple)):
        for part in item:
            yield from leaves(part)
    elif isinstance(item, dict):
        yield from leaves(list(item.values()))
    elif isinstance(item, slice):
        yield from (item.start, item.stop, item.step)
    else:
        yield item


def fresh(array: Host, scope: Scope) -> Any:
    """A known array over memory that nobody else holds; as it is where Tenfold lacks its dtype."""
    if type(array) is not np.ndarray or array.dtype not in SHORT:
        return array
    return _handle(HostValue(array, scope))


def _handle(value: HostValue) -> HostArray:
    from tenfold.trace.host.array import HostArray

    made = HostArray(HOST, value)
    value.home.trace.known[next(serial)] = made
    return made


class _Results:
    """What a call gave, as a traced function sees it."""

    def __init__(self, scope: Scope, derivation: Derivation) -> None:
        self.scope = scope
        self.derivation = derivation
        found = list(leaves((derivation.args, derivation.kwargs)))
        self.known: list[Array] = [x for x in found if isinstance(x, Array)]
        self.plain = [x for x in found if isinstance(x, np.ndarray)]
        if self.known:  # the result hangs on the values of captured arrays, too
            scope.trace.baked.update({id(array): array for array in self.plain})

    def given(self, result: Any, part: tuple[int, ...] = ()) -> Any:
        if isinstance(result, np.ndarray):
            return self._array(result, part)
        if isinstance(result, (list, tuple)):
            parts = [self.given(item, (*part, i)) for i, item in enumerate(result)]
            return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
        return result

    def _array(self, result: Host, part: tuple[int, ...]) -> Any:
        for array in self.known:
            if result is array._value.array:
                return array
        if any(result is array for array in self.plain):
            return result
        if result.base is not None:
            for array in self.known:
                if np.may_share_memory(result, array._value.array):
                    return self._view(result, array, part)
            if any(np.may_share_memory(result, array) for array in self.plain):
                return result
        return fresh(result, self.scope)

    def _view(self, result: Host, array: Array, part: tuple[int, ...]) -> Any:
        if result.dtype not in SHORT or type(result) is not np.ndarray:
            result.flags.writeable = False  # what is written to it, the array would not see
            return result
        base: Any = array._root()
        how = self.derivation
        derivation = Derivation(how.call, how.args, how.kwargs, part)
        made = _handle(HostValue(result, base._value.home, base, derivation))
        base._add_view(made)
        return made


def any_traced(items: Sequence[Any]) -> bool:
    """Whether an array whose value is not known is among these, or in a list among them."""
    for item in items:
        if isinstance(item, Array):
            if item._scope is not HOST:
                return True
        elif isinstance(item, (list, tuple)):
            if any_traced(item):
                return True
        elif isinstance(item, dict):
            if any_traced(list(item.values())):
                return True
        elif isinstance(item, slice) and any_traced((item.start, item.stop, item.step)):
            return True
    return False
