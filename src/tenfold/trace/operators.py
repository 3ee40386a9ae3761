"""Operators: arithmetic and comparisons of arrays, and when a Python number stays one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.trace.lazy.recall import operator, updating
from tenfold.trace.tables import COMPARISONS, FUNCTIONS, UFUNCS

_NUMBERS = (int, float, complex)
OPERANDS = (float, int, complex, np.ndarray, np.generic, list, tuple)


def _forward(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    return operator(lambda self, other: self._operate(ufunc, self, other), ufunc)


def _operators(ufunc: np.ufunc) -> tuple[Callable[[Any, Any], Any], ...]:
    """The operator of a ufunc: x + y, y + x, x += y."""
    backward = operator(lambda self, other: self._operate(ufunc, other, self), ufunc)
    return _forward(ufunc), backward, updating(ufunc)


class Operators:
    """What `+`, `<`, `-x` and the like do on an array."""

    __slots__ = ()
    _weak: type | None
    _in_place: Callable[[np.ufunc, Any], Any]

    def _operate(self, ufunc: np.ufunc, left: Any, right: Any) -> Any:
        other = right if left is self else left
        kind = type(other)
        if kind is type(self):
            if not (self._weak or other._weak):
                return UFUNCS[ufunc](left, right)
        elif (kind is float or kind is int) and not self._weak:
            return UFUNCS[ufunc](left, right)
        elif not isinstance(other, OPERANDS):
            nothing = other is None or isinstance(other, (str, bytes))  # that an element equals
            if nothing and ufunc in (np.equal, np.not_equal):
                return FUNCTIONS[np.full_like](self, ufunc is np.not_equal, dtype=bool)
            return NotImplemented
        if self._weak:
            weak = _weak_result(ufunc, left, right)
            if weak is not None:
                result = UFUNCS[ufunc](left, right)
                for part in result if isinstance(result, tuple) else (result,):
                    part._weak = weak
                return result
        return UFUNCS[ufunc](left, right)

    __add__, __radd__, __iadd__ = _operators(np.add)
    __sub__, __rsub__, __isub__ = _operators(np.subtract)
    __mul__, __rmul__, __imul__ = _operators(np.multiply)
    __truediv__, __rtruediv__, __itruediv__ = _operators(np.true_divide)
    __floordiv__, __rfloordiv__, __ifloordiv__ = _operators(np.floor_divide)
    __mod__, __rmod__, __imod__ = _operators(np.remainder)
    __pow__, __rpow__, __ipow__ = _operators(np.power)
    __matmul__, __rmatmul__, __imatmul__ = _operators(np.matmul)
    __and__, __rand__, __iand__ = _operators(np.bitwise_and)
    __or__, __ror__, __ior__ = _operators(np.bitwise_or)
    __xor__, __rxor__, __ixor__ = _operators(np.bitwise_xor)
    __lshift__, __rlshift__, __ilshift__ = _operators(np.left_shift)
    __rshift__, __rrshift__, __irshift__ = _operators(np.right_shift)
    __divmod__, __rdivmod__ = _operators(np.divmod)[:2]
    __eq__ = _forward(np.equal)
    __ne__ = _forward(np.not_equal)
    __lt__ = _forward(np.less)
    __le__ = _forward(np.less_equal)
    __gt__ = _forward(np.greater)
    __ge__ = _forward(np.greater_equal)

    def __neg__(self) -> Any:
        return self._unary(np.negative)

    def __pos__(self) -> Any:
        return self._unary(np.positive)

    def __abs__(self) -> Any:
        return self._unary(np.absolute)

    def __invert__(self) -> Any:
        return self._unary(np.invert)

    def _unary(self, ufunc: np.ufunc) -> Any:
        result = UFUNCS[ufunc](self)
        if self._weak:
            real = self._weak is complex and ufunc is np.absolute
            result._weak = float if real else self._weak
        return result


def _weak_result(ufunc: np.ufunc, left: Any, right: Any) -> type | None:
    """The Python type of an operation on Python numbers alone, else None."""
    kinds = []
    for operand in (left, right):
        kind = operand._weak if isinstance(operand, Operators) else type(operand)
        if kind not in _NUMBERS:
            return None
        kinds.append(kind)
    if ufunc in COMPARISONS:
        return None
    widest = max(kinds, key=_NUMBERS.index)
    return float if ufunc is np.true_divide and widest is int else widest
