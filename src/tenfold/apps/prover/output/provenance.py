"""Provenance: what a run's figures come from, so that a reader can tell and make them again."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import tenfold
from tenfold.apps.prover.backend import target_of
from tenfold.apps.prover.input.dataset import Dataset
from tenfold.apps.prover.settings import Settings

_READ = ("train", "valid", "dev", "test", "rules", "domain2constants")  # of a folder


@dataclass(frozen=True, slots=True)
class Provenance:
    """Hashes of what was read, what was asked, and what ran."""

    command: str
    data: str  # SHA-256 of the facts of all splits and the domains, whatever file they came from
    rules: str  # SHA-256 of the rules
    files: dict[str, str] = field(default_factory=dict)  # SHA-256 of each file's bytes
    version: str = ""
    target: str = ""  # what the code is made for
    date: str = ""  # when the run began, UTC
    numpy: str = ""
    python: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for a file."""
        return asdict(self)


def provenance_of(
    settings: Settings, data: Dataset, command: str, *, files: bool = True
) -> Provenance:
    """Where the figures of a run that begins now come from; `files`: whether the data was read
    from what the settings name.

    >>> from tenfold.apps.prover.input.load import load
    >>> made = provenance_of(Settings("family:families=1"), load("family:families=1"), "mine")
    >>> made.command, len(made.data), made.files
    ('mine', 64, {})
    """
    return Provenance(
        command,
        _digest(
            *(f"{split}\t{fact}" for split, facts in data.splits.items() for fact in facts),
            *(f"domain\t{name}\t{' '.join(some)}" for name, some in data.domains.items()),
        ),
        _digest(*(f"{rule.name}\t{rule.weight!r}\t{rule}" for rule in data.rules)),
        _hashed(settings) if files else {},
        tenfold.__version__,
        target_of(settings.backend),
        datetime.now(UTC).isoformat(timespec="seconds"),
        np.__version__,
        platform.python_version(),
    )


def _digest(*lines: str) -> str:
    made = hashlib.sha256()
    for line in lines:
        made.update(f"{line}\n".encode())
    return made.hexdigest()


def _hashed(settings: Settings) -> dict[str, str]:
    """The hash of each file that is read, by the name it was given or found by."""
    folder = Path(settings.data)
    found: list[Path] = []
    if folder.is_dir():
        found = sorted(path for path in folder.iterdir() if path.stem in _READ and path.is_file())
    if settings.rules is not None:  # they stand for those of the folder
        found = [path for path in found if path.stem != "rules"]
    given = [settings.rules, settings.weights, settings.candidates]
    paths = [*found, *(Path(name) for name in given if name)]
    return {str(path): _hash(path) for path in paths if path.is_file()}


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
