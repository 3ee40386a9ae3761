"""The version of Tenfold, and of all that decides what a plan is."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.machinery import all_suffixes
from typing import Protocol

from tenfold.digest import sha256

__version__ = "0.1.0"

# What only uses the rest: applications and the command.
_USERS = ("apps", "cli")
_ROOM = 1 << 16  # bytes read at a time: nearly every file at once
_MOMENT = 2_000_000_000  # nanoseconds: no file system's clock is coarser


@cache
def versions() -> Mapping[str, str]:
    """Every version that a plan depends on, by name; but those of its target's libraries."""
    import ml_dtypes
    import numpy as np

    return {
        "tenfold": __version__,
        "python": f"{sys.implementation.cache_tag}",
        "numpy": np.__version__,
        "ml_dtypes": ml_dtypes.__version__,
        "source": source(),
    }


class Memory(Protocol):
    """Where a digest is remembered, by the state of the files that it was made of."""

    def find(self, state: str) -> str | None: ...
    def keep(self, state: str, digest: str) -> None: ...


_known: list[str] = []


def source(memory: Memory | None = None) -> str:
    """The digest of Tenfold's own code; empty where its files can't be read.

    The content decides, not the number or the time stamps: two installations of one version may
    differ, and whoever works on a checkout must not meet plans of yesterday's. The code that
    checks counts too, since certificates are its word. A memory, if there is one the first time,
    spares reading files again of which nothing was written since.
    """
    if not _known:
        loader = globals().get("__loader__")  # that of archives names them
        folder, archive = os.path.dirname(__file__), getattr(loader, "archive", None)
        if memory is None or archive is not None:
            _known.append(digest(folder, archive))
        else:
            _known.append(remembered(folder, memory))
    return _known[0]


def remembered(package: str, memory: Memory) -> str:
    """The digest of the code in a package's folder, from a memory where that knows it."""
    state = state_of(package)
    if state is None:
        return digest(package)
    found = memory.find(state)
    if found is None:
        found = digest(package)
        if found and state_of(package) == state:
            memory.keep(state, found)
    return found


def state_of(package: str) -> str | None:
    """What changes when any file of a package is written, moved or replaced; None where something
    was a moment ago, and the next change might bear the same time.

    The system sets the time of a file's last change (ctime), and no program can set it back.
    """
    if os.name != "posix":
        return None
    rows, latest = [], 0
    try:
        for path in sorted(_modules(package)):
            found = os.stat(path)
            latest = max(latest, found.st_ctime_ns)
            place = found.st_dev, found.st_ino, found.st_size
            rows.append(f"{path}\0{place}{found.st_mtime_ns} {found.st_ctime_ns}\0")
    except OSError:
        return None
    if latest >= time.time_ns() - _MOMENT:
        return None
    return sha256("".join(rows).encode("utf-8", "surrogateescape")).hexdigest()


def digest(package: str, archive: str | None = None) -> str:
    """The digest of the code in a package's folder, or of the archive that the package lies in."""
    import hashlib  # it reads all of the code

    made = hashlib.sha256()
    try:
        found = sorted(_modules(package)) if archive is None else [archive]
        for path in found:
            size = 0
            number = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            try:
                while data := os.read(number, _ROOM):
                    made.update(data)
                    size += len(data)
            finally:
                os.close(number)
            made.update(f"\0{path[len(package) :]}\0{size}\0".encode())
    except OSError:
        return ""
    return made.hexdigest()[:32] if found else ""


def _modules(package: str) -> Iterator[str]:
    """The files that Python imports the package from."""
    suffixes = tuple(all_suffixes())
    passed = {os.path.join(package, name) for name in _USERS}
    waiting = [package]
    for folder in waiting:
        with os.scandir(folder) as found:
            for item in found:
                if item.name.endswith(suffixes):
                    yield item.path
                elif item.name != "__pycache__" and item.path not in passed and item.is_dir():
                    waiting.append(item.path)
