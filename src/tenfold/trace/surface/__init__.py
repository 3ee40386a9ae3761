"""The surface: what NumPy's functions, ufuncs, operators, methods and indexing do when traced.

Each file files its part in the tables of `tenfold.trace.tables`.
"""

from tenfold.trace.surface import applying, asking, into, methods, unsupported
from tenfold.trace.surface.algebra import (
    convolution,
    einsum,
    fourier,
    linalg,
    polynomials,
    products,
    solving,
)
from tenfold.trace.surface.indexing import (
    at_hand,
    choosing,
    diagonals,
    editing,
    indexing,
    places,
    sized,
    taking,
)
from tenfold.trace.surface.numbers import (
    bessel,
    bits,
    divisors,
    exponents,
    numeric,
    scipy_special,
    special,
)
from tenfold.trace.surface.reducing import (
    counting,
    covariance,
    cumulative,
    differences,
    folding,
    histograms,
    quantiles,
    reductions,
    statistics,
)
from tenfold.trace.surface.searching import lookup, searching, sorting
from tenfold.trace.surface.selecting import distinct, functions, packing, reducing
from tenfold.trace.surface.selecting import places as selected_places
from tenfold.trace.surface.shaping import (
    conversion,
    creation,
    joining,
    padding,
    shapes,
    spacing,
    windows,
)
from tenfold.trace.surface.ufuncs import comparisons, ufuncs
from tenfold.trace.surface.ufuncs import methods as ufunc_methods

__all__ = [
    "applying",
    "asking",
    "at_hand",
    "bessel",
    "bits",
    "choosing",
    "comparisons",
    "conversion",
    "convolution",
    "counting",
    "covariance",
    "creation",
    "cumulative",
    "diagonals",
    "differences",
    "distinct",
    "divisors",
    "editing",
    "einsum",
    "exponents",
    "folding",
    "fourier",
    "functions",
    "histograms",
    "indexing",
    "into",
    "joining",
    "linalg",
    "lookup",
    "methods",
    "numeric",
    "packing",
    "padding",
    "places",
    "polynomials",
    "products",
    "quantiles",
    "reducing",
    "reductions",
    "scipy_special",
    "searching",
    "selected_places",
    "shapes",
    "sized",
    "solving",
    "sorting",
    "spacing",
    "special",
    "statistics",
    "taking",
    "ufunc_methods",
    "ufuncs",
    "unsupported",
    "windows",
]
