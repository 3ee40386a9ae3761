"""A GPU that is simulated: memory and kernels as on one, threads by the interpreter in `simt`.

Kernels are run from their LLVM IR, with races, bounds and barriers watched; the host's side (plans,
programs, checks) is the backend's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import simt

from tenfold.backends.backend import Backend
from tenfold.backends.cuda import backend as cuda
from tenfold.backends.cuda.library.cublas import Cublas, Multiplier
from tenfold.backends.cuda.target import CudaTarget, named
from tenfold.backends.llvm.target import llvmlite_version
from tenfold.plan import Plan
from tests.backends.cuda.fake_cublas import FakeCublas

Array = np.ndarray[Any, Any]


class SimulatedModule:
    def __init__(self, text: str) -> None:
        self.module = simt.parse(text)

    def function(self, name: str) -> tuple[Any, str]:
        return self.module, name


class SimulatedGpu:
    """One simulated GPU. All that is asked of it is done at once."""

    def __init__(
        self, chip: str = "sm_90", races: bool = True, cublas: FakeCublas | None = None
    ) -> None:
        self.memory = simt.Memory()
        self.library: Multiplier | None = None
        version = ""
        if cublas is not None:
            cublas.memory = self.memory
            self.library = Multiplier(Cublas(cublas))
            version = self.library.library.version
        self.target: CudaTarget = named(chip, llvmlite_version(), cublas=version)
        self.races = races
        self.launches: list[tuple[str, int, int]] = []

    def alloc(self, nbytes: int) -> int:
        return self.memory.alloc(max(nbytes, 16))

    def free(self, address: int) -> None:
        self.memory.free(address)

    def pinned(self, nbytes: int) -> tuple[Array, int]:
        address = self.alloc(nbytes)
        self.memory.fill(address, nbytes, 0)
        return _Pinned(self.memory, address, nbytes), address  # type: ignore[return-value]

    def stream(self) -> int:
        return 0

    def upload(self, address: int, array: Array, stream: Any) -> None:
        if array.nbytes:
            self.memory.write(address, np.ascontiguousarray(array).reshape(-1).view(np.uint8))

    def download(self, array: Array, address: int, stream: Any) -> None:
        if array.nbytes:
            raw = self.memory.read(address, np.dtype(np.uint8), (array.nbytes,))
            array.reshape(-1).view(np.uint8)[...] = raw

    def copy(self, target: int, source: int, nbytes: int, stream: Any) -> None:
        if nbytes:
            self.memory.write(target, self.memory.read(source, np.dtype(np.uint8), (nbytes,)))

    def load(self, text: str, image: bytes | None) -> SimulatedModule:
        return SimulatedModule(text)

    def launch(
        self, function: Any, blocks: int, threads: int, words: Sequence[bytes], stream: Any
    ) -> None:
        if not blocks:
            return
        module, name = function
        self.launches.append((name, blocks, threads))
        args = [int.from_bytes(word, "little") for word in words]
        simt.launch(
            module, name, (blocks, 1, 1), (threads, 1, 1), args, self.memory, races=self.races
        )

    def wait(self, stream: Any) -> None:
        pass

    def multiplier(self) -> Multiplier:
        assert self.library is not None
        return self.library


class _Pinned:
    """Memory of the host that kernels write to."""

    def __init__(self, memory: simt.Memory, address: int, nbytes: int) -> None:
        self.memory, self.address, self.nbytes = memory, address, nbytes

    def any(self) -> bool:
        return bool(self.memory.read(self.address, np.dtype(np.uint8), (self.nbytes,)).any())

    def __setitem__(self, key: Any, value: int) -> None:
        self.memory.fill(self.address, self.nbytes, value)


def simulated(gpu: SimulatedGpu) -> Backend:
    """The CUDA backend with a simulated GPU."""

    def bind(plan: Plan, callbacks: Any = None, **options: Any) -> Any:
        return cuda.bind_on(gpu, backend, plan, callbacks, options.get("strict", False))

    backend = replace(cuda.BACKEND, target=lambda: gpu.target, bind=bind, missing=lambda: None)
    return backend
