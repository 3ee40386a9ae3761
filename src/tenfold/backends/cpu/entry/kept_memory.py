"""The memory of large results in this process: its limit, what is kept, what is said of it."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

import numpy as np

from tenfold.backends.cpu.entry import ndarray as nd
from tenfold.backends.cpu.link.loader import Image
from tenfold.config import config, on_kept_bytes
from tenfold.stats import native_counts

HUGE_PAGE = 1 << 21
NEVER = 1 << 62  # bytes: no result is large
LEAST = 1 << 17  # bytes: from here on the C library gives memory back to the system
_SYSTEM = "/sys/kernel/mm/transparent_hugepage"


class KeptWord(IntEnum):
    """The words of `tn_kept`. Those from LIMIT to CAPSULE are set here."""

    BYTES = 0  # at rest
    REUSED = 1  # times that memory at rest was taken
    MAPPED = 2  # and that it came from the system
    TIME = 3  # blocks that were freed so far
    AGED = 4  # the same, when they were last looked through for old ones
    LIMIT = 5  # bytes that may rest
    LEAST = 6  # bytes of a result from which on it is large
    PAGE = 7  # bytes of a page
    FLAGS = 8  # of a private anonymous mapping
    HUGE = 9  # the advice to use huge pages, 0 for none
    LOAN = 10  # the advice that pages may be taken, 0 for none
    CAPSULE = 11  # NumPy's name for who frees such memory: an object
    COUNT = 12  # blocks at rest
    OWN = 13  # bytes at rest that are not lent
    SLOTS = 14


class KeptMemory:
    """The words of `tn_kept` in memory, and what is asked of them from Python."""

    def __init__(self, image: Image) -> None:
        # Arrays are freed by this code, the last of them after the last of Python's modules.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(image))
        self._words = (ctypes.c_int64 * len(KeptWord)).from_address(image.address("tn_kept"))
        kind = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
        self._shrink: Callable[[int], int] = kind(image.address("tn_kept_shrink"))
        self._counted = (0, 0)
        capsule = _capsule(image)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(capsule))
        self._words[KeptWord.CAPSULE] = id(capsule)
        self._words[KeptWord.PAGE] = mmap.PAGESIZE
        self._words[KeptWord.FLAGS] = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        if _huge_pages():
            self._words[KeptWord.HUGE] = getattr(mmap, "MADV_HUGEPAGE", 0)
            self._words[KeptWord.LOAN] = getattr(mmap, "MADV_FREE", 0)
        self.set_limit(config.kept_bytes)

    def set_limit(self, limit: int) -> None:
        """Keep no more than this; from 0 on NumPy's own allocator serves all."""
        self._words[KeptWord.LIMIT] = limit
        self._words[KeptWord.LEAST] = LEAST if limit and nd.unkept() is None else NEVER
        self._shrink(limit)

    def release(self) -> int:
        """Give back all that rests; how many bytes that was."""
        return self._shrink(0)

    def counts(self) -> Mapping[str, int]:
        reused, mapped = self._counted
        return {
            "memory_reused": self._words[KeptWord.REUSED] - reused,
            "memory_mapped": self._words[KeptWord.MAPPED] - mapped,
            "memory_kept": self._words[KeptWord.BYTES],
        }

    def reset(self) -> None:
        """Count from here on."""
        self._counted = self._words[KeptWord.REUSED], self._words[KeptWord.MAPPED]


def _capsule(image: Image) -> Any:
    """What NumPy knows an allocator by. Its name has to last as long as the array."""
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, *(ctypes.c_void_p,) * 3)
    new = kind(("PyCapsule_New", ctypes.pythonapi))
    return new(image.address("tn_handler"), image.address("tn_handler_name"), None)


def _huge_pages() -> bool:
    """Whether to ask for huge pages: the system has them, of the usual size, and NumPy would."""
    multiarray: Any = np._core.multiarray  # type: ignore[attr-defined]
    asks = getattr(multiarray, "_get_madvise_hugepage", lambda: True)
    try:
        with open(f"{_SYSTEM}/enabled") as enabled, open(f"{_SYSTEM}/hpage_pmd_size") as size:
            offered = "[never]" not in enabled.read() and int(size.read()) == HUGE_PAGE
    except (OSError, ValueError):
        return False
    return offered and bool(asks())


kept_memory: list[KeptMemory] = []  # the one there is, once the gate is


def keep_memory(image: Image) -> None:
    """Have large results made in memory that is kept from now on."""
    made = KeptMemory(image)
    kept_memory.append(made)
    on_kept_bytes.append(made.set_limit)
    native_counts.append(made)


def describe_memory() -> str:
    """What `tn.backends()` says of it."""
    if nd.unkept() is not None:
        return f"of results not kept, because {nd.unkept()}"
    if not config.kept_bytes:
        return "of results not kept, as `tn.config.kept_bytes` says"
    return f"of results kept: up to {config.kept_bytes} bytes"


def release_memory() -> int:
    """Give back all that rests; how many bytes that was."""
    return sum(memory.release() for memory in kept_memory)
