"""Settings of the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tenfold as tn


@pytest.mark.parametrize("value", ["off", "OFF", "0", ""])
def test_the_cache_is_off_as_in_the_environment(
    value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tn.config, "cache", value)
    assert tn.config.cache is None
    assert tn.jit(lambda x: x + 1)(np.zeros(3)).tolist() == [1, 1, 1]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [0, -1, 2.0, "2", True])
def test_threads_are_counted_from_one(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(tn.errors.ValueProblem, match="threads is"):
        monkeypatch.setattr(tn.config, "threads", value)


@pytest.mark.parametrize(
    ("value", "expected"), [("", "None"), ("3", "3"), ("0", "give"), ("two", "give")]
)
def test_the_environment_limits_threads(value: str, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import tenfold as tn; print(tn.config.threads)"],
        env={**os.environ, "TENFOLD_THREADS": value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == (expected != "give")
    assert expected in (done.stdout + done.stderr)
