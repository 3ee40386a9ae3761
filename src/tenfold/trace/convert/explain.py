"""What became of a function's control flow, line by line."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import field

from tenfold.frozen import mutable


@mutable
class Explanation:
    """What was done at each line, in the order it was first done."""

    lines: dict[tuple[str, int, str], None] = field(default_factory=dict)

    def note(self, file: str, line: int, text: str) -> None:
        self.lines[file, line, text] = None

    def show(self, name: str) -> str:
        """The lines as text, a file after the other."""
        if not self.lines:
            return f"{name}: no control flow was met; call it first, with control='convert'"
        shown = []
        for file in dict.fromkeys(file for file, _, _ in self.lines):
            shown.append(f"{name}, {os.path.basename(file)}")
            own = sorted((line, text) for f, line, text in self.lines if f == file)
            shown += [f"  line {line}: {text}" for line, text in own]
        return "\n".join(shown)


class _Local(threading.local):
    explanation: Explanation | None = None


_local = _Local()


def note(file: str, line: int, text: str) -> None:
    """Note what was done at a line, where somebody asks."""
    if _local.explanation is not None:
        _local.explanation.note(file, line, text)


@contextmanager
def tried() -> Generator[None]:
    """Forget what is noted in an attempt that fails."""
    found = _local.explanation
    before = dict(found.lines) if found is not None else {}
    try:
        yield
    except BaseException:
        if found is not None:
            found.lines = before
        raise


@contextmanager
def explained(explanation: Explanation) -> Generator[None]:
    """Have what is done noted here."""
    before, _local.explanation = _local.explanation, explanation
    try:
        yield
    finally:
        _local.explanation = before
