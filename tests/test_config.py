"""Settings of the process."""

from __future__ import annotations

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
