"""Rows of reductions.

The bound of a sum or product is in units in the last place of the sum of the magnitudes of
what is added (for a product: of the result), for each doubling of the number of elements: the
caller scales it by both. Extremes and truths are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.graph.build import Builder
from tenfold.graph.node import Graph
from tenfold.graph.op import (
    Combine,
    Element,
    ErrorRule,
    ErrorSpread,
    Op,
    Sample,
    ScopeRequest,
    Types,
)
from tenfold.ops import attributes as attribute
from tenfold.ops import elements, reads, rules, samples
from tenfold.ops.agreement.named import errors, many, sums
from tenfold.ops.batching import control as batch_control
from tenfold.ops.batching import differs
from tenfold.ops.batching import rules as batching
from tenfold.ops.reference import Array, widened
from tenfold.types import DTYPES, DType, TensorType

_FORMS = (
    (((),), {"axes": ()}),
    (((5,),), {"axes": (0,)}),
    (((2, 3),), {"axes": (1,)}),
    (((2, 3),), {"axes": ()}),
    (((2, 3, 4),), {"axes": (0, 2)}),
    (((2, 0),), {"axes": (0,)}),
)
_EMPTY = ((((2, 0),), {"axes": (1,)}), (((0,),), {"axes": (0,)}))


def row(
    kind: str,
    ufunc: np.ufunc,
    kinds: str,
    *,
    edges: str,
    empty: bool = True,
    bound: float = 0,
    draw: samples.Draw = samples.anything,
    error: Callable[[], ErrorRule] | None = None,
    spread: Callable[[], ErrorSpread] | None = None,
) -> Op:
    """A row of a reduction by an associative ufunc, over `axes`."""
    name = f"reduce_{kind}"

    def reference(x: Array, axes: tuple[int, ...]) -> Any:
        # Said outright: NumPy would add small integers up as 64-bit ones.
        return ufunc.reduce(x, axis=axes, dtype=x.dtype)

    return Op(
        name=name,
        arity=1,
        infer=rules.reduction(name, kinds, empty=empty),
        reference=widened(reference),
        lowering=Element(elements.reduction(kind), mixes=True),
        edges=edges,
        bound=bound,
        batch=batching.shifted(name, batching.axes_up),
        samples=samples.listed(kinds, *_FORMS, *(_EMPTY if empty else ()), draw=draw),
        attributes=(attribute.axes("axes"),),
        error=error,
        spread=spread,
    )


def extreme(name: str, function: Callable[..., Any], spread: Callable[[], ErrorSpread]) -> Op:
    """A row of argmax or argmin, along `axis`."""

    def reference(x: Array, axis: int) -> Any:
        return np.asarray(function(x, axis=axis), np.int64)

    forms: tuple[tuple[Sequence[Any], Mapping[str, Any]], ...] = (
        (((5,),), {"axis": 0}),
        (((2, 3),), {"axis": 1}),
        (((2, 3, 4),), {"axis": 0}),
        (((2, 0),), {"axis": 0}),
    )
    return Op(
        name=name,
        arity=1,
        infer=rules.reduction(name, "biuf", rules.position, empty=False),
        reference=widened(reference),
        lowering=Element(elements.extreme(name), mixes=True),
        edges="the first of equals; the first NaN if there is one; of an empty axis ShapeError",
        bound=0,
        batch=batching.shifted(name, batching.axis_up),
        samples=samples.listed("biuf", *forms),
        attributes=(attribute.axis("axis"),),
        spread=spread,
    )


def _infer_fold(types: Types, given: Mapping[str, Any], owned: tuple[Graph, ...]) -> Types:
    x, initial = types
    (combine,) = owned
    axes = given["axes"]
    rules.has_axes("reduce", x, axes)
    rules.scalar("reduce", "the initial value", initial, rules.ANY)
    rules.takes("reduce", "the function", combine, (initial, TensorType(x.dtype, ())))
    rules.given("reduce", "the function's result", combine.output_types, (initial,))
    shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    return (TensorType(initial.dtype, shape),)


def _fold(
    inputs: Sequence[Array], owned: tuple[Graph, ...], axes: tuple[int, ...]
) -> Generator[ScopeRequest, list[Any], tuple[Array]]:
    x, initial = inputs
    (combine,) = owned
    kept = [a for a in range(x.ndim) if a not in axes]
    shape = tuple(x.shape[a] for a in kept)
    count = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    rows = x.transpose(*kept, *axes).reshape(int(np.prod(shape, dtype=np.int64)), count)
    made = np.empty(rows.shape[0], initial.dtype)
    for i, row in enumerate(rows):
        value = initial
        for j in range(count):
            (value,) = yield ScopeRequest(combine, [value, row[j : j + 1].reshape(())])
        made[i] = value
    return (made.reshape(shape),)


def _combine(dtype: DType) -> Graph:
    """a + 2 * b, whose order counts."""
    one = TensorType(dtype, ())

    def body(builder: Builder, values: Sequence[int]) -> Sequence[int]:
        a, b = values
        twice = batching.make(builder, "add", b, b)
        return builder.node("add", [a, twice])

    return samples.scope((one, one), body)


def _fold_samples(random: samples.Random) -> list[Sample]:
    return [
        Sample(
            (samples.ordinary(random, dtype, shape), samples.ordinary(random, dtype, ())),
            {"axes": axes},
            (_combine(dtype),),
        )
        for dtype in (DTYPES["f32"], DTYPES["i32"])
        for shape, axes in (((3,), (0,)), ((2, 3), (1,)), ((2, 3), (0, 1)), ((), ()), ((0,), (0,)))
    ]


_ORDER = "the order of adding is free within the bound"

ROWS = (
    row(
        "sum",
        np.add,
        "iufc",
        edges=f"of nothing 0; integers wrap; sixteen-bit floats add up in f32; {_ORDER}",
        bound=1,
        draw=samples.ordinary,
        error=sums.SUM,
        spread=many.SUMS,
    ),
    row(
        "prod",
        np.multiply,
        "iufc",
        edges=f"of nothing 1; integers wrap; sixteen-bit floats multiply in f32; {_ORDER}",
        bound=2,
        draw=samples.ordinary,
        error=sums.FACTORS,
        spread=many.FACTORS,
    ),
    row(
        "max",
        np.maximum,
        "biuf",
        edges="NaN if any is; of an empty axis ShapeError",
        empty=False,
        error=errors.EXTREME,
    ),
    row(
        "min",
        np.minimum,
        "biuf",
        edges="NaN if any is; of an empty axis ShapeError",
        empty=False,
        error=errors.EXTREME,
    ),
    row("any", np.logical_or, "b", edges="of nothing False"),
    row("all", np.logical_and, "b", edges="of nothing True"),
    extreme("argmax", np.argmax, many.MOST),
    extreme("argmin", np.argmin, many.LEAST),
    Op(
        name="reduce",
        arity=2,
        infer=_infer_fold,
        reference=_fold,
        lowering=Combine(),
        edges="from the left in row-major order; of nothing the initial value",
        bound=0,
        batch=batch_control.fold,
        samples=_fold_samples,
        attributes=(attribute.axes("axes"),),
        scopes=1,
        differs=differs.fold,
        reads=reads.over,
    ),
)
