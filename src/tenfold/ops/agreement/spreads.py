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
- Random numbers, powers, products of many and shifts by an unsettled amount scatter: anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tenfold.errors import TenfoldError
from tenfold.graph.node import Node
from tenfold.graph.op import Spread
from tenfold.ops.agreement.case import Ask, joined
from tenfold.ops.agreement.moved import distance, moved
from tenfold.ops.agreement.units import SIGN, size_of
from tenfold.types import KIND

Array = np.ndarray[Any, Any]


class Open(NamedTuple):
    """A node on the reference's values that may be off, with the least and the largest that each
    may be, how far away these are, and one of its results."""

    node: Node
    values: Sequence[Array]
    ends: Sequence[tuple[Array, Array]]
    errors: Sequence[Array]
    result: Array
    ask: Ask

    @property
    def alike(self) -> bool:
        """Whether both operands are one value."""
        return len(self.node.inputs) == 2 and self.node.inputs[0] == self.node.inputs[1]

    @property
    def kinds(self) -> set[str]:
        return {KIND[v.dtype] for v in self.values}

    @property
    def discrete(self) -> bool:
        """Whether all of it is integers and bools."""
        return self.kinds <= set("biu") and KIND[self.result.dtype] in "biu"


Rule = Callable[[Open], Array]


def by_rule(
    rule: Callable[[Open], Array | None],
    node: Node,
    values: Sequence[Array],
    errors: Sequence[Array],
    results: Sequence[Array],
    ask: Ask,
) -> list[Array] | None:
    """What the bounds of the inputs make of the results, or None where it is to be tried."""
    ends = [(moved(v, e, -1.0), moved(v, e, 1.0)) for v, e in zip(values, errors, strict=True)]
    within = [
        np.maximum(*(distance(end, v) for end in both)) if KIND[v.dtype] in "biu" else e
        for v, e, both in zip(values, errors, ends, strict=True)
    ]  # an integer is off by no more than its type holds
    found: list[Array] = []
    for result in results:
        far = rule(Open(node, values, ends, within, result, ask))
        if far is None:
            return None
        found.append(far)
    return found


def _open(case: Open, above: float) -> Array:
    """Where some operand may be off by more than this."""
    found = np.zeros(case.result.shape, bool)
    for error in case.errors:
        found = found | (error > above)
    return found


def _corners(case: Open) -> Array:
    """What is tried with every operand left, raised and lowered, in all ways."""
    most = np.zeros(case.result.shape)
    inputs = case.node.inputs
    loose = dict.fromkeys(v for v, e in zip(inputs, case.errors, strict=True) if e.any())
    for ways in product((None, 0, 1), repeat=len(loose)):
        way = dict(zip(loose, ways, strict=True))
        tried = []
        for number, value, ends in zip(inputs, case.values, case.ends, strict=True):
            end = way.get(number)
            tried.append(value if end is None else ends[end])
        try:
            (other,) = case.ask(case.node, tried)
        except TenfoldError:  # a power that is not there
            return np.full(case.result.shape, np.inf)
        most = np.maximum(most, distance(other, case.result))
    return most


def _else(rule: Rule) -> Rule:
    """Where every operand is off by one at most, corners are all there is; elsewhere a rule."""

    def found(case: Open) -> Array:
        unsettled = _open(case, 1.0)
        if unsettled.all():
            return rule(case)
        tried = _corners(case)
        return np.where(unsettled, rule(case), tried) if unsettled.any() else tried

    return found


# Results that wrap.


def _reach(case: Open, at: int) -> tuple[Array, Array]:
    """How far an operand may go down and up."""
    low, high = case.ends[at]
    return distance(low, case.values[at]), distance(high, case.values[at])


def _on_arc(result: Array, down: Array, up: Array) -> Array:
    """A result that wraps and may be off by this much before it does."""
    far = np.maximum(down, up)
    if KIND[result.dtype] == "b":
        return far
    limits = np.iinfo(result.dtype)
    least, most = (np.full(result.shape, n, result.dtype) for n in (limits.min, limits.max))
    past = (down > distance(least, result)) | (up > distance(most, result))
    return np.where(past, np.inf, far)


def _of_sum(case: Open) -> Array:
    (down, up), (below, above) = _reach(case, 0), _reach(case, 1)
    return _on_arc(case.result, down + below, up + above)


def _of_difference(case: Open) -> Array:
    if case.alike:
        return np.zeros(case.result.shape)
    (down, up), (below, above) = _reach(case, 0), _reach(case, 1)
    return _on_arc(case.result, down + above, up + below)


def _of_negative(case: Open) -> Array:
    down, up = _reach(case, 0)
    return _on_arc(case.result, up, down)


def _of_magnitude(case: Open) -> Array:
    down, up = _reach(case, 0)
    if KIND[case.result.dtype] == "i":
        down = up = np.maximum(down, up)
    return _on_arc(case.result, down, up)


def _of_same(case: Open) -> Array:
    """Of the same number, or bits, in another type."""
    return _on_arc(case.result, *_reach(case, 0))


def _of_product(case: Open) -> Array:
    (a, b), (da, db) = (size_of(v) for v in case.values), case.errors
    far = a * db + da * (b + db)
    return _on_arc(case.result, far, far)


def _of_shl(case: Open) -> Array:
    value, amount = case.values
    inside = (amount >= 0) & (amount < 8 * value.dtype.itemsize)  # others give 0
    by = np.where(inside, np.exp2(np.where(inside, amount, 0).astype(np.float64)), 0.0)
    down, up = _reach(case, 0)
    return np.where(case.errors[1] > 0, np.inf, _on_arc(case.result, down * by, up * by))


def _of_shr(case: Open) -> Array:
    return np.where(case.errors[1] > 0, np.inf, _corners(case))


# Bits.


# Bits that are open, from both operands and what is open of them.
Bits = Callable[[Array, Array, Array, Array], Array]


def _of_bits(bits: Bits) -> Rule:
    def found(case: Open) -> Array:
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


def _of_differing(case: Open) -> Array:
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


def _of_popcount(case: Open) -> Array:
    return np.full(case.result.shape, 8.0 * case.values[0].dtype.itemsize)


# Results within what their operands allow.


def _of_remainder(case: Open) -> Array:
    """Of either sign, and smaller than the divisor."""
    if case.alike:
        return np.zeros(case.result.shape)
    far = 2 * (size_of(case.values[1]) + case.errors[1])
    return np.broadcast_to(far, case.result.shape)


def _of_quotient(case: Open) -> Array:
    """Divisors of one sign keep order; from one of the other sign, no quotient is larger than its
    dividend. The least integer divided by -1 wraps."""
    (low, _), (left, right) = case.ends
    most = 2 * (size_of(case.values[0]) + case.errors[0])
    far = np.where((left > 0) | (right < 0), _corners(case), most)
    if KIND[case.result.dtype] == "u":
        return far
    return np.where((low == np.iinfo(low.dtype).min) & (left <= -1) & (right >= -1), np.inf, far)


def _of_gcd(case: Open) -> Array:
    """That of the least integer and 0 wraps."""
    sizes = [size_of(v) + e for v, e in zip(case.values, case.errors, strict=True)]
    far = np.maximum(*sizes)
    return np.where(far > float(np.iinfo(case.result.dtype).max), np.inf, far)


# Of floats too: comparisons, choices, bits.


def _comparison(*, strict: bool = False, equality: bool = False) -> Callable[[Open], Array | None]:
    """Decided where the ranges do not meet. A bound of `SIGN` moves no number past another.
    `strict`: nothing is larger than itself, a NaN neither."""

    def found(case: Open) -> Array | None:
        if "c" in case.kinds:
            return None
        unsettled = _open(case, SIGN)
        anything = _open(case, _LARGEST)  # floats, which may be NaN
        if case.alike:  # what is no NaN is as large as itself
            return np.where(anything & (not strict), 1.0, 0.0)
        if not unsettled.any():
            return np.zeros(case.result.shape)
        far = _corners(case)
        if equality:
            (a, b), (c, d) = case.ends
            far = np.where(unsettled & (a <= d) & (c <= b), 1.0, far)
        return np.where(anything, 1.0, far)

    return found


def _of_cast(case: Open) -> Array | None:
    if KIND[case.result.dtype] == "b" and case.kinds <= set("iuf"):
        return _of_truth(case)
    return _else(_of_same)(case) if case.discrete else None


def _of_bitcast(case: Open) -> Array | None:
    if KIND[case.result.dtype] == "f" and case.kinds <= set("iu"):
        return _of_float_bits(case)
    return _else(_of_same)(case) if case.discrete else None


def _of_truth(case: Open) -> Array:
    """Whether a number is 0."""
    ((low, high),), (error,) = case.ends, case.errors
    around = (error > SIGN) & ((low <= 0) & (high >= 0) | np.isinf(error))
    return np.where(around, 1.0, 0.0)


def _of_float_bits(case: Open) -> Array:
    """Bits taken for a float keep order on either side of zero."""
    ((low, high),) = case.ends
    plain = np.dtype(f"u{low.dtype.itemsize}")
    signs = (low.view(plain) ^ high.view(plain)) >> plain.type(8 * plain.itemsize - 1)
    return np.where(signs > 0, np.inf, _corners(case))


def _of_select(case: Open) -> Array:
    """What was chosen with its bound; where the other may be chosen, the way to that and its."""
    condition, yes, no = case.values
    flipped, *errors = case.errors
    chosen = np.where(condition, errors[0], errors[1])
    other = distance(*np.broadcast_arrays(yes, no), signs=True) + np.maximum(*errors)
    return np.broadcast_to(np.where(flipped > 0, other, chosen), case.result.shape)


# Of many elements.


def _of_sums(case: Open) -> Array:
    (down,), (up,) = (case.ask(case.node, [far]) for far in _reach(case, 0))
    return _on_arc(case.result, down, up)


def _of_contraction(case: Open) -> Array:
    (a, b), (da, db) = (size_of(v) for v in case.values), case.errors
    (first,), (second,) = case.ask(case.node, [a, db]), case.ask(case.node, [da, b + db])
    return _on_arc(case.result, first + second, first + second)


def _of_factors(case: Open) -> Array:
    found = np.any(case.errors[0] > 0, axis=case.node["axes"])
    return np.where(found, np.inf, 0.0)


def _of_running_factors(case: Open) -> Array:
    found = np.any(case.errors[0] > 0, axis=case.node["axis"], keepdims=True)
    return np.where(np.broadcast_to(found, case.result.shape), np.inf, 0.0)


def _position(*, least: bool) -> Rule:
    """Of the position of the least element of a line, or of the largest."""

    def found(case: Open) -> Array:
        """How far it may be from the one found: any element may be it that is within its bound of
        the others'. A few trials would miss one of many that are open."""
        (value,), (error,), axis = case.values, case.errors, case.node["axis"]
        key = value.astype(np.float64) * (1.0 if least else -1.0)
        key = np.where(np.isnan(key), -np.inf, key)  # the first NaN is the extreme
        off = np.where(np.isinf(error) | (np.isinf(key) & (error > 0)), np.inf, error)
        low = np.where(np.isinf(off), -np.inf, key - off)
        high = np.where(np.isinf(off), np.inf, key + off)
        nearest = high.min(axis=axis, keepdims=True, initial=np.inf)
        open_lines = np.any(error > 0, axis=axis, keepdims=True)
        shape = [-1 if a == axis else 1 for a in range(value.ndim)]
        places = np.arange(value.shape[axis]).reshape(shape)
        far = np.abs(places - np.expand_dims(case.result, axis))
        may = (low <= nearest) & open_lines
        return np.asarray(np.where(may, far, 0.0).max(axis=axis, initial=0.0))

    return found


def _of_scatter(case: Open) -> Array | None:
    """Of sums and products into places: known where the places are, and all factors."""
    node, places = case.node, case.values[2:]
    if not case.discrete or node["kind"] not in ("add", "mul"):
        return None
    if any(e.any() for e in case.errors[2:]):
        return np.full(case.result.shape, np.inf)
    adding = joined(node, "add")
    (below, down), (above, up) = zip(_reach(case, 0), _reach(case, 1), strict=True)
    (down,), (up,) = (
        case.ask(adding, [below, down, *places]),
        case.ask(adding, [above, up, *places]),
    )
    if node["kind"] == "mul" or KIND[case.result.dtype] == "b":
        return np.where((down > 0) | (up > 0), np.inf, 0.0)
    return _on_arc(case.result, down, up)


def _of_anything(case: Open) -> Array:
    return np.where(_open(case, 0.0), np.inf, 0.0)


_LARGEST = float(np.finfo(np.float64).max)


def _discrete(rule: Rule) -> Spread:
    """A rule for integers and bools; floats are tried."""
    return Spread(lambda case: rule(case) if case.discrete else None)


ORDERED = _discrete(_corners)  # keeps order, in each operand
ADDED = _discrete(_else(_of_sum))
SUBTRACTED = _discrete(_else(_of_difference))
NEGATED = _discrete(_else(_of_negative))
MAGNITUDE = _discrete(_else(_of_magnitude))
MULTIPLIED = _discrete(_else(_of_product))
REMAINDER = _discrete(_else(_of_remainder))
QUOTIENT = _discrete(_else(_of_quotient))
DIVISOR = _discrete(_else(_of_gcd))
POWER = Spread(_discrete(_else(_of_anything)).rule, together=True)
ALL_SET = _discrete(_else(_of_bits(_all_set)))
ANY_SET = _discrete(_else(_of_bits(_any_set)))
DIFFERING = _discrete(_else(_of_differing))
LEFT, RIGHT = _discrete(_else(_of_shl)), _discrete(_else(_of_shr))
COUNTED = _discrete(_else(_of_popcount))
EQUAL = Spread(_comparison(equality=True))
ABOVE = Spread(_comparison(strict=True))
NOT_BELOW = Spread(_comparison())
CHOSEN = Spread(_of_select)
CAST, BITCAST = Spread(_of_cast), Spread(_of_bitcast)
SUMS = _discrete(_of_sums)
CONTRACTION = _discrete(_of_contraction)
FACTORS, RUNNING_FACTORS = _discrete(_of_factors), _discrete(_of_running_factors)
LEAST, MOST = Spread(_position(least=True)), Spread(_position(least=False))
SCATTER = Spread(_of_scatter)
WITHIN_TWO, WITH_POLES = Spread(range=2.0), Spread(range=np.inf)  # periodic
RANDOM = _discrete(_of_anything)
