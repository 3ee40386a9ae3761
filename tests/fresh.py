"""A process that knows nothing: no plans, and no code of kernels."""

from __future__ import annotations

import pytest

from tenfold.backends.cpu.run import kernels
from tenfold.cache import plans


def forget_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the code of kernels forgotten with plans, now and whenever these are cleared."""

    def forget() -> None:
        kernels._known.clear()
        kernels._named.clear()
        type(plans).clear(plans)

    monkeypatch.setattr(plans, "clear", forget)
    plans.clear()
