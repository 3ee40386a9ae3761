"""What integers and bools that are not settled make of a result: the rules of the column `spread`.

All of it, not two trials of it.

An integer is unsettled where it is made from a float that may be off: it may be any of those within
its bound. The ends of that range tell of the rest only where an op keeps order. So there is a rule
for each op that has none; what no rule narrows may be anything.

- Where every operand is off by one at most, all there is to try is tried.
- Ops that keep order are tried at the ends, of all operands at once.
- Sums, differences, products, casts, shifts to the left wrap. The result lies on an arc around the
  reference's; an arc that goes past the last integer has others of the type in it far away, and
  what is on it may be anything.
- Bit by bit, all bits below the highest one in which the ends differ are open.
- A remainder is smaller than its divisor, a quotient no larger than its dividend, a common divisor
  no larger than what it divides: wherever they lie, no farther apart than that allows.
- Two values may be equal where their ranges meet, wherever in these they are.
- What may be chosen instead counts with its own bound.
- The position of an extreme may be that of any element within its bound of the others'.
- In an order, elements whose ranges meet may stand in each other's places.
- Random numbers, powers, products of many and shifts by an unsettled amount scatter: anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.graph.op import ErrorSpread
from tenfold.ops.agreement.intervals import (
    Intervals,
    Rule,
    corners,
    discrete_only,
    is_open,
    on_arc,
    reach,
)
from tenfold.ops.agreement.moved import distance
from tenfold.ops.agreement.units import SIGN, size_of
from tenfold.types import KIND

Array = np.ndarray[Any, Any]
_LARGEST = float(np.finfo(np.float64).max)


def _else(rule: Rule) -> Rule:
    """Where every operand is off by one at most, corners are all there is; elsewhere a rule."""

    def found(case: Intervals) -> Array:
        unsettled = is_open(case, 1.0)
        if unsettled.all():
            return rule(case)
        tried = corners(case)
        return np.where(unsettled, rule(case), tried) if unsettled.any() else tried

    return found


# Results that wrap.


def _of_sum(case: Intervals) -> Array:
    (down, up), (below, above) = reach(case, 0), reach(case, 1)
    return on_arc(case.result, down + below, up + above)


def _of_difference(case: Intervals) -> Array:
    if case.alike:
        return np.zeros(case.result.shape)
    (down, up), (below, above) = reach(case, 0), reach(case, 1)
    return on_arc(case.result, down + above, up + below)


def _of_negative(case: Intervals) -> Array:
    down, up = reach(case, 0)
    return on_arc(case.result, up, down)


def _of_magnitude(case: Intervals) -> Array:
    down, up = reach(case, 0)
    if KIND[case.result.dtype] == "i":
        down = up = np.maximum(down, up)
    return on_arc(case.result, down, up)


def _of_same(case: Intervals) -> Array:
    """Of the same number, or bits, in another type."""
    return on_arc(case.result, *reach(case, 0))


def _of_product(case: Intervals) -> Array:
    (a, b), (da, db) = (size_of(v) for v in case.values), case.errors
    far = a * db + da * (b + db)
    return on_arc(case.result, far, far)


def _of_shl(case: Intervals) -> Array:
    value, amount = case.values
    inside = (amount >= 0) & (amount < 8 * value.dtype.itemsize)  # others give 0
    by = np.where(inside, np.exp2(np.where(inside, amount, 0).astype(np.float64)), 0.0)
    down, up = reach(case, 0)
    return np.where(case.errors[1] > 0, np.inf, on_arc(case.result, down * by, up * by))


def _of_shr(case: Intervals) -> Array:
    return np.where(case.errors[1] > 0, np.inf, corners(case))


# Bits.


# Bits that are open, from both operands and what is open of them.
Bits = Callable[[Array, Array, Array, Array], Array]


def _of_bits(bits: Bits) -> Rule:
    def found(case: Intervals) -> Array:
        kind = np.dtype(f"u{case.result.dtype.itemsize}")
        (a, b), (p, q) = (v.view(kind) for v in case.values), (_loose(*e, kind) for e in case.ends)
        loose = bits(a, b, p, q)
        far = loose.astype(np.float64)
        if KIND[case.result.dtype] == "i":  # the sign is open
            far = np.where(loose > np.iinfo(case.result.dtype).max, np.inf, far)
        return far

    return found


def _all_set(a: Array, b: Array, p: Array, q: Array) -> Array:
    """What is settled as 0 in one settles both."""
    return (p & (b | q)) | (q & (a | p))


def _any_set(a: Array, b: Array, p: Array, q: Array) -> Array:
    return (p & (~b | q)) | (q & (~a | p))


def _of_differing(case: Intervals) -> Array:
    if case.alike:
        return np.zeros(case.result.shape)
    return _of_bits(lambda a, b, p, q: p | q)(case)


def _loose(low: Array, high: Array, kind: np.dtype[Any]) -> Array:
    """The bits that are not the same all the way from the least to the largest."""
    made = low.view(kind) ^ high.view(kind)
    shift = 1
    while shift < 8 * kind.itemsize:
        made = made | (made >> kind.type(shift))
        shift *= 2
    return np.asarray(made)


def _of_popcount(case: Intervals) -> Array:
    return np.full(case.result.shape, 8.0 * case.values[0].dtype.itemsize)


# Results within what their operands allow.


def _of_remainder(case: Intervals) -> Array:
    """Of either sign, and smaller than the divisor."""
    if case.alike:
        return np.zeros(case.result.shape)
    far = 2 * (size_of(case.values[1]) + case.errors[1])
    return np.broadcast_to(far, case.result.shape)


def _of_quotient(case: Intervals) -> Array:
    """Divisors of one sign keep order; from one of the other sign, no quotient is larger than its
    dividend. The least integer divided by -1 wraps."""
    (low, _), (left, right) = case.ends
    most = 2 * (size_of(case.values[0]) + case.errors[0])
    far = np.where((left > 0) | (right < 0), corners(case), most)
    if KIND[case.result.dtype] == "u":
        return far
    return np.where((low == np.iinfo(low.dtype).min) & (left <= -1) & (right >= -1), np.inf, far)


def _of_gcd(case: Intervals) -> Array:
    """That of the least integer and 0 wraps."""
    sizes = [size_of(v) + e for v, e in zip(case.values, case.errors, strict=True)]
    far = np.maximum(*sizes)
    return np.where(far > float(np.iinfo(case.result.dtype).max), np.inf, far)


# Of floats too: comparisons, choices, bits.


def _comparison(*, strict: bool = False, equality: bool = False) -> Rule:
    """Decided where the ranges do not meet. A bound of `SIGN` moves no number past another.
    `strict`: nothing is larger than itself, a NaN neither."""

    def found(case: Intervals) -> Array:
        unsettled = is_open(case, SIGN)
        anything = is_open(case, _LARGEST)  # floats, which may be NaN
        if case.alike:  # what is no NaN is as large as itself
            return np.where(anything & (not strict), 1.0, 0.0)
        if not unsettled.any():
            return np.zeros(case.result.shape)
        if "c" not in case.kinds:
            meet, far = _meet(case), corners(case)
        else:  # by real parts, and by imaginary ones where those are equal
            meet = _meet(case, np.real) & (_meet(case, np.imag) if equality else True)
            far = np.zeros(case.result.shape)
        if equality or "c" in case.kinds:
            far = np.where(unsettled & meet, 1.0, far)
        return np.where(anything, 1.0, far)

    return found


def _meet(case: Intervals, part: Callable[[Array], Array] = np.asarray) -> Array:
    """Where some value may be that of both operands, or of one part of them."""
    (a, b), (c, d) = [[part(end) for end in ends] for ends in case.ends]
    return (a <= d) & (c <= b)


def _of_cast(case: Intervals) -> Array | None:
    if KIND[case.result.dtype] == "b" and case.kinds <= set("iuf"):
        return _of_truth(case)
    return _else(_of_same)(case) if case.discrete else None


def _of_bitcast(case: Intervals) -> Array | None:
    if KIND[case.result.dtype] == "f" and case.kinds <= set("iu"):
        return _of_float_bits(case)
    return _else(_of_same)(case) if case.discrete else None


def _of_truth(case: Intervals) -> Array:
    """Whether a number is 0."""
    ((low, high),), (error,) = case.ends, case.errors
    around = (error > SIGN) & ((low <= 0) & (high >= 0) | np.isinf(error))
    return np.where(around, 1.0, 0.0)


def _of_float_bits(case: Intervals) -> Array:
    """Bits taken for a float keep order on either side of zero."""
    ((low, high),) = case.ends
    plain = np.dtype(f"u{low.dtype.itemsize}")
    signs = (low.view(plain) ^ high.view(plain)) >> plain.type(8 * plain.itemsize - 1)
    return np.where(signs > 0, np.inf, corners(case))


def _of_select(case: Intervals) -> Array:
    """What was chosen with its bound; where the other may be chosen, the way to that and its."""
    condition, yes, no = case.values
    flipped, *errors = case.errors
    chosen = np.where(condition, errors[0], errors[1])
    other = distance(*np.broadcast_arrays(yes, no), signs=True) + np.maximum(*errors)
    return np.broadcast_to(np.where(flipped > 0, other, chosen), case.result.shape)


def _of_anything(case: Intervals) -> Array:
    return np.where(is_open(case, 0.0), np.inf, 0.0)


ORDERED = discrete_only(corners)  # keeps order, in each operand
ADDED = discrete_only(_else(_of_sum))
SUBTRACTED = discrete_only(_else(_of_difference))
NEGATED = discrete_only(_else(_of_negative))
MAGNITUDE = discrete_only(_else(_of_magnitude))
MULTIPLIED = discrete_only(_else(_of_product))
REMAINDER = discrete_only(_else(_of_remainder))
QUOTIENT = discrete_only(_else(_of_quotient))
DIVISOR = discrete_only(_else(_of_gcd))
POWER = ErrorSpread(discrete_only(_else(_of_anything)).rule, together=True)
ALL_SET = discrete_only(_else(_of_bits(_all_set)))
ANY_SET = discrete_only(_else(_of_bits(_any_set)))
DIFFERING = discrete_only(_else(_of_differing))
LEFT, RIGHT = discrete_only(_else(_of_shl)), discrete_only(_else(_of_shr))
COUNTED = discrete_only(_else(_of_popcount))
EQUAL = ErrorSpread(_comparison(equality=True))
ABOVE = ErrorSpread(_comparison(strict=True))
NOT_BELOW = ErrorSpread(_comparison())
CHOSEN = ErrorSpread(_of_select)
CAST, BITCAST = ErrorSpread(_of_cast), ErrorSpread(_of_bitcast)
TURNING = ErrorSpread(turns=True)  # periodic, of complex numbers alone
WITHIN_TWO, WITH_POLES = ErrorSpread(range=2.0, turns=True), ErrorSpread(range=np.inf, turns=True)
RANDOM = discrete_only(_of_anything)
