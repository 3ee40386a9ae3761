"""A private OpenBLAS with one thread, for products inside plans.

NumPy's own library is at hand, but shares its threads and their number with the whole process: two
spinning pools wreck each other, and results would depend on a setting that is not ours. A copy of
the file is a library of its own to the system's linker. It stays at one thread, so products give
the same bits always, and may be called from many threads at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np

from tenfold.backends.llvm.text import Fragment
from tenfold.frozen import frozen

_ROUTINES = tuple(
    f"{letter}{name}" for letter in "sdcz" for name in ("gemm", "gemv", "syrk", "axpy")
)

# CBLAS's own numbers.
ROW_MAJOR, NOT_TRANSPOSED, TRANSPOSED, LOWER = 101, 111, 112, 122


def _declaration(routine: str) -> str:
    # Real factors go by value, complex ones by pointer; sizes are of 64 bits.
    factor = {"s": "float", "d": "double"}.get(routine[0], "ptr")
    if routine.endswith("gemm"):
        sizes = f"i32, i32, i32, i64, i64, i64, {factor}, ptr, i64, ptr, i64, {factor}, ptr, i64"
    elif routine.endswith("gemv"):
        sizes = f"i32, i32, i64, i64, {factor}, ptr, i64, ptr, i64, {factor}, ptr, i64"
    elif routine.endswith("syrk"):
        sizes = f"i32, i32, i32, i64, i64, {factor}, ptr, i64, {factor}, ptr, i64"
    else:
        sizes = f"i64, {factor}, ptr, i64, ptr, i64"
    return f"declare void @tn_{routine}({sizes})"


BLAS = Fragment(tuple(_declaration(routine) for routine in _ROUTINES), "")


@frozen
class Blas:
    """The private library: addresses of `tn_sgemm` and its like (CBLAS, 64-bit sizes)."""

    symbols: Mapping[str, int]
    config: str  # which OpenBLAS, for which processor: part of what fixes the bits
    path: str


def blas() -> Blas | None:
    """The private library, or None (`why_not` says why): products are then the host's."""
    found = _find()
    return None if isinstance(found, str) else found


def why_not() -> str | None:
    """Why there is no private library here, or None when there is."""
    found = _find()
    return found if isinstance(found, str) else None


@cache
def _find() -> Blas | str:
    from tenfold.backends.cpu.library.blas_copy import (
        copies,
        source_file,
    )  # for programs with products

    source = source_file()
    if source is None:
        return f"NumPy {np.__version__} does not bring the OpenBLAS it uses as a file"
    problems = []
    for copy in copies(source):
        try:
            return _open(copy)
        except (OSError, AttributeError) as error:
            problems.append(f"{copy}: {error}")
    return "; ".join(problems) or "no place to copy OpenBLAS to"


def _open(path: str) -> Blas:
    with _one_thread():
        library = ctypes.CDLL(path)
    library.scipy_openblas_set_num_threads64_(1)
    if library.scipy_openblas_get_num_threads64_() != 1:
        raise OSError("it does not take a number of threads")
    library.scipy_openblas_get_config64_.restype = ctypes.c_char_p
    library.scipy_openblas_get_corename64_.restype = ctypes.c_char_p
    config = (
        library.scipy_openblas_get_config64_() + b" " + library.scipy_openblas_get_corename64_()
    )
    symbols = {
        f"tn_{routine}": ctypes.addressof(
            ctypes.c_char.in_dll(library, f"scipy_cblas_{routine}64_")
        )
        for routine in _ROUTINES
    }
    return Blas(symbols, config.decode(errors="replace"), path)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """OpenBLAS starts its threads while it is loaded, as many as the environment says.

    `putenv` alone: Python's own view of the environment, and its children's, stay as they are.
    """
    name = "OPENBLAS_NUM_THREADS"
    before = os.environ.get(name)
    if sys.platform != "win32":
        os.putenv(name, "1")
    try:
        yield
    finally:
        if sys.platform != "win32":
            if before is None:
                os.unsetenv(name)
            else:
                os.putenv(name, before)
