"""Unsupported: the NumPy functions that are not traced, why, and what to write instead; and what
those that are traced do otherwise than NumPy's.

docs/numpy-functions.md is made from these tables; so are the errors of the functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.errors import ConcreteError
from tenfold.trace.lazy.host import on_host
from tenfold.trace.scope import current
from tenfold.trace.surface.emit import fail, on
from tenfold.trace.tables import REASONS, Reason

# Functions whose results have no shape before the program runs.
_LATE: dict[str, tuple[str, str]] = {
    "trim_zeros": ("how many zeros there are", "slice with fixed bounds"),
    "polydiv": ("how long the remainder is", "divide with tn.scan, or on the host: tn.call_host"),
    "roots": (
        "how many leading coefficients are zero",
        "take np.linalg.eigvals of the companion matrix",
    ),
}
_VALUES = "the text of an array needs its values, which only a running program has"
_PRINT = "print in the program: tn.print(x, label=…)"
_MEMORY = "traced arrays are values and have no memory"
_APART = "leave the question out: two traced arrays never share any"
_DATES = "Tenfold has no dtype for dates"
_FILES = "a file is written when the program runs, not while it is traced"
_RETURN = "return the array and save it outside, or write it with tn.call_host"
_HOST = "work on the host: tn.call_host"
_NEVER: dict[str, tuple[str, str]] = {
    "array2string": (_VALUES, _PRINT),
    "array_repr": (_VALUES, _PRINT),
    "array_str": (_VALUES, _PRINT),
    "may_share_memory": (_MEMORY, _APART),
    "shares_memory": (_MEMORY, _APART),
    "busday_count": (_DATES, _HOST),
    "busday_offset": (_DATES, _HOST),
    "is_busday": (_DATES, _HOST),
    "datetime_as_string": (_DATES, _HOST),
    "save": (_FILES, _RETURN),
    "savetxt": (_FILES, _RETURN),
    "savez": (_FILES, _RETURN),
    "savez_compressed": (_FILES, _RETURN),
}


def _refuse(name: str, what: str, remedy: str) -> Any:
    def apply(*args: Any, **kwargs: Any) -> Any:
        if current() is None:  # a lazy array is run
            return on_host(getattr(np, name), args, kwargs)
        return fail(ConcreteError, f"np.{name}: {what} is known only to a running program", remedy)

    return apply


for _name, (_what, _remedy) in _LATE.items():
    _why = f"{_what} is known only to a running program"
    REASONS[getattr(np, _name)] = Reason(_why, _remedy)
    on(getattr(np, _name))(_refuse(_name, _what, _remedy))
for _name, (_why, _remedy) in _NEVER.items():
    REASONS[getattr(np, _name)] = Reason(_why, _remedy)

# The functions that NumPy does not dispatch. While a function is traced, `tenfold.trace.swap`
# stands in the place of those that make arrays.
_MADE = "as in NumPy; traced values may be written to it"
_LISTED = "as in NumPy, of traced arrays too; traced values may be written to it"
_STATIC = "of what is known while tracing, shapes and dtypes, it works as ever"
_TABLE = "it reads values on the host: call it before, and pass the array"
_STATE = "NumPy's own settings; they do not reach a program"
_MATRIX = "no traced arrays in it: a program has no matrices"
UNDISPATCHED: dict[str, str] = {
    **dict.fromkeys(
        (
            *("arange", "eye", "identity", "ones", "zeros"),
            *("bartlett", "blackman", "hamming", "hanning", "kaiser", "tri", "indices"),
            *("diag_indices", "mask_indices", "tril_indices", "triu_indices"),
            *("fft.fftfreq", "fft.rfftfreq"),
        ),
        _MADE,
    ),
    "empty": _MADE + "; it is of zeros, so that no run differs from another",
    **dict.fromkeys(
        (
            *("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray"),
            *("require", "full", "fromiter", "fromfunction"),
        ),
        _LISTED,
    ),
    "asarray_chkfinite": _MADE + "; of a traced array it would need the values",
    "asmatrix": _MATRIX,
    "bmat": _MATRIX,
    **dict.fromkeys(
        (
            *("broadcast_shapes", "isdtype", "isscalar", "issubdtype", "iterable"),
            *("mintypecode", "promote_types", "typename", "base_repr", "binary_repr"),
            *("datetime_data", "info", "get_include", "show_config", "show_runtime", "test"),
            *("linalg.test", "fft.test", "isfortran"),
        ),
        _STATIC,
    ),
    **dict.fromkeys(
        (
            *("frombuffer", "fromfile", "fromregex", "fromstring", "genfromtxt", "load"),
            *("loadtxt", "from_dlpack"),
        ),
        _TABLE,
    ),
    **dict.fromkeys(
        (
            *("get_printoptions", "set_printoptions", "printoptions", "getbufsize"),
            *("setbufsize", "geterr", "seterr", "geterrcall", "seterrcall"),
        ),
        _STATE,
    ),
    "format_float_positional": _VALUES + "; " + _PRINT,
    "format_float_scientific": _VALUES + "; " + _PRINT,
    "frompyfunc": "a ufunc of Python objects, which no program has; np.where and tn.vmap may do",
    "nested_iters": "it walks memory, which traced arrays have not; tn.scan walks axes",
    "row_stack": "the old name of np.vstack, which is traced",
}

_CHOSEN = "a selection, as x[mask] is: it may be reduced, computed with, assigned and returned; "
# What traced functions do otherwise than NumPy's.
DIFFERENCES: dict[str, str] = {
    **dict.fromkeys(
        ("argmax", "argmin", "isin", "searchsorted", "digitize", "histogram"), "of real numbers"
    ),
    "nanargmax": "of real numbers; of NaNs alone the place 0",
    "nanargmin": "of real numbers; of NaNs alone the place 0",
    **dict.fromkeys(
        ("quantile", "percentile", "nanquantile", "nanpercentile"), "no `weights` but None"
    ),
    "pad": "modes constant, edge, reflect, symmetric, wrap; a number that does not fit is refused",
    "fill_diagonal": "of a matrix, and not with `wrap`",
    "ravel": "order C or F: a traced array does not lie in memory",
    "reshape": "order C or F: a traced array does not lie in memory",
    "argpartition": "the order of a stable argsort, one of those allowed",
    "array_equal": "a bool of the program, not of Python",
    "allclose": "a bool of the program, not of Python",
    "array_equiv": "a bool of the program, not of Python",
    "bincount": "with minlength=n; a number of n and more is an error, where NumPy's is longer",
    "average": "weights that add up to 0 give NaN",
    "digitize": "of real numbers; traced bins are not asked whether they rise or fall all along",
    **dict.fromkeys(("choose", "full_like"), "a Python number that does not fit is refused"),
    "empty_like": "of zeros, so that no run differs from another",
    "geomspace": "an end that is 0 gives NaN",
    "gradient": "traced places along an axis are never taken for even ones",
    "linalg.lstsq": "residuals are given for every matrix with more rows than columns",
    "partition": "sorted altogether, which is one of the orders allowed",
    "piecewise": "each function is given the whole array, and has to work element by element",
    "polyfit": "no warning of a poor condition",
    "polymul": "leading zeros are kept",
    "real_if_close": "of real numbers only: otherwise the dtype hangs on values",
    "min_scalar_type": "of arrays with axes: for a number it hangs on the value",
    "poly": "of real roots",
    "nonzero": _CHOSEN + "tn.nonzero(x, size=n) has a size",
    "flatnonzero": _CHOSEN + "tn.flatnonzero(x, size=n) has a size",
    "argwhere": _CHOSEN + "tn.argwhere(x, size=n) has a size",
    **dict.fromkeys(
        ("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
        _CHOSEN + "tn.unique(x, size=n) has a size",
    ),
    **dict.fromkeys(
        ("union1d", "intersect1d", "setdiff1d", "setxor1d"),
        _CHOSEN + "of real numbers",
    ),
    "compress": _CHOSEN + "tn.compress(condition, x, size=n) has a size",
    "extract": _CHOSEN + "tn.compress(condition, x, size=n) has a size",
    "where": "a Python number that does not fit is refused; with a condition alone as np.nonzero",
}
