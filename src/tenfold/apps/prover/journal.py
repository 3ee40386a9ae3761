"""Journal: what a run has done so far, so that it can go on after an interruption.

A file with a line that says what is run, and a line for each query done, in order. Beside it lies
the closure, once there is one. The first line has a digest of the settings, facts, rules, queries
and candidates: a journal of anything else is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from tenfold import config
from tenfold.apps.prover.closure.fixpoint import Closure
from tenfold.apps.prover.closure.joins import Packing
from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.input.program import Program
from tenfold.apps.prover.input.queries import Query
from tenfold.apps.prover.result import Finding
from tenfold.apps.prover.settings import REPORTED, Settings

FORMAT = b"2"  # of a journal's lines: those of another are not read


def digest_of(settings: Settings, program: Program, asked: Sequence[Query]) -> str:
    """What a run is, in 32 letters: equal ones have equal results."""
    told = {name: v for name, v in settings.as_dict().items() if name not in REPORTED}
    made = hashlib.sha256(FORMAT + json.dumps(told, sort_keys=True).encode())
    for path in (settings.weights, settings.embedding):
        made.update(_content(path) if path else b"")
    made.update(repr((program.predicates, program.constants)).encode())
    made.update(repr((program.facts, program.clauses, program.weights)).encode())
    pools: dict[int, bytes] = {}  # pools are shared between queries
    for query in asked:
        if id(query.pool) not in pools:
            pools[id(query.pool)] = hashlib.sha256(repr(sorted(query.pool)).encode()).digest()
        made.update(repr((query.fact, query.mode, sorted(query.known))).encode())
        made.update(pools[id(query.pool)])
    return made.hexdigest()[:32]


def _content(path: str) -> bytes:
    """What is in a file; where it can't be read, whoever uses it says so."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return b""


def runs_folder() -> Path | None:
    """Where runs are kept until they end: in the cache, None where there is none."""
    return Path(config.cache) / "runs" if config.cache else None


class Journal:
    """The journal of one run. Used as a context, it is closed at the end."""

    def __init__(self, path: Path, digest: str, queries: int, *, passing: bool = False) -> None:
        """`passing`: it is removed when the run has ended."""
        self.path, self.passing = path, passing
        self.done: tuple[Finding, ...] = ()
        self._head = json.dumps({"run": digest, "queries": queries})
        self._file: IO[str] | None = None

    def __enter__(self) -> Journal:
        if self.path.exists() and not self.path.is_file():  # a device may have no end
            raise InputError(f"{self.path} is no file", fix="give a file that can be written")
        try:
            file = self.path.open("a+", encoding="utf-8", newline="\n")
        except OSError as error:
            raise InputError(
                f"{self.path}: {error.strerror or error}", fix="give a file that can be written"
            ) from None
        if not _locked(file):
            file.close()
            if self.passing:  # the same run elsewhere: this one goes its own way
                return self
            raise InputError(f"{self.path} is in use by another run", fix="give another file")
        self._file = file
        file.seek(0)
        text = file.read()
        lines = text.split("\n")
        if len(lines) == 1:  # nothing yet, or a first line cut short
            file.truncate(0)
            self._line(self._head)
            return self
        if lines[0] != self._head:
            file.close()
            raise InputError(
                f"{self.path} was begun with other settings or data",
                fix="give another file, or remove it",
            )
        # what follows the last line's end was cut short
        file.truncate(len(text.encode()) - len(lines[-1].encode()))
        self.done = tuple(Finding.of_list(json.loads(line)) for line in lines[1:-1])
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._file is None:
            return
        if kind is None and self.passing:
            for path in (self.path, self._closure):
                path.unlink(missing_ok=True)
        self._file.close()

    @property
    def holds(self) -> bool:
        """Whether what is written is kept: not where another process does the same run."""
        return self._file is not None

    def write(self, found: Finding) -> None:
        """One more query."""
        self._line(json.dumps(found.as_list()))

    def _line(self, text: str) -> None:
        if self._file:
            try:
                self._file.write(text + "\n")
                self._file.flush()
            except OSError as error:
                raise self._full(error) from None

    def _full(self, error: OSError) -> InputError:
        return InputError(
            f"{self.path}: {error.strerror or error}",
            fix="make room there, or say --fresh to keep nothing",
        )

    @property
    def _closure(self) -> Path:
        return self.path.with_name(self.path.name + ".closure.npz")

    def closure(self, packing: Packing, close: Callable[[], Closure]) -> Closure:
        """The closure that was kept, or else the one that is made now."""
        try:
            with np.load(self._closure, allow_pickle=False) as kept:
                return Closure(
                    packing,
                    kept["keys"],
                    kept["heights"],
                    bool(kept["complete"]),
                    int(kept["growths"]),
                    str(kept["stopped"]) or None,
                )
        except (OSError, KeyError, ValueError, zipfile.BadZipFile):
            pass
        made = close()
        if self._file is None:
            return made
        partial = self._closure.with_suffix(".partial")
        try:
            with partial.open("wb") as file:
                np.savez(
                    file,
                    keys=made.keys,
                    heights=made.heights,
                    complete=made.complete,
                    growths=made.growths,
                    stopped=made.stopped or "",
                )
            os.replace(partial, self._closure)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise self._full(error) from None
        return made


def _locked(file: IO[str]) -> bool:
    """Whether the file is this run's alone, for as long as it is open."""
    try:
        import fcntl
    except ImportError:  # a system without such locks
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
