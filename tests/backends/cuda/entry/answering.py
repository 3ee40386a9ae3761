"""Functions whose calls native code answers, on a simulated GPU that can fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cuda.array import DeviceArray
from tenfold.backends.cuda.run.program import CudaProgram
from tests.backends.cuda.simulated import SimulatedGpu

X = np.arange(12, dtype=np.float32).reshape(3, 4)


class FailingGpu(SimulatedGpu):
    """A simulated GPU whose driver fails where native code asks for one of these."""

    def __init__(self) -> None:
        super().__init__(races=False)
        self.fails: set[str] = set()


class Python:
    """Counts calls that Python answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        for name in ("answer", "answer_kept"):
            real = getattr(CudaProgram, name)
            monkeypatch.setattr(CudaProgram, name, self._counted(real))

    def _counted(self, real: Any) -> Any:
        def call(*args: Any) -> Any:
            self.calls += 1
            return real(*args)

        return call


def there(values: Any) -> DeviceArray:
    made: DeviceArray = tn.device_put(values, "cuda")
    return made


def jitted(function: Any, *args: Any, **options: Any) -> Any:
    """A function whose calls with such arguments native code answers, NumPy's or the device's."""
    made = tn.jit(function, backend="cuda", **options)
    made(*args)
    assert made.ready(120)
    for _ in range(2):
        made(*args)
        made(*map(there, args))
    return made
