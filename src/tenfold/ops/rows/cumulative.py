"""Rows of cumulative ops: each element is folded with all those before it along an axis.

They compile in blocks of 16: within a block each element is the reduction of all up to it, in the
shape of a reduction over the block; the last elements of blocks are blocks of the next level, until
at most 32 are left. What comes before a block is what comes before the block above it, joined with
what comes before it there; that is joined with every element of the block. So each tile of 16**n
elements has a sum of its own and needs one number more, what comes before it, whoever runs it:
every part is parallel, and the graph has a few nodes for each sixteenfold extent. The bound is as
of a reduction over the same axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.graph.build import Builder
from tenfold.graph.node import Graph
from tenfold.graph.op import Composition, ErrorRule, ErrorSpread, Op, Types
from tenfold.ops import attributes as attribute
from tenfold.ops import reads, rules, samples
from tenfold.ops.agreement.named import errors, many, sums
from tenfold.ops.batching import rules as batching
from tenfold.ops.batching.rules import make
from tenfold.ops.expression import Expression, select
from tenfold.ops.reference import NARROW, Array, widened
from tenfold.types import DTYPES, F32, KIND, SHORT, DType

Given = Mapping[str, Any]


def row(
    name: str,
    step: str,
    ufunc: np.ufunc,
    kinds: str,
    *,
    edges: str,
    bound: float = 0,
    draw: samples.Draw = samples.anything,
    error: Callable[[], ErrorRule],
    spread: Callable[[], ErrorSpread] | None = None,
) -> Op:
    """A row of a running fold by an associative ufunc, which is the op `step`."""

    def infer(types: Types, given: Given, scopes: tuple[Graph, ...]) -> Types:
        rules.require(name, kinds, *types)
        rules.has_axes(name, types[0], (given["axis"],))
        return types

    def reference(x: Array, axis: int, reverse: bool) -> Any:
        if not reverse:
            return ufunc.accumulate(x, axis, dtype=x.dtype)
        return np.flip(ufunc.accumulate(np.flip(x, axis), axis, dtype=x.dtype), axis)

    def compose(builder: Builder, inputs: Sequence[int], given: Given) -> tuple[int, ...]:
        axis, reverse = given["axis"], given["reverse"]
        given_x = x = Expression(builder, inputs[0])
        if 0 in x.shape:
            return (x.value,)
        if x.dtype in NARROW and bound:
            x = x.cast(F32)
        if reverse:
            x = x.op("reverse", axes=(axis,))
        if step == "add" and KIND[x.dtype] == "c":  # so that zeros keep their signs, part by part
            real, imaginary = (_added(x.op(part), axis) for part in ("real", "imag"))
            made = real.op("complex", imaginary)
        else:
            made = _added(x, axis) if step == "add" else running(x, axis, step)
        if reverse:
            made = made.op("reverse", axes=(axis,))
        return (made.cast(given_x.dtype).value,)

    forms: tuple[tuple[Sequence[Any], Given], ...] = tuple(
        ((shape,), {"axis": axis, "reverse": reverse})
        for shape, axis in (
            ((7,), 0),
            ((2, 3), 1),
            ((4, 3), 0),
            ((1,), 0),
            ((0, 2), 0),
            ((2, 0), 0),
        )
        for reverse in (False, True)
    )
    return Op(
        name=name,
        arity=1,
        infer=infer,
        reference=widened(reference),
        lowering=Composition(compose),
        edges=edges,
        bound=bound,
        batch=batching.shifted(name, batching.axis_up),
        samples=samples.listed(kinds, *forms, draw=draw),
        attributes=(attribute.axis("axis"), attribute.flag("reverse")),
        reads=reads.along,
        error=error,
        spread=spread,
    )


_BLOCK = 16
_REDUCE = {"add": "reduce_sum", "mul": "reduce_prod", "max": "reduce_max", "min": "reduce_min"}


def running(x: Expression, axis: int, step: str) -> Expression:
    """The running fold of x along an axis."""
    levels: list[tuple[Expression, int]] = []
    nothing = x.number(_of_nothing(step, x.dtype))
    while (extent := x.shape[axis]) > 2 * _BLOCK:
        count = -(-extent // _BLOCK)
        x = _padded(x, axis, 0, count * _BLOCK - extent, nothing)
        shape = (*x.shape[:axis], count, _BLOCK, *x.shape[axis + 1 :])
        inner = _within(x.reshape(*shape), axis + 1, step, nothing)
        levels.append((inner, extent))
        ends = inner.part(axis + 1, _BLOCK - 1, _BLOCK)
        x = ends.reshape(*shape[: axis + 1], *shape[axis + 2 :])
    made = _within(x, axis, step, nothing)
    if levels:
        made = _shifted(made, axis, nothing)
    while levels:
        inner, extent = levels.pop()
        count = made.shape[axis]
        before = made.reshape(*made.shape[: axis + 1], 1, *made.shape[axis + 1 :])
        inner = _shifted(inner, axis + 1, nothing) if levels else inner
        whole = before.op(step, inner)
        flat = whole.reshape(*made.shape[:axis], count * _BLOCK, *made.shape[axis + 1 :])
        made = flat.part(axis, 0, extent)
    return made


def _shifted(x: Expression, axis: int, nothing: Expression) -> Expression:
    """What comes before each element."""
    return _padded(x.part(axis, 0, x.shape[axis] - 1), axis, 1, 0, nothing)


def _added(x: Expression, axis: int) -> Expression:
    """Running sums, with the sign of zero that adding one by one gives."""
    made = running(x, axis, "add")
    return _signed(x, made, axis) if KIND[x.dtype] == "f" and x.shape[axis] > 1 else made


def _signed(x: Expression, made: Expression, axis: int) -> Expression:
    """Running sums with the sign of zero: sums begin with 0, and -0 is the sum of nothing but -0.
    So up to the first element that is something else, the elements are their own sums."""
    extent = x.shape[axis]
    flat = tuple(extent if a == axis else 1 for a in range(len(x.shape)))
    places = Expression(x.builder, make(x.builder, "iota", dtype="i32", shape=flat, axis=axis))
    bits = DTYPES[f"i{8 * x.dtype.itemsize}"]  # of which -0 has the least
    other = x.op("bitcast", dtype=SHORT[bits]).op("ne", np.iinfo(bits).min)
    first = select(other, places, extent).op("reduce_min", axes=(axis,))
    kept = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return select(places < first.reshape(*kept), x, made)


def _of_nothing(step: str, dtype: DType) -> Any:
    """What changes nothing that it is folded with."""
    if step in ("add", "mul"):
        return 0 if step == "add" else 1
    if KIND[dtype] == "b":
        return step == "min"
    if KIND[dtype] == "f":
        return -np.inf if step == "max" else np.inf
    limits = np.iinfo(dtype)
    return limits.min if step == "max" else limits.max


def _padded(x: Expression, axis: int, low: int, high: int, value: Expression) -> Expression:
    if not (low or high):
        return x
    zero = [0] * len(x.shape)
    before, behind = zero.copy(), zero.copy()
    before[axis], behind[axis] = low, high
    return x.op("pad", value, low=before, high=behind, interior=zero)


def _within(x: Expression, axis: int, step: str, nothing: Expression) -> Expression:
    """The running fold of a short axis: for each place, all elements up to it are reduced."""
    extent, rank = x.shape[axis], len(x.shape)
    if extent < 2 or 0 in x.shape:
        return x
    # One axis more: what is folded, then the places it is folded into. So the condition lies
    # packed along the places, and a round is one element.
    square = (extent, extent, *[1] * (rank - axis - 1))
    seen, places = (
        Expression(x.builder, make(x.builder, "iota", dtype="i32", shape=square, axis=a))
        for a in (0, 1)
    )
    tall = x.reshape(*x.shape[: axis + 1], 1, *x.shape[axis + 1 :])
    return select(seen <= places, tall, nothing).op(_REDUCE[step], axes=(axis,))


_ORDER = "the order of {} is free within the bound; sixteen-bit floats in f32, rounded at the end"

ROWS = (
    row(
        "cumsum",
        "add",
        np.add,
        "iufc",
        edges=f"integers wrap; {_ORDER.format('adding')}",
        bound=2,
        draw=samples.ordinary,
        error=sums.RUNNING_SUM,
        spread=many.SUMS,
    ),
    row(
        "cumprod",
        "mul",
        np.multiply,
        "iufc",
        edges=f"integers wrap; {_ORDER.format('multiplying')}",
        bound=2,
        draw=samples.ordinary,
        error=sums.RUNNING_FACTORS,
        spread=many.RUNNING_FACTORS,
    ),
    row(
        "cummax",
        "max",
        np.maximum,
        "biuf",
        edges="NaN from the first NaN on; bool: or",
        error=errors.EXTREME,
    ),
    row(
        "cummin",
        "min",
        np.minimum,
        "biuf",
        edges="NaN from the first NaN on; bool: and",
        error=errors.EXTREME,
    ),
)
