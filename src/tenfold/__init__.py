"""Tenfold: a compiler and runtime for array programs in Python."""

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
from tenfold.trace.surface.special import erf, erfc, rsqrt, sigmoid
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
    "asarray",
    "backends",
    "call_host",
    "cond",
    "custom",
    "dynamic_slice",
    "dynamic_update",
    "empty",
    "erf",
    "erfc",
    "evaluate",
    "eye",
    "fori_loop",
    "full",
    "hook",
    "iota",
    "jit",
    "linspace",
    "lu",
    "map",
    "ones",
    "parse",
    "print",
    "reduce",
    "rsqrt",
    "scan",
    "sigmoid",
    "spec",
    "stats",
    "switch",
    "trace",
    "trace_values",
    "vmap",
    "while_loop",
    "zeros",
]
