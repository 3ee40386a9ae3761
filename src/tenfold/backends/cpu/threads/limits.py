"""How many threads the process may use: its affinity and the quotas of its control groups, not the
number of processors that the machine has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache

from tenfold.config import config

MOST = 256  # threads of the pool, the caller among them


def thread_limit() -> int:
    """How many threads take part: what `tn.config.threads` says, else what the process may use."""
    return min(config.threads or usable_processors(), MOST)


def usable_processors() -> int:
    """The processors that this process may run on, as far as its quota of time goes round."""
    return max(1, min(_affinity(), quota() or MOST))


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def quota(root: str = "/") -> int | None:
    """The processors' worth of time that control groups grant, rounded up; None where they set no
    limit. `root` is where the system's files are.

    A group has at most what each group above it has. Version 2 says `200000 100000` in `cpu.max`,
    or `max`; version 1 has two files, and -1 for no limit.
    """
    shares = [share for folder in _groups(root) if (share := _share(folder)) is not None]
    return max(1, -int(-min(shares) // 1)) if shares else None


def _groups(root: str) -> Iterator[str]:
    """The folders of the process's groups and of those above them, in both versions."""
    for line in _read(f"{root}/proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if not controllers:
            top = f"{root}/sys/fs/cgroup"
        elif "cpu" in controllers.split(","):
            top = f"{root}/sys/fs/cgroup/{controllers}"
            if not os.path.isdir(top):
                top = f"{root}/sys/fs/cgroup/cpu"
        else:
            continue
        # In a container the name may be one that the host alone knows; the top is then its own.
        parts = [part for part in name.split("/") if part]
        for depth in range(len(parts), -1, -1):
            yield "/".join((top, *parts[:depth]))


def _share(folder: str) -> float | None:
    words = _read(f"{folder}/cpu.max").split()
    if not words:
        words = [
            *_read(f"{folder}/cpu.cfs_quota_us").split(),
            *_read(f"{folder}/cpu.cfs_period_us").split(),
        ]
    if len(words) != 2 or not all(word.isdigit() for word in words) or not int(words[1]):
        return None  # 'max', -1, or no such file
    return int(words[0]) / int(words[1])


def _read(file: str) -> str:
    try:
        with open(file, "rb") as opened:  # a text's decoder would be imported
            return opened.read().decode("ascii")
    except (OSError, ValueError):
        return ""
