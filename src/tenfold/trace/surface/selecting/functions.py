"""Functions of selections: those that work element by element, products, norms; and methods."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from tenfold.trace.surface import methods
from tenfold.trace.surface.emit import axes_of, cast, dtype_of, emit, traced
from tenfold.trace.surface.into import write
from tenfold.trace.surface.selecting.reducing import dense_axes, flat, merged, unless_none
from tenfold.trace.surface.selecting.selection import (
    SELECTED,
    Selection,
    aligned,
    arguments,
    call,
    elementwise,
    on_selections,
)
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import F64, KIND

# Functions that work element by element in these arguments; others are the same for every element.
_ELEMENTWISE: dict[Any, tuple[str, ...]] = {
    np.clip: ("a", "a_min", "a_max", "min", "max"),
    np.round: ("a",),
    np.nan_to_num: ("x",),
    np.isclose: ("a", "b"),
    np.interp: ("x",),
    np.searchsorted: ("v",),
    np.digitize: ("x",),
    np.isin: ("element",),
    np.polyval: ("x",),
    np.real: ("val",),
    np.imag: ("val",),
    np.angle: ("z",),
    np.astype: ("x",),
    np.copy: ("a",),
    np.zeros_like: ("a",),
    np.ones_like: ("a",),
    np.full_like: ("a", "fill_value"),
    np.empty_like: ("a",),
    np.sinc: ("x",),
    np.i0: ("x",),
    np.isreal: ("x",),
    np.iscomplex: ("x",),
}


def _by_element(function: Any, names: tuple[str, ...]) -> None:
    @on_selections(function)
    def apply(*args: Any, **kwargs: Any) -> Any:
        given = arguments(function, args, kwargs)
        own = [n for n in names if n in given]
        if any(isinstance(v, Selection) for n, v in given.items() if n not in own):
            aligned(tuple(given.values()))[0].needs_size(f"np.{function.__name__}")
        return elementwise(
            lambda *dense: call(function, {**given, **dict(zip(own, dense, strict=True))}),
            *(given[n] for n in own),
        )


for _function, _names in _ELEMENTWISE.items():
    _by_element(_function, _names)


@on_selections(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None or y is None:
        condition.needs_size("np.where of x[mask]")
    return elementwise(FUNCTIONS[np.where], condition, x, y)


@on_selections(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    return SELECTED[np.all](SELECTED[np.isclose](a, b, rtol, atol, equal_nan))


def _of_dtypes(function: Any) -> None:
    """A function that looks at dtypes alone."""

    @on_selections(function)
    def apply(*args: Any) -> Any:
        return FUNCTIONS[function](*(x._dense if isinstance(x, Selection) else x for x in args))


for _function in (np.iscomplexobj, np.isrealobj, np.result_type, np.common_type):
    _of_dtypes(_function)


@on_selections(np.ndim)
def ndim(a: Any) -> int:
    return int(a.ndim)


@on_selections(np.size)
def size(a: Any, axis: Any = None) -> Any:
    if axis is None:
        return a.size
    (where,) = axes_of(axis, a.ndim)
    if where == a._at:
        return a.length
    return a._dense.shape[dense_axes(a, where)[0]]


def _converted(function: Any) -> None:
    """A function that makes an array of what it is given."""

    @on_selections(function)
    def apply(a: Any, dtype: Any = None, *, copy: Any = None, **kwargs: Any) -> Any:
        if dtype is not None and a.dtype != dtype_of(dtype):
            return SELECTED[np.astype](a, dtype)
        return SELECTED[np.copy](a) if copy or (copy is None and function == np.array) else a


for _function in (np.array, np.asarray, np.asanyarray, np.ascontiguousarray):
    _converted(_function)


# Shapes.


@on_selections(np.ravel)
def ravel(a: Any, order: str = "C") -> Any:
    if order != "C" and a.ndim > 1:
        a.needs_size(f"order={order!r}")
    return flat(a)


@on_selections(np.transpose, np.permute_dims)
def transpose(a: Any, axes: Any = None) -> Any:
    order = tuple(range(a.ndim))[::-1] if axes is None else axes_of(axes, a.ndim)
    dense = FUNCTIONS[np.transpose](a._dense, [b for x in order for b in dense_axes(a, x)])
    return a.like(dense, order.index(a._at))


# Products. What is not chosen is 0 on both sides: 0 times NaN is no 0.


def _product(function: Any, a: Any, b: Any) -> Any:
    """A product of matrices or vectors, which adds over the last axis of a and over the first of
    a vector b, the last but one of a matrix."""
    first = next(x for x in (a, b) if isinstance(x, Selection))
    if not isinstance(a, Selection):
        a = traced(a)
    if not isinstance(b, Selection):
        b = traced(b)
    if max(a.ndim, b.ndim) > 2 or min(a.ndim, b.ndim) < 1:
        first.needs_size("a product of more than two axes, or of numbers,")
    inner = (a.ndim - 1, 0)  # the axes that are added over
    both = [
        isinstance(x, Selection) and x._at == axis for x, axis in zip((a, b), inner, strict=True)
    ]
    if all(both):
        _same(a, b)
        return function(*(merged(x, x.filled(0)) for x in (a, b)))
    if any(both) or (isinstance(a, Selection) and isinstance(b, Selection)):
        first.needs_size("a product over or into an axis of unknown length")
    sides = [merged(x, x._dense) if isinstance(x, Selection) else x for x in (a, b)]
    made = function(*sides)
    at = 0 if first is a else made.ndim - 1
    shape = (*made.shape[:at], *first._mask.shape, *made.shape[at + 1 :])
    return first.like(emit("reshape", made, shape=shape), at)


def _same(a: Selection, b: Selection) -> None:
    """Raise unless two selections are by one mask."""
    one = Selection(a._mask, a._mask, 0, a._made)
    aligned((one, Selection(b._mask, b._mask, 0, b._made)))


@on_selections(np.matmul, np.dot)
def matmul(a: Any, b: Any, /, out: Any = None) -> Any:
    made = _product(FUNCTIONS[np.dot], a, b)
    return made if out is None else write(out, made)


@on_selections(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    return matmul(a, np.transpose(b))


@on_selections(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    return matmul(np.conjugate(np.ravel(a)), np.ravel(b))


@on_selections(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    axes = axes_of(axis, x.ndim)
    s = elementwise(lambda y: cast(y, F64), x) if KIND[x.dtype] in "biu" else x
    if s._at not in axes:
        dense = tuple(b for a in axes for b in dense_axes(s, a))
        made = FUNCTIONS[np.linalg.norm](s._dense, ord, dense, keepdims)
        return s.like(made, s._at - (0 if keepdims else sum(a < s._at for a in axes)))
    negative = isinstance(ord, (int, float)) and ord < 0
    if negative and len(axes) > 1:
        s.needs_size(f"the norm {ord!r} of a matrix")
    line = merged(s, s.filled(inf if negative else 0))
    made = FUNCTIONS[np.linalg.norm](line, ord, axis, keepdims)
    return unless_none(s, "norm", made) if ord == -inf else made


# Methods.


def _method(function: Any) -> Any:
    def method(self: Selection, *args: Any, **kwargs: Any) -> Any:
        return self.__array_function__(function, (), (self, *args), kwargs)

    method.__name__ = function.__name__
    return method


def _reshape(self: Selection, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    if shape not in ((-1,), ((-1,),)):
        self.needs_size("reshape")
    return ravel(self, order)


def _fill(self: Selection, value: Any) -> None:
    self[...] = value


_METHODS: dict[str, Any] = {
    **{name: _method(getattr(np, name)) for name in (*methods.SAME_NAME, "astype", "copy")},
    "flatten": lambda self, order="C": SELECTED[np.copy](ravel(self, order)),
    "transpose": lambda self, *axes: transpose(self, methods.spread(axes) if axes else None),
    "reshape": _reshape,
    "fill": _fill,
    "conj": lambda self: np.conjugate(self),
    "conjugate": lambda self: np.conjugate(self),
    "T": property(lambda self: transpose(self)),
    "real": property(lambda self: SELECTED[np.real](self)),
    "imag": property(lambda self: SELECTED[np.imag](self)),
}
for _name, _member in _METHODS.items():
    setattr(Selection, _name, _member)
