"""The op table: one row for each op, and everything about the op in its row.

>>> from tenfold.ops import TABLE
>>> TABLE["floordiv"].edges
'integers: by zero gives 0, INT_MIN by -1 gives INT_MIN; floats as NumPy'

To add an op, write its row where its kind stands; nothing else is to be touched, and no file
outside the table asks for an op by name. Most kinds have a `row` function that asks only for what
differs:

    row("add", 2, np.add, "biufc", edges="integers wrap; bool: or")

What rows are made of: type rules in `rules`, attributes in `attributes`, what references share
in `reference`, formulas of compositions in `expression`, element generators in `elements`, how
inputs are read in `reads`, ranges in `ranges`, batching rules and guards of ops that may raise in
`batching`, what a compiled result may be off by and what errors make of it in `agreement`, and what
tests draw in `samples`. The tests walk the table: they find a new row by themselves and name what
it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tenfold.graph.op import Op
from tenfold.ops.algebra import convolution, fourier, linalg, solving, windows
from tenfold.ops.numbers import divisors, powers, special, threefry
from tenfold.ops.rows import (
    casts,
    choosing,
    comparing,
    constants,
    control,
    cumulative,
    effects,
    elementwise,
    indexing,
    reductions,
    searching,
    shapes,
    sorting,
)

_ROWS = (
    *elementwise.ROWS,
    *comparing.ROWS,
    *choosing.ROWS,
    *casts.ROWS,
    *constants.ROWS,
    *reductions.ROWS,
    *shapes.ROWS,
    *indexing.ROWS,
    *linalg.ROWS,
    *sorting.ROWS,
    *special.ROWS,
    *divisors.ROWS,
    *powers.ROWS,
    *threefry.ROWS,
    *cumulative.ROWS,
    *windows.ROWS,
    *convolution.ROWS,
    *searching.ROWS,
    *solving.ROWS,
    *fourier.ROWS,
    *control.ROWS,
    *effects.ROWS,
)

TABLE: Mapping[str, Op] = MappingProxyType({op.name: op for op in _ROWS})

__all__ = ["TABLE"]
