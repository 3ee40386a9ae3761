"""SHA-256. To load OpenSSL, as hashlib does, takes longer than a process from the cache spends on
its few short texts; long ones are worth it."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Protocol

_LONG = 1 << 18  # bytes


class Hash(Protocol):
    """Bytes on their way to a digest."""

    def update(self, data: bytes | memoryview, /) -> None: ...

    def digest(self) -> bytes: ...

    def hexdigest(self) -> str: ...


def _builtin() -> Any:
    """Python's own SHA-256; None where it was built without."""
    try:
        return import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:
        return None


_short = _builtin()


def sha256(data: bytes | memoryview = b"") -> Hash:
    """What `hashlib.sha256` gives.

    >>> sha256(b"tenfold").hexdigest()[:16]
    '8972e3be1d252a95'
    """
    if _short is None or len(data) > _LONG or "_hashlib" in sys.modules:
        import hashlib

        return hashlib.sha256(data)
    made: Hash = _short(data)
    return made
