"""Files put in place whole, or not at all."""

from __future__ import annotations

import contextlib
import os

PARTIAL = "partial-"  # how names begin under which files are written


def write_whole(path: str | os.PathLike[str], data: bytes, mode: int = 0o666) -> None:
    """Write a file under a name nobody reads, then move it into place.

    Nobody can guess that name, and whatever should stand there all the same is not written
    through.
    """
    parent = os.path.dirname(os.fspath(path))
    partial = os.path.join(parent, f"{PARTIAL}{os.getpid()}-{os.urandom(8).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    number = os.open(partial, flags, mode)
    try:
        with open(number, "wb") as file:
            file.write(data)
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
