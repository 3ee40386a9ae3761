"""Tenfold: a compiler and runtime for array programs in Python.

A name is imported when it is first asked for, so that `import tenfold` takes no time, and a
program only that of the parts it uses. What type checkers see stands in `__init__.pyi`.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

__array_api_version__ = "2024.12"

# Every public name, by the module it is imported from.
_HOMES = {
    "tenfold.api.backends": "backends release_memory",
    "tenfold.api.devices": "device_put",
    "tenfold.api.explain_cache": "explain_cache",
    "tenfold.api.jit": "jit Jitted",
    "tenfold.api.load": "load Loaded",
    "tenfold.api.namespace.complexes": "expm1 tanh",
    "tenfold.api.namespace.constants": (
        "bfloat16 bool complex128 complex64 e float16 float32 float64 inf int16 int32 int64 int8 "
        "nan newaxis pi uint16 uint32 uint64 uint8"
    ),
    "tenfold.api.namespace.creation": (
        "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones "
        "ones_like tril triu zeros zeros_like"
    ),
    "tenfold.api.namespace.dtypes": "astype can_cast finfo iinfo isdtype result_type",
    "tenfold.api.namespace.elementwise": (
        "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert "
        "bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos "
        "cosh divide equal exp floor floor_divide greater greater_equal hypot imag isfinite isinf "
        "isnan less less_equal log log10 log1p log2 logaddexp logical_and logical_not logical_or "
        "logical_xor matmul maximum minimum multiply negative nextafter not_equal positive pow "
        "real reciprocal remainder round sign signbit sin sinh sqrt square subtract tan trunc"
    ),
    "tenfold.api.namespace.info": "__array_namespace_info__",
    "tenfold.api.namespace.manipulation": (
        "broadcast_arrays broadcast_to concat expand_dims flip matrix_transpose moveaxis "
        "permute_dims repeat reshape roll squeeze stack tensordot tile unstack vecdot"
    ),
    "tenfold.api.namespace.searching": (
        "argmax argmin argsort count_nonzero nonzero searchsorted sort take take_along_axis "
        "unique_all unique_counts unique_inverse unique_values where"
    ),
    "tenfold.api.namespace.statistics": (
        "all any cumulative_prod cumulative_sum diff max mean min prod std sum var"
    ),
    "tenfold.api.parity": "bisect parity",
    "tenfold.api.graphs": "evaluate parse trace trace_values",
    "tenfold.api.safetensors": "load_safetensors",
    "tenfold.config": "config",
    "tenfold.errors": "ParityError ParityWarning TenfoldError TraceWarning",
    "tenfold.graph": "Graph",
    "tenfold.stats": "stats",
    "tenfold.trace.array": "Array",
    "tenfold.trace.control.control": "cond fori_loop map reduce scan switch while_loop",
    "tenfold.trace.control.custom": "custom",
    "tenfold.trace.control.effects": "call_host hook print",
    "tenfold.trace.surface.algebra.convolution": "conv conv_transpose",
    "tenfold.trace.surface.reducing.counting": "bincount",
    "tenfold.trace.surface.shaping.creation": "iota",
    "tenfold.trace.surface.indexing.indexing": "dynamic_slice dynamic_update",
    "tenfold.trace.surface.algebra.linalg": "lu",
    "tenfold.trace.surface.searching.reaching": "reach",
    "tenfold.trace.surface.searching.searching": "top_k",
    "tenfold.trace.surface.indexing.sized": "argwhere compress flatnonzero unique",
    "tenfold.trace.surface.algebra.solving": "triangular_solve",
    "tenfold.trace.surface.numbers.special": "digamma erf erf_inv erfc lgamma rsqrt sigmoid",
    "tenfold.trace.control.windows": "reduce_window",
    "tenfold.trace.convert.convert": "convert_control",
    "tenfold.transform.vmap": "vmap",
    "tenfold.types": "spec TensorType",
    "tenfold.version": "__version__",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

# Public names that are modules.
_MODULES = {
    "fft": "tenfold.api.namespace.fft",
    "linalg": "tenfold.api.namespace.linalg",
    "prover": "tenfold.prover",
    "random": "tenfold.api.random",
}

__all__ = sorted(["__array_api_version__", *_HOME, *_MODULES])


def __getattr__(name: str) -> Any:
    """A public name, imported now; from then on it is an ordinary one."""
    found: Any
    if name not in _MODULES and name not in _HOME:
        raise AttributeError(f"module 'tenfold' has no attribute {name!r}")
    from tenfold.collector import resting

    with resting():
        from tenfold.frames import published

        if name in _MODULES:
            found = import_module(_MODULES[name])
            for each in found.__all__:
                setattr(found, each, published(getattr(found, each)))
        else:
            home = _HOME[name]
            if home.startswith(("tenfold.trace", "tenfold.transform")):
                import_module("tenfold.api")  # whatever comes first, NumPy's functions are known
            found = published(getattr(import_module(home), name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Tenfold(ModuleType):
    """`tenfold.trace` is a package, and `tn.trace` a function. Python sets a package's attribute
    when it imports the part of that name; here public names come first."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _HOME:
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Tenfold
import_module("tenfold.locks")  # threads may import the rest while another forks
