"""Tenfold: a compiler and runtime for array programs in Python."""

from tenfold.api import random
from tenfold.api.backends import backends
from tenfold.api.jit import Jitted, jit
from tenfold.api.program import evaluate, parse, trace, trace_values
from tenfold.errors import TenfoldError
from tenfold.graph import Graph
from tenfold.stats import stats
from tenfold.trace.array import Array
from tenfold.trace.control import cond, fori_loop, map, reduce, scan, switch, while_loop
from tenfold.trace.custom import custom
from tenfold.trace.effects import call_host, hook, print
from tenfold.trace.surface.convolution import conv
from tenfold.trace.surface.counting import bincount
from tenfold.trace.surface.creation import (
    arange,
    asarray,
    empty,
    eye,
    full,
    iota,
    linspace,
    ones,
    zeros,
)
from tenfold.trace.surface.indexing import dynamic_slice, dynamic_update
from tenfold.trace.surface.linalg import lu
from tenfold.trace.surface.searching import top_k
from tenfold.trace.surface.sized import argwhere, compress, flatnonzero, nonzero, unique
from tenfold.trace.surface.solving import triangular_solve
from tenfold.trace.surface.special import digamma, erf, erf_inv, erfc, lgamma, rsqrt, sigmoid
from tenfold.trace.windows import reduce_window
from tenfold.transform.vmap import vmap
from tenfold.types import TensorType, spec

__version__ = "0.1.0"

__all__ = [
    "Array",
    "Graph",
    "Jitted",
    "TenfoldError",
    "TensorType",
    "arange",
    "argwhere",
    "asarray",
    "backends",
    "bincount",
    "call_host",
    "compress",
    "cond",
    "conv",
    "custom",
    "digamma",
    "dynamic_slice",
    "dynamic_update",
    "empty",
    "erf",
    "erf_inv",
    "erfc",
    "evaluate",
    "eye",
    "flatnonzero",
    "fori_loop",
    "full",
    "hook",
    "iota",
    "jit",
    "lgamma",
    "linspace",
    "lu",
    "map",
    "nonzero",
    "ones",
    "parse",
    "print",
    "random",
    "reduce",
    "reduce_window",
    "rsqrt",
    "scan",
    "sigmoid",
    "spec",
    "stats",
    "switch",
    "top_k",
    "trace",
    "trace_values",
    "triangular_solve",
    "unique",
    "vmap",
    "while_loop",
    "zeros",
]
