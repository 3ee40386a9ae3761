"""Tenfold: a compiler and runtime for array programs in Python."""

import math
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tenfold.api.backends import backends
from tenfold.api.jit import Jitted, jit
from tenfold.api.namespace.complexes import expm1, tanh
from tenfold.api.namespace.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from tenfold.api.namespace.dtypes import astype, can_cast, finfo, iinfo, isdtype, result_type
from tenfold.api.namespace.elementwise import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    clip,
    conj,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    floor,
    floor_divide,
    greater,
    greater_equal,
    hypot,
    imag,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    matmul,
    maximum,
    minimum,
    multiply,
    negative,
    nextafter,
    not_equal,
    positive,
    pow,
    real,
    reciprocal,
    remainder,
    round,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    trunc,
)
from tenfold.api.namespace.info import __array_namespace_info__
from tenfold.api.namespace.manipulation import (
    broadcast_arrays,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    tensordot,
    tile,
    unstack,
    vecdot,
)
from tenfold.api.namespace.searching import (
    argmax,
    argmin,
    argsort,
    count_nonzero,
    nonzero,
    searchsorted,
    sort,
    take,
    take_along_axis,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    where,
)
from tenfold.api.namespace.statistics import (
    all,
    any,
    cumulative_prod,
    cumulative_sum,
    diff,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from tenfold.api.parity import bisect, parity
from tenfold.api.policy import configure
from tenfold.api.program import evaluate, parse, trace, trace_values
from tenfold.config import config
from tenfold.errors import ParityError, ParityWarning, TenfoldError
from tenfold.graph import Graph
from tenfold.stats import stats
from tenfold.trace.array import Array
from tenfold.trace.control import cond, fori_loop, map, reduce, scan, switch, while_loop
from tenfold.trace.custom import custom
from tenfold.trace.effects import call_host, hook, print
from tenfold.trace.surface.convolution import conv
from tenfold.trace.surface.counting import bincount
from tenfold.trace.surface.creation import iota
from tenfold.trace.surface.indexing import dynamic_slice, dynamic_update
from tenfold.trace.surface.linalg import lu
from tenfold.trace.surface.searching import top_k
from tenfold.trace.surface.sized import argwhere, compress, flatnonzero, unique
from tenfold.trace.surface.solving import triangular_solve
from tenfold.trace.surface.special import digamma, erf, erf_inv, erfc, lgamma, rsqrt, sigmoid
from tenfold.trace.windows import reduce_window
from tenfold.transform.vmap import vmap
from tenfold.types import DTYPES, TensorType, spec
from tenfold.version import __version__ as __version__

if TYPE_CHECKING:
    from tenfold.api.explain_cache import explain_cache
    from tenfold.api.load import Loaded, load

__array_api_version__ = "2024.12"

bool = DTYPES["bool"]
int8 = DTYPES["i8"]
int16 = DTYPES["i16"]
int32 = DTYPES["i32"]
int64 = DTYPES["i64"]
uint8 = DTYPES["u8"]
uint16 = DTYPES["u16"]
uint32 = DTYPES["u32"]
uint64 = DTYPES["u64"]
float16 = DTYPES["f16"]
bfloat16 = DTYPES["bf16"]
float32 = DTYPES["f32"]
float64 = DTYPES["f64"]
complex64 = DTYPES["c64"]
complex128 = DTYPES["c128"]

e = math.e
inf = math.inf
nan = math.nan
pi = math.pi
newaxis = None

# What needs modules that not every program needs is looked up when it is first asked for.
_LATE = {
    "fft": "tenfold.api.namespace.fft",
    "linalg": "tenfold.api.namespace.linalg",
    "random": "tenfold.api.random",
    "Loaded": "tenfold.api.load:Loaded",
    "explain_cache": "tenfold.api.explain_cache:explain_cache",
    "load": "tenfold.api.load:load",
}


def __getattr__(name: str) -> Any:
    """Parts that are imported when they are first used."""
    if name in _LATE:
        home, _, inner = _LATE[name].partition(":")
        module = import_module(home)
        found = globals()[name] = getattr(module, inner) if inner else module
        return found
    raise AttributeError(f"module 'tenfold' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})


__all__ = [
    "Array",
    "Graph",
    "Jitted",
    "Loaded",
    "ParityError",
    "ParityWarning",
    "TenfoldError",
    "TensorType",
    "__array_api_version__",
    "__array_namespace_info__",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "backends",
    "bfloat16",
    "bincount",
    "bisect",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool",
    "broadcast_arrays",
    "broadcast_to",
    "call_host",
    "can_cast",
    "ceil",
    "clip",
    "complex64",
    "complex128",
    "compress",
    "concat",
    "cond",
    "config",
    "configure",
    "conj",
    "conv",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "custom",
    "diff",
    "digamma",
    "divide",
    "dynamic_slice",
    "dynamic_update",
    "e",
    "empty",
    "empty_like",
    "equal",
    "erf",
    "erf_inv",
    "erfc",
    "evaluate",
    "exp",
    "expand_dims",
    "explain_cache",
    "expm1",
    "eye",
    "fft",
    "finfo",
    "flatnonzero",
    "flip",
    "float16",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "fori_loop",
    "from_dlpack",
    "full",
    "full_like",
    "greater",
    "greater_equal",
    "hook",
    "hypot",
    "iinfo",
    "imag",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "iota",
    "isdtype",
    "isfinite",
    "isinf",
    "isnan",
    "jit",
    "less",
    "less_equal",
    "lgamma",
    "linalg",
    "linspace",
    "load",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lu",
    "map",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "nan",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "parity",
    "parse",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "print",
    "prod",
    "random",
    "real",
    "reciprocal",
    "reduce",
    "reduce_window",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "round",
    "rsqrt",
    "scan",
    "searchsorted",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sort",
    "spec",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stats",
    "std",
    "subtract",
    "sum",
    "switch",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "top_k",
    "trace",
    "trace_values",
    "triangular_solve",
    "tril",
    "triu",
    "trunc",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "vmap",
    "where",
    "while_loop",
    "zeros",
    "zeros_like",
]
