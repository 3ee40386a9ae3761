"""What sums and products of many terms may be off by: rules of the column `error`.

- Sums are judged by the exact one. A kernel's is off from that by a unit of the sum of magnitudes
  for each doubling of the number of terms (`kernel.Fold`), a library's product by half a unit for
  each term, as it adds one after the other; of a product with a vector, in runs of `SERIAL`
  terms. What the reference itself is off by, which does so
  along some axes, is measured by asking it again in a wider type, or for large products in short
  parts. Where the magnitudes of finite terms
  add up to more than the type holds, a partial sum may overflow in one order and not in another:
  there, and only there, anything goes. Infinite and NaN terms settle a sum in any order.
- Each product in a sum of products may be rounded or not, which for one that is subnormal is no
  matter of its magnitude: the least number there is for each.
- Products likewise: each factor may cost a unit, and anything goes where some partial product may
  overflow or become subnormal. They begin with 1, and times 1 + 0i the zeros of a complex number
  lose their signs, an infinity becomes NaN: how often is nobody's promise, for one factor too.
- BLAS multiplies a complex result by 1 + 0i, which turns an infinity into NaN: a contraction whose
  result is not finite may be anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.graph.op import ErrorRule
from tenfold.ops.agreement.errors import by_bound, either_zero, of_floats
from tenfold.ops.agreement.evaluation import Evaluation, joined
from tenfold.ops.agreement.units import EPS, SIGN, WIDER, added_in, finite_size, size_of, unit
from tenfold.ops.algebra.products import serial
from tenfold.types import KIND, TensorType

Array = np.ndarray[Any, Any]
# What the reference's own sum is off by, from the number of its terms and their whole magnitude.
Measure = Callable[[Evaluation, Array, Array], Any]

_LARGE = 1 << 22  # multiplications from which a product of matrices is not asked for in long double
_PART, _PARTS = 64, 512  # terms of its parts, and how many of those there are at most


# Sums.


def _of_sum(
    case: Evaluation, measure: Measure, *, products: bool = False, serial: float = 1
) -> Array:
    """A sum, of `products` perhaps, of which so many terms are added one after the other."""
    values, result, short = case.values, case.result, case.short
    terms = [np.ones(v.shape) if KIND[v.dtype] in "fc" else v for v in values]
    sizes = [finite_size(v) if KIND[v.dtype] in "fc" else v for v in values]
    (count,), (whole,) = case.ask(case.node, terms), case.ask(case.node, sizes)
    limits = added_in(short)
    depth = case.row.bound * (np.log2(np.maximum(count, 1)) + 1)
    if serial > 1:
        depth = np.maximum(depth, np.minimum(count, serial) / 2 + count / serial)
    own = depth * float(limits.eps) * whole + measure(case, count, whole)
    if products:
        own = own + count * float(limits.smallest_subnormal)
    if np.dtype(result.dtype).itemsize == 2:  # added up in f32, then rounded
        own = own + unit(result)
    elif not (case.complex and products):
        own = np.where(count <= 1, 0.0, own)  # nothing is added to it
    own = np.where(np.isfinite(result) | case.complex, own, 0.0)
    own = np.maximum(own, SIGN)
    # Half of the largest: a partial sum is rounded, too.
    own = np.where(whole >= float(limits.max) / 2, np.inf, own)
    if case.complex and products:
        own = np.where(np.isfinite(result), own, np.inf)
    return np.asarray(own)


def _measured(case: Evaluation, count: Array, whole: Array) -> Any:
    """By asking again in a wider type."""
    wide = [v.astype(WIDER[case.short]) if KIND[v.dtype] in "fc" else v for v in case.values]
    (right,) = case.ask(case.node, wide)
    return _off(case, right, whole, 0.0)


def _off(case: Evaluation, right: Array, whole: Array, left: float) -> Any:
    off = np.abs(right - case.result.astype(right.dtype)).astype(np.float64)
    return np.where(np.isfinite(off), off + left * whole, 0.0)


def _large(case: Evaluation, count: Array) -> bool:
    """Whether it takes too long in a wider type."""
    terms = float(np.max(count, initial=0))
    return WIDER[case.short] in "gG" and terms * case.result.size > _LARGE


def _measured_unless_large(case: Evaluation, count: Array, whole: Array) -> Any:
    if _large(case, count):
        return np.asarray(count / 2 * EPS[case.short] * whole)
    return _measured(case, count, whole)


def _measured_in_parts(case: Evaluation, count: Array, whole: Array) -> Any:
    if not _large(case, count):
        return _measured(case, count, whole)
    right, size = _in_parts(case)
    return _off(case, right, whole, size / 2 * EPS[case.short])


def _in_parts(case: Evaluation) -> tuple[Array, int]:
    """A large product as the sum of short ones, added up in a wider type; and how many terms each
    of those has."""
    node, values = case.node, case.values
    axes = [node[f"{side}_contract"][0] for side in ("lhs", "rhs")]
    extent = values[0].shape[axes[0]]
    others = int(np.prod([values[0].shape[a] for a in node["lhs_contract"]])) // extent
    size = max(1, _PART // others, -(-extent // _PARTS))
    right = np.zeros(case.result.shape, WIDER[case.short])
    for start in range(0, extent, size):
        part = [
            v[(slice(None),) * axis + (slice(start, start + size),)]
            for v, axis in zip(values, axes, strict=True)
        ]
        right += case.ask(node, part)[0]
    return right, size * others


@of_floats
def _of_plain_sum(case: Evaluation) -> Array:
    return _of_sum(case, _measured)


@of_floats
def _of_contraction(case: Evaluation) -> Array:
    """A sum of products, which may be a library's."""
    types = [TensorType(v.dtype, v.shape) for v in case.values]
    added = serial(types, case.node.types[0], dict(case.node.attributes))
    return _of_sum(case, _measured_in_parts, products=True, serial=added)


@of_floats
def _of_convolution(case: Evaluation) -> Array:
    """A sum of products that is made of a library's."""
    return _of_sum(case, _measured_unless_large, products=True, serial=math.inf)


def _one_term(case: Evaluation) -> Array | float:
    """A contraction of one term is a product, and what becomes of it is the sum's."""
    if case.short not in ("f32", "f64"):
        return 0.0
    terms = [case.values[0].shape[axis] for axis in case.node["lhs_contract"]]
    if math.prod(terms) != 1:
        return 0.0
    return np.where(np.isfinite(case.result), unit(case.result), 0.0)


def _usual(case: Evaluation, terms: int) -> Array:
    """What rounding makes of most sums of so many terms, which takes one more sum to find out."""
    sizes = [np.abs(v) if KIND[v.dtype] in "fc" else v for v in case.values]
    (whole,) = case.ask(case.node, sizes)
    own = EPS[case.short] * (1 + np.sqrt(terms)) * np.abs(whole).astype(np.float64)
    return np.where(np.isfinite(own) & np.isfinite(case.result), own, 0.0)


def _usual_sum(case: Evaluation) -> tuple[Array, Array]:
    read = sum(np.size(v) for v in case.values)
    return case.result, _usual(case, max(read // max(case.result.size, 1), 1))


def _usual_running_sum(case: Evaluation) -> tuple[Array, Array]:
    """What one sum is off by is in all that follow: it goes from the exact."""
    (value,) = case.values
    own = _usual(case, value.shape[case.node["axis"]])
    if not np.any(own):
        return case.result, own
    (right,) = case.ask(case.node, [value.astype(WIDER[case.short])])
    return right.astype(case.result.dtype), own


# Products.


def _of_product(case: Evaluation, axes: tuple[int, ...], kept: bool) -> Array:
    """Of a product in any order: a unit for each factor, unless a part may overflow or vanish.
    Where axes are `kept`, each element is judged as the product of all."""
    (value,), result, short = case.values, case.result, case.short
    count = math.prod(value.shape[axis] for axis in axes)
    size = np.abs(value.astype(np.complex128)) if case.complex else size_of(value)
    usual = np.isfinite(size) & (size > 0)
    logs = np.log2(np.where(usual, size, 1.0))
    limits = added_in(short)
    up = np.sum(np.maximum(logs, 0), axis=axes, keepdims=kept)
    down = np.sum(np.maximum(-logs, 0), axis=axes, keepdims=kept)
    safe = (up < np.log2(float(limits.max)) - 1) & (down < -np.log2(float(limits.tiny)) - 1)
    own = count * float(limits.eps) * size_of(result)
    if np.dtype(result.dtype).itemsize == 2:
        own = own + unit(result)
    if case.complex:
        safe = safe & np.all(np.isfinite(value), axis=axes, keepdims=kept)
        own = 4 * own
    own = np.where(np.isfinite(result), own, SIGN)
    # A NaN among the factors settles it in any order.
    settled = np.any(np.isnan(value), axis=axes, keepdims=kept) & (not case.complex)
    settled = settled if not kept else settled & np.isnan(result)
    if count == 1 and case.complex:  # it is still multiplied by 1 + 0i, by NumPy too
        return np.where(np.isfinite(value).reshape(result.shape), SIGN, np.inf)
    if count <= 1:
        return own * 0
    return np.where(safe | settled, np.maximum(own, SIGN), np.inf)


@of_floats
def _of_reduction(case: Evaluation) -> Array:
    return _of_product(case, case.node["axes"], False)


@of_floats
def _of_running(case: Evaluation) -> Array:
    return _of_product(case, (case.node["axis"],), True)


# Into places.


@of_floats
def _of_scatter(case: Evaluation) -> Array:
    """By how values are joined: they are added in the reference's order."""
    kind = case.node["kind"]
    if kind == "add":
        return _of_sum(case, lambda *_: 0.0)
    if kind == "mul" and case.complex:
        return _of_factors(case)
    if kind == "mul":
        return by_bound(case)
    exact = np.zeros(case.result.shape)
    return either_zero(case.result, exact) if kind in ("min", "max") else exact


def _of_factors(case: Evaluation) -> Array:
    """Of complex products, one factor after the other: four units for each. What is not finite is
    not promised, as for any complex product."""
    ones = [np.zeros(case.result.shape), np.ones(case.values[1].shape), *case.values[2:]]
    (count,) = case.ask(joined(case.node, "add"), ones)
    own = 4 * count * unit(case.result)
    return np.where((count > 0) & ~np.isfinite(case.result), np.inf, own)


def _usual_scatter(case: Evaluation) -> tuple[Array, Array]:
    if case.node["kind"] in ("add", "mul"):
        return _usual_sum(case)
    return case.result, _of_scatter(case)


SUM = ErrorRule(_of_plain_sum, _usual_sum)
RUNNING_SUM = ErrorRule(_of_plain_sum, _usual_running_sum)
CONTRACTION = ErrorRule(_of_contraction, _usual_sum, _one_term)
CONVOLUTION = ErrorRule(_of_convolution, _usual_sum)
SCATTER = ErrorRule(_of_scatter, _usual_scatter)
FACTORS = ErrorRule(_of_reduction)
RUNNING_FACTORS = ErrorRule(_of_running)
