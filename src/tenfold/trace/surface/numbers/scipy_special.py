"""scipy.special: its ufuncs that are traced, found by name where SciPy is loaded.

SciPy is never imported here. Its ufuncs ask traced arrays as NumPy's do, and say themselves which
dtypes they bring operands to.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tenfold.errors import TypeMismatch
from tenfold.ops.numbers.special import BERNOULLI, NEAR_TWO
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import cast, emit, fail
from tenfold.trace.surface.numbers.bessel import bessel
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.trace.surface.ufuncs.ufuncs import Build, define
from tenfold.trace.tables import FUNCTIONS, UFUNCS
from tenfold.types import F64, KIND, DType

_HALF_ROOT = math.sqrt(0.5)


def _x_log(log: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """x times a logarithm of y, which is 0 where x is, whatever number y is."""
    return lambda x, y: np.where((x == 0) & ~np.isnan(y), 0, x * log(y))


def _entr(x: Array) -> Any:
    return np.where(x > 0, -x * np.log(x), np.where(x == 0, 0, np.where(x < 0, -math.inf, x)))


def _rel_entr(x: Array, y: Array) -> Any:
    ratio = x / y
    near = (ratio > 0.5) & (ratio < 2)
    plain = (ratio > 2.0**-1022) & (ratio < math.inf)
    parted = np.log(x) - np.log(y)  # where the ratio is no float
    log = np.where(near, np.log1p((x - y) / y), np.where(plain, np.log(ratio), parted))
    return _divergence(x, y, x * log, 0)


def _kl_div(x: Array, y: Array) -> Any:
    return _divergence(x, y, x * np.log(x / y) - x + y, y)


def _divergence(x: Array, y: Array, made: Any, at_zero: Any) -> Any:
    """A divergence where both are positive, what it is at 0, and infinity elsewhere."""
    found = np.where((x > 0) & (y > 0), made, np.where((x == 0) & (y >= 0), at_zero, math.inf))
    return np.where(np.isnan(x) | np.isnan(y), math.nan, found)


def _huber(delta: Array, r: Array) -> Any:
    size = np.abs(r)
    found = np.where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return np.where(delta < 0, math.inf, found)


def _pseudo_huber(delta: Array, r: Array) -> Any:
    v = r / delta
    found = delta * delta * np.expm1(0.5 * np.log1p(v * v))
    found = np.where((delta == 0) | (r == 0), 0, found)
    return np.where(delta < 0, math.inf, found)


def _logit(x: Array) -> Any:
    away = 2 * (x - 0.5)
    near = np.log1p(away) - np.log1p(-away)
    return np.where((x < 0.3) | (x > 0.65), np.log(x / (1 - x)), near)


def _log_expit(x: Array) -> Any:
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def _ndtr(x: Array) -> Any:
    z = x * _HALF_ROOT
    tail = 0.5 * emit("erfc", np.abs(z))
    middle = 0.5 + 0.5 * emit("erf", z)
    return np.where(np.abs(z) < _HALF_ROOT, middle, np.where(z > 0, 1 - tail, tail))


_LOW = -20.0  # from here down a series in 1 / x**2 is as good as a float


def _log_ndtr(x: Array) -> Any:
    z = x * _HALF_ROOT
    low = np.minimum(x, _LOW)
    inverse = 1 / (low * low)
    series = inverse * 0
    for k in range(10, 0, -1):
        series = -inverse * (2 * k - 1) * (1 + series)
    far = -0.5 * low * low - np.log(-low) - 0.5 * math.log(2 * math.pi) + np.log1p(series)
    tail = np.log(0.5 * emit("erfc", -z))
    found = np.where(x > -1, np.log1p(-0.5 * emit("erfc", z)), np.where(x > _LOW, tail, far))
    return np.where(np.isnan(x), x, found)


def _loggamma(x: Array) -> Any:
    return np.where(x < 0, math.nan, emit("lgamma", x))


def _exprel(x: Array) -> Any:
    tiny = np.abs(x) < 1e-16
    found = np.expm1(x) / np.where(tiny, 1, x)
    return np.where(tiny, 1, np.where(x == math.inf, x, found))


def _cosm1(x: Array) -> Any:
    half = np.sin(0.5 * x)
    return -2 * half * half


def _gamma(x: Array) -> Any:
    """A product down to a series about 2, Stirling's formula from 12 on, reflection below 0."""
    size = np.abs(x)
    below = np.where(size < 0.5, size * (size + 1), np.where(size < 1.5, size, 1))
    near = np.minimum(size, 12.5) + np.where(size < 0.5, 2, np.where(size < 1.5, 1, 0))
    product = size * 0 + 1
    for _ in range(10):
        far = near >= 2.5
        product = np.where(far, product * (near - 1), product)
        near = np.where(far, near - 1, near)
    z = near - 2
    series = size * 0
    for c in reversed(NEAR_TWO):
        series = series * z + c
    close = product * np.exp(z * series) / below
    top = np.maximum(size, 12)
    inverse = 1 / top
    tail = size * 0
    for k, b in reversed(list(enumerate(BERNOULLI, 1))):
        tail = tail * (inverse * inverse) + b / (2 * k * (2 * k - 1))
    half = np.power(top, 0.5 * top - 0.25)  # twice a half, so that only the result overflows
    stirling = half * (math.sqrt(2 * math.pi) * np.exp(inverse * tail) * np.exp(-top)) * half
    stirling = np.where(size > 172, math.inf, stirling)
    positive = np.where(size < 12, close, stirling)
    away = size - np.round(size)
    odd = np.where(np.round(size) % 2 == 1, -1.0, 1.0)
    mirrored = -math.pi / (size * positive * np.sin(math.pi * away)) * odd
    pole = (away == 0) | (size == math.inf)
    made = np.where(x < 0, np.where(pole, math.nan, mirrored), positive)
    return np.where(x == 0, np.copysign(math.inf, x), made)


def _gammaln(x: Array) -> Any:
    return np.where(x == -math.inf, -math.inf, emit("lgamma", x))


def _doubled(formula: Callable[..., Any]) -> Build:
    """A formula of doubles: floats are brought to them and rounded once, as SciPy does."""

    def build(*operands: Array) -> Any:
        dtype = operands[0].dtype
        return cast(formula(*(cast(x, F64) for x in operands)), dtype)

    return build


TRACED: dict[str, Build] = {
    "cbrt": "cbrt",
    "cosm1": _doubled(_cosm1),
    "digamma": _doubled(partial(emit, "digamma")),
    "psi": _doubled(partial(emit, "digamma")),
    "entr": _doubled(_entr),
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erf_inv",
    "exp10": lambda x: emit("pow", number(10, x.dtype), x),
    "exp2": "exp2",
    "expit": "sigmoid",
    "expm1": "expm1",
    "exprel": _doubled(_exprel),
    "gamma": _doubled(_gamma),
    "gammaln": _doubled(_gammaln),
    "huber": _doubled(_huber),
    "i0": _doubled(partial(bessel, order=0, scaled=False)),
    "i0e": _doubled(partial(bessel, order=0, scaled=True)),
    "i1": _doubled(partial(bessel, order=1, scaled=False)),
    "i1e": _doubled(partial(bessel, order=1, scaled=True)),
    "kl_div": _doubled(_kl_div),
    "log1p": "log1p",
    "log_expit": _doubled(_log_expit),
    "log_ndtr": _doubled(_log_ndtr),
    "loggamma": _doubled(_loggamma),
    "logit": _doubled(_logit),
    "ndtr": _doubled(_ndtr),
    "pseudo_huber": _doubled(_pseudo_huber),
    "rel_entr": _doubled(_rel_entr),
    "round": "round",
    "xlog1py": _doubled(_x_log(np.log1p)),
    "xlogy": _doubled(_x_log(np.log)),
}
_OF_COMPLEX = ("expm1", "log1p")


def from_scipy(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """What a ufunc of SciPy's does on traced arrays, if it is one that is traced."""
    name = ufunc.__name__
    if name not in TRACED or getattr(sys.modules.get("scipy.special"), name, None) is not ufunc:
        return None

    def choose(dtypes: tuple[DType, ...]) -> Build:
        if any(KIND[d] == "c" for d in dtypes) and name not in _OF_COMPLEX:
            fail(TypeMismatch, f"scipy.special.{name} of complex numbers", "it is traced of reals")
        return TRACED[name]

    define(ufunc, choose, choose=True)
    return UFUNCS[ufunc]


FUNCTIONS["scipy"] = from_scipy
