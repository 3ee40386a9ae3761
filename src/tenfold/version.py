"""The version of Tenfold, and of all that decides what a plan is."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.machinery import all_suffixes

__version__ = "0.1.0"

# What only uses the rest: applications and the command.
_USERS = ("apps", "cli")
_ROOM = 1 << 16  # bytes read at a time: nearly every file at once


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


@cache
def source() -> str:
    """The digest of Tenfold's own code; empty where its files can't be read.

    The content decides, not the number or the time stamps: two installations of one version may
    differ, and whoever works on a checkout must not meet plans of yesterday's. The code that
    checks counts too, since certificates are its word.
    """
    loader = globals().get("__loader__")  # that of archives names them
    return digest(os.path.dirname(__file__), getattr(loader, "archive", None))


def digest(package: str, archive: str | None = None) -> str:
    """The digest of the code in a package's folder, or of the archive that the package lies in."""
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
