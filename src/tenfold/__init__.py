"""Tenfold: a compiler and runtime for array programs in Python."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tenfold.api import random
from tenfold.api.backends import backends
from tenfold.api.jit import Jitted, jit
from tenfold.api.program import evaluate, parse, trace, trace_values
from tenfold.config import config
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
from tenfold.version import __version__ as __version__

if TYPE_CHECKING:
    from tenfold.api.explain_cache import explain_cache
    from tenfold.api.load import Loaded, load

# What needs the compiler's modules is looked up when it is first asked for.
_LATER = {
    "Loaded": "tenfold.api.load",
    "explain_cache": "tenfold.api.explain_cache",
    "load": "tenfold.api.load",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'tenfold' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_LATER[name]), name)
    return found


__all__ = [
    "Array",
    "Graph",
    "Jitted",
    "Loaded",
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
    "config",
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
    "explain_cache",
    "eye",
    "flatnonzero",
    "fori_loop",
    "full",
    "hook",
    "iota",
    "jit",
    "lgamma",
    "linspace",
    "load",
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
