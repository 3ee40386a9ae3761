"""LAPACK in the private OpenBLAS: Fortran's routines, with integers of 64 bits."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache

from tenfold.backends.cpu.library.blas import blas

_BOTH = ("geev", "geqrf", "gesdd", "gesv", "getrf", "getri", "potrf", "trtrs")
NAMES = (
    *(f"d{name}" for name in (*_BOTH, "orgqr", "syevd")),
    *(f"z{name}" for name in (*_BOTH, "ungqr", "heevd")),
)


@cache
def lapack_symbols() -> Mapping[str, int] | None:
    """Addresses of `tn_dgesv` and its like, or None where there is no private library."""
    found = blas()
    if found is None:
        return None
    library = ctypes.CDLL(found.path)
    try:
        return {
            f"tn_{name}": ctypes.addressof(ctypes.c_char.in_dll(library, f"scipy_{name}_64_"))
            for name in NAMES
        }
    except ValueError:  # a library without LAPACK
        return None
