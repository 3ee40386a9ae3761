"""What a process does once, whatever it runs: find its target, have the gate and the steps made."""

from __future__ import annotations

from contextlib import suppress
from functools import cache

from tenfold.backends.cpu.entry.bind import gate
from tenfold.backends.cpu.entry.ndarray import supported
from tenfold.backends.cpu.run.fixed import GATE, compile_ahead, fixed
from tenfold.backends.cpu.run.kernels import steps_image
from tenfold.backends.cpu.target import host_target
from tenfold.errors import TenfoldError
from tenfold.version import versions


@cache
def prepare() -> None:
    """Do it now, or begin it. What fails here fails again, and is reported, where it is needed."""
    target = host_target()
    with suppress(TenfoldError, ImportError, OSError):
        ready = compile_ahead(target)
        versions()
        supported()
        if ready:
            gate(lambda text: fixed(GATE, target))
            steps_image(target, False)
