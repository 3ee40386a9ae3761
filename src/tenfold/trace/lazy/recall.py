"""Recall: what a function of the surface made of lazy arrays of some types is made again for others
of these types, without asking it.

Which nodes a function makes depends on the types of its arrays and on its other arguments alone,
unless it looks at values, changes arrays or takes what has no fixed value. So its first call with
some types is taken down (`recording`): the forms of the nodes, what each reads, and how the results
lie in the arguments. A call of the same key plays that, while the surface would read keys, promote
dtypes and check shapes. One elementwise operation on arrays of one shape, and a sum over all of an
array, are then known for all shapes (`quick`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache, wraps
from typing import Any, TypeVar

import numpy as np

from tenfold.config import config
from tenfold.frames import hide
from tenfold.trace.lazy.lazy import LAZY, LazyValue, next_serial
from tenfold.trace.lazy.quick import array_class as _array
from tenfold.trace.lazy.quick import known, pair, single
from tenfold.trace.lazy.realise import last_look, realise_small
from tenfold.trace.lazy.recording import Recording, lazy_ones, taken_down
from tenfold.trace.scope import local
from tenfold.trace.source import caller, here
from tenfold.trace.tables import COMPARISONS, FUNCTIONS, UFUNCS
from tenfold.types import KIND, SHORT

F = TypeVar("F", bound=Callable[..., Any])

_KEPT = 8192  # recordings; beyond that all are forgotten
_recordings: dict[Hashable, Recording] = {}
of_all: set[Callable[..., Any]] = set()  # sums over all axes, which do not hang on extents either
ABSENT: Any = np._NoValue


def recalled(function: F, ufunc: np.ufunc | None = None) -> F:
    """This function, which users call with arrays, asked once for each key; see `recall`."""
    like = numbers_alike(ufunc)
    of_one = like is not None or function in of_all

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        scope = local.scope
        if scope is None:
            try:
                if of_one and len(args) == 1 and not kwargs:
                    made = single(function, args[0])
                    if made is not None:
                        return made
                return recall(function, args, kwargs, like)
            except BaseException as error:
                hide(error)
                raise
        before = scope.at
        scope.at = caller(before)
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            hide(error)
            raise
        finally:
            scope.at = before

    return call  # type: ignore[return-value]


def operator(function: Callable[[Any, Any], Any], ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """What `recalled` gives, of an operator with two operands."""
    like = numbers_alike(ufunc)
    return pair(function, lambda x, y: recall(function, (x, y), {}, like), function)


def updating(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """The operator that updates its first operand by a ufunc."""

    def update(x: Any, y: Any) -> Any:
        return x._in_place(ufunc, y)

    return pair(surface_of(ufunc), update, update, update=True)


@cache
def surface_of(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """What the surface does for a ufunc of two operands; it is imported when it is called."""
    return lambda x, y: UFUNCS[ufunc](x, y)


@cache
def of_two(function: Callable[..., Any], ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """What a ufunc gives of two operands outside any trace."""
    like = numbers_alike(ufunc)
    return pair(function, lambda x, y: recall(function, (x, y), {}, like), function)


def recall(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    like: tuple[type, ...] | None = None,
) -> Any:
    """What the function gives for these arguments outside any trace: it is asked once for each
    key. To what a ufunc is, it does not matter how a view lies in its array, and seldom which
    number an operand is (`numbers_alike`)."""
    if not kwargs:
        made = None
        if len(args) == 1:
            if function in of_all:
                made = single(function, args[0])
            if made is None:
                made = _at_once(function, args[0], ABSENT)
        elif like and len(args) == 2:
            made = _at_once(function, args[0], args[1])
        if made is not None:
            return made
    key: list[Any] = [function]
    values: list[LazyValue] = []
    numbers: list[Any] = []
    told = _add_tokens(key, args, values, like, numbers)
    if kwargs and told:
        key.append(tuple(kwargs))
        told = _add_tokens(key, kwargs.values(), values, like and (), numbers)
    if not told and like is not None and any(type(item) is np.ndarray for item in args):
        return recall(function, [_as_array(item) for item in args], kwargs, like)
    if not told or not values:
        return function(*args, **kwargs)
    if len(values) > 1 and (len(values) > 2 or values[0] is values[1]):
        key.append(tuple([values.index(value) for value in values]))  # which of them are one
    whole = tuple(key)
    found = _recordings.get(whole)
    if found is None:
        general = None
        if (
            not kwargs
            and (like is not None or function in of_all)
            and len({*map(id, values)}) == len(values)
        ):
            general = _without_extents(function, args, like)
        return _recorded(whole, general, function, args, kwargs, values, numbers)
    if numbers:
        values.append(FUNCTIONS["literal"](numbers[0], LAZY, found.literal))
    raw = here(3)  # this, who called it, and then the user
    arrays = None if found.only else [*_arrays_in(args), *_arrays_in(kwargs.values())]
    if found.most <= config.direct and not LAZY.recorded and config.compile != "always":
        for value in values:
            if value.node is not None:
                break
        else:
            return found.compute(arrays, values, raw)
    return found.play(arrays, values, raw)


def _at_once(function: Callable[..., Any], x: Any, y: Any) -> Any:
    """What `recall` gives for an array at hand, or an operator on it and another or a number, in
    the quickest way; None where it is not that."""
    array, kind = _array[0], type(y)
    if type(x) is not array or x._scope is not LAZY or x._view is not None or x._weak:
        return None
    value = x._value
    values = [value]
    if y is ABSENT:
        found = _recordings.get((function, value.number))
    elif kind is not array:
        found = _recordings.get((function, value.number, kind))
    elif y._scope is not LAZY or y._view is not None or y._weak or y._value is value:
        return None
    else:
        other = y._value
        if other.node is not None:
            return None
        values.append(other)
        found = _recordings.get((function, value.number, other.number))
    if found is None or found.only is None or found.most > config.direct or value.node is not None:
        return None
    if LAZY.recorded or config.compile == "always":
        return None
    if found.literal is not None:
        values.append(FUNCTIONS["literal"](y, LAZY, found.literal))
    return found.compute(None, values, here(4))


def _recorded(
    key: Hashable,
    general: Hashable,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    values: list[LazyValue],
    numbers: list[Any],
) -> Any:
    """What the function gives, taken down for the next call of this key; and of the general key,
    if there is one and extents do not matter."""
    arrays = [*_arrays_in(args), *_arrays_in(kwargs.values())]
    looked, serial = last_look(), next_serial()
    with LAZY.waiting():
        result = function(*args, **kwargs)
    if last_look() is looked and all(a._value is v for a, v in zip(arrays, values, strict=True)):
        made = taken_down(result, arrays, serial)
        if made is not None and (not numbers or made.generalise(numbers)):
            if len(_recordings) >= _KEPT:
                _recordings.clear()
            _recordings[key] = made
            operation = None if general is None else made.known(values[0].type.dtype)
            if operation is not None:
                known[general] = operation
                kinds = {value.kind or value.asked() for value in values}
                if len(kinds) == 1:  # the next node for this type has the form of this one
                    kinds.pop().forms[operation] = operation.form
    realise_small([array._value for array in lazy_ones(result)])
    return result


def _as_array(operand: Any) -> Any:
    """An array of NumPy's as a lazy one; anything else as it is."""
    return _array[0](LAZY, LAZY.foreign(operand)) if type(operand) is np.ndarray else operand


# Keys.


def _add_tokens(
    key: list[Any],
    items: Any,
    values: list[LazyValue],
    like: tuple[type, ...] | None,
    numbers: list[Any],
) -> bool:
    """Add to a key what arguments are to a function that makes nodes, and say whether that is
    known; the values of lazy arrays among them are listed. To a ufunc numbers of some types are
    alike: they are listed too. To others, where `like` is None, it matters how views lie."""
    array = _array[0]
    for item in items:
        kind = type(item)
        if kind is array:
            if item._scope is not LAZY or item._weak or item._readonly:
                return False
            if item._view is not None:
                if like is None:
                    return False
                item._follow()
            value = item._value
            values.append(value)
            key.append(value.number)
        elif like and kind in like:
            numbers.append(item)
            key.append(kind)
        elif kind in _EXACT or (kind in _FLOATS and item):  # zeros of both signs are equal
            key.append((kind, item))
        elif kind is slice or kind is tuple or kind is list:
            parts = (item.start, item.stop, item.step) if kind is slice else item
            inner: list[Any] = [kind]
            if not _add_tokens(inner, parts, values, like and (), numbers):
                return False
            key.append(tuple(inner))
        else:
            return False
    return True


def _without_extents(
    function: Callable[..., Any], args: Sequence[Any], like: tuple[type, ...] | None
) -> Hashable:
    """What arrays, and numbers that are alike, are to a function but for extents; None where there
    is something else among them."""
    key: list[Any] = [function]
    for item in args:
        kind = type(item)
        if kind is _array[0]:
            key.append(item._value.type.dtype)
        elif like and kind in like:
            key.append(kind)
        else:
            return None
    return tuple(key) if len(key) > 2 else (*key, len(args[0]._value.type.shape))


def _arrays_in(items: Any) -> list[Any]:
    """The arrays whose values are listed for these arguments, in that order."""
    found: list[Any] = []
    for item in items:
        kind = type(item)
        if kind is _array[0]:
            found.append(item)
        elif kind is slice or kind is tuple or kind is list:
            found += _arrays_in((item.start, item.stop, item.step) if kind is slice else item)
    return found


# Types whose values are alike where they are equal.
_EXACT: frozenset[Any] = frozenset(
    {bool, int, str, type(None), type(...), type, type(ABSENT)}
    | {type(dtype) for dtype in SHORT}
    | {dtype.type for dtype in SHORT if KIND[dtype] in "biu"}
)
_FLOATS: frozenset[Any] = frozenset({float, np.float64, np.float32})


@cache
def numbers_alike(ufunc: np.ufunc | None) -> tuple[type, ...] | None:
    """The types of numbers that are alike to a ufunc; None for what is none. Some go other ways for
    some numbers: squares, and what no integer of a dtype equals."""
    if ufunc is None or ufunc is np.power:
        return None if ufunc is None else ()
    return (float,) if ufunc in COMPARISONS else (float, int)
