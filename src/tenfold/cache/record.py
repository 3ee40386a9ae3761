"""What a plan was made for, field by field: so that a miss can say what is different."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field

from tenfold.backends.backend import Backend
from tenfold.digest import sha256
from tenfold.frozen import frozen
from tenfold.version import versions

PROGRAM = "the program"


@frozen
class Caller:
    """The function that a plan is made for, and its fields: shapes, dtypes, static values."""

    name: str
    file: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The name of the function's records."""
        return sha256(f"{self.name}\n{self.file}".encode()).hexdigest()[:24]

    def __str__(self) -> str:
        return f"{self.name} ({os.path.basename(self.file)})" if self.file else self.name


def record_of(
    caller: Caller, graph: str, backend: Backend, options: Sequence[tuple[str, str]]
) -> dict[str, str]:
    """Every field of a key, and those of the function."""
    target = backend.target()
    return {
        **caller.fields,
        **dict(options),
        "backend": backend.kept_as,
        "processor": str(target),
        **versions(),
        **target.versions,
        PROGRAM: graph[:16],
    }


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What is different, a line each; the program itself only when nothing else explains it."""
    lines = []
    for name in dict.fromkeys((*now, *before)):
        old, new = before.get(name), now.get(name)
        if old == new or name == PROGRAM:
            continue
        if name == "source":
            lines.append("Tenfold's own files have changed")
        elif old is None:
            lines.append(f"{name}: {new} now, absent before")
        elif new is None:
            lines.append(f"{name}: {old} before, absent now")
        else:
            lines.append(f"{name}: {old} before, {new} now")
    if not lines and before.get(PROGRAM) != now.get(PROGRAM):
        lines.append(
            f"{PROGRAM}: its graph is another (its code, or a value it closes over, has changed)"
        )
    return lines


def nearest(records: Sequence[Mapping[str, str]], now: Mapping[str, str]) -> list[str] | None:
    """The differences from the record that has the fewest, the latest of them; None without."""
    found: list[str] | None = None
    for record in records:
        lines = differences(record, now) if record else []
        if lines and (found is None or len(lines) < len(found)):
            found = lines
    return found
