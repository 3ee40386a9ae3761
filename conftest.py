"""Traced arrays know NumPy's functions before any module is tested alone; no test meets plans of
another run unless it asks for a disk cache of its own, nor those of another test."""

import os

os.environ["TENFOLD_CACHE"] = "off"

import pytest

import tenfold.api  # noqa: F401
from tenfold.cache.memory import plans


@pytest.fixture(autouse=True)
def _no_plans() -> None:
    """What a test counts must not depend on which tests ran before it in this process."""
    plans.clear()
