"""Methods: what x.sum(), x.T and the rest of an array's methods and attributes give."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isclass
from typing import Any

import numpy as np

from tenfold.errors import ConcreteError, IndexProblem, ShapeError, TypeMismatch, Unsupported
from tenfold.frames import entry, hide
from tenfold.trace.array import Array
from tenfold.trace.lazy.host import on_host
from tenfold.trace.lazy.lazy import LAZY
from tenfold.trace.lazy.recall import of_all, recalled
from tenfold.trace.scope import local, placed
from tenfold.trace.source import caller, describe
from tenfold.trace.surface.emit import (
    cast,
    dtype_of,
    emit,
    fail,
    is_traced,
    on,
    traced,
)
from tenfold.trace.surface.indexing import flat
from tenfold.trace.surface.into import write
from tenfold.trace.surface.selecting.selection import SELECTED, complete
from tenfold.trace.surface.shaping import shapes
from tenfold.trace.surface.steps import Bits, ComplexPart, alias, holds, lies, view
from tenfold.trace.surface.ufuncs.composed import filled, same
from tenfold.trace.tables import FUNCTIONS
from tenfold.trace.view import layout
from tenfold.types import KIND


def spread(args: tuple[Any, ...]) -> Any:
    """Arguments given one by one or as one tuple."""
    return args[0] if len(args) == 1 else args


def reshape(self: Array, *shape: Any, order: str = "C", copy: Any = None) -> Array:
    return shapes.reshape(self, spread(shape), order, copy=copy)


def transpose(self: Array, *axes: Any) -> Array:
    if not axes or axes == (None,):
        return shapes.transpose(self)
    return shapes.transpose(self, axes[0] if isinstance(axes[0], (tuple, list)) else axes)


def flatten(self: Array, order: str = "C") -> Array:
    return same(shapes.ravel(self, order))


@on(np.astype)
def astype(
    x: Any,
    dtype: Any,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
    *,
    device: Any = None,
) -> Array:
    array = traced(x)
    wanted = dtype_of(dtype)
    if casting != "unsafe" and not np.can_cast(array.dtype, wanted, casting):  # type: ignore[arg-type]
        fail(
            TypeMismatch,
            f"astype of {array.type} to {wanted} with casting={casting!r}",
            "leave casting out to cast in any case",
        )
    if not copy and wanted == array.dtype and not array._weak and lies(array, order):
        return array
    made = cast(array, wanted)
    return same(made) if made is array else made


def _strides(self: Array) -> Any:
    """As NumPy's are where arguments lie in C order."""
    if not is_traced(self):
        return self._attribute("strides")
    lies = layout(self.dtype, self.shape) if self._view is None else self._view.layout()
    return lies.strides


def view_as(self: Array, dtype: Any = None, type: Any = None) -> Array:
    if isclass(dtype) and issubclass(dtype, np.ndarray):
        dtype, type = None, dtype
    if type not in (None, np.ndarray):
        fail(
            Unsupported,
            f"a view as {type.__name__}, a subclass of np.ndarray: a program has arrays alone",
            "view the result as one, outside",
        )
    if dtype is None or dtype_of(dtype) == self.dtype:
        return alias(self)
    wanted = dtype_of(dtype)
    if wanted.itemsize != self.dtype.itemsize:
        fail(
            Unsupported,
            f"a view of {self.type} as {wanted}, whose items have another size",
            "view as a dtype of the same size",
        )
    return view(self, Bits(self.dtype, wanted))


def fill(self: Array, value: Any) -> None:
    made = traced(value, self.dtype)
    if made.ndim:
        fail(ShapeError, f"x.fill of {made.type}", "give a number, or write x[...] = v")
    write(self, made, unsafe=True)


def sort(self: Array, *args: Any, **kwargs: Any) -> None:
    from tenfold.trace.surface.searching.sorting import sort_in_place

    sort_in_place(self, *args, **kwargs)


@on(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Array:
    return same(traced(a))


def _real(self: Array) -> Array:
    return real(self)


def _imag(self: Array) -> Array:
    return imag(self)


@on(np.real)
def real(val: Any) -> Array:
    x = traced(val)
    return view(x, ComplexPart("real")) if KIND[x.dtype] == "c" else alias(x)


@on(np.imag)
def imag(val: Any) -> Array:
    x = traced(val)
    if KIND[x.dtype] == "c":
        return view(x, ComplexPart("imag"))
    zeros = filled(0, x.dtype, x.shape)
    zeros._readonly = True
    return zeros


def _set_part(name: str) -> Callable[[Array, Any], None]:
    """What `z.real = v` does."""

    def assign(self: Array, value: Any) -> None:
        target: Array = getattr(self, name)
        if target._view is None or not holds(target._view, value):
            target[...] = value

    return assign


def _data_dependent(function: Any) -> Any:
    """A function whose results have shapes that depend on values: a lazy array is run for it, of a
    traced one it gives selections."""

    def apply(a: Any) -> Any:
        x = traced(a)
        if not is_traced(x):
            return on_host(function, (x,), {})
        complete()
        return SELECTED[function](x)

    return on(function)(apply)


nonzero = _data_dependent(np.nonzero)
_data_dependent(np.flatnonzero)
_data_dependent(np.argwhere)


def conj(self: Array) -> Array:
    return emit("conj", self) if KIND[self.dtype] == "c" else self  # as NumPy: not even a copy


def _function(function: Any) -> Any:
    """A method that is a NumPy function with the array as its first argument."""

    def method(self: Array, *args: Any, **kwargs: Any) -> Any:
        return FUNCTIONS[function](self, *args, **kwargs)

    method.__name__ = function.__name__
    return method


_METHODS: dict[str, Any] = {
    "reshape": reshape,
    "transpose": transpose,
    "flatten": flatten,
    "astype": astype,
    "view": view_as,
    "fill": fill,
    "sort": sort,
    "nonzero": lambda self: nonzero(self),
    "conj": conj,
    "conjugate": conj,
    "T": property(recalled(lambda self: shapes.transpose(self))),
    "mT": property(recalled(lambda self: shapes.matrix_transpose(self))),
    "real": property(recalled(_real), entry(_set_part("real"))),
    "imag": property(recalled(_imag), entry(_set_part("imag"))),
    "flat": property(flat.Flat, entry(flat.assign)),
    "strides": property(entry(_strides)),
    "base": property(lambda self: None if self._view is None else self._view.root),
}
SAME_NAME = (
    *("sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "mean", "var", "std"),
    *("ravel", "swapaxes", "squeeze", "take", "put", "repeat", "argsort", "dot", "clip"),
    *("round", "trace", "diagonal", "choose"),
)
for _name in SAME_NAME:
    _METHODS[_name] = _function(getattr(np, _name))

for _name in ("cumsum", "cumprod", "argpartition", "searchsorted"):
    setattr(Array, _name, _function(getattr(np, _name)))

of_all.update((_METHODS["sum"], FUNCTIONS[np.sum]))

for _name, _method in _METHODS.items():
    setattr(Array, _name, _method if isinstance(_method, property) else recalled(_method))


def _indexing(method: Any, traced: Any) -> Any:
    """x[key] or x[key] = v: an error says which array x is."""

    @wraps(method)
    def call(self: Array, *given: Any) -> Any:
        scope = local.scope
        if scope is not None:
            before = scope.at
            scope.at = caller(before)
        try:
            return (method if scope is None else traced)(self, *given)
        except BaseException as error:
            if isinstance(error, _OF_KEYS):
                error.of(_named(self))
            hide(error)
            raise
        finally:
            if scope is not None:
                scope.at = before

    return call


_OF_KEYS = (IndexProblem, ConcreteError, ShapeError, TypeMismatch)


def _named(x: Array) -> str:
    """An array in the words of a message: its name, or the line that made it, and its type."""
    builder = x._scope.builder
    name = "" if x._scope is LAZY else builder.names.get(x._value)
    if name:
        return f"{name}, {x.type}"
    made = describe(builder.source(x._value))
    return f"{x.type}, made at {made}" if made else f"{x.type}"


def _reading(method: Any) -> Any:
    """x[key], which is short for arrays at hand."""

    @wraps(method)
    def call(self: Array, key: Any) -> Any:
        try:
            if local.scope is None:
                found = FUNCTIONS["read"](self, key)
                if found is not None:
                    return found
            return method(self, key)
        except BaseException as error:
            hide(error)
            raise

    return call


for _name in ("getitem", "setitem"):
    _method = getattr(Array, f"__{_name}__")
    setattr(Array, f"__{_name}__", _indexing(_method, FUNCTIONS[_name]))
Array.__getitem__ = _reading(Array.__getitem__)  # type: ignore[method-assign]

# What Python and NumPy call on the user's behalf; operators are entries themselves.
Array.__array_function__ = placed(Array.__array_function__)  # type: ignore[method-assign]
for _name in (
    *("len", "buffer"),
    *("dlpack", "bool", "int", "complex", "index", "round", "format", "reduce"),
):
    setattr(Array, f"__{_name}__", entry(getattr(Array, f"__{_name}__")))
for _name, _ufunc in (
    *(("neg", np.negative), ("pos", np.positive)),
    *(("abs", np.absolute), ("invert", np.invert)),
):
    setattr(Array, f"__{_name}__", recalled(getattr(Array, f"__{_name}__"), _ufunc))
for _name in ("item", "tolist", "tobytes", "to_device", "copy"):
    setattr(Array, _name, entry(getattr(Array, _name)))
