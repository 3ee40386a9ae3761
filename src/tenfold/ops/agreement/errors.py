"""What an op may be off by itself, on inputs that are right: the rules of the column `error`.

A row's bound is in units in the last place. Everything that is let off beyond that stands here and
in `sums`, each with its reason:

- Complex products: a part is a difference of products, so the unit is that of the modulus, and
  four are allowed. A product of finite parts that overflows may be contracted away: there anything
  goes.
- A remainder by what is off may be any, where the quotient may be another.
- Integers made from floats that are off are any of several; what ops make of those stands in
  `spreads`.
- Nobody promises which zero max and min give of 0 and -0, the sign of a zero that is a sum
  (NumPy's own is by chance: it begins some sums with 0 and some with -0), nor the sign of a NaN
  that was computed. These are marked by a bound of `SIGN`, far below any unit, so that the next op
  is asked with either sign. The bits of such a NaN may be any that are a NaN's, so what they are
  taken for may be anything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from tenfold.graph.op import ErrorRule, Pointwise
from tenfold.ops.agreement.evaluation import Evaluation
from tenfold.ops.agreement.units import EPS, SIGN, size_of, unit
from tenfold.types import KIND

Array = np.ndarray[Any, Any]
Rule = Callable[[Evaluation], Array]


def of_floats(rule: Rule) -> Rule:
    """A rule for results that are floats; all others are exact."""

    @wraps(rule)
    def found(case: Evaluation) -> Array:
        return rule(case) if case.short in EPS else np.zeros(case.result.shape)

    return found


@of_floats
def by_bound(case: Evaluation) -> Array:
    """By the row's bound, in units in the last place; four more of a complex result, unless its
    elements are only moved. 0 is exact, or correctly rounded."""
    pointwise = isinstance(case.row.lowering, Pointwise)
    bound = case.row.bound
    if case.complex and (bound or pointwise):
        bound += 4
    if not bound:
        return _rounded(case) if pointwise else np.zeros(case.result.shape)
    own = bound * np.maximum(unit(case.result), case.row.bound_from * EPS[case.short])
    return np.where(np.isnan(case.result), np.maximum(own, SIGN), own)


@of_floats
def _rounded(case: Evaluation) -> Array:
    """Correctly rounded; the sign of a NaN may be any."""
    own = _converted(case)
    return np.where(np.isnan(case.result), np.maximum(own, SIGN), own)


@of_floats
def _converted(case: Evaluation) -> Array:
    """The very bits on inputs that are right; on others it may be rounded the other way."""
    moved = np.zeros(case.result.shape, bool)
    for error in case.errors:
        moved = moved | (error > SIGN)
    return np.where(moved & np.isfinite(case.result), unit(case.result), np.zeros(moved.shape))


def _of_modulus(case: Evaluation) -> Array:
    """The bound is for complex numbers; of real ones it is exact."""
    return by_bound(case) if KIND[case.values[0].dtype] == "c" else _rounded(case)


@of_floats
def _of_product(case: Evaluation) -> Array:
    own = by_bound(case)
    return np.where(_overflows(*case.values), np.inf, own) if case.complex else own


def _overflows(a: Array, b: Array) -> Array:
    """Where a product of finite parts of two complex numbers is too large."""
    found = np.zeros(np.broadcast_shapes(a.shape, b.shape), bool)
    for x in (a.real, a.imag):
        for y in (b.real, b.imag):
            found = found | (np.isinf(x * y) & np.isfinite(x) & np.isfinite(y))
    return found


def _unrounded(case: Evaluation) -> Array | float:
    """Of a product that goes straight into a sum: it does not overflow."""
    if case.short not in ("f32", "f64"):
        return 0.0
    a, b = case.values
    lost = np.isinf(case.result) & np.isfinite(a) & np.isfinite(b)
    # Half a unit in truth; moved by less than a whole one, a value would be itself again.
    return np.where(lost, np.inf, unit(case.result))


@of_floats
def _of_remainder(case: Evaluation) -> Array:
    """By what may be off: where the quotient may be one more or less, it is all of the divisor;
    otherwise trials tell."""
    (a, b), (off_a, off_b) = (v.astype(np.float64) for v in case.values), case.errors
    quotient = np.abs(a / b)
    off = (off_a + quotient * off_b) / np.abs(b)
    wraps = (off > 0) & ~(np.abs(quotient - np.rint(quotient)) > off)
    return np.maximum(by_bound(case), np.where(wraps, np.abs(b) + off_b, 0.0))


@of_floats
def _of_extreme(case: Evaluation) -> Array:
    return either_zero(case.result, by_bound(case))


def either_zero(result: Array, own: Array) -> Array:
    """Which zero it is, and which NaN, is not promised."""
    return np.where((result == 0) | np.isnan(result), np.maximum(own, SIGN), own)


def _of_bits(case: Evaluation) -> Array:
    """Of the bits of a float: they follow its order on either side of zero, so nothing is known of
    those of one that may lie on both, of a NaN, or of one that may be anything."""
    value, error = case.values[0], case.errors[0]
    if KIND[value.dtype] != "f":
        return np.zeros(case.result.shape)
    around = (error > SIGN) & (size_of(value) <= error)
    return np.where(around | (np.isnan(value) & (error > 0)), np.inf, 0.0)


BY_BOUND = ErrorRule(by_bound)
BY_PARTS = ErrorRule(_rounded)  # complex results too: their parts are each rounded once
CONVERTED = ErrorRule(_converted)
MODULUS = ErrorRule(_of_modulus)
PRODUCT = ErrorRule(_of_product, unrounded=_unrounded)
REMAINDER = ErrorRule(_of_remainder)
EXTREME = ErrorRule(_of_extreme)
BITS = ErrorRule(_of_bits)
