"""Tenfold: a compiler and runtime for array programs in Python."""

from tenfold.api.jit import Jitted, jit
from tenfold.api.program import evaluate, parse, trace
from tenfold.errors import TenfoldError
from tenfold.graph import Graph
from tenfold.trace.array import Array
from tenfold.trace.control import cond, fori_loop, map, reduce, scan, switch, while_loop
from tenfold.types import TensorType, spec

__version__ = "0.1.0"

__all__ = [
    "Array",
    "Graph",
    "Jitted",
    "TenfoldError",
    "TensorType",
    "cond",
    "evaluate",
    "fori_loop",
    "jit",
    "map",
    "parse",
    "reduce",
    "scan",
    "spec",
    "switch",
    "trace",
    "while_loop",
]
