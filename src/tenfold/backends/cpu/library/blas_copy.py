"""A copy of NumPy's OpenBLAS: made once a machine and user, under a name that no half-written file
ever has."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from tenfold.digest import sha256

_HOUR, _MONTH = 3600, 30 * 24 * 3600
_LIBRARY, _PARTIAL = "libscipy_openblas64_", "partial-"  # how names begin


def source_file() -> str | None:
    """The file NumPy uses: beside the package in most wheels, within it on macOS."""
    package = os.path.dirname(np.__file__)
    for folder in (
        os.path.join(package, os.pardir, "numpy.libs"),
        os.path.join(package, ".dylibs"),
    ):
        with contextlib.suppress(OSError):
            for name in sorted(os.listdir(folder)):
                if name.startswith(_LIBRARY):
                    return os.path.normpath(os.path.join(folder, name))
    return None


def copies(source: str) -> Iterator[str]:
    """Places of the copy, each made when asked for: the user's cache, a temporary one, memory."""
    state, own = os.stat(source), os.path.basename(source)
    mark = sha256(f"{own} {state.st_size} {state.st_mtime_ns}".encode())
    name = f"{mark.hexdigest()[:16]}-{own}"
    for folder in _folders():
        with contextlib.suppress(OSError):
            yield _copy(source, folder, name, state.st_size)
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            number = os.memfd_create("tenfold-openblas", os.MFD_CLOEXEC)
            with open(number, "wb", closefd=False) as writing:
                _write(source, writing)
            # The number stays open: the system's linker knows a library by the file behind it.
            yield f"/proc/self/fd/{number}"


def _folders() -> Iterator[str]:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(os.path.join("~", ".cache"))
    if os.path.isabs(home):  # else nobody knows where the user's home is
        yield os.path.join(home, "tenfold", "blas")
    from tempfile import gettempdir  # it and what it loads take longer than to look for a copy

    owner = os.getuid() if hasattr(os, "getuid") else 0
    yield os.path.join(gettempdir(), f"tenfold-{owner}", "blas")


def _copy(source: str, folder: str, name: str, size: int) -> str:
    """The copy in this folder: the one that is there, or a new one moved into place whole."""
    os.makedirs(folder, exist_ok=True, mode=0o700)
    _check_owner(folder)
    place = os.path.join(folder, name)
    if os.path.isfile(place) and os.stat(place).st_size == size:
        with contextlib.suppress(OSError):
            os.utime(place)  # in use: not to be swept
        return place
    from tempfile import mkstemp

    _sweep(folder)
    number, partial = mkstemp(dir=folder, prefix=_PARTIAL)
    try:
        with open(number, "wb") as writing:
            _write(source, writing)
        os.replace(partial, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
    return place


def _write(source: str, writing: BinaryIO) -> None:
    from shutil import copyfileobj

    with open(source, "rb") as reading:
        copyfileobj(reading, writing, 1 << 20)


def _check_owner(folder: str) -> None:
    """What is loaded as code must not lie where others write."""
    if not hasattr(os, "getuid"):
        return
    for level in (folder, os.path.dirname(folder)):
        state = os.lstat(level)
        if state.st_uid != os.getuid() or state.st_mode & 0o022:
            raise PermissionError(f"{level} is open to other users")


def _sweep(folder: str) -> None:
    """Drop copies of libraries long gone, and what interrupted copying left behind.

    A process that still has one of them mapped keeps it.
    """
    now = time.time()
    for name in os.listdir(folder):
        copied = name[:16].isalnum() and name[16:].startswith(f"-{_LIBRARY}")
        if not copied and not name.startswith(_PARTIAL):
            continue  # not of this making
        file = os.path.join(folder, name)
        with contextlib.suppress(OSError):
            if now - os.lstat(file).st_mtime > (_MONTH if copied else _HOUR):
                os.unlink(file)
