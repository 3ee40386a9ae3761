from __future__ import annotations

from collections.abc import Iterator

import pytest

from tenfold.backends import registry
from tenfold.cache import plans
from tests.backends.cuda.entry.answering import FailingGpu, Python
from tests.backends.cuda.simulated import SimulatedPlace


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FailingGpu]:
    found = FailingGpu()
    records = {**registry._records, "cuda": SimulatedPlace(found).record}
    monkeypatch.setattr(registry, "_records", records)
    plans.clear()
    yield found
    plans.clear()


@pytest.fixture
def python(monkeypatch: pytest.MonkeyPatch) -> Python:
    return Python(monkeypatch)
