"""HostArray: an array that a traced function made, as long as its value is known.

It does what NumPy's does, in NumPy: results are known again, numbers are NumPy's. Where it meets
a traced array it is an operand as any constant. When something traced is written to it, or to a
view of it, the handle becomes a traced array, and so do its views: whoever holds one sees it.
"""

from __future__ import annotations

import operator
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from inspect import signature
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from tenfold.errors import MutationError, ScopeError
from tenfold.frames import for_users
from tenfold.frozen import frozen
from tenfold.trace.array import Array
from tenfold.trace.host.compute import any_traced, compute, serial, taken
from tenfold.trace.host.value import HostValue
from tenfold.trace.lazy.lazy import LAZY, Host, leaf, own
from tenfold.trace.operators import OPERANDS
from tenfold.trace.scope import Scope, Trace, current, inside
from tenfold.trace.source import describe, here
from tenfold.trace.surface.indexing.flat import Flat
from tenfold.trace.tables import UFUNCS
from tenfold.trace.view import View

# What writes to its first argument.
WRITERS = {np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal}
WRITING_METHODS = {"fill", "sort", "put", "partition"}
# What gives out memory, which whoever has it may write to.


class HostArray(Array):
    """An array known while tracing: its scope is HOST, its value a HostValue."""

    __slots__ = ()

    # -- moving

    def _add_view(self, view: HostArray) -> None:
        value: HostValue = self._value
        if value.views is None:
            value.views = WeakValueDictionary()
        value.views[next(serial)] = view

    def _root(self) -> HostArray:
        """The array whose memory this one's is."""
        base: HostArray | None = self._value.base
        return self if base is None else base

    def _views(self) -> list[HostArray]:
        """The views of this array that somebody holds, oldest first."""
        found = self._value.views
        return [] if found is None else list(found.values())

    def _writable(self) -> Host:
        """The array, to be written to by NumPy."""
        self._check_writable()
        value: HostValue = self._value
        base = self._root()
        base._lay_out()
        base._value.version += 1
        return value.array

    def _lay_out(self) -> None:
        """Give an array of one number memory for each of its elements."""
        value: HostValue = self._value
        if value.array.size > 1 and not any(value.array.strides):
            value.array = np.array(value.array, order="C")
            for view in self._views():
                view._value.array = view._value.derivation.on_host()

    def _check_writable(self) -> Scope:
        """The scope that the array was made in; to write to it anywhere else is an error."""
        home: Scope = self._value.owner.home
        scope = current()
        if scope is home:
            return home
        if scope is None or not scope.holds(home):
            raise ScopeError(
                f"an array made in {home.label} is updated where that is not traced",
                where=describe(here()),
                fix="update it where it is made, or copy it: x = np.array(x)",
            )
        raise MutationError(
            f"an array of {home.label} is updated in place inside {scope.label}",
            where=describe(here()),
            fix="return the new value from the inner function, or carry it as loop state",
        )

    def _undecided(self) -> bool:
        """Whether only a running program decides if the array is updated now."""
        scope = current()
        return (
            scope is not None
            and scope is not self._value.owner.home
            and scope.taken_over is not None
        )

    def _enter(self) -> None:
        """Become a traced array, with all that share this one's memory."""
        home: Scope = self._value.owner.home
        with inside(home if self._undecided() else self._check_writable()):
            self._enter_home()

    def _enter_home(self) -> None:
        scope = self._value.owner.home
        base = self._root()
        value: HostValue = base._value
        views = base._views()
        made = Array(scope, value.in_graph(scope))
        # One without axes is no number: `x += v` updates it.
        base._become(made if made.shape else Array(scope, made._value, view=View(made)))
        root = base if made.shape else made
        value.array.flags.writeable = False  # for those to whom its memory was given out
        for view in views:
            seen = view._value.derivation.traced()
            if seen._view is None or seen._view.root is not root:
                raise MutationError(
                    "an array takes a traced value while there is a view of it that can't follow: "
                    f"{view.type}",
                    where=describe(here()),
                    fix="copy the view where it is made",
                )
            view._become(seen)

    def _become(self, array: Array) -> None:
        """Be another array from now on."""
        self.__class__ = Array  # type: ignore[assignment]
        for slot in Array.__slots__:
            if slot != "__weakref__":
                setattr(self, slot, getattr(array, slot))

    def _leave(self) -> None:
        """Become a lazy array: the trace is over."""
        self._become(Array(LAZY, leaf(own(self._value.array))))

    def _update(self, value: Any) -> None:
        self._enter()
        self._update(value)  # as a traced array does

    # -- operators

    def _operate(self, ufunc: np.ufunc, left: Any, right: Any) -> Any:
        other = right if left is self else left
        if any_traced((other,)):
            ours = type(other) is Array or isinstance(other, (list, tuple))
            return UFUNCS[ufunc](left, right) if ours else NotImplemented
        if ufunc is np.equal or ufunc is np.not_equal:  # which take anything
            return compute(operator.eq if ufunc is np.equal else operator.ne, left, right)
        if not isinstance(other, (HostArray, *OPERANDS)):
            return NotImplemented
        return compute(ufunc, left, right)

    def _unary(self, ufunc: np.ufunc) -> Any:
        return compute(ufunc, self)

    @for_users
    def _in_place(self, ufunc: np.ufunc, other: Any) -> Any:
        if any_traced((other,)) or self._undecided():
            self._enter()
            return self._in_place(ufunc, other)
        array = self._writable()
        ufunc(array, taken(other), out=array)
        return self

    def __round__(self, digits: int | None = None) -> Any:
        return compute(round, self, digits)

    def __contains__(self, item: Any) -> bool:
        return bool((self == item).any())

    # -- reading and writing

    def __getitem__(self, key: Any) -> Any:
        if not any_traced((key,)):
            return compute(operator.getitem, self, key)
        scope = current()
        found = Array(scope, self._value.in_graph(scope))[key]  # type: ignore[arg-type]
        if found._view is None:
            return found
        if scope is self._value.owner.home or self._undecided():
            # a view, through which it may be written to
            self._enter()
            return self[key]
        found._readonly = True
        return found

    @for_users
    def __setitem__(self, key: Any, value: Any) -> None:
        if any_traced((key, value)) or self._undecided():
            self._enter()
            self[key] = value
        else:
            self._writable()[taken(key)] = taken(value)

    # -- NumPy's protocols

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any
    ) -> Any:
        if any(isinstance(x, Array) and _decides(type(x)) for x in inputs):
            return NotImplemented
        if any_traced((inputs, out, kwargs)):
            return super().__array_ufunc__(ufunc, method, *inputs, out=out, **kwargs)
        if out is not None:
            kwargs["out"] = out
        return _call(getattr(ufunc, method), inputs, kwargs, writes=method == "at")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(map(_decides, types)):
            return NotImplemented
        if any_traced((args, kwargs)):
            return super().__array_function__(func, types, args, kwargs)
        return _call(func, args, kwargs, writes=func in WRITERS)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Host:
        array = np.array(self._host(), dtype, copy=copy)
        if array is self._value.array:
            array = array.view()
            array.flags.writeable = False  # written to, it would not be seen by the program
        return array

    # -- text

    def __repr__(self) -> str:
        return repr(self._host())

    def __str__(self) -> str:
        return str(self._host())

    def __format__(self, spec: str) -> str:
        return format(self._host(), spec)

    def __reduce__(self) -> Any:
        return np.array(self._host()).__reduce__()


def _decides(kind: type) -> bool:
    """Whether arrays of this kind say themselves what becomes of them beside known ones."""
    return issubclass(kind, Array) and kind not in (Array, HostArray)


@contextmanager
def known(trace: Trace) -> Generator[None]:
    """Arrays made inside are known to this trace; those that somebody keeps become lazy ones."""
    try:
        yield
    finally:
        for array in list(trace.known.values()):
            if isinstance(array, HostArray):  # still
                array._leave()


def _call(call: Any, args: Any, kwargs: Any, *, writes: bool) -> Any:
    """A call of NumPy's on known arrays, of which it writes to the first, or to those it is given
    as out=."""
    place = None if isinstance(getattr(call, "__self__", call), np.ufunc) else _place_of_out(call)
    targets = [*args[:1]] if writes else [kwargs.get("out")]
    if place is not None:
        targets.extend(args[place : place + 1])
    for target in targets:
        for array in target if isinstance(target, tuple) else (target,):
            if isinstance(array, HostArray):
                if array._undecided():
                    array._enter()
                    return call(*args, **kwargs)
                array._writable()
    return compute(call, *args, **kwargs)


@cache
def _place_of_out(function: Any) -> int | None:
    """Where among its arguments a function takes the array it writes to."""
    try:
        names = list(signature(function).parameters)
    except ValueError:  # of C: by name alone
        return None
    return names.index("out") if "out" in names else None


def _method(name: str) -> Any:
    @for_users
    def call(array: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(array, name)(*args, **kwargs)

    def method(self: HostArray, *args: Any, **kwargs: Any) -> Any:
        if any_traced((args, kwargs)):
            return getattr(super(HostArray, self), name)(*args, **kwargs)
        if name in WRITING_METHODS and self._undecided():
            self._enter()
            return getattr(self, name)(*args, **kwargs)
        if name in WRITING_METHODS:
            return compute(call, self._writable(), *args, **kwargs)
        return _call(call, (self, *args), kwargs, writes=False)

    method.__name__ = name
    return method


def _attribute(name: str) -> Any:
    get = operator.attrgetter(name)

    def assign(self: HostArray, value: Any) -> None:
        getattr(self, name)[...] = value

    return property(lambda self: compute(get, self), assign if name in ("real", "imag") else None)


for _name, _found in vars(np.ndarray).items():
    if callable(_found) and not _name.startswith("_"):
        setattr(HostArray, _name, _method(_name))
for _name in ("T", "mT", "real", "imag"):
    setattr(HostArray, _name, _attribute(_name))


def _layout(name: str) -> Any:
    """An attribute that tells of NumPy's own array."""

    def get(self: HostArray) -> Any:
        self._root()._lay_out()
        if name in ("ctypes", "data"):
            self._value.owner.shared = True
        return getattr(self._host(), name)

    return property(get)


for _name in ("ctypes", "data", "flags", "strides"):
    setattr(HostArray, _name, _layout(_name))


@frozen(eq=False)
class HostFlat(Flat):
    """x.flat of an array that is known, as long as it is."""

    def __getitem__(self, key: Any) -> Any:
        if isinstance(self.base, HostArray) and not any_traced((key,)):
            return compute(lambda array, key: array.flat[key], self.base, key)
        return Flat.__getitem__(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(self.base, HostArray) and self.base._undecided():
            self.base._enter()
            self.base.flat[key] = value
        elif isinstance(self.base, HostArray) and not any_traced((key, value)):
            self.base._writable().flat[taken(key)] = taken(value)
        else:
            Flat.__setitem__(self, key, value)


def _assign_flat(array: HostArray, value: Any) -> None:
    HostFlat(array)[:] = value


HostArray.flat = property(HostFlat, _assign_flat)  # type: ignore[attr-defined]
