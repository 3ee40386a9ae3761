"""How many threads a process may use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tenfold as tn
from tenfold.backends.cpu.threads import limits
from tenfold.backends.cpu.threads.limits import MOST, quota, thread_limit, usable_processors

CGROUP, TOP = "proc/self/cgroup", "sys/fs/cgroup"


def system(root: Path, files: dict[str, str]) -> str:
    """A folder with the system's files."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return str(root)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("max 100000", None), ("150000 100000", 2), ("200000 100000", 2), ("5000 100000", 1)],
)
def test_a_quota_of_version_2(tmp_path: Path, text: str, expected: int | None) -> None:
    root = system(tmp_path, {CGROUP: "0::/", f"{TOP}/cpu.max": text})
    assert quota(root) == expected


def test_the_least_of_all_groups_above(tmp_path: Path) -> None:
    root = system(
        tmp_path,
        {
            CGROUP: "0::/user/job",
            f"{TOP}/user/job/cpu.max": "800000 100000",
            f"{TOP}/user/cpu.max": "300000 100000",
            f"{TOP}/cpu.max": "max 100000",
        },
    )
    assert quota(root) == 3


@pytest.mark.parametrize(("text", "expected"), [("-1", None), ("250000", 3)])
def test_a_quota_of_version_1(tmp_path: Path, text: str, expected: int | None) -> None:
    root = system(
        tmp_path,
        {
            CGROUP: "7:memory:/box\n4:cpu,cpuacct:/box\n1:name=systemd:/x",
            f"{TOP}/cpu/box/cpu.cfs_quota_us": text,
            f"{TOP}/cpu/box/cpu.cfs_period_us": "100000",
        },
    )
    assert quota(root) == expected


def test_a_group_that_only_the_host_knows(tmp_path: Path) -> None:
    """In a container the name may lead nowhere: the top of the tree is then the group's own."""
    root = system(
        tmp_path,
        {
            CGROUP: "4:cpu,cpuacct:/docker/f00",
            f"{TOP}/cpu,cpuacct/cpu.cfs_quota_us": "200000",
            f"{TOP}/cpu,cpuacct/cpu.cfs_period_us": "100000",
        },
    )
    assert quota(root) == 2


@pytest.mark.parametrize("text", ["", "nonsense", "0::/", "4:cpu:/a", "100000 0"])
def test_what_is_not_there_is_no_limit(tmp_path: Path, text: str) -> None:
    root = system(tmp_path, {CGROUP: text, f"{TOP}/cpu.max": "100000 0"})
    assert quota(root) is None


def test_the_least_of_affinity_and_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    for processors, granted, expected in ((8, None, 8), (8, 3, 3), (2, 64, 2), (1, 1, 1)):
        monkeypatch.setattr(limits, "_affinity", lambda n=processors: n)
        monkeypatch.setattr(limits, "quota", lambda n=granted: n)
        assert usable_processors() == expected


def test_a_setting_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tn.config, "threads", 5)
    assert thread_limit() == 5
    monkeypatch.setattr(tn.config, "threads", 10**6)
    assert thread_limit() == MOST
    monkeypatch.setattr(tn.config, "threads", None)
    assert thread_limit() == usable_processors()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_the_affinity_of_a_process_is_seen() -> None:
    script = (
        "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
        "from tenfold.backends.cpu.threads.limits import thread_limit; print(thread_limit())"
    )
    clean = {k: v for k, v in os.environ.items() if k != "TENFOLD_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=clean, check=True, capture_output=True, text=True
    )
    assert done.stdout == "1\n"
