"""A function that is compiled again and again: a warning, once, with the cause and the cure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tenfold.cache.record import differences
from tenfold.errors import RecompileWarning
from tenfold.frames import warn

OFTEN = 12


class RecompileWatch:
    """Counts the compilations of one function."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self._last: Mapping[str, str] | None = None
        self._causes: Counter[str] = Counter()
        self._example: dict[str, str] = {}

    def note(self, record: Mapping[str, str]) -> None:
        """One more compilation, for this record."""
        self.count += 1
        if self._last is not None:
            for line in differences(self._last, record):
                cause = line.partition(":")[0]
                self._causes[cause] += 1
                self._example[cause] = line
        self._last = record
        if self.count == OFTEN:
            cause = self._causes.most_common(1)[0][0] if self._causes else ""
            warn(
                f"{self.name} was compiled {self.count} times; last because of "
                f"{self._example.get(cause, 'another program')}\n  {_cure(cause)}",
                RecompileWarning,
            )


def _cure(cause: str) -> str:
    if cause.startswith("shape of"):
        return "keep the shapes fixed, or pad to a few: tn.jit(f, buckets={...})"
    if cause.startswith("dtype of"):
        return "convert the argument to one dtype before the call"
    if cause.startswith("static "):
        return "pass the value as an array or a number, not as a static argument"
    return "see tn.explain_cache(f, ...) for what changes, and keep it fixed"
