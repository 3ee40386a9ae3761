"""What an op may be off by itself, on inputs that are right: its bound, scaled as its row says.

A row's bound is in units in the last place. Everything that is let off beyond that stands here,
each with its reason:

- Sums are judged by the exact one. A kernel's is off from that by a unit of the sum of magnitudes
  for each doubling of the number of terms (`kernel.Fold`), a library's product by half a unit for
  each term, as it adds one after the other. What the reference itself is off by, which does so
  along some axes, is measured by asking it again in a wider type, or for large products in short
  parts. Where the magnitudes of finite terms
  add up to more than the type holds, a partial sum may overflow in one order and not in another:
  there, and only there, anything goes. Infinite and NaN terms settle a sum in any order.
- Each product in a sum of products may be rounded or not, which for one that is subnormal is no
  matter of its magnitude: the least number there is for each.
- Products likewise: each factor may cost a unit, and anything goes where some partial product may
  overflow or become subnormal. They begin with 1, and times 1 + 0i the zeros of a complex number
  lose their signs, an infinity becomes NaN: how often is nobody's promise, for one factor too.
- Complex products: a part is a difference of products, so the unit is that of the modulus, and
  four are allowed. A product of finite parts that overflows may be contracted away: there anything
  goes. BLAS multiplies a complex result by 1 + 0i, which turns an infinity into NaN: a contraction
  whose result is not finite may be anything.
- A remainder by what is off may be any, where the quotient may be another.
- Integers made from floats that are off are any of several; what ops make of those stands in
  `parity/rule/discrete`.
- Nobody promises which zero max and min give of 0 and -0, the sign of a zero that is a sum
  (NumPy's own is by chance: it begins some sums with 0 and some with -0), nor the sign of a NaN
  that was computed. These are marked by a bound of `SIGN`, far below any unit, so that the next op
  is asked with either sign. The bits of such a NaN may be any that are a NaN's, so what they are
  taken for may be anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tenfold.graph import Node
from tenfold.graph.op import Pointwise
from tenfold.ops import TABLE
from tenfold.plan.lowering.product import inline
from tenfold.types import KIND, SHORT, TensorType

Array = np.ndarray[Any, Any]
Ask = Callable[[Node, Sequence[Array]], list[Array]]  # the reference of a node

EPS = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52, "c64": 2.0**-23,
       "c128": 2.0**-52}  # fmt: skip
TINY = {"f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149, "f64": 2.0**-1074, "c64": 2.0**-149,
        "c128": 2.0**-1074}  # fmt: skip
SIGN = 2.0**-1074  # the sign is not settled
WIDER = {"f16": "f8", "bf16": "f8", "f32": "f8", "c64": "c16", "f64": "g", "c128": "G"}
_SUM_IN = {"f64": np.finfo(np.float64), "c128": np.finfo(np.float64)}  # or else float32
_FLOAT32 = np.finfo(np.float32)
_LARGE = 1 << 22  # multiplications from which a product of matrices is not asked for in long double
_PART, _PARTS = 64, 512  # terms of its parts, and how many of those there are at most


def size_of(value: Array) -> Array:
    """Magnitudes in float64; a complex one as the sum of its parts', those not finite left out."""
    if KIND[value.dtype] == "c":
        parts = [np.where(np.isfinite(p), np.abs(p), 0.0) for p in (value.real, value.imag)]
        return np.asarray(parts[0].astype(np.float64) + parts[1])
    return np.abs(value.astype(np.float64))


def unit(value: Array) -> Array:
    """The unit in the last place of each element, the smallest there is for what is not finite."""
    short = SHORT[np.dtype(value.dtype)]
    size = size_of(value)
    size = np.where(np.isfinite(size) & (size > 0), size, 0.0)
    power = np.exp2(np.floor(np.log2(np.where(size > 0, size, 1.0))))
    return np.where(size > 0, np.maximum(power * EPS[short], TINY[short]), TINY[short])


def own_bound(
    node: Node, values: Sequence[Array], errors: Sequence[Array], result: Array, ask: Ask
) -> Array:
    """What a compiled result may differ by on inputs that may be off by these errors, beyond what
    those errors make of it."""
    short = SHORT[np.dtype(result.dtype)]
    if node.op == "bitcast" and KIND[values[0].dtype] == "f":
        return _of_bits(values[0], errors[0])
    if short not in EPS:
        return np.zeros(result.shape)
    if node.op in _SUMS and (node.op != "scatter" or node["kind"] == "add"):
        return _of_sum(node, values, result, ask)
    if node.op in ("reduce_prod", "cumprod"):
        return _of_product(node, values[0], result)
    complex_result = short[0] == "c"
    if complex_result and node.op == "scatter" and node["kind"] == "mul":
        return _of_scattered(node, values, result, ask)
    bound = 0.0 if _exact_on_reals(node, values) else TABLE[node.op].bound
    if complex_result and node.op not in _BY_PARTS:
        bound += 4
    elif not bound:
        own = _of_exact(node, errors, result)
        return np.maximum(own, _of_remainder(values, errors)) if node.op == "fmod" else own
    own = bound * np.maximum(unit(result), TABLE[node.op].bound_from * EPS[short])
    if complex_result and node.op == "mul":
        own = np.where(_overflows(*values), np.inf, own)
    if node.op == "mod":
        own = np.maximum(own, _of_remainder(values, errors))
    return np.where(np.isnan(result), np.maximum(own, SIGN), own)


def _of_remainder(values: Sequence[Array], errors: Sequence[Array]) -> Array:
    """Of a remainder by what may be off: where the quotient may be one more or less, it is all
    of the divisor; otherwise trials tell."""
    (a, b), (off_a, off_b) = (v.astype(np.float64) for v in values), errors
    quotient = np.abs(a / b)
    off = (off_a + quotient * off_b) / np.abs(b)
    wraps = (off > 0) & ~(np.abs(quotient - np.rint(quotient)) > off)
    return np.where(wraps, np.abs(b) + off_b, 0.0)


def _of_scattered(node: Node, values: Sequence[Array], result: Array, ask: Ask) -> Array:
    """Of complex products, one factor after the other: four units for each. What is not finite is
    not promised, as for any complex product."""
    counted = replace(
        node, attributes=tuple((k, "add" if k == "kind" else v) for k, v in node.attributes)
    )
    ones = [np.zeros(result.shape), np.ones(values[1].shape), *values[2:]]
    (count,) = ask(counted, ones)
    own = 4 * count * unit(result)
    return np.where((count > 0) & ~np.isfinite(result), np.inf, own)


def _of_bits(value: Array, error: Array) -> Array:
    """Of the bits of a float: they follow its order on either side of zero, so nothing is known of
    those of one that may lie on both, of a NaN, or of one that may be anything."""
    around = (error > SIGN) & (size_of(value) <= error)
    return np.where(around | (np.isnan(value) & (error > 0)), np.inf, 0.0)


def contracted(node: Node, values: Sequence[Array], result: Array) -> Array | float:
    """What a product may be off by where it goes straight into a sum: it is not rounded then, and
    does not overflow. Where it is stored, it is rounded like any other."""
    if SHORT[np.dtype(result.dtype)] not in ("f32", "f64"):
        return 0.0
    if node.op == "contract":  # of one term it is a product, and what becomes of it is the sum's
        terms = [values[0].shape[axis] for axis in node["lhs_contract"]]
        return np.where(np.isfinite(result), unit(result), 0.0) if math.prod(terms) == 1 else 0.0
    if node.op != "mul":
        return 0.0
    lost = np.isinf(result) & np.isfinite(values[0]) & np.isfinite(values[1])
    # Half a unit in truth; moved by less than a whole one, a value would be itself again.
    return np.where(lost, np.inf, unit(result))


_SUMS = ("reduce_sum", "contract", "conv", "cumsum", "scatter")
_ZEROS = ("max", "min", "fmax", "fmin", "reduce_max", "reduce_min", "cummax", "cummin", "clip")
# Complex results whose parts are computed apart from each other, each rounded once.
_BY_PARTS = frozenset(
    ["add", "sub", "neg", "conj", "complex", "cast", "select", "constant", "iota", "bitcast"]
) | frozenset(
    name for name, op in TABLE.items() if not isinstance(op.lowering, Pointwise) and not op.bound
)


def _exact_on_reals(node: Node, values: Sequence[Array]) -> bool:
    """abs and sign have a bound for complex numbers alone."""
    return node.op in ("abs", "sign") and KIND[values[0].dtype] != "c"


def _of_exact(node: Node, errors: Sequence[Array], result: Array) -> Array:
    """An op that is exact or correctly rounded gives the very bits on inputs that are right; on
    others it may be rounded the other way."""
    own = np.zeros(result.shape)
    pointwise = isinstance(TABLE[node.op].lowering, Pointwise)
    if pointwise or node.op == "cast":
        moved = np.zeros(result.shape, bool)
        for error in errors:
            moved = moved | (error > SIGN)
        own = np.where(moved & np.isfinite(result), unit(result), own)
    if pointwise:
        own = np.where(np.isnan(result), np.maximum(own, SIGN), own)
    if node.op in _ZEROS or (node.op == "scatter" and node["kind"] in ("min", "max")):
        own = np.where((result == 0) | np.isnan(result), np.maximum(own, SIGN), own)
    return own


def _overflows(a: Array, b: Array) -> Array:
    """Where a product of finite parts of two complex numbers is too large."""
    found = np.zeros(np.broadcast_shapes(a.shape, b.shape), bool)
    for x in (a.real, a.imag):
        for y in (b.real, b.imag):
            found = found | (np.isinf(x * y) & np.isfinite(x) & np.isfinite(y))
    return found


def _of_sum(node: Node, values: Sequence[Array], result: Array, ask: Ask) -> Array:
    short = SHORT[np.dtype(result.dtype)]
    terms = [np.ones(v.shape) if KIND[v.dtype] in "fc" else v for v in values]
    sizes = [_finite_size(v) if KIND[v.dtype] in "fc" else v for v in values]
    (count,), (whole,) = ask(node, terms), ask(node, sizes)
    add_in = _added_in(short)
    depth = TABLE[node.op].bound * (np.log2(np.maximum(count, 1)) + 1)
    if _by_library(node, values):
        depth = np.maximum(depth, count / 2)
    own = depth * float(add_in.eps) * whole + _own_error(node, values, result, count, whole, ask)
    if node.op in ("contract", "conv"):
        own = own + count * float(add_in.smallest_subnormal)
    if np.dtype(result.dtype).itemsize == 2:  # added up in f32, then rounded
        own = own + unit(result)
    elif short[0] != "c" or node.op not in ("contract", "conv"):
        own = np.where(count <= 1, 0.0, own)  # nothing is added to it
    own = np.where(np.isfinite(result) | (short[0] == "c"), own, 0.0)
    own = np.maximum(own, SIGN)
    # Half of the largest: a partial sum is rounded, too.
    own = np.where(whole >= float(add_in.max) / 2, np.inf, own)
    if short[0] == "c" and node.op in ("contract", "conv"):
        own = np.where(np.isfinite(result), own, np.inf)
    return np.asarray(own)


def _added_in(short: str) -> Any:
    """The type in which sums and products are taken."""
    return _SUM_IN.get(short, _FLOAT32)


def _finite_size(value: Array) -> Array:
    size = size_of(value)
    return np.where(np.isfinite(size), size, 0.0)


def _by_library(node: Node, values: Sequence[Array]) -> bool:
    """Whether a sum may be a library's product, or be made of one."""
    if node.op != "contract":
        return node.op == "conv"
    types = [TensorType(v.dtype, v.shape) for v in values]
    return not inline(types, node.types[0], dict(node.attributes))


def _own_error(
    node: Node, values: Sequence[Array], result: Array, count: Array, whole: Array, ask: Ask
) -> Array | float:
    """What the reference's own sum is off by."""
    short = SHORT[np.dtype(result.dtype)]
    if node.op == "scatter":  # in the reference's order
        return 0.0
    left = 0.0  # what is not measured
    terms = float(np.max(count, initial=0))
    large = WIDER[short] in "gG" and terms * result.size > _LARGE
    if node.op == "conv" and large:
        return np.asarray(count / 2 * EPS[short] * whole)
    if node.op == "contract" and large:
        right, size = _in_parts(node, values, result, ask)
        left = size / 2 * EPS[short]
    else:
        wide = [v.astype(WIDER[short]) if KIND[v.dtype] in "fc" else v for v in values]
        (right,) = ask(node, wide)
    off = np.abs(right - result.astype(right.dtype)).astype(np.float64)
    return np.where(np.isfinite(off), off + left * whole, 0.0)


def _in_parts(node: Node, values: Sequence[Array], result: Array, ask: Ask) -> tuple[Array, int]:
    """A large product as the sum of short ones, added up in a wider type; and how many terms each
    of those has."""
    axes = [node[f"{side}_contract"][0] for side in ("lhs", "rhs")]
    extent = values[0].shape[axes[0]]
    others = int(np.prod([values[0].shape[a] for a in node["lhs_contract"]])) // extent
    size = max(1, _PART // others, -(-extent // _PARTS))
    right = np.zeros(result.shape, WIDER[SHORT[np.dtype(result.dtype)]])
    for start in range(0, extent, size):
        part = [
            v[(slice(None),) * axis + (slice(start, start + size),)]
            for v, axis in zip(values, axes, strict=True)
        ]
        right += ask(node, part)[0]
    return right, size * others


def _of_product(node: Node, value: Array, result: Array) -> Array:
    """Of a product in any order: a unit for each factor, unless a part may overflow or vanish."""
    short = SHORT[np.dtype(result.dtype)]
    kept = node.op == "cumprod"  # each element is judged as the product of all
    axes = (node["axis"],) if kept else node["axes"]
    count = 1
    for axis in axes:
        count *= value.shape[axis]
    size = np.abs(value.astype(np.complex128)) if short[0] == "c" else size_of(value)
    usual = np.isfinite(size) & (size > 0)
    logs = np.log2(np.where(usual, size, 1.0))
    limits = _added_in(short)
    up = np.sum(np.maximum(logs, 0), axis=axes, keepdims=kept)
    down = np.sum(np.maximum(-logs, 0), axis=axes, keepdims=kept)
    safe = (up < np.log2(float(limits.max)) - 1) & (down < -np.log2(float(limits.tiny)) - 1)
    own = count * float(limits.eps) * size_of(result)
    if np.dtype(result.dtype).itemsize == 2:
        own = own + unit(result)
    if short[0] == "c":
        safe = safe & np.all(np.isfinite(value), axis=axes, keepdims=kept)
        own = 4 * own
    own = np.where(np.isfinite(result), own, SIGN)
    # A NaN among the factors settles it in any order.
    settled = np.any(np.isnan(value), axis=axes, keepdims=kept) & (short[0] != "c")
    settled = settled if not kept else settled & np.isnan(result)
    if count == 1 and short[0] == "c":  # it is still multiplied by 1 + 0i, by NumPy too
        return np.where(np.isfinite(value).reshape(result.shape), SIGN, np.inf)
    if count <= 1:
        return own * 0
    return np.where(safe | settled, np.maximum(own, SIGN), np.inf)
