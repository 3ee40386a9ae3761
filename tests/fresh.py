"""A process that knows nothing: no plans, and no code of kernels."""

from __future__ import annotations

import pytest

from tenfold.backends.cpu.run import kernels
from tenfold.cache import plans
from tenfold.promote.background import submit, waiting


def settle() -> None:
    """Wait until nothing is left to do in the background, of earlier tests say."""
    submit(lambda: None).done.wait(60)
    while waiting():
        submit(lambda: None).done.wait(60)


def forget_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the code of kernels forgotten with plans, now and whenever these are cleared."""
    settle()

    def forget() -> None:
        kernels._known.clear()
        kernels._named.clear()
        type(plans).clear(plans)

    monkeypatch.setattr(plans, "clear", forget)
    plans.clear()
