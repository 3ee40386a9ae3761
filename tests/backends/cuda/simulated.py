"""A GPU that is simulated: memory and kernels as on one, threads by the interpreter in `simt`.

Kernels are run from their LLVM IR, with races, bounds and barriers watched; the host's side (plans,
programs, checks) is the backend's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import simt

from tenfold.backends.backend import Backend
from tenfold.backends.cuda import compile as compiling
from tenfold.backends.cuda.assemble import ModuleCode
from tenfold.backends.cuda.backend import Place
from tenfold.backends.cuda.target import EXACT, CudaTarget, named
from tenfold.backends.llvm.target import llvmlite_version

Array = np.ndarray[Any, Any]


class SimulatedModule:
    def __init__(self, text: str) -> None:
        self.module = simt.parse(text)

    def function(self, name: str) -> tuple[Any, str]:
        return self.module, name


class SimulatedGpu:
    """One simulated GPU. All that is asked of it is done at once."""

    def __init__(self, chip: str = "sm_90", races: bool = True) -> None:
        self.target: CudaTarget = named(chip, llvmlite_version())
        self.driver, self.number = 13000, 0
        self.memory = simt.Memory()
        self.races = races
        self.launches: list[tuple[str, int, int]] = []

    def home(self, address: int) -> int:
        return self.number

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

    def load(self, codes: Sequence[ModuleCode]) -> list[SimulatedModule]:
        return [SimulatedModule(one.text or printed[one.ptx]) for one in codes]

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


class _Pinned:
    """Memory of the host that kernels write to."""

    def __init__(self, memory: simt.Memory, address: int, nbytes: int) -> None:
        self.memory, self.address, self.nbytes = memory, address, nbytes

    def any(self) -> bool:
        return bool(self.memory.read(self.address, np.dtype(np.uint8), (self.nbytes,)).any())

    def __setitem__(self, key: Any, value: int) -> None:
        self.memory.fill(self.address, self.nbytes, value)


class SimulatedPlace(Place):
    """Where programs of a simulated GPU run."""

    def __init__(self, gpu: SimulatedGpu, maths: str = EXACT) -> None:
        self.gpu = gpu
        super().__init__(0, maths)

    def device(self) -> Any:
        return self.gpu

    def runs(self) -> tuple[int, int]:
        return self.gpu.target.capability, self.gpu.driver


def simulated(gpu: SimulatedGpu, maths: str = EXACT) -> Backend:
    """The CUDA backend with a simulated GPU."""
    return SimulatedPlace(gpu, maths).record


# A simulated GPU runs no PTX: what LLVM IR it was printed from is remembered.
printed: dict[str, str] = {}


def remember_printed(monkeypatch: Any) -> None:
    """Have modules that are read from files found by their PTX."""
    real = compiling.to_ptx

    def to_ptx(text: str, target: CudaTarget) -> str:
        made = real(text, target)
        printed[made] = text
        return made

    monkeypatch.setattr(compiling, "to_ptx", to_ptx)
