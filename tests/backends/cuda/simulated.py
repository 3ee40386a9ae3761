"""A GPU that is simulated: memory and kernels as on one, threads by the interpreter in `simt`.

Kernels are run from their LLVM IR, with races, bounds and barriers watched; the host's side (plans,
programs, checks) is the backend's own.
"""

from __future__ import annotations

import random
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import simt

from tenfold.backends.backend import Backend
from tenfold.backends.cuda import compile as compiling
from tenfold.backends.cuda.assemble import ModuleCode
from tenfold.backends.cuda.backend import Place
from tenfold.backends.cuda.entry.launch import Launch
from tenfold.backends.cuda.library.cublas import Cublas, Multiplier
from tenfold.backends.cuda.library.cufft import Cufft, Transformer
from tenfold.backends.cuda.library.cusolver import Cusolver, Solver
from tenfold.backends.cuda.recording import (
    REPEATED,
    ConditionalNode,
    CopyNode,
    Handle,
    KernelNode,
    LibraryNode,
    Node,
    Recording,
    place_of,
)
from tenfold.backends.cuda.target import EXACT, FAST, CudaTarget, named
from tenfold.backends.llvm.target import llvmlite_version
from tests.backends.cuda.fake_cublas import FakeCublas
from tests.backends.cuda.fake_cufft import FakeCufft
from tests.backends.cuda.fake_cusolver import FakeCusolver
from tests.backends.cuda.native_launch import native_launch

Array = np.ndarray[Any, Any]


class SimulatedModule:
    def __init__(self, text: str) -> None:
        self.module = simt.parse(text)

    def function(self, name: str) -> tuple[Any, str]:
        return self.module, name


class SimulatedGpu:
    """One simulated GPU. All that is asked of it is done at once."""

    def __init__(
        self,
        chip: str = "sm_90",
        races: bool = True,
        cublas: FakeCublas | None = None,
        cufft: FakeCufft | None = None,
        cusolver: FakeCusolver | None = None,
    ) -> None:
        """With "sm_90+fast" for a chip, its own exp and tanh are used."""
        self.driver, self.number = 13000, 0
        self.memory = simt.Memory()
        self.library: Multiplier | None = None
        self.fourier: Transformer | None = None
        versions = dict[str, str]()
        if cublas is not None:
            cublas.memory = self.memory
            self.library = Multiplier(Cublas(cublas))
            versions["cublas"] = self.library.library.version
        if cufft is not None:
            cufft.memory = self.memory
            self.fourier = Transformer(Cufft(cufft))
            versions["cufft"] = self.fourier.library.version
        self.linear: Solver | None = None
        if cusolver is not None:
            cusolver.memory = self.memory
            self.linear = Solver(Cusolver(cusolver))
            versions["cusolver"] = self.linear.library.version
        self.target: CudaTarget = named(chip, llvmlite_version(), **versions)
        self.races = races
        self.launches: list[tuple[str, int, int]] = []
        self.blocks: list[weakref.ref[_Pinned]] = []
        self.native: list[str] = []  # what native code asked the driver for

    def home(self, address: int) -> int:
        return self.number

    def alloc(self, nbytes: int) -> int:
        return self.memory.alloc(max(nbytes, 16))

    def free(self, address: int) -> None:
        self.memory.free(address)

    def pinned(self, nbytes: int) -> tuple[Array, int]:
        address = self.alloc(nbytes)
        self.memory.fill(address, nbytes, 0)
        made = _Pinned(self.memory, address, nbytes)
        self.blocks.append(weakref.ref(made))
        return made, address  # type: ignore[return-value]

    def fault_word(self) -> _FaultWord:
        return _FaultWord(self.memory, self.pinned(4)[0])

    def result_block(self, nbytes: int) -> Array:
        return np.empty(nbytes, np.uint8)

    def view(self, block: Array, address: int, start: int, type: Any) -> Array:
        return _PinnedView(self.memory, address, type)  # type: ignore[return-value]

    def idle(self, stream: Any) -> bool:
        return True

    def stream(self) -> int:
        return 0

    @property
    def main(self) -> int:
        return 0

    def follow(self, stream: Any, other: Any) -> None:
        pass

    def captured(self, stream: Any) -> bool:
        return False

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
        self, function: Any, blocks: int, threads: int, words: Sequence[bytes | int], stream: Any
    ) -> None:
        if not blocks:
            return
        module, name = function
        self.launches.append((name, blocks, threads))
        args = [w if isinstance(w, int) else int.from_bytes(w, "little") for w in words]
        simt.launch(
            module,
            name,
            (blocks, 1, 1),
            (threads, 1, 1),
            args,
            self.memory,
            races=self.races,
            approximate=self.target.maths == FAST,
        )

    def instantiate(self, recording: Recording, places: Sequence[int]) -> SimulatedGraph:
        return SimulatedGraph(self, recording, places)

    def wait(self, stream: Any) -> None:
        pass

    def settle(self) -> None:
        pass

    def multiplier(self) -> Multiplier:
        assert self.library is not None
        return self.library

    def transformer(self) -> Transformer:
        assert self.fourier is not None
        return self.fourier

    def solver(self) -> Solver:
        assert self.linear is not None
        return self.linear


class SimulatedGraph:
    """A graph whose nodes run one after another, in any order that keeps what they wait for: one
    that waits for too little gives other results sooner or later. The order is drawn anew for
    each launch and each round, repeatably."""

    def __init__(self, gpu: SimulatedGpu, recording: Recording, places: Sequence[int]) -> None:
        self.gpu, self.recording, self.places = gpu, recording, list(places)
        self.first = len(gpu.memory.conditions)
        for n in range(recording.handles):
            gpu.memory.conditions[self.first + n] = 0
        self.random = random.Random(recording.kernels)

    def point(self, places: Sequence[int]) -> None:
        self.places = list(places)

    def launch(self, stream: Any) -> None:
        work: list[tuple[Recording, list[int]] | ConditionalNode] = []
        work.append((self.recording, self.order(self.recording)))
        while work:
            item = work[-1]
            if isinstance(item, ConditionalNode):  # it was run, or is to be run for the first time
                if not self.gpu.memory.conditions[self.first + item.handle]:
                    work.pop()
                else:
                    work.append((item.bodies[0], self.order(item.bodies[0])))
                continue
            recording, left = item
            if not left:
                work.pop()
                continue
            node = recording.nodes[left.pop(0)]
            if isinstance(node, ConditionalNode) and node.kind == REPEATED:
                work.append(node)
            elif isinstance(node, ConditionalNode):
                which = self.gpu.memory.conditions[self.first + node.handle]
                work.append((node.bodies[which], self.order(node.bodies[which])))
            else:
                self.run(node)

    def native(self, rows: Sequence[int | None], stream: int) -> Launch | None:
        return native_launch(self, rows, stream)

    def order(self, recording: Recording) -> list[int]:
        """The numbers of nodes, each after all that it waits for."""
        waits = [len(node.after) for node in recording.nodes]
        followers: list[list[int]] = [[] for _ in recording.nodes]
        for n, node in enumerate(recording.nodes):
            for before in node.after:
                followers[before].append(n)
        ready, found = [n for n, count in enumerate(waits) if not count], list[int]()
        while ready:
            n = ready.pop(self.random.randrange(len(ready)))
            found.append(n)
            for other in followers[n]:
                waits[other] -= 1
                if not waits[other]:
                    ready.append(other)
        assert len(found) == len(recording.nodes), "nodes wait for each other"
        return found

    def run(self, node: Node) -> None:
        match node:
            case KernelNode():
                words = [self.word(word) for word in node.words]
                self.gpu.launch(node.function, node.blocks, node.threads, words, 0)
            case CopyNode():
                target, source = self.address(node.target), self.address(node.source)
                self.gpu.copy(target, source, node.nbytes, 0)
            case LibraryNode():
                node.call(self.gpu, 0, [self.address(place) for place in node.places])
            case _:
                raise AssertionError(f"not simulated: {node}")

    def word(self, word: Any) -> bytes | int:
        if isinstance(word, Handle):
            return self.first + word.number
        return word if isinstance(word, bytes) else self.address(word)

    def address(self, address: int) -> int:
        found = place_of(address)
        return address if found is None else self.places[found[0]] + found[1]


class _Pinned:
    """Memory of the host that kernels write to. Native code reads and writes bytes of the process,
    which become those of the simulated memory when a graph is launched, and these when it is waited
    for."""

    def __init__(self, memory: simt.Memory, address: int, nbytes: int) -> None:
        self.memory, self.address, self.nbytes = memory, address, nbytes
        self.bytes = np.zeros(max(nbytes, 1), np.uint8)
        self.__array_interface__ = self.bytes.__array_interface__

    def send(self) -> None:
        self.memory.write(self.address, self.bytes[: self.nbytes])

    def bring(self) -> None:
        self.bytes[: self.nbytes] = self.memory.read(
            self.address, np.dtype(np.uint8), (self.nbytes,)
        )


class _FaultWord:
    """A word of such memory."""

    def __init__(self, memory: simt.Memory, block: Any) -> None:
        self.memory, self.address, self._block = memory, block.address, block
        self.pinned = block.bytes.__array_interface__["data"][0]

    @property
    def value(self) -> int:
        return int(self.memory.read(self.address, np.dtype(np.uint32), (1,))[0])

    @value.setter
    def value(self, value: int) -> None:
        self.memory.write(self.address, np.array([value], np.uint32))


class _PinnedView:
    """An array in memory of the host that kernels read and write."""

    def __init__(self, memory: simt.Memory, address: int, type: Any) -> None:
        self.memory, self.address, self.type = memory, address, type

    def __setitem__(self, key: Any, value: Array) -> None:
        if self.type.nbytes:
            self.memory.write(self.address, np.asarray(value, self.type.dtype))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        if not self.type.nbytes:
            return np.empty(self.type.shape, self.type.dtype)
        raw = self.memory.read(self.address, np.dtype(np.uint8), (self.type.nbytes,))
        return raw.view(self.type.dtype).reshape(self.type.shape)


class SimulatedPlace(Place):
    """Where programs of a simulated GPU run."""

    def __init__(self, gpu: SimulatedGpu, maths: str = EXACT) -> None:
        self.gpu = gpu
        super().__init__(0, maths)

    def device(self) -> Any:
        return self.gpu

    def _uninstalled(self) -> None:
        """It needs no driver."""

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
