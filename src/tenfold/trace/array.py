"""Array: what a traced function sees instead of a NumPy array, and lazy arrays outside any.

It is a mutable handle on a value: `x += v` and `x[i] = v` move the handle to a new value, so
every alias sees the update, as in NumPy. A view remembers its base and the base's version:
reading a view whose base has changed since, or writing through a view, raises.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from tenfold.errors import MutationError, TypeMismatch
from tenfold.trace.conversions import Conversions
from tenfold.trace.lazy.lazy import LAZY
from tenfold.trace.operators import COMPARISONS, Operators
from tenfold.trace.scope import Scope, current, leak
from tenfold.trace.source import Raw, describe, here
from tenfold.trace.tables import (
    FUNCTIONS,
    METHODS,
    REASONS,
    UFUNCS,
    MissingMethod,
    keywords,
    missing,
    nearest,
)
from tenfold.types import DType, Shape, TensorType


class Array(Operators, Conversions):
    """A traced array, or a lazy one: its scope is LAZY, and it has a value when one is needed."""

    __slots__ = (
        "__weakref__",
        "_argument",
        "_base",
        "_owed",
        "_pending",
        "_readonly",
        "_scope",
        "_seen",
        "_value",
        "_version",
        "_weak",
    )
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        scope: Scope,
        value: Any,
        *,
        weak: type | None = None,
        base: Array | None = None,
        argument: str | None = None,
    ) -> None:
        self._scope = scope
        self._value = value  # its number in the scope's builder; of a lazy array the Value
        self._weak = weak  # int, float or complex: a Python number, whose dtype gives way
        self._version = 0  # counts updates
        root = base if base is None or base._base is None else base._base
        self._base: Array | None = root  # the array this is a view of
        self._seen = 0 if root is None else root._version
        # a view in which an element stands at several places, or that NumPy lets nobody write to
        self._readonly: bool = base is not None and base._readonly
        self._argument = argument  # the name of a parameter that must not be updated
        self._pending: Array | None = None  # for `x[i] += v`: x, to which this must be written
        self._owed: tuple[Raw | None, ...] = ()  # lines of such updates not written to it yet

    # -- type

    @property
    def type(self) -> TensorType:
        found: TensorType = self._scope.builder.types[self._value]
        return found

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return self.type.rank

    @property
    def size(self) -> int:
        return self.type.size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.type.nbytes

    def __len__(self) -> int:
        if not self.shape:
            raise TypeMismatch("len() of a 0-d array", where=describe(here()), fix="use .size")
        return self.shape[0]

    def __repr__(self) -> str:
        if self._scope is not LAZY:
            return f"<traced {self.type} in {self._scope.label}>"
        text = np.array2string(self._host(), separator=", ", prefix="Array(")
        return f"Array({text}, dtype={self.dtype})"

    # -- reading and updating

    def _check_readable(self) -> None:
        base = self._base
        if base is not None and base._version != self._seen:
            raise MutationError(
                "a view is read after its base was updated in place",
                where=describe(here()),
                fix="take the view again after the update, or copy it before: x[1:].copy()",
            )
        owed = self._owed or (base is not None and base._owed)
        if owed or self._pending is not None:
            raise unwritten(owed[0] if owed else here())

    def _settle(self) -> None:
        """Let go of a base that nobody else can see: `y = (x + 1).reshape(2, 2); y += 1`."""
        if self._readonly:
            raise MutationError(
                "an array is written through a view that is read-only or holds an element in "
                "several places: a broadcast, a diagonal, windows, a real array's imaginary part",
                where=describe(here()),
                fix="copy it first: y = np.broadcast_to(x, shape).copy()",
            )
        if self._base is not None and _holders(self) == _SOLE:
            self._check_readable()
            self._base = None

    def _update(self, value: Any) -> None:
        """Move this handle to a new value."""
        scope = current() or LAZY
        if self._scope is LAZY and scope is not LAZY:
            raise MutationError(
                f"an array from outside is updated in place inside {scope.label}",
                where=describe(here()),
                fix="copy it first: x = x.copy(); or pass it in and return the new value",
            )
        if not scope.holds(self._scope):
            raise leak(self, None if scope is LAZY else scope)
        self._settle()
        if self._base is not None:
            raise _write_through_view().at(describe(here()))
        if self._argument is not None:
            whole = self._argument.split("[")[0].split(".")[0]  # donated with all that is in it
            raise MutationError(
                f"the argument {self._argument!r} is updated in place",
                where=describe(here()),
                fix=f"copy it first: {self._argument} = {self._argument}.copy(); or let the "
                f"function have it: tn.jit(f, donate={whole!r})",
            )
        if scope is not self._scope:
            raise MutationError(
                f"an array of {self._scope.label} is updated in place inside {scope.label}",
                where=describe(here()),
                fix="return the new value from the inner function, or carry it as loop state",
            )
        self._value = value
        self._version += 1

    def _in_place(self, ufunc: np.ufunc, other: Any) -> Any:
        if self._weak or (self._argument is None and self._base is None and not self.shape):
            # a Python number or a NumPy scalar is not updated but bound anew
            return self._operate(ufunc, self, other)
        self._settle()
        result = UFUNCS[ufunc](self, other)
        if result.shape != self.shape:
            raise TypeMismatch(
                f"an in-place {ufunc.__name__} would change {self.type} to {result.type}",
                where=describe(here()),
                fix="write x = x + y instead of x += y",
            )
        if not FUNCTIONS["same_kind"](result.dtype, self.dtype):
            raise TypeMismatch(
                f"an in-place {ufunc.__name__} can't turn {result.dtype} into {self.dtype}",
                where=describe(here()),
                fix="write x = x + y, or cast the other operand with .astype",
            )
        result = FUNCTIONS[np.astype](result, self.dtype)
        if self._base is None:
            self._update(result._value)
            return self
        self._check_readable()
        self._base._owed += (here(),)
        result._pending = self._base
        if self._scope is not LAZY:
            self._scope.trace.pending[id(result)] = result, here()
        return result

    def __getitem__(self, key: Any) -> Any:
        return FUNCTIONS["getitem"](self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, Array) and value._pending is self:
            value._pending = None
            self._owed = self._owed[:-1]
            self._scope.trace.pending.pop(id(value), None)
        FUNCTIONS["setitem"](self, key, value)

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeMismatch("iteration over a 0-d array", where=describe(here()))
        return (self[i] for i in range(self.shape[0]))

    # -- NumPy's protocols

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any
    ) -> Any:
        found = UFUNCS.get(ufunc)
        if found is None or (method != "__call__" and method not in METHODS):
            if self._scope is LAZY and current() is None:
                from tenfold.trace.lazy.host import on_host

                return on_host(getattr(ufunc, method), inputs, {**kwargs, "out": out})
            raise missing(f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"))
        if method != "__call__":
            return METHODS[method](ufunc, *inputs, out=out, **kwargs)
        where = kwargs.pop("where", True)
        dtype = kwargs.pop("dtype", None)
        casting = kwargs.pop("casting", "same_kind")
        if casting not in ("same_kind", "unsafe"):
            raise missing(f"np.{ufunc.__name__} with casting={casting!r}")
        for name in ("order", "subok"):  # traced arrays have no memory order and no subclasses
            kwargs.pop(name, None)
        if kwargs:
            raise missing(f"np.{ufunc.__name__} with {', '.join(kwargs)}")
        if dtype is not None and ufunc not in COMPARISONS:
            inputs = tuple(FUNCTIONS["as_dtype"](x, dtype, casting) for x in inputs)
        result = found(*inputs)
        if out is None and where is True:
            return result
        return FUNCTIONS["into"](result, out, where, casting)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        found = FUNCTIONS.get(func)
        if found is None:
            if self._scope is LAZY and current() is None:
                from tenfold.trace.lazy.host import on_host

                return on_host(func, args, kwargs)
            module = func.__module__.replace("numpy", "np", 1)
            raise missing(f"{module}.{func.__name__}", REASONS.get(func))
        if kwargs:
            strange = kwargs.keys() - keywords(found)
            if strange:
                raise missing(f"np.{func.__name__} with {', '.join(sorted(strange))}")
        return found(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"a traced array has no attribute {name!r}")
        if self._scope is LAZY and current() is None:
            from tenfold.trace.lazy.host import given_back, method

            found = getattr(self._host(), name)
            return partial(method, name, self) if callable(found) else given_back(found)
        raise MissingMethod(
            f"x.{name} is not among the methods of NumPy arrays that Tenfold traces",
            where=describe(here()),
            fix=nearest(name, "x.", dir(Array)),
        )


def _holders(view: Array) -> int:
    """How many references there are to the base of a view."""
    return sys.getrefcount(view._base)


def _sole() -> int:
    """What `_holders` gives when the view's is the only reference."""
    view = Array.__new__(Array)
    view._base = Array.__new__(Array)
    return _holders(view)


_SOLE = _sole()


def unwritten(raw: Raw | None) -> MutationError:
    """The error of a view that was updated, and the update not written to its array.

    `x[1:] += v` updates a view and then writes it to x; `y = x[1:]; y += v` does not write it.
    """
    return _write_through_view().at(describe(raw))


def _write_through_view() -> MutationError:
    return MutationError(
        "an array is written through a view of it",
        fix="assign to the array itself (x[1:][0] = v is x[1] = v; for y = x[1:]; y += v write "
        "x[1:] += v), or copy the view first: y = x[1:].copy()",
    )
