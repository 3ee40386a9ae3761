"""Array: what a traced function sees instead of a NumPy array, and lazy arrays outside any.

It is a mutable handle on a value: `x += v` and `x[i] = v` move the handle to a new value, so
every alias sees the update, as in NumPy. A view knows how it lies in its root (`trace.view`) and
which version of the root it has seen: it is read anew when the root has moved on, and what is
written to it moves the root.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.errors import MutationError, TypeMismatch
from tenfold.frames import hide
from tenfold.trace.containers import LEAF, LEAVES
from tenfold.trace.conversions import Conversions
from tenfold.trace.lazy.lazy import LAZY
from tenfold.trace.lazy.quick import array_class, single
from tenfold.trace.lazy.recall import numbers_alike, of_two, recall, surface_of
from tenfold.trace.operators import Operators
from tenfold.trace.scope import Scope, current, inside, leak, local
from tenfold.trace.source import caller, describe, here
from tenfold.trace.tables import (
    COMPARISONS,
    FUNCTIONS,
    METHODS,
    REASONS,
    UFUNCS,
    MissingMethod,
    keywords,
    missing,
    nearest,
    spelled,
)
from tenfold.trace.view import Views
from tenfold.types import DType, Shape, TensorType


class Array(Operators, Conversions):
    """A traced array, or a lazy one: its scope is LAZY, and it has a value when one is needed."""

    __slots__ = (
        "__weakref__",
        "_argument",
        "_readonly",
        "_scope",
        "_seen",
        "_value",
        "_version",
        "_view",
        "_weak",
    )
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        scope: Scope,
        value: Any,
        weak: type | None = None,
        view: Views | None = None,
        argument: str | None = None,
    ) -> None:
        self._scope = scope
        self._value = value  # its number in the scope's builder; of a lazy array the Value
        self._weak = weak  # int, float or complex: a Python number, whose dtype gives way
        self._version = 0  # counts updates
        self._view = view  # how it lies in another array, if it does
        self._seen = 0 if view is None else view.root._version
        # a view in which an element stands at several places, or that NumPy lets nobody write to
        self._readonly = False
        self._argument = argument  # the name of the caller's array that this is

    # -- type: asked for many times a node, so each looks for itself

    @property
    def type(self) -> TensorType:
        found: TensorType = self._scope.builder.types[self._value]
        return found

    @property
    def shape(self) -> Shape:
        found: Shape = self._scope.builder.types[self._value].shape
        return found

    @shape.setter
    def shape(self, shape: Any) -> None:
        raise MutationError(
            "x.shape = … changes the shape of an array in place, which is not traced",
            where=describe(here()),
            fix="bind a view: x = x.reshape(shape)",
        )

    @property
    def dtype(self) -> DType:
        found: DType = self._scope.builder.types[self._value].dtype
        return found

    @property
    def ndim(self) -> int:
        return len(self._scope.builder.types[self._value].shape)

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

    def _outputs(self) -> tuple[Any, list[Array]]:
        """What stands for this among the results of a function: a token, and the leaves it has."""
        return LEAF, [self]

    # -- reading and updating

    def _follow(self) -> None:
        """Let a view have what its root holds now; value_of and _host do, before they look."""
        view, scope = self._view, self._scope
        if view is not None and self._seen != view.root._version and scope.open:
            if view.root._scope is not scope and view.root._scope.take_over(self):
                scope = self._scope
            with inside(None if scope is LAZY else scope):
                self._value = FUNCTIONS[np.copy](view.read())._value
            self._seen = view.root._version

    def _check_writable(self) -> Scope:
        """The scope in which this is updated, if it may be."""
        scope = current() or LAZY
        root = self if self._view is None else self._view.root
        if root._scope is LAZY and scope is not LAZY:
            raise MutationError(
                f"an array from outside is updated in place inside {scope.label}",
                where=describe(here()),
                fix="copy it first: x = x.copy(); or pass it in and return the new value",
            )
        if not scope.holds(self._scope):
            raise leak(self, None if scope is LAZY else scope)
        if self._readonly:
            raise MutationError(
                "an array is written through a view that is read-only or holds an element in "
                "several places (a broadcast, a diagonal, windows, a real array's imaginary part), "
                "or that a branch chose among arrays of other names",
                where=describe(here()),
                fix="copy it first: y = y.copy()",
            )
        if scope is not root._scope and not scope.take_over(root):
            raise MutationError(
                f"an array of {root._scope.label} is updated in place inside {scope.label}",
                where=describe(here()),
                fix="return the new value from the inner function, or carry it as loop state",
            )
        if scope is not self._scope:
            scope.take_over(self)
        return scope

    def _update(self, value: Any) -> None:
        """Move this handle, and the root of a view, to a new value of the scope that is open."""
        scope = self._check_writable()
        view = self._view
        if view is None:
            self._version += 1
            if self._argument is not None and self._argument not in scope.trace.updated:
                scope.trace.updated[self._argument] = scope.at or here()
        else:
            view.root._update(view.write(Array(scope, value))._value)
            self._seen = view.root._version
        self._value = value

    def _in_place(self, ufunc: np.ufunc, other: Any) -> Any:
        if self._weak or (self._argument is None and self._view is None and not self.shape):
            # a Python number or a NumPy scalar is not updated but bound anew
            if self._scope is not LAZY:
                self._scope.trace.rebound.add(self._value)
            return self._operate(ufunc, self, other)
        self._check_writable()
        if local.scope is None:
            result = recall(surface_of(ufunc), (self, other), {}, numbers_alike(ufunc))
        else:
            result = UFUNCS[ufunc](self, other)
        if self._scope is not LAZY or result._value.number != self._value.number:
            result = self._converted(ufunc, result)
        self._update(result._value)
        return self

    def _converted(self, ufunc: np.ufunc, result: Array) -> Array:
        """What an in-place operation gave, in the type of this array, if NumPy would take it."""
        if result.type == self.type:
            return result
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
        return FUNCTIONS[np.astype](result, self.dtype)  # type: ignore[no-any-return]

    def __getitem__(self, key: Any) -> Any:
        if current() is not None:
            return FUNCTIONS["getitem"](self, key)
        return recall(FUNCTIONS["getitem"], (self, key), {})

    def __setitem__(self, key: Any, value: Any) -> None:
        if current() is not None or not FUNCTIONS["write"](self, key, value):
            FUNCTIONS["setitem"](self, key, value)

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeMismatch("iteration over a 0-d array", where=describe(here()))
        return (self[i] for i in range(self.shape[0]))

    # -- NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        scope = local.scope
        if scope is not None:
            before = scope.at
            scope.at = caller(before)
        try:
            found = None if kwargs or method != "__call__" else UFUNCS.get(ufunc)
            if found is None:
                return self._apply_ufunc(ufunc, method, inputs, **kwargs)
            if scope is None:
                if len(inputs) == 2:
                    return of_two(found, ufunc)(*inputs)
                made = single(found, inputs[0]) if len(inputs) == 1 else None
                if made is not None:
                    return made
                return recall(found, inputs, kwargs, numbers_alike(ufunc))
            return found(*inputs)
        except BaseException as error:
            hide(error)
            raise
        finally:
            if scope is not None:
                scope.at = before

    def _apply_ufunc(
        self, ufunc: np.ufunc, method: str, inputs: Any, *, out: Any = None, **kwargs: Any
    ) -> Any:
        found = UFUNCS.get(ufunc) or FUNCTIONS["scipy"](ufunc)
        if found is None or (method != "__call__" and method not in METHODS):
            if self._scope is LAZY and current() is None:
                from tenfold.trace.lazy.host import on_host

                return on_host(getattr(ufunc, method), inputs, {**kwargs, "out": out})
            raise missing(spelled(ufunc) + ("" if method == "__call__" else f".{method}"))
        if method != "__call__":
            return METHODS[method](ufunc, *inputs, out=out, **kwargs)
        where = kwargs.pop("where", True)
        dtype = kwargs.pop("dtype", None)
        casting = kwargs.pop("casting", "same_kind")
        if casting not in ("same_kind", "unsafe"):
            raise missing(f"{spelled(ufunc)} with casting={casting!r}")
        for name in ("order", "subok"):  # traced arrays have no memory order and no subclasses
            kwargs.pop(name, None)
        if kwargs:
            raise missing(f"{spelled(ufunc)} with {', '.join(kwargs)}")
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
        return recall(found, args, kwargs) if current() is None else found(*args, **kwargs)

    if TYPE_CHECKING:  # what the surface adds

        def __getattr__(self, name: str) -> Any: ...

    def _attribute(self, name: str) -> Any:
        """An attribute that NumPy's arrays have, and this has not."""
        if self._scope is LAZY and current() is None:
            from tenfold.trace.lazy.host import given_back, method

            found = getattr(self._host(), name)
            return partial(method, name, self) if callable(found) else given_back(found)
        raise MissingMethod(
            f"x.{name} is not among the methods of NumPy arrays that Tenfold traces",
            where=describe(here()),
            fix=nearest(name, "x.", [n for n in dir(Array) if not is_other(n)]),
        )


class OtherAttribute:
    """What NumPy's arrays have and these have not. There is no __getattr__ for it: NumPy asks each
    array for protocols, and Python would make an error of each answer."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, array: Array | None, owner: Any) -> Any:
        if array is None:
            return self
        try:
            return array._attribute(self.name)
        except BaseException as error:
            hide(error)
            raise

    def __set__(self, array: Array, value: Any) -> None:
        raise AttributeError(f"x.{self.name} can't be set")


def is_other(name: str) -> bool:
    return isinstance(getattr(Array, name), OtherAttribute)


for _name in dir(np.ndarray):  # the surface puts others in their place
    if not (_name.startswith("_") or hasattr(Array, _name)):
        setattr(Array, _name, OtherAttribute(_name))

array_class.append(Array)
LEAVES.add(Array)
