"""Quick: elementwise operations on arrays at hand, and sums over all of one, in the shortest way.

What NumPy's function is for such an operation hangs on the dtypes alone. So once one has been taken
down (`recall`), it is known for all equal shapes, met before or not: no key of types is made, and
the type of a result is not looked for until somebody asks. `x += y` is written into the array of x
where nobody else holds that. All else is left to `recall`.

A Python function call takes as long as half of this does: hence few functions, and long ones.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from sys import _getframe, getrefcount
from typing import Any

import numpy as np

from tenfold.config import config
from tenfold.frames import hide
from tenfold.trace.lazy.compute import locate_error, quiet
from tenfold.trace.lazy.lazy import LAZY, Host, LazyValue, NodeForm
from tenfold.trace.scope import local
from tenfold.trace.source import Raw, caller, here, internal
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import DType

array_class: list[Any] = []  # which is made of what is computed, and sets itself here
_LITERALS = 1024  # numbers that are remembered of an operation


class Known:
    """NumPy's function for an operation on arrays of some dtypes, or on an array and a number."""

    __slots__ = ("exact", "form", "function", "literal", "literals", "same", "swapped")

    def __init__(
        self, form: NodeForm, order: tuple[int, ...], literal: DType | None, dtype: DType
    ) -> None:
        self.form = form
        self.function: Callable[..., Any] = form.function  # type: ignore[assignment]
        self.swapped = order == (1, 0)
        self.literal = literal  # the dtype that a number is made
        self.literals: dict[Any, Host] = {}
        # whether the result has the type of the first array, and can have its memory
        self.same = isinstance(self.function, np.ufunc) and form.types[0].dtype == dtype
        self.exact = form.is_exact and self.same and not self.swapped

    def of(self, number: Any) -> Host:
        """A number as an array, which is remembered: a zero is not, since it may have a sign."""
        found: Host = FUNCTIONS["literal"](number, LAZY, self.literal).array
        if number:
            if len(self.literals) >= _LITERALS:
                self.literals.clear()
            self.literals[number] = found
        return found


known: dict[Hashable, Known] = {}  # by function and dtypes: it grows with the dtypes met


def pair(
    function: Callable[..., Any],
    otherwise: Callable[[Any, Any], Any],
    traced: Callable[[Any, Any], Any],
    update: bool = False,
) -> Callable[[Any, Any], Any]:
    """An elementwise function of two operands, as users call it: what it gives for an array at hand
    and another of its shape or a number; with `update` this becomes the value of x, which is given
    back. What is not that is left to `otherwise`, and in a trace to `traced`."""

    def call(x: Any, y: Any) -> Any:
        try:  # an entry, written out
            scope = local.scope
            if scope is not None:
                before = scope.at
                scope.at = caller(before)
                try:
                    return traced(x, y)
                finally:
                    scope.at = before
            array = array_class[0]
            if x.__class__ is not array or x._weak is not None:
                return otherwise(x, y)
            view = x._view
            if view is not None:
                if update:
                    return otherwise(x, y)
                if x._seen != view.root._version:
                    x._follow()
            value = x._value
            if value.__class__ is not LazyValue:
                return otherwise(x, y)
            first, kind = value.array, value.kind
            if y.__class__ is array:
                if y._weak is not None:
                    return otherwise(x, y)
                view = y._view
                if view is not None and y._seen != view.root._version:
                    y._follow()
                other = y._value
                if other.__class__ is not LazyValue:
                    return otherwise(x, y)
                second = other.array
                if kind is not None and kind is other.kind:
                    found = kind.known.get(function)
                    if found is None:
                        dtype = kind.type.dtype
                        found = kind.known[function] = known.get((function, dtype, dtype))
                elif first is None or second is None or first.shape != second.shape:
                    return otherwise(x, y)
                else:
                    found = known.get((function, first.dtype, second.dtype))
                if found is None:
                    return otherwise(x, y)
            else:
                dtype = value.type.dtype if first is None else first.dtype
                found = known.get((function, dtype, y.__class__))
                if found is None:
                    return otherwise(x, y)
                other = None
                second = found.literals.get(y)
                if second is None:
                    second = found.of(y)
            if LAZY.recorded or config.compile == "always":
                return otherwise(x, y)
            if update:
                if not found.same or x._readonly or x._argument is not None:
                    return otherwise(x, y)
                if not (value.type.shape if first is None else first.ndim):
                    return otherwise(x, y)  # a scalar is bound anew
            if first is None or second is None or not 0 < first.size <= config.direct:
                result = _waiting(found, value, other, y, here(2))
                if result is None:
                    return otherwise(x, y)
                if not update:
                    return array(LAZY, result)
                x._value = result
                x._version += 1
                return x
            frame = _getframe(1)
            code = frame.f_code
            raw = (code, frame.f_lasti) if internal.get(id(code)) is False else here(2)
            run = quiet.run
            try:
                if (
                    update
                    and found.exact
                    and getrefcount(value) == _UNSHARED
                    and getrefcount(first) == _UNSHARED
                    and first.flags.writeable
                    and first.base is None
                ):
                    run(found.function, first, second, first)
                    value.raw = raw
                    x._version += 1
                    return x
                if found.swapped:
                    made = run(found.function, second, first)
                else:
                    made = run(found.function, first, second)
            except RuntimeError:  # inside that context: what is freed meanwhile brought us here
                return otherwise(x, y)
            except Exception as error:
                locate_error(error, found.form, (value,), raw)
                raise
            if made.__class__ is not np.ndarray:  # NumPy gives scalars for 0-d arrays
                made = np.asarray(made)
            result = LazyValue(kind if found.same else None, None, raw, made)
            if update:
                x._value = result
                x._version += 1
                return x
            return array(LAZY, result)
        except BaseException as error:
            hide(error)
            raise

    return call


def single(function: Callable[..., Any], x: Any) -> Any:
    """What a function of one array gives for one at hand, elementwise or as a sum of all of it;
    None where it is not that."""
    array = array_class[0]
    if x.__class__ is not array or x._weak is not None:
        return None
    view = x._view
    if view is not None and x._seen != view.root._version:
        x._follow()
    value = x._value
    if value.__class__ is not LazyValue:
        return None
    first = value.array
    if first is None:
        type = value.type
        found = known.get((function, type.dtype, len(type.shape)))
    else:
        found = known.get((function, first.dtype, first.ndim))
    if found is None or LAZY.recorded or config.compile == "always":
        return None
    if first is None or not 0 < first.size <= config.direct:
        result = _waiting(found, value, None, None, here(3))
        return None if result is None else array(LAZY, result)
    frame = _getframe(2)
    code = frame.f_code
    raw = (code, frame.f_lasti) if internal.get(id(code)) is False else here(3)
    try:
        made = quiet.run(found.function, first)
    except RuntimeError:
        return None
    except Exception as error:
        locate_error(error, found.form, (value,), raw)
        raise
    if made.__class__ is not np.ndarray:
        made = np.asarray(made)
    return array(LAZY, LazyValue(value.kind if found.same else None, None, raw, made))


def _waiting(
    found: Known, value: LazyValue, other: LazyValue | None, number: Any, raw: Raw | None
) -> LazyValue | None:
    """The value of a node of a known operation, which waits: what it reads is large, or waits
    itself. None where it is not of one type, or empty."""
    kind = value.kind or value.asked()
    if not kind.size or (other is not None and other.kind is not kind):
        return None
    if found.literal is not None:
        other = FUNCTIONS["literal"](number, LAZY, found.literal)
    inputs = (value,) if other is None else (other, value) if found.swapped else (value, other)
    form = kind.forms.get(found)
    if form is None:
        form = kind.forms[found] = found.form.sized(kind, inputs)
    return LAZY.deferred(form, inputs, raw)[0]


class _Holder:
    """What holds a value as an array does."""

    _value = LazyValue(None, None, None, np.zeros((), bool))


def _counted(x: Any) -> int:
    """What is counted where nobody but x holds its value, and nobody but that its array."""
    value = x._value
    first = value.array
    assert getrefcount(value) == getrefcount(first)
    return getrefcount(first)


_UNSHARED = _counted(_Holder)
