"""Rows of elementwise ops that compare, and of those that work bit by bit."""

from __future__ import annotations

import numpy as np

from tenfold.ops import rules, samples
from tenfold.ops.agreement.named import spreads
from tenfold.ops.rows.elementwise import row

_ORDER = "False with NaN; complex by real part, then imaginary"

COMPARISONS = (
    row(
        "eq",
        2,
        np.equal,
        "biufc",
        result=rules.truth,
        edges="NaN equals nothing",
        spread=spreads.EQUAL,
    ),
    row(
        "ne",
        2,
        np.not_equal,
        "biufc",
        result=rules.truth,
        edges="NaN differs from all",
        spread=spreads.EQUAL,
    ),
    row("lt", 2, np.less, "biufc", result=rules.truth, edges=_ORDER, spread=spreads.ABOVE),
    row(
        "le", 2, np.less_equal, "biufc", result=rules.truth, edges=_ORDER, spread=spreads.NOT_BELOW
    ),
    row("gt", 2, np.greater, "biufc", result=rules.truth, edges=_ORDER, spread=spreads.ABOVE),
    row(
        "ge",
        2,
        np.greater_equal,
        "biufc",
        result=rules.truth,
        edges=_ORDER,
        spread=spreads.NOT_BELOW,
    ),
    row("isnan", 1, np.isnan, "fc", result=rules.truth, edges="complex: either part"),
    row("isinf", 1, np.isinf, "fc", result=rules.truth, edges="complex: either part"),
    row("isfinite", 1, np.isfinite, "fc", result=rules.truth, edges="complex: both parts"),
    row("signbit", 1, np.signbit, "f", result=rules.truth, edges="NaN and zero have signs too"),
)

_SHIFT = "an amount that is negative or not below the width gives {}"

BITS = (
    row(
        "and",
        2,
        np.bitwise_and,
        "biu",
        edges="bool: logical; integers: bit by bit",
        spread=spreads.ALL_SET,
    ),
    row(
        "or",
        2,
        np.bitwise_or,
        "biu",
        edges="bool: logical; integers: bit by bit",
        spread=spreads.ANY_SET,
    ),
    row(
        "xor",
        2,
        np.bitwise_xor,
        "biu",
        edges="bool: logical; integers: bit by bit",
        spread=spreads.DIFFERING,
    ),
    row(
        "not",
        1,
        np.invert,
        "biu",
        edges="bool: logical; integers: bit by bit",
        spread=spreads.ORDERED,
    ),
    row(
        "shl",
        2,
        np.left_shift,
        "iu",
        samples.anything,
        samples.amounts,
        edges=_SHIFT.format(0),
        spread=spreads.LEFT,
    ),
    row(
        "shr",
        2,
        np.right_shift,
        "iu",
        samples.anything,
        samples.amounts,
        edges=_SHIFT.format("0, or -1 for a negative number"),
        spread=spreads.RIGHT,
    ),
    row(
        "popcount",
        1,
        np.bitwise_count,
        "iu",
        result=rules.byte,
        edges="a negative number counts as its absolute value, as in NumPy",
        spread=spreads.COUNTED,
    ),
)

ROWS = (*COMPARISONS, *BITS)
