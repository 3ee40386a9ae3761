"""The surface: what NumPy's functions, ufuncs, operators, methods and indexing do when traced.

Each file files its part in the tables of `tenfold.trace.array`.
"""

from tenfold.trace.surface import (
    choosing,
    comparisons,
    creation,
    diagonals,
    einsum,
    indexing,
    into,
    joining,
    linalg,
    methods,
    numeric,
    padding,
    products,
    reductions,
    shapes,
    sorting,
    special,
    statistics,
    taking,
    ufunc_methods,
    ufuncs,
)

__all__ = [
    "choosing",
    "comparisons",
    "creation",
    "diagonals",
    "einsum",
    "indexing",
    "into",
    "joining",
    "linalg",
    "methods",
    "numeric",
    "padding",
    "products",
    "reductions",
    "shapes",
    "sorting",
    "special",
    "statistics",
    "taking",
    "ufunc_methods",
    "ufuncs",
]
