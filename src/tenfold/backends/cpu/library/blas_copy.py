"""A copy of NumPy's OpenBLAS: made once a machine and user, under a name that no half-written file
ever has."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

_HOUR, _MONTH = 3600, 30 * 24 * 3600
_LIBRARY, _PARTIAL = "libscipy_openblas64_", "partial-"  # how names begin


def source_file() -> Path | None:
    """The file NumPy uses: beside the package in most wheels, within it on macOS."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):
        found = sorted(folder.glob(f"{_LIBRARY}*"))
        if found:
            return found[0]
    return None


def copies(source: Path) -> Iterator[str]:
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
    number, partial = tempfile.mkstemp(dir=folder, prefix=_PARTIAL)
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
        copied = file.name[:16].isalnum() and file.name[16:].startswith(f"-{_LIBRARY}")
        if not copied and not file.name.startswith(_PARTIAL):
            continue  # not of this making
        with contextlib.suppress(OSError):
            if now - file.lstat().st_mtime > (_MONTH if copied else _HOUR):
                file.unlink()
