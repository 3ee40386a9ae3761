"""Settings of this process: `tn.config`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenfold.errors import ValueProblem

if TYPE_CHECKING:
    from pathlib import Path

_OFF = ("", "0", "off", "no", "none")
GIB = 1 << 30


def _folder() -> str | None:
    given = os.environ.get("TENFOLD_CACHE")
    if given is not None:
        return None if given.lower() in _OFF else os.path.expanduser(given)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if home.startswith("~"):  # there is no home
        return None
    return os.path.join(home, "tenfold", "plans")


def _limit() -> int:
    given = os.environ.get("TENFOLD_CACHE_BYTES", "")
    try:
        return int(given) if given else GIB
    except ValueError:
        raise ValueProblem(
            f"TENFOLD_CACHE_BYTES={given!r} is no number of bytes", fix="give a whole number"
        ) from None


@dataclass(slots=True)
class Config:
    """`cache` is the folder of the disk cache, None for none; `cache_bytes` how large it may grow.

    The environment sets them at first: TENFOLD_CACHE (a folder, or 'off'), TENFOLD_CACHE_BYTES.
    """

    cache: Path | str | None = field(default_factory=_folder)
    cache_bytes: int = field(default_factory=_limit)


config = Config()
