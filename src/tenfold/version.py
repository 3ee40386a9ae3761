"""The version of Tenfold, and of all that decides what a plan is."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from functools import cache

__version__ = "0.1.0"

# The folders whose code decides what a plan is and does.
_DECIDING = ("graph", "kernel", "ops", "passes", "plan", "backends", "execute", "trace")


@cache
def versions() -> Mapping[str, str]:
    """Every version that a plan depends on, by name."""
    import ml_dtypes
    import numpy as np

    from tenfold.backends.cpu.target import llvmlite_version

    return {
        "tenfold": __version__,
        "python": f"{sys.implementation.cache_tag}",
        "numpy": np.__version__,
        "ml_dtypes": ml_dtypes.__version__,
        "llvmlite": llvmlite_version(),
        "source": _source(),
    }


def _source() -> str:
    """A mark of Tenfold's own files: whoever works on them must not meet plans of yesterday's."""
    root = os.path.dirname(__file__)
    if "site-packages" in root or "dist-packages" in root:
        return ""  # installed: the version says it all
    marks: list[tuple[str, int, int]] = []
    waiting = [os.path.join(root, name) for name in _DECIDING]
    for folder in waiting:
        try:
            with os.scandir(folder) as found:
                for item in found:
                    if item.name.endswith(".py"):
                        state = item.stat()
                        marks.append((item.path[len(root) :], state.st_size, state.st_mtime_ns))
                    elif item.name != "__pycache__" and item.is_dir():
                        waiting.append(item.path)
        except OSError:
            continue
    return hashlib.sha256(repr(sorted(marks)).encode()).hexdigest()[:16]
