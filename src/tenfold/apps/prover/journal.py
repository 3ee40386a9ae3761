"""Journal: what a run has done so far, so that it can go on after an interruption."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tenfold.apps.prover.errors import InputError
from tenfold.apps.prover.result import Found
from tenfold.apps.prover.settings import Settings


@dataclass(frozen=True, slots=True)
class Journal:
    """A file with a line for the settings and a line for each query done, in order."""

    path: Path
    done: tuple[Found, ...]

    @staticmethod
    def open(path: Path, settings: Settings, queries: int) -> Journal:
        """The journal of a run; one that was begun is read, up to a line cut short."""
        head = json.dumps({"settings": settings.as_dict(), "queries": queries}, sort_keys=True)
        if not path.exists():
            path.write_text(head + "\n", encoding="utf-8")
            return Journal(path, ())
        lines = path.read_text(encoding="utf-8").split("\n")
        if lines[0] != head:
            raise InputError(
                f"{path} was begun with other settings", fix="give another file, or remove it"
            )
        whole = lines[1:-1]  # what follows the last line's end was cut short
        path.write_text("".join(f"{line}\n" for line in (head, *whole)), encoding="utf-8")
        return Journal(path, tuple(Found.of_list(json.loads(line)) for line in whole))

    def write(self, found: Found) -> None:
        """One more query."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found.as_list()) + "\n")
