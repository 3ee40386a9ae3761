"""Rows of sorting: sort and argsort."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tenfold.graph.node import Graph
from tenfold.graph.op import ErrorSpread, Op, Routine, Types
from tenfold.ops import attributes as attribute
from tenfold.ops import reads, rules, samples
from tenfold.ops.agreement.named import many
from tenfold.ops.batching import rules as batching
from tenfold.ops.reference import Array, widened
from tenfold.types import TensorType


def row(
    name: str,
    function: Callable[..., Any],
    result: rules.Result,
    spread: Callable[[], ErrorSpread] | None = None,
) -> Op:
    """A row of a sort along `axis`."""

    def infer(types: Types, given: Mapping[str, Any], scopes: tuple[Graph, ...]) -> Types:
        (x,) = types
        rules.has_axes(name, x, (given["axis"],))
        return (TensorType(result(x.dtype), x.shape),)

    def reference(x: Array, axis: int) -> Any:
        return function(x, axis, kind="stable")

    return Op(
        name=name,
        arity=1,
        infer=infer,
        reference=widened(reference),
        lowering=Routine(name, lines=True),
        edges="stable; NaN last; complex by real part, then imaginary",
        bound=0,
        batch=batching.shifted(name, batching.axis_up),
        samples=samples.listed(
            rules.ANY,
            (((5,),), {"axis": 0}),
            (((3, 4),), {"axis": 0}),
            (((3, 4),), {"axis": 1}),
            (((0, 2),), {"axis": 0}),
            (((1,),), {"axis": 0}),
        ),
        attributes=(attribute.axis("axis"),),
        reads=reads.along,
        spread=spread,
    )


ROWS = (
    row("sort", np.sort, rules.same),
    row("argsort", np.argsort, rules.position, many.ORDER),
)
