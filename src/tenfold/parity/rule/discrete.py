"""What integers and bools that are not settled make of a result: all of it, not two trials of it.

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
- Random numbers, powers, products of many and shifts by an unsettled amount scatter: anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tenfold.errors import TenfoldError
from tenfold.graph import Node
from tenfold.parity.rule.bounds import SIGN, Ask, size_of
from tenfold.parity.rule.moved import distance, moved
from tenfold.types import KIND

Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """A node on the reference's values, with the least and the largest that each may be, how far
    away these are, and one of its results."""

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


Rule = Callable[[Case], Array]


def discrete_spread(
    node: Node, values: Sequence[Array], errors: Sequence[Array], results: Sequence[Array], ask: Ask
) -> list[Array] | None:
    """What the bounds of the inputs make of the results, or None where it is to be tried."""
    ends = [(moved(v, e, -1.0), moved(v, e, 1.0)) for v, e in zip(values, errors, strict=True)]
    within = [
        np.maximum(*(distance(end, v) for end in both)) if KIND[v.dtype] in "biu" else e
        for v, e, both in zip(values, errors, ends, strict=True)
    ]  # an integer is off by no more than its type holds
    rule = _rule(node, values, results)
    if rule is None:
        return None
    return [rule(Case(node, values, ends, within, result, ask)) for result in results]


def _rule(node: Node, values: Sequence[Array], results: Sequence[Array]) -> Rule | None:
    kinds, made = {KIND[v.dtype] for v in values}, KIND[results[0].dtype]
    if node.op == "select":
        return _of_select
    if node.op in _COMPARISONS and "c" not in kinds:
        return _of_comparison
    if node.op == "cast" and made == "b" and kinds <= set("iuf"):
        return _of_truth
    if node.op == "bitcast" and made == "f" and kinds <= set("iu"):
        return _of_float_bits
    if not (kinds <= set("biu") and made in "biu"):
        return None
    if node.op == "scatter" and node["kind"] not in ("add", "mul"):
        return None
    return _RULES.get(node.op)


def _open(case: Case, above: float) -> Array:
    """Where some operand may be off by more than this."""
    found = np.zeros(case.result.shape, bool)
    for error in case.errors:
        found = found | (error > above)
    return found


def _corners(case: Case) -> Array:
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

    def found(case: Case) -> Array:
        unsettled = _open(case, 1.0)
        if unsettled.all():
            return rule(case)
        tried = _corners(case)
        return np.where(unsettled, rule(case), tried) if unsettled.any() else tried

    return found


# Results that wrap.


def _reach(case: Case, at: int) -> tuple[Array, Array]:
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


def _of_sum(case: Case) -> Array:
    down, up = _reach(case, 0)
    if case.node.op == "add":
        below, above = _reach(case, 1)
        down, up = down + below, up + above
    elif case.node.op == "sub":
        if case.alike:
            return np.zeros(case.result.shape)
        below, above = _reach(case, 1)
        down, up = down + above, up + below
    elif case.node.op == "neg":
        down, up = up, down
    elif case.node.op == "abs" and KIND[case.result.dtype] == "i":
        down = up = np.maximum(down, up)
    return _on_arc(case.result, down, up)


def _of_product(case: Case) -> Array:
    (a, b), (da, db) = (size_of(v) for v in case.values), case.errors
    far = a * db + da * (b + db)
    return _on_arc(case.result, far, far)


def _of_shl(case: Case) -> Array:
    value, amount = case.values
    inside = (amount >= 0) & (amount < 8 * value.dtype.itemsize)  # others give 0
    by = np.where(inside, np.exp2(np.where(inside, amount, 0).astype(np.float64)), 0.0)
    down, up = _reach(case, 0)
    return np.where(case.errors[1] > 0, np.inf, _on_arc(case.result, down * by, up * by))


def _of_shr(case: Case) -> Array:
    return np.where(case.errors[1] > 0, np.inf, _corners(case))


# Bits.


def _of_bits(case: Case) -> Array:
    if case.alike and case.node.op == "xor":
        return np.zeros(case.result.shape)
    kind = np.dtype(f"u{case.result.dtype.itemsize}")
    (a, b), (p, q) = (v.view(kind) for v in case.values), (_loose(*e, kind) for e in case.ends)
    if case.node.op == "and":  # what is settled as 0 in one settles both
        loose = (p & (b | q)) | (q & (a | p))
    elif case.node.op == "or":
        loose = (p & (~b | q)) | (q & (~a | p))
    else:
        loose = p | q
    far = loose.astype(np.float64)
    if KIND[case.result.dtype] == "i":  # the sign is open
        far = np.where(loose > np.iinfo(case.result.dtype).max, np.inf, far)
    return far


def _loose(low: Array, high: Array, kind: np.dtype[Any]) -> Array:
    """The bits that are not the same all the way from the least to the largest."""
    made = low.view(kind) ^ high.view(kind)
    shift = 1
    while shift < 8 * kind.itemsize:
        made = made | (made >> kind.type(shift))
        shift *= 2
    return np.asarray(made)


def _of_popcount(case: Case) -> Array:
    return np.full(case.result.shape, 8.0 * case.values[0].dtype.itemsize)


# Results within what their operands allow.


def _of_remainder(case: Case) -> Array:
    """Of either sign, and smaller than the divisor."""
    if case.alike:
        return np.zeros(case.result.shape)
    far = 2 * (size_of(case.values[1]) + case.errors[1])
    return np.broadcast_to(far, case.result.shape)


def _of_quotient(case: Case) -> Array:
    """Divisors of one sign keep order; from one of the other sign, no quotient is larger than its
    dividend. The least integer divided by -1 wraps."""
    (low, _), (left, right) = case.ends
    most = 2 * (size_of(case.values[0]) + case.errors[0])
    far = np.where((left > 0) | (right < 0), _corners(case), most)
    if KIND[case.result.dtype] == "u":
        return far
    return np.where((low == np.iinfo(low.dtype).min) & (left <= -1) & (right >= -1), np.inf, far)


def _of_gcd(case: Case) -> Array:
    """That of the least integer and 0 wraps."""
    sizes = [size_of(v) + e for v, e in zip(case.values, case.errors, strict=True)]
    far = np.maximum(*sizes)
    return np.where(far > float(np.iinfo(case.result.dtype).max), np.inf, far)


# Of floats too: comparisons, choices, bits.


def _of_comparison(case: Case) -> Array:
    """Decided where the ranges do not meet. A bound of `SIGN` moves no number past another."""
    unsettled = _open(case, SIGN)
    anything = _open(case, _LARGEST)  # floats, which may be NaN
    if case.alike:  # what is no NaN is as large as itself
        return np.where(anything & (case.node.op not in ("lt", "gt")), 1.0, 0.0)
    if not unsettled.any():
        return np.zeros(case.result.shape)
    found = _corners(case)
    if case.node.op in ("eq", "ne"):
        (a, b), (c, d) = case.ends
        found = np.where(unsettled & (a <= d) & (c <= b), 1.0, found)
    return np.where(anything, 1.0, found)


def _of_truth(case: Case) -> Array:
    """Whether a number is 0."""
    ((low, high),), (error,) = case.ends, case.errors
    around = (error > SIGN) & ((low <= 0) & (high >= 0) | np.isinf(error))
    return np.where(around, 1.0, 0.0)


def _of_float_bits(case: Case) -> Array:
    """Bits taken for a float keep order on either side of zero."""
    ((low, high),) = case.ends
    plain = np.dtype(f"u{low.dtype.itemsize}")
    signs = (low.view(plain) ^ high.view(plain)) >> plain.type(8 * plain.itemsize - 1)
    return np.where(signs > 0, np.inf, _corners(case))


def _of_select(case: Case) -> Array:
    """What was chosen with its bound; where the other may be chosen, the way to that and its."""
    condition, yes, no = case.values
    flipped, *errors = case.errors
    chosen = np.where(condition, errors[0], errors[1])
    other = distance(*np.broadcast_arrays(yes, no), signs=True) + np.maximum(*errors)
    return np.broadcast_to(np.where(flipped > 0, other, chosen), case.result.shape)


# Of many elements.


def _of_sums(case: Case) -> Array:
    (down,), (up,) = (case.ask(case.node, [far]) for far in _reach(case, 0))
    return _on_arc(case.result, down, up)


def _of_contraction(case: Case) -> Array:
    (a, b), (da, db) = (size_of(v) for v in case.values), case.errors
    (first,), (second,) = case.ask(case.node, [a, db]), case.ask(case.node, [da, b + db])
    return _on_arc(case.result, first + second, first + second)


def _of_products(case: Case) -> Array:
    kept = case.node.op == "cumprod"
    axes = (case.node["axis"],) if kept else case.node["axes"]
    found = np.any(case.errors[0] > 0, axis=axes, keepdims=kept)
    return np.where(np.broadcast_to(found, case.result.shape), np.inf, 0.0)


def _of_scatter(case: Case) -> Array:
    """Of sums and products into places: known where the places are, and all factors."""
    node, places = case.node, case.values[2:]
    if any(e.any() for e in case.errors[2:]):
        return np.full(case.result.shape, np.inf)
    attributes = tuple((k, "add" if k == "kind" else v) for k, v in node.attributes)
    adding = Node(node.op, node.inputs, attributes, node.scopes, node.types)
    (below, down), (above, up) = zip(_reach(case, 0), _reach(case, 1), strict=True)
    (down,), (up,) = (
        case.ask(adding, [below, down, *places]),
        case.ask(adding, [above, up, *places]),
    )
    if node["kind"] == "mul" or KIND[case.result.dtype] == "b":
        return np.where((down > 0) | (up > 0), np.inf, 0.0)
    return _on_arc(case.result, down, up)


def _of_scattered(case: Case) -> Array:
    return np.where(_open(case, 0.0), np.inf, 0.0)


_LARGEST = float(np.finfo(np.float64).max)
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_RULES: dict[str, Rule] = {
    **dict.fromkeys(["max", "min", "fmax", "fmin", "clip", "sign", "not"], _corners),
    **dict.fromkeys(["floor", "ceil", "trunc", "round"], _corners),
    **dict.fromkeys(["add", "sub", "neg", "abs", "cast", "bitcast"], _else(_of_sum)),
    **dict.fromkeys(["and", "or", "xor"], _else(_of_bits)),
    **dict.fromkeys(["mod", "fmod"], _else(_of_remainder)),
    **dict.fromkeys(["reduce_sum", "cumsum"], _of_sums),
    **dict.fromkeys(["contract", "conv"], _of_contraction),
    **dict.fromkeys(["reduce_prod", "cumprod"], _of_products),
    "mul": _else(_of_product),
    "shl": _else(_of_shl),
    "shr": _else(_of_shr),
    "popcount": _else(_of_popcount),
    "floordiv": _else(_of_quotient),
    "gcd": _else(_of_gcd),
    "pow": _else(_of_scattered),
    "threefry": _of_scattered,
    "scatter": _of_scatter,
}
