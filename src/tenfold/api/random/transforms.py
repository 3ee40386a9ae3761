"""Transforms: distributions that are functions of uniform or normal numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenfold.api.random.draws import (
    float_dtype,
    middle,
    scaled,
    shape_from,
    standard_normal,
    unit,
    wide,
)
from tenfold.errors import ShapeError
from tenfold.trace.array import Array
from tenfold.trace.surface.anywhere import anywhere
from tenfold.trace.surface.emit import cast, emit, fail, traced
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.trace.tables import UFUNCS
from tenfold.types import F64, I64, KIND, DType, Shape


def _decay(name: str, key: Any, shape: Shape, dtype: DType) -> Array:
    """Numbers of the exponential distribution."""
    return emit("neg", emit("log1p", emit("neg", unit(name, key, shape, dtype))))


@anywhere
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Array:
    """True with the probability p, whose shape is that of the result if none is given.

    >>> import tenfold as tn
    >>> tn.random.bernoulli(tn.random.key(0), 0.7, (4,))
    array([ True,  True,  True, False])
    """
    chance = traced(p)
    chance = chance if KIND[chance.dtype] == "f" else cast(chance, F64)
    inner = wide(chance.dtype)
    extents = chance.shape if shape is None else shape_from(shape)
    return emit("lt", unit("bernoulli", key, extents, inner), cast(chance, inner))


@anywhere
def exponential(key: Any, shape: Any = (), dtype: Any = np.float64, scale: Any = 1.0) -> Array:
    """Numbers of the exponential distribution with this mean."""
    wanted = float_dtype("exponential", dtype)
    made = _decay("exponential", key, shape_from(shape), wide(wanted))
    return cast(scaled(made, 0, scale), wanted)


@anywhere
def laplace(
    key: Any, shape: Any = (), dtype: Any = np.float64, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Numbers of the Laplace distribution."""
    wanted = float_dtype("laplace", dtype)
    half = middle("laplace", key, shape_from(shape), wide(wanted))
    even = emit("sub", emit("add", half, half), number(1, half.dtype))
    size = emit("neg", emit("log1p", emit("neg", emit("abs", even))))
    return cast(scaled(emit("copysign", size, even), loc, scale), wanted)


@anywhere
def gumbel(
    key: Any, shape: Any = (), dtype: Any = np.float64, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Numbers of the Gumbel distribution."""
    wanted = float_dtype("gumbel", dtype)
    made = extreme("gumbel", key, shape_from(shape), wide(wanted))
    return cast(scaled(made, loc, scale), wanted)


def extreme(name: str, key: Any, shape: Shape, dtype: DType) -> Array:
    half = middle(name, key, shape, dtype)
    return emit("neg", emit("log", emit("neg", emit("log", half))))


@anywhere
def logistic(
    key: Any, shape: Any = (), dtype: Any = np.float64, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Numbers of the logistic distribution."""
    wanted = float_dtype("logistic", dtype)
    half = middle("logistic", key, shape_from(shape), wide(wanted))
    made = emit("sub", emit("log", half), emit("log1p", emit("neg", half)))
    return cast(scaled(made, loc, scale), wanted)


@anywhere
def cauchy(
    key: Any, shape: Any = (), dtype: Any = np.float64, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Numbers of the Cauchy distribution."""
    wanted = float_dtype("cauchy", dtype)
    half = middle("cauchy", key, shape_from(shape), wide(wanted))
    turn = emit("mul", emit("sub", half, number(0.5, half.dtype)), number(math.pi, half.dtype))
    return cast(scaled(emit("tan", turn), loc, scale), wanted)


@anywhere
def rayleigh(key: Any, shape: Any = (), dtype: Any = np.float64, scale: Any = 1.0) -> Array:
    """Numbers of the Rayleigh distribution."""
    wanted = float_dtype("rayleigh", dtype)
    made = _decay("rayleigh", key, shape_from(shape), wide(wanted))
    return cast(scaled(emit("sqrt", emit("add", made, made)), 0, scale), wanted)


@anywhere
def weibull(key: Any, a: Any, shape: Any = (), dtype: Any = np.float64, scale: Any = 1.0) -> Array:
    """Numbers of the Weibull distribution with this exponent."""
    wanted = float_dtype("weibull", dtype)
    made = _decay("weibull", key, shape_from(shape), wide(wanted))
    power = emit("div", number(1, made.dtype), traced(a, made.dtype))
    return cast(scaled(emit("pow", made, power), 0, scale), wanted)


@anywhere
def pareto(key: Any, a: Any, shape: Any = (), dtype: Any = np.float64) -> Array:
    """Numbers of the Pareto II distribution with this exponent, as NumPy's: from 0 up."""
    wanted = float_dtype("pareto", dtype)
    made = _decay("pareto", key, shape_from(shape), wide(wanted))
    return cast(emit("expm1", emit("div", made, traced(a, made.dtype))), wanted)


@anywhere
def geometric(key: Any, p: Any, shape: Any = None) -> Array:
    """How many trials until the first success, each of the probability p."""
    chance = traced(p, F64) if not isinstance(p, Array) else cast(p, F64)
    extents = chance.shape if shape is None else shape_from(shape)
    made = _decay("geometric", key, extents, F64)
    rate = emit("neg", emit("log1p", emit("neg", chance)))
    tries = emit("ceil", emit("div", made, rate))
    return cast(emit("max", tries, number(1, F64)), I64)


@anywhere
def lognormal(
    key: Any, shape: Any = (), dtype: Any = np.float64, mean: Any = 0.0, sigma: Any = 1.0
) -> Array:
    """Numbers whose logarithm is normal, of this mean and deviation."""
    wanted = float_dtype("lognormal", dtype)
    made = standard_normal("lognormal", key, shape_from(shape), wide(wanted))
    return cast(emit("exp", scaled(made, mean, sigma)), wanted)


@anywhere
def truncated_normal(
    key: Any, low: Any = -2.0, high: Any = 2.0, shape: Any = (), dtype: Any = np.float64
) -> Array:
    """Numbers of the normal distribution between two bounds."""
    wanted = float_dtype("truncated_normal", dtype)
    inner = wide(wanted)
    first, last = traced(low, inner), traced(high, inner)
    root = number(math.sqrt(0.5), inner)
    start, end = (emit("erf", emit("mul", bound, root)) for bound in (first, last))
    u = middle("truncated_normal", key, shape_from(shape), inner)
    even = emit("add", emit("mul", u, emit("sub", end, start)), start)
    made = emit("mul", emit("erf_inv", even), number(math.sqrt(2), inner))
    return cast(emit("clip", made, first, last), wanted)


@anywhere
def multivariate_normal(
    key: Any, mean: Any, cov: Any, shape: Any = (), dtype: Any = np.float64
) -> Array:
    """Vectors of the normal distribution with this mean and covariance, which has to be positive
    definite; the result has the vectors behind the shape."""
    wanted = float_dtype("multivariate_normal", dtype)
    inner = wide(wanted)
    centre, spread = traced(mean, inner), traced(cov, inner)
    if centre.ndim != 1 or spread.shape != (centre.size, centre.size):
        fail(
            ShapeError,
            f"random.multivariate_normal: a mean {centre.type} and a covariance {spread.type}",
            "give n numbers and a matrix of n times n",
        )
    extents = (*shape_from(shape), centre.size)
    z = standard_normal("multivariate_normal", key, extents, inner)
    factor = emit("cholesky", spread)
    transposed = emit("transpose", factor, axes=(1, 0))
    return cast(emit("add", UFUNCS[np.matmul](z, transposed), centre), wanted)
