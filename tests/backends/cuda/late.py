"""A simulated GPU that does nothing before it has to: what is asked for in a stream is done when
somebody waits for that stream, or for one that follows it. So whoever touches memory too early, or
gives it away too early, is found out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.backends.cuda.recording import Recording
from tests.backends.cuda.simulated import Array, SimulatedGpu, SimulatedGraph


class LateGpu(SimulatedGpu):
    """Streams are numbers from 1 on; `waited` are those that the host waited for."""

    def __init__(self) -> None:
        super().__init__(races=False)
        self.count = 1
        self.asked: dict[int, list[Callable[[], None]]] = defaultdict(list)
        self.done: dict[int, int] = defaultdict(int)
        self.waited: list[int] = []

    def stream(self) -> int:
        self.count += 1
        return self.count

    @property
    def main(self) -> int:
        return 1

    def ask(self, stream: int, work: Callable[[], None]) -> None:
        self.asked[stream].append(work)

    def run(self, stream: int, until: int) -> None:
        while self.done[stream] < until:
            work = self.asked[stream][self.done[stream]]
            self.done[stream] += 1
            work()

    def wait(self, stream: Any) -> None:
        self.waited.append(stream)
        self.run(stream, len(self.asked[stream]))

    def idle(self, stream: Any) -> bool:
        self.wait(stream)
        return True

    def follow(self, stream: Any, other: Any) -> None:
        until = len(self.asked[other])
        self.ask(stream, lambda: self.run(other, until))

    def settle(self) -> None:
        for stream in list(self.asked):
            self.run(stream, len(self.asked[stream]))

    def free(self, address: int) -> None:
        self.settle()
        super().free(address)

    def upload(self, address: int, array: Array, stream: Any) -> None:
        given, early = np.array(array), super().upload
        self.ask(stream, lambda: early(address, given, stream))

    def download(self, array: Array, address: int, stream: Any) -> None:
        early = super().download
        self.ask(stream, lambda: early(array, address, stream))

    def copy(self, target: int, source: int, nbytes: int, stream: Any) -> None:
        early = super().copy
        self.ask(stream, lambda: early(target, source, nbytes, stream))

    def launch(
        self, function: Any, blocks: int, threads: int, words: Sequence[bytes | int], stream: Any
    ) -> None:
        early = super().launch
        self.ask(stream, lambda: early(function, blocks, threads, words, stream))

    def instantiate(self, recording: Recording, places: Sequence[int]) -> LateGraph:
        return LateGraph(self, recording, places)


class LateGraph(SimulatedGraph):
    """A graph that is launched late, on the places that it had then."""

    def __init__(self, gpu: LateGpu, recording: Recording, places: Sequence[int]) -> None:
        super().__init__(gpu, recording, places)
        self.late = gpu
        self.gpu = _Now(gpu)  # type: ignore[assignment]

    def launch(self, stream: Any) -> None:
        places, early = self.places, super().launch

        def work() -> None:
            now, self.places = self.places, places
            early(stream)
            self.places = now

        self.late.ask(stream, work)


class _Now:
    """The GPU, whose nodes are run at once."""

    def __init__(self, gpu: LateGpu) -> None:
        self._gpu = gpu

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gpu, name)

    def launch(self, *args: Any) -> None:
        SimulatedGpu.launch(self._gpu, *args)

    def copy(self, *args: Any) -> None:
        SimulatedGpu.copy(self._gpu, *args)
