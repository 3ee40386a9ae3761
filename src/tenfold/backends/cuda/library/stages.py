"""Routines of several stages: functions of ours that lay arrays out, and calls of libraries between
them, with scratch memory in parts."""

from __future__ import annotations

from collections.abc import Callable

from tenfold.backends.cuda.library.laying import Laying, Place, laid
from tenfold.backends.cuda.library.routine import GpuRoutine, LibraryCall, RoutineLaunch
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import Fragment, merged

_ALIGN = 256  # of parts of scratch memory


class Stages:
    """A routine on its way, with so many inputs and outputs."""

    def __init__(self, arrays: int) -> None:
        self.arrays = arrays
        self._texts: dict[str, Callable[[CudaTarget], Fragment]] = {}
        self._launches: list[RoutineLaunch | LibraryCall] = []
        self._scratch = 0

    def room(self, nbytes: int) -> Place:
        """A part of scratch memory."""
        made = Place(self.arrays, self._scratch)
        self._scratch += -(-nbytes // _ALIGN) * _ALIGN
        return made

    def lay(
        self,
        how: Laying,
        source: Place,
        target: Place,
        shape: tuple[int, int, int],
        *,
        last: int = -1,
        factor: float = 1.0,
        apart: tuple[int, int] | None = None,
    ) -> None:
        """Copy elements, as `laid` does."""
        how = how.of(*shape[1:])
        self.launch(laid(how, source, target, shape, last, factor, apart), how.text)

    def launch(self, one: RoutineLaunch, text: Callable[[CudaTarget], Fragment]) -> None:
        self._texts[one.function] = text
        self._launches.append(one)

    def call(self, one: LibraryCall) -> None:
        self._launches.append(one)

    def routine(self, checks: bool = False) -> GpuRoutine:
        texts = dict(self._texts)

        def text(target: CudaTarget) -> Fragment:
            return merged(one(target) for one in texts.values())

        return GpuRoutine(text, " ".join(texts), tuple(self._launches), self._scratch, checks)
