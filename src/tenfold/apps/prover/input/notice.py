"""Notices: what is odd in the input without being wrong, said and never guessed around."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Notice:
    """One odd thing: its kind, what it is, and the file and line."""

    # duplicate, overlap, unknown-predicate, unknown-constant, constant, missing, empty, columns,
    # left-out, weight, mined
    kind: str
    message: str
    where: str | None = None

    def __str__(self) -> str:
        return f"{self.message}\n  at {self.where}" if self.where else self.message
