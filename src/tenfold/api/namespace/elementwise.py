"""Elementwise functions: each is a ufunc of NumPy's under the standard's name."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.api.namespace.dispatch import apply


def _named(function: Callable[..., Any], name: str, ufunc: np.ufunc) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"NumPy's `{ufunc.__name__}` on arrays."
    return function


def _unary(name: str, ufunc: np.ufunc) -> Callable[[Any], Any]:
    return _named(lambda x, /: apply(ufunc, x), name, ufunc)


def _binary(name: str, ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    return _named(lambda x1, x2, /: apply(ufunc, x1, x2), name, ufunc)


abs = _unary("abs", np.absolute)
acos = _unary("acos", np.arccos)
acosh = _unary("acosh", np.arccosh)
asin = _unary("asin", np.arcsin)
asinh = _unary("asinh", np.arcsinh)
atan = _unary("atan", np.arctan)
atanh = _unary("atanh", np.arctanh)
bitwise_invert = _unary("bitwise_invert", np.invert)
ceil = _unary("ceil", np.ceil)
conj = _unary("conj", np.conjugate)
cos = _unary("cos", np.cos)
cosh = _unary("cosh", np.cosh)
exp = _unary("exp", np.exp)
floor = _unary("floor", np.floor)
isfinite = _unary("isfinite", np.isfinite)
isinf = _unary("isinf", np.isinf)
isnan = _unary("isnan", np.isnan)
log = _unary("log", np.log)
log10 = _unary("log10", np.log10)
log1p = _unary("log1p", np.log1p)
log2 = _unary("log2", np.log2)
logical_not = _unary("logical_not", np.logical_not)
negative = _unary("negative", np.negative)
positive = _unary("positive", np.positive)
reciprocal = _unary("reciprocal", np.reciprocal)
sign = _unary("sign", np.sign)
signbit = _unary("signbit", np.signbit)
sin = _unary("sin", np.sin)
sinh = _unary("sinh", np.sinh)
sqrt = _unary("sqrt", np.sqrt)
square = _unary("square", np.square)
tan = _unary("tan", np.tan)
trunc = _unary("trunc", np.trunc)
add = _binary("add", np.add)
atan2 = _binary("atan2", np.arctan2)
bitwise_and = _binary("bitwise_and", np.bitwise_and)
bitwise_left_shift = _binary("bitwise_left_shift", np.left_shift)
bitwise_or = _binary("bitwise_or", np.bitwise_or)
bitwise_right_shift = _binary("bitwise_right_shift", np.right_shift)
bitwise_xor = _binary("bitwise_xor", np.bitwise_xor)
copysign = _binary("copysign", np.copysign)
divide = _binary("divide", np.true_divide)
equal = _binary("equal", np.equal)
floor_divide = _binary("floor_divide", np.floor_divide)
greater = _binary("greater", np.greater)
greater_equal = _binary("greater_equal", np.greater_equal)
hypot = _binary("hypot", np.hypot)
less = _binary("less", np.less)
less_equal = _binary("less_equal", np.less_equal)
logaddexp = _binary("logaddexp", np.logaddexp)
logical_and = _binary("logical_and", np.logical_and)
logical_or = _binary("logical_or", np.logical_or)
logical_xor = _binary("logical_xor", np.logical_xor)
matmul = _binary("matmul", np.matmul)
maximum = _binary("maximum", np.maximum)
minimum = _binary("minimum", np.minimum)
multiply = _binary("multiply", np.multiply)
nextafter = _binary("nextafter", np.nextafter)
not_equal = _binary("not_equal", np.not_equal)
pow = _binary("pow", np.power)
remainder = _binary("remainder", np.remainder)
subtract = _binary("subtract", np.subtract)


def real(x: Any, /) -> Any:
    """The real part."""
    return apply(np.real, x)


def imag(x: Any, /) -> Any:
    """The imaginary part."""
    return apply(np.imag, x)


def round(x: Any, /) -> Any:
    """The nearest whole numbers, halves to the even one."""
    return apply(np.round, x)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """x with what lies outside the bounds moved to them; its dtype stays."""
    dtype = builtins.getattr(x, "dtype", None)
    made = apply(np.clip, x, min, max)
    return made if dtype is None or made.dtype == dtype else made.astype(dtype)
