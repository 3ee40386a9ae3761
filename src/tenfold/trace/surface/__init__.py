"""The surface: what NumPy's functions, ufuncs, operators, methods and indexing do when traced.

Each file files its part in the tables of `tenfold.trace.array`.
"""

from tenfold.trace.surface import (
    comparisons,
    indexing,
    into,
    methods,
    reductions,
    shapes,
    ufuncs,
)

__all__ = [
    "comparisons",
    "indexing",
    "into",
    "methods",
    "reductions",
    "shapes",
    "ufuncs",
]
