"""The row of gcd: Euclid's algorithm, a loop over all elements at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tenfold.graph.build import Builder
from tenfold.graph.node import Graph
from tenfold.graph.op import Composition
from tenfold.ops.agreement.named import spreads
from tenfold.ops.expression import Expression
from tenfold.ops.rows.elementwise import row
from tenfold.ops.rules import broadcast
from tenfold.types import DTYPES, KIND, TensorType


def _more(table: Any, type: TensorType) -> Graph:
    """Whether any of the second operand is not 0 yet."""
    builder = Builder(table)
    builder.parameter(type)
    b = Expression(builder, builder.parameter(type))
    left = b.op("ne", 0).op("reduce_any", axes=tuple(range(type.rank)))
    return builder.finish([left.value])


def _step(table: Any, type: TensorType) -> Graph:
    """(a, b) becomes (b, a mod b) where b is not 0."""
    builder = Builder(table)
    a, b = (Expression(builder, builder.parameter(type)) for _ in range(2))
    going = b.op("ne", 0)
    return builder.finish(
        [going.op("select", b, a).value, going.op("select", a.op("mod", b), b).value]
    )


def _compose(builder: Builder, inputs: Sequence[int], given: Mapping[str, Any]) -> tuple[int, ...]:
    operands = [Expression(builder, v) for v in inputs]
    dtype = operands[0].dtype
    plain = DTYPES[f"u{dtype.itemsize * 8}"]
    if KIND[dtype] == "i":  # the magnitude of the least integer fits only the unsigned dtype
        operands = [x.op("abs").op("bitcast", dtype=plain) for x in operands]
    shape = broadcast("gcd", [x.type for x in operands])
    type = TensorType(plain, shape)
    carries = [x.broadcast(*shape).value for x in operands]
    scopes = (_more(builder.table, type), _step(builder.table, type))
    found, _ = builder.node("while", carries, {"captures": 0}, scopes)
    made = Expression(builder, found)
    return ((made.op("bitcast", dtype=dtype) if KIND[dtype] == "i" else made).value,)


ROWS = (
    row(
        "gcd",
        2,
        np.gcd,
        "iu",
        edges="of 0 and 0 it is 0; never negative but for INT_MIN with itself or 0",
        lowering=Composition(_compose),
        spread=spreads.DIVISOR,
    ),
)
