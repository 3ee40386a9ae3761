"""Counts of what happened in this process: traces, plans, kernels, hits and misses, seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from threading import local
from time import perf_counter
from typing import Protocol

from tenfold.locks import Lock

_lock = Lock()
_counts: Counter[str] = Counter()
_seconds: Counter[str] = Counter()

COUNTS = (
    "traces",
    "plans",
    "outlines",  # of plans and of the scopes in them, made in full
    "templates",  # of outlines: for other sizes none are made
    "kernels_compiled",
    "kernels_reused",
    "loops_compiled",  # to functions of their own
    "cache_hits",
    "cache_misses",
    "slow_calls",  # that native code did not answer by itself
    "checks",  # begun or gone on with while a call waited
    "known_wirings",  # plans that answered before their own check
    "memory_reused",  # large results that were made in memory of earlier ones
    "memory_mapped",  # and in memory fresh from the system
    "memory_kept",  # bytes of it that are kept now, for results to come
)
STAGES = ("trace", "plan", "compile", "load")


def count(name: str, number: int = 1) -> None:
    """Add to a count."""
    with _lock:
        _counts[name] += number


class NativeCounts(Protocol):
    """What native code counts by itself."""

    def counts(self) -> Mapping[str, int]: ...

    def reset(self) -> None: ...


native_counts: list[NativeCounts] = []  # where there is some

_inner = local()  # seconds of blocks within the one at hand


@contextmanager
def timed(stage: str) -> Generator[None]:
    """Add the time that this block takes to a stage, but for that of blocks within it."""
    start, before = perf_counter(), getattr(_inner, "seconds", 0.0)
    _inner.seconds = 0.0
    try:
        yield
    finally:
        taken = perf_counter() - start
        with _lock:
            _seconds[stage] += taken - _inner.seconds
        _inner.seconds = before + taken


class Stats:
    """`tn.stats()` gives the counts and the seconds by stage; `tn.stats.reset()` starts anew.

    >>> import numpy as np, tenfold as tn
    >>> tn.stats.reset()
    >>> y = tn.jit(lambda x: x * 2 + 1)(np.ones(3))
    >>> tn.stats()["traces"], tn.stats()["plans"]
    (1, 1)
    """

    def __call__(self) -> dict[str, object]:
        with _lock:
            found: dict[str, object] = {name: _counts[name] for name in COUNTS}
            for native in native_counts:
                found.update(native.counts())
            found["seconds"] = {stage: float(_seconds[stage]) for stage in STAGES}
        return found

    def reset(self) -> None:
        with _lock:
            _counts.clear()
            _seconds.clear()
            for native in native_counts:
                native.reset()


stats = Stats()
