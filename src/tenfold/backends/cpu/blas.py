"""A private OpenBLAS with one thread, for products inside plans.

NumPy's own library is at hand, but shares its threads and their number with the whole process: two
spinning pools wreck each other, and results would depend on a setting that is not ours. A copy of
the file is a library of its own to the system's linker. It stays at one thread, so products give
the same bits always, and may be called from many threads at once.

The copy is made once a machine and user, under a name that no half-written file ever has.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from tenfold.backends.cpu.text import Fragment

_ROUTINES = tuple(f"{letter}{name}" for letter in "sdcz" for name in ("gemm", "gemv"))

_HOUR, _MONTH = 3600, 30 * 24 * 3600

# CBLAS's own numbers.
ROW_MAJOR, PLAIN, TRANSPOSED, CONJUGATED = 101, 111, 112, 113


def _declaration(routine: str) -> str:
    # Real factors go by value, complex ones by pointer; sizes are of 64 bits.
    factor = {"s": "float", "d": "double"}.get(routine[0], "ptr")
    if routine.endswith("gemm"):
        sizes = f"i32, i32, i32, i64, i64, i64, {factor}, ptr, i64, ptr, i64, {factor}, ptr, i64"
    else:
        sizes = f"i32, i32, i64, i64, {factor}, ptr, i64, ptr, i64, {factor}, ptr, i64"
    return f"declare void @tn_{routine}({sizes})"


BLAS = Fragment(tuple(_declaration(routine) for routine in _ROUTINES), "")


@dataclass(frozen=True, slots=True)
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
    source = _source()
    if source is None:
        return f"NumPy {np.__version__} does not bring the OpenBLAS it uses as a file"
    problems = []
    for copy in _copies(source):
        try:
            return _open(copy)
        except (OSError, AttributeError) as error:
            problems.append(f"{copy}: {error}")
    return "; ".join(problems) or "no place to copy OpenBLAS to"


def _source() -> Path | None:
    """The file NumPy uses: beside the package in most wheels, within it on macOS."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):
        found = sorted(folder.glob("libscipy_openblas64_*"))
        if found:
            return found[0]
    return None


def _copies(source: Path) -> Iterator[str]:
    """Places of the copy, each made when asked for: the user's cache, a temporary one, memory."""
    state = source.stat()
    mark = hashlib.sha256(f"{source.name} {state.st_size} {state.st_mtime_ns}".encode())
    name = f"{mark.hexdigest()[:16]}-{source.name}"
    for folder in _folders():
        with contextlib.suppress(OSError):
            yield str(_copy(source, folder, name, state.st_size))
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            number = os.memfd_create("tenfold-openblas", os.MFD_CLOEXEC)
            with open(source, "rb") as reading, open(number, "wb", closefd=False) as writing:
                shutil.copyfileobj(reading, writing, 1 << 20)
            # The number stays open: the system's linker knows a library by the file behind it.
            yield f"/proc/self/fd/{number}"


def _folders() -> Iterator[Path]:
    home = os.environ.get("XDG_CACHE_HOME")
    with contextlib.suppress(RuntimeError):
        yield (Path(home) if home else Path.home() / ".cache") / "tenfold" / "blas"
    owner = os.getuid() if hasattr(os, "getuid") else 0
    yield Path(tempfile.gettempdir()) / f"tenfold-{owner}" / "blas"


def _copy(source: Path, folder: Path, name: str, size: int) -> Path:
    """The copy in this folder: the one that is there, or a new one moved into place whole."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _check_owner(folder)
    place = folder / name
    if place.is_file() and place.stat().st_size == size:
        with contextlib.suppress(OSError):
            os.utime(place)  # in use: not to be swept
        return place
    _sweep(folder)
    number, partial = tempfile.mkstemp(dir=folder, prefix="partial-")
    try:
        with open(source, "rb") as reading, open(number, "wb") as writing:
            shutil.copyfileobj(reading, writing, 1 << 20)
        os.replace(partial, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
    return place


def _check_owner(folder: Path) -> None:
    """What is loaded as code must not lie where others write."""
    if not hasattr(os, "getuid"):
        return
    for level in (folder, folder.parent):
        state = level.lstat()
        if state.st_uid != os.getuid() or state.st_mode & 0o022:
            raise PermissionError(f"{level} is open to other users")


def _sweep(folder: Path) -> None:
    """Drop copies of libraries long gone, and what interrupted copying left behind.

    A process that still has one of them mapped keeps it.
    """
    now = time.time()
    for file in folder.iterdir():
        age = _HOUR if file.name.startswith("partial-") else _MONTH
        with contextlib.suppress(OSError):
            if now - file.stat().st_mtime > age:
                file.unlink()


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
