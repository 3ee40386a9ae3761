"""Rows of special functions that no instruction computes: erf_inv, lgamma, digamma.

They are compositions. Where lgamma and digamma cross zero below 0, and digamma at its zero
near 1.46, they are differences of larger numbers: hence their `bound_from`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.graph.build import Builder
from tenfold.graph.op import Composition, Op
from tenfold.ops.expression import Expression, polynomial, select
from tenfold.ops.numbers.erf_inv import erf_inv
from tenfold.ops.reference import NARROW, Array, doubled
from tenfold.ops.rows.elementwise import row
from tenfold.types import F32, F64


def _zeta_less_one(k: int) -> float:
    """zeta(k) - 1, by the first terms and what Euler and Maclaurin give for the others."""
    n = 200
    first = math.fsum(float(i) ** -k for i in range(2, n))
    rest = n ** (1.0 - k) / (k - 1) + n**-k / 2 + k * n ** (-k - 1.0) / 12
    return float(first + rest - k * (k + 1) * (k + 2) * n ** (-k - 3.0) / 720)


# lgamma(2 + z) = z * (sum of these times z**i), for z from -1/2 to 1/2.
NEAR_TWO = (
    1 - 0.57721566490153286061,  # less Euler's constant
    *((-1) ** k * _zeta_less_one(k) / k for k in range(2, 28)),
)


# References.


def _erf_off(y: float, size: float) -> float:
    # Near 1 the distance from 1 is what counts, and it is exact.
    return math.erf(y) - size if size < 0.5 else (1 - size) - math.erfc(y)


_away = np.vectorize(_erf_off, otypes=[np.float64])


def _erf_inv(x: Array) -> Any:
    """Halley's steps from a guess that is right to three digits."""
    size = np.abs(x)
    log = np.log1p(-size * size)
    mid = 4.330746750799873 + log / 2
    y = np.sqrt(np.maximum(np.sqrt(mid * mid - log / 0.147) - mid, 0))
    for _ in range(3):
        step = _away(y, size) * np.exp(y * y) * (math.sqrt(math.pi) / 2)
        y = y - step / (1 + y * step)
    y = np.where(size == 1, np.inf, np.where(size < 1, y, np.nan))
    return np.copysign(y, x)


def _lgamma(x: float) -> float:
    if x <= 0 and (math.isinf(x) or x == math.floor(x)):
        return math.inf
    for zero in (1, 2):  # where the library loses digits
        if abs(z := x - zero) < 0.1:
            series: float = z * sum(c * z**i for i, c in enumerate(NEAR_TWO))
            return series - (math.log1p(z) if zero == 1 else 0)
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _digamma(x: float) -> float:
    if math.isnan(x) or x == -math.inf:
        return math.nan
    if x == 0:
        return -math.copysign(math.inf, x)
    if x < 0:
        away = x - round(x)
        return _digamma(1 - x) - math.pi / math.tan(math.pi * away) if away else math.nan
    total = 0.0
    while x < 20:
        total -= 1 / x
        x += 1
    series = sum(b / (2 * k) * (1 / x) ** (2 * k) for k, b in enumerate(BERNOULLI[:6], 1))
    return total + math.log(x) - 0.5 / x - series


# Compositions. Sixteen-bit floats compute in float32.


def composed(formula: Callable[[Expression], Expression]) -> Composition:
    """The composition of a formula in one float."""

    def compose(
        builder: Builder, inputs: Sequence[int], given: Mapping[str, Any]
    ) -> tuple[int, ...]:
        x = Expression(builder, inputs[0])
        wide = x.cast(F32) if x.dtype in NARROW else x
        return (formula(wide).cast(x.dtype).value,)

    return Composition(compose)


def _steps(x: Expression, double: int, single: int) -> int:
    """How many steps or terms a formula needs in the dtype at hand."""
    return double if x.dtype == F64 else single


def lgamma(x: Expression) -> Expression:
    """A series near 1 and 2, products down to it below 8, Stirling's formula from 8 on, and
    reflection below -1/2."""
    size = x.op("abs")
    small, low = size < 0.5, size < 1.5
    near, product = size, x.number(1)
    for _ in range(6):
        far = near >= 2.5
        less = near - 1
        product = select(far, product * less, product)
        near = select(far, less, near)
    z = select(small, x, select(low, size - 1, near - 2))
    series = z * polynomial(z, NEAR_TWO[: _steps(x, 27, 13)])
    # lgamma(1 + z) is that of 2 + z less log(1 + z), lgamma(z) that of 1 + z less log(z).
    below = select(low, -z.op("log1p"), product.op("log"))
    near_value = series + below - select(small, size, 1).op("log")
    inverse = size.number(1) / size
    terms = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI, 1)]
    tail = inverse * polynomial(inverse * inverse, terms[: _steps(x, 8, 4)])
    half = 0.5 * math.log(2 * math.pi) - 0.5
    stirling = (size - 0.5) * (size.op("log") - 1) + (tail + half)
    positive = select(size < 8, near_value, stirling)
    away = size - size.op("floor")
    away = away.op("min", away.number(1) - away)
    mirror = size.op("log") + (away * math.pi).op("sin").op("log") - math.log(math.pi)
    reflected = select(away.equals(0), math.inf, -(mirror + positive))
    made = select((x < 0) & ~small, reflected, positive)
    return select(x.op("isinf"), math.inf, made)


def digamma(x: Expression) -> Expression:
    """Upwards to 8 by recurrence, the asymptotic series there, and reflection below 0."""
    negative = x < 0
    size = x.op("abs")
    at = select(negative, size + 1, size)
    total = x * 0
    for _ in range(8):
        small = at < 8
        total = total - select(small, at.number(1) / at, 0)
        at = at + select(small, at.number(1), 0)
    inverse = at.number(1) / at
    square = inverse * inverse
    terms = [b / (2 * k) for k, b in enumerate(BERNOULLI, 1)]
    series = square * polynomial(square, terms[: _steps(x, 8, 4)])
    positive = total + at.op("log") - inverse * 0.5 - series
    away = size - size.op("round")
    turned = (away * math.pi).op("tan")
    reflected = positive + turned.number(math.pi) / turned
    made = select(negative, select(away.equals(0), math.nan, reflected), positive)
    pole = -x.number(math.inf).op("copysign", x)
    made = select(x.equals(0), pole, made)
    return select(x.equals(math.inf), math.inf, select(x.equals(-math.inf), math.nan, made))


def _each(function: Callable[[float], float]) -> Any:
    return np.vectorize(function, otypes=[np.float64])


ROWS: tuple[Op, ...] = (
    row(
        "erf_inv",
        1,
        _erf_inv,
        "f",
        edges="±1 gives ±inf, beyond it NaN; -0 gives -0",
        bound=8,
        reference=doubled,
        lowering=composed(erf_inv),
    ),
    row(
        "lgamma",
        1,
        _each(_lgamma),
        "f",
        edges="inf at 0, -1, -2, … and at ±inf",
        bound=16,
        bound_from=1,
        reference=doubled,
        lowering=composed(lgamma),
    ),
    row(
        "digamma",
        1,
        _each(_digamma),
        "f",
        edges="±0 gives ∓inf; NaN at -1, -2, … and at -inf",
        bound=16,
        bound_from=1,
        reference=doubled,
        lowering=composed(digamma),
    ),
)
