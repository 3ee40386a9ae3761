"""Rejection: distributions drawn in rounds until every element is accepted.

A round draws for all elements with a key of its own; those accepted before keep their value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.api.random.draws import float_dtype, middle, shape_from, standard_normal, unit, wide
from tenfold.api.random.keys import fold_in, split
from tenfold.trace.array import Array
from tenfold.trace.control.control import while_loop
from tenfold.trace.surface.anywhere import anywhere
from tenfold.trace.surface.emit import cast, emit, traced
from tenfold.trace.surface.ufuncs.composed import filled, number
from tenfold.types import BOOL, F64, I64, DType, Shape

Attempt = Callable[[Any], tuple[Array, Array]]


def _accepted(key: Any, shape: Shape, dtype: DType, attempt: Attempt) -> Array:
    """What attempts give, each element from the first round that accepts it."""

    def more(state: Any) -> Array:
        _, done, _ = state
        return emit("not", emit("reduce_all", done, axes=tuple(range(len(shape)))))

    def again(state: Any) -> Any:
        turn, done, kept = state
        value, good = attempt(fold_in(key, turn))
        new = emit("and", good, emit("not", done))
        return turn + 1, emit("or", done, good), emit("select", new, value, kept)

    start = (number(0, I64), filled(False, BOOL, shape), filled(0, dtype, shape))
    made: Array = while_loop(more, again, start)[2]
    return made


def _shaped(shape: Any, *parameters: Array) -> Shape:
    if shape is None:
        return tuple(np.broadcast_shapes(*(p.shape for p in parameters)))
    return shape_from(shape)


@anywhere
def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = np.float64, scale: Any = 1.0) -> Array:
    """Numbers of the gamma distribution with this exponent, whose shape is that of the result if
    none is given.

    >>> import numpy as np, tenfold as tn
    >>> x = tn.random.gamma(tn.random.key(0), 3.0, (4000,))
    >>> bool(abs(x.mean() - 3) < 0.15)
    True
    """
    wanted = float_dtype("gamma", dtype)
    inner = wide(wanted)
    exponent = traced(a, inner) if not isinstance(a, Array) else cast(a, inner)
    extents = _shaped(shape, exponent)
    made = emit("mul", _gamma(key, exponent, extents, inner), traced(scale, inner))
    return cast(made, wanted)


def _gamma(key: Any, a: Array, shape: Shape, dtype: DType) -> Array:
    """Marsaglia's and Tsang's way: the cube of a normal number, mostly accepted."""
    first, second = split(key)[0], split(key)[1]
    one = number(1, dtype)
    small = emit("lt", a, one)
    above = emit("select", small, emit("add", a, one), a)
    d = above - 1 / 3
    c = emit("div", number(1 / 3, dtype), emit("sqrt", d))

    def attempt(round_key: Any) -> tuple[Array, Array]:
        keys = split(round_key)
        x = standard_normal("gamma", keys[0], shape, dtype)
        u = middle("gamma", keys[1], shape, dtype)
        side = emit("add", emit("mul", x, c), one)
        cube = side * side * side
        safe = emit("max", cube, number(float(np.finfo(dtype).tiny), dtype))
        limit = x * x * 0.5 + d - d * cube + d * emit("log", safe)
        good = emit("and", emit("gt", cube, number(0, dtype)), emit("lt", emit("log", u), limit))
        return emit("mul", cube, d), good

    made = _accepted(first, shape, dtype, attempt)
    # Below 1: from the one above, times a power of a uniform number.
    u = middle("gamma", second, shape, dtype)
    less = emit("pow", u, emit("div", one, emit("select", small, a, one)))
    return emit("select", small, emit("mul", made, less), made)


@anywhere
def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Numbers of the beta distribution with these exponents."""
    wanted = float_dtype("beta", dtype)
    inner = wide(wanted)
    left, right = (cast(traced(p), inner) for p in (a, b))
    extents = _shaped(shape, left, right)
    keys = split(key)
    x, y = _gamma(keys[0], left, extents, inner), _gamma(keys[1], right, extents, inner)
    return cast(emit("div", x, emit("add", x, y)), wanted)


@anywhere
def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Numbers of the chi-square distribution with so many degrees of freedom."""
    half = cast(traced(df), F64) * 0.5
    made: Array = gamma(key, half, shape, dtype, scale=2.0)
    return made


@anywhere
def student_t(key: Any, df: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Numbers of Student's t distribution with so many degrees of freedom."""
    wanted = float_dtype("student_t", dtype)
    inner = wide(wanted)
    freedom = cast(traced(df), inner)
    extents = _shaped(shape, freedom)
    keys = split(key)
    half = freedom * 0.5
    spread = emit("div", half, _gamma(keys[0], half, extents, inner))
    z = standard_normal("student_t", keys[1], extents, inner)
    return cast(emit("mul", z, emit("sqrt", spread)), wanted)


@anywhere
def dirichlet(key: Any, alpha: Any, shape: Any = (), dtype: Any = np.float64) -> Array:
    """Vectors of the Dirichlet distribution: shares that add up to 1, behind the shape."""
    wanted = float_dtype("dirichlet", dtype)
    inner = wide(wanted)
    weights = cast(traced(alpha), inner)
    extents = (*shape_from(shape), *weights.shape[-1:])
    made = _gamma(key, weights, extents, inner)
    total = emit("reduce_sum", made, axes=(len(extents) - 1,))
    share = emit("div", made, emit("reshape", total, shape=(*total.shape, 1)))
    return cast(share, wanted)


_FEW = 10.0  # from this mean on counting would take long


@anywhere
def poisson(key: Any, lam: Any, shape: Any = None) -> Array:
    """Integers of the Poisson distribution with this mean."""
    mean = cast(traced(lam), F64)
    extents = _shaped(shape, mean)
    keys = split(key)
    many = emit("ge", mean, number(_FEW, F64))
    low = _counted(keys[0], emit("select", many, number(1, F64), mean), extents)
    high = _hatted(keys[1], emit("select", many, mean, number(_FEW, F64)), extents)
    return cast(emit("select", many, high, low), I64)


def _counted(key: Any, mean: Array, shape: Shape) -> Array:
    """For small means: up from 0 until the probabilities add up to a uniform number."""
    u = unit("poisson", key, shape, F64)
    share = emit("broadcast", emit("exp", emit("neg", mean)), shape=shape)
    zero = filled(0.0, F64, shape)

    def more(state: Any) -> Array:
        _, _, total, _ = state
        return emit("reduce_any", emit("gt", u, total), axes=tuple(range(len(shape))))

    def again(state: Any) -> Any:
        turn, share, total, found = state
        on = emit("gt", u, total)
        turn = turn + 1.0
        share = share * mean / turn
        # Far out the sum stops short of 1 by rounding, and there the search ends.
        end = emit("gt", turn, number(100.0, F64))
        total = emit("select", end, number(2.0, F64), total + share)
        return turn, share, total, emit("select", on, found + 1.0, found)

    start = (number(0.0, F64), share, share, zero)
    made: Array = while_loop(more, again, start)[3]
    return made


def _hatted(key: Any, mean: Array, shape: Shape) -> Array:
    """For large means: Hörmann's transformed rejection (1993)."""
    b = emit("sqrt", mean) * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    scale = 1.1239 + 1.1328 / (b - 3.4)
    rest = 0.9277 - 3.6224 / (b - 2)
    log = emit("log", mean)

    def attempt(round_key: Any) -> tuple[Array, Array]:
        keys = split(round_key)
        u = middle("poisson", keys[0], shape, F64) - 0.5
        v = middle("poisson", keys[1], shape, F64)
        side = 0.5 - emit("abs", u)
        k = emit("floor", (a * 2 / side + b) * u + mean + 0.43)
        inside = emit("and", emit("ge", side, number(0.07, F64)), emit("le", v, rest))
        odd = emit("lt", k, number(0, F64))
        odd = emit("or", odd, (side < 0.013) & emit("gt", v, side))
        left = emit("log", v * scale / (a / (side * side) + b))
        right = k * log - mean - emit("lgamma", k + 1)
        good = emit("or", inside, emit("and", emit("not", odd), emit("le", left, right)))
        return k, good

    return _accepted(key, shape, F64, attempt)
