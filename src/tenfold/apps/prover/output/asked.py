"""Asked: the outputs that a command asks for, checked before the run and written after it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.evaluation import Run
from tenfold.apps.prover.output.answers import Answering
from tenfold.apps.prover.output.files import check_outputs, write_text
from tenfold.apps.prover.output.queries import KINDS, check_queries, write_answers
from tenfold.apps.prover.output.tables import check_table, write_table
from tenfold.apps.prover.report.summary import report


@dataclass(frozen=True, slots=True)
class Outputs:
    """Files to write, and how many relations a table has."""

    json: Path | None = None
    html: Path | None = None
    queries: Path | None = None
    table: Path | None = None
    rules: Path | None = None  # mined ones, which the reading of data writes
    relations: int | None = None

    def check(self) -> None:
        """An error before the run for what could not be written after it."""
        if self.relations is not None and self.relations < 0:
            raise InputError(f"relations is {self.relations}", fix="give 0 or more")
        check_queries(self.queries)
        check_table(self.table)
        check_outputs(self._named())

    def only_json(self, what: str) -> None:
        """An error for files that would not be written."""
        for option, path in self._named().items():
            if path is not None and option not in ("--json", "--mine-to"):
                raise InputError(f"{what} writes no {option}", fix=f"leave {option} out")

    def write(
        self,
        run: Run,
        answering: Answering | None = None,
        spread: Mapping[str, Any] | None = None,
    ) -> None:
        """Write them all; `spread` is what the figures of several seeds come to."""
        answering = answering or Answering(run)
        if self.json is not None:
            write_json(self.json, {**report(run), "seeds": spread})
        if self.table is not None:
            write_table(self.table, run, self.relations)
        if self.queries is not None:
            write_answers(self.queries, answering.answers(), run.provenance)
        if self.html is not None:
            from tenfold.apps.prover.report.html import page

            write_text(self.html, page(run, answering, self.relations, spread))

    def _named(self) -> dict[str, Path | None]:
        names = ("json", "html", "queries", "table")
        return {**{f"--{name}": getattr(self, name) for name in names}, "--mine-to": self.rules}


def outputs_of(path: Path, relations: int | None = None) -> Outputs:
    """The output that a file's ending says: a `.csv` has every ranking.

    >>> outputs_of(Path("a.tex")).table
    PosixPath('a.tex')
    """
    if path.suffix in KINDS:
        return Outputs(queries=path)
    for ending, name in ((".json", "json"), (".html", "html"), (".tex", "table")):
        if path.suffix == ending:
            return Outputs(**{name: path}, relations=relations)
    endings = ", ".join((".json", ".html", ".tex", *KINDS))
    raise InputError(f"{path} has the ending {path.suffix!r}", fix=f"say one of {endings}")


def write_json(path: Path, made: Any) -> None:
    """Write figures as JSON."""
    write_text(path, json.dumps(made, indent=1, allow_nan=False) + "\n")
