"""Progress: how far a run has come, as it is told to whoever watches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """A stage of a run, and how far it has come."""

    stage: str  # reading, closing, checking, ranking (in a closure) or searching (by rollout)
    done: int = 0  # facts of a closure, or queries
    total: int | None = None  # queries in all; None: nobody knows
    height: int | None = None  # of a closure so far
    kept: bool = False  # whether a run that is stopped now goes on from here


Progress = Callable[[Event], None]
