"""Shaders that are compiled while a plan is made.

A kernel is written as soon as it is lowered, as if all its buffers began where they can be bound:
where they lie is not known yet, and few begin elsewhere. A few threads compile what is written; the
library gives Python's lock up meanwhile. They end when nothing is left.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tenfold.backends.webgpu.library.routine import routine_of
from tenfold.locks import Lock, start
from tenfold.types import TensorType

if TYPE_CHECKING:
    from tenfold.backends.webgpu.run.kernels import Kernels, KernelText
    from tenfold.backends.webgpu.shader import Shader
    from tenfold.kernel.ir.sized import SizedKernel

_THREADS = 8  # at most


class Ahead:
    """Work that a few threads do, one piece after the other. What fails there fails again, and is
    reported, where it is needed."""

    def __init__(self) -> None:
        self._left: deque[Callable[[], object]] = deque()
        self._most = min(os.cpu_count() or 1, _THREADS)
        self._at_work = 0
        self._lock = Lock()

    def add(self, work: Callable[[], object]) -> None:
        with self._lock:
            self._left.append(work)
            if self._at_work == self._most:
                return
            with suppress(RuntimeError):  # no more threads: who needs it does it himself
                start(self._work, "tenfold-webgpu")
                self._at_work += 1

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._left:
                    self._at_work -= 1
                    return
                work = self._left.popleft()
            with suppress(Exception):
                work()


class Request:
    """The shaders of a plan that is being made."""

    def __init__(self, kernels: Kernels) -> None:
        kernels.device.enter()
        self._kernels = kernels
        self._asked: set[SizedKernel] = set()
        self._dropped = False
        self.texts: list[KernelText] = []

    def add(self, call: SizedKernel) -> None:
        """Have one more kernel compiled, unless it is there."""
        if call in self._asked:
            return
        self._asked.add(call)
        made = self._kernels.written(call, self.texts)
        if made is not None and made not in self.texts:
            self.texts.append(made)
            self._begin(made.shader)

    def add_routine(
        self, name: str, types: tuple[TensorType, ...], attributes: Mapping[str, Any]
    ) -> None:
        """Have the shader of a routine compiled, unless it is there."""
        found = routine_of(name, types, attributes, self._kernels.target)
        if found is not None:
            self._begin(found.shader)

    def _begin(self, shader: Shader) -> None:
        def work() -> None:
            if not self._dropped:
                self._kernels.routine(shader)

        self._kernels.ahead.add(work)

    def drop(self) -> None:
        """Have no more compiled: the plan was not made."""
        self._dropped = True
