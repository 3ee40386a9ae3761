"""A clock for a busy machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter_ns


def clock() -> Callable[[], int]:
    """Nanoseconds, without those that this thread spent waiting for a processor."""
    try:
        told = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    except OSError:
        return perf_counter_ns
    return lambda: perf_counter_ns() - int(os.pread(told, 99, 0).split()[1])
