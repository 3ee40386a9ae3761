"""One GPU: its memory, modules, streams and launches."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tenfold.backends.cuda.driver.library import Driver, driver, forked
from tenfold.backends.cuda.find import CUFFT, CUSOLVER, Shared, find_library, version_of
from tenfold.backends.cuda.library.cublas import Multiplier, find_cublas
from tenfold.backends.cuda.target import CudaTarget, target_on
from tenfold.backends.llvm.target import llvmlite_version
from tenfold.errors import DeviceProblem
from tenfold.types import TensorType

if TYPE_CHECKING:
    from tenfold.backends.cuda.assemble import ModuleCode
    from tenfold.backends.cuda.entry.launch import Launch
    from tenfold.backends.cuda.library.cufft import Transformer
    from tenfold.backends.cuda.library.cusolver import Solver
    from tenfold.backends.cuda.recording import Recording

Array = np.ndarray[Any, Any]
Argument = bytes | int  # of a kernel: raw, or an address

_MAJOR, _MINOR, _PROCESSORS, _L2 = 75, 76, 16, 38
_MAPPED = 2  # of pinned memory: kernels may touch it
_NON_BLOCKING = 1
_NO_TIMING = 2  # of an event
_ERROR_LOG, _ERROR_LOG_BYTES, _SAID = 5, 6, 4096  # of loading: options, and bytes for what is said
_ORDINAL = 9  # of a pointer: the number of its GPU
_NOT_READY = 600  # a status that is no error


class Launchable(Protocol):
    """A graph on a device."""

    def point(self, places: Sequence[int]) -> None:
        """Have the arrays that it touches lie elsewhere from now on."""
        ...

    def launch(self, stream: Any) -> None: ...

    def native(self, rows: Sequence[int | None], stream: Any) -> Launch | None:
        """Its launch in a stream by native code, if that can be: places are rows of a table, or
        stay where they are."""
        ...


class Module(Protocol):
    """Functions that were loaded."""

    def function(self, name: str) -> Any: ...


class FaultWord(Protocol):
    """A word of the host's memory that kernels set bits of where something is wrong."""

    value: int

    @property
    def address(self) -> int:
        """Where kernels find it."""
        ...

    @property
    def pinned(self) -> int:
        """Where it lies on the host."""
        ...


class Device(Protocol):
    """What programs ask of a device. Streams are numbers: what is asked for in one is done in
    order."""

    target: CudaTarget
    number: int  # among the GPUs of the machine

    def alloc(self, nbytes: int) -> int: ...

    def free(self, address: int) -> None: ...

    def home(self, address: int) -> int:
        """The number of the GPU whose memory this is."""
        ...

    def pinned(self, nbytes: int) -> tuple[Array, int]:
        """Bytes of the host that kernels may touch, and where these find them."""
        ...

    def fault_word(self) -> FaultWord: ...

    def result_block(self, nbytes: int) -> Array:
        """Bytes of the host that are fast to copy into."""
        ...

    def view(self, block: Array, address: int, start: int, type: TensorType) -> Array:
        """A part of pinned memory as an array; kernels find it at this address."""
        ...

    def stream(self) -> Any: ...

    @property
    def main(self) -> Any:
        """The stream that is for arrays which stay: calls and copies that nobody waits for are done
        in it, one after another."""
        ...

    def follow(self, stream: Any, other: Any) -> None:
        """Have what is asked for in a stream from now on come after all that was asked for in
        another so far."""
        ...

    def idle(self, stream: Any) -> bool:
        """Whether all that was asked for in a stream is done."""
        ...

    def captured(self, stream: Any) -> bool:
        """Whether what is asked for in a stream is recorded, not done."""
        ...

    def upload(self, address: int, array: Array, stream: Any) -> None: ...

    def download(self, array: Array, address: int, stream: Any) -> None:
        """Begin to fill an array: it is whole once the stream was waited for."""
        ...

    def copy(self, target: int, source: int, nbytes: int, stream: Any) -> None: ...

    def load(self, codes: Sequence[ModuleCode]) -> Sequence[Module]:
        """Modules; they are assembled all at once."""
        ...

    def launch(
        self, function: Any, blocks: int, threads: int, words: Sequence[Argument], stream: Any
    ) -> None: ...

    def instantiate(self, recording: Recording, places: Sequence[int]) -> Launchable:
        """A graph that can be launched, with the places that it touches."""
        ...

    def wait(self, stream: Any) -> None: ...

    def settle(self) -> None:
        """Wait for all that runs on the device, whoever asked for it."""
        ...

    def multiplier(self) -> Multiplier:
        """The library that multiplies matrices here; only where the target names one."""
        ...

    def transformer(self) -> Transformer:
        """The library of Fourier transforms; only where the target names one."""
        ...

    def solver(self) -> Solver:
        """The library that factors matrices; only where the target names one."""
        ...


class PinnedWord:
    """Four bytes of pinned memory."""

    def __init__(self, block: Array, address: int) -> None:
        self.address = address
        self.pinned: int = block.__array_interface__["data"][0]
        own: Any = block[:4]
        self._words = memoryview(own).cast("I")

    @property
    def value(self) -> int:
        return self._words[0]

    @value.setter
    def value(self, value: int) -> None:
        self._words[0] = value


class GpuModule:
    """A module on a GPU; its functions by name."""

    def __init__(self, gpu: Gpu, handle: c_void_p) -> None:
        self._gpu, self._handle = gpu, handle
        self._functions: dict[str, c_void_p] = {}

    def function(self, name: str) -> c_void_p:
        found = self._functions.get(name)
        if found is None:
            found = c_void_p()
            self._gpu.cuda.cuModuleGetFunction(byref(found), self._handle, name.encode())
            self._functions[name] = found
        return found


class Gpu:
    """A GPU by its number. Its context is the one that CUDA's runtime uses, too, so that arrays of
    other libraries can be reached."""

    def __init__(self, number: int) -> None:
        self.number, self.cuda = number, driver()
        self._process = os.getpid()
        handle = c_int()
        self.cuda.cuDeviceGet(byref(handle), number)
        self._device = handle.value
        self._context = c_void_p()
        self._lock = threading.Lock()
        self.name = self._text()
        major, minor = self.attribute(_MAJOR), self.attribute(_MINOR)
        version = c_int()
        self.cuda.cuDriverGetVersion(byref(version))
        self.version = version.value
        self.capability = 10 * major + minor
        self.processors = self.attribute(_PROCESSORS)
        found = find_cublas(self.version // 1000)
        self.target = target_on(
            self.capability,
            self.version,
            llvmlite_version(),
            cublas=found.version if found is not None else "",
            cufft=self._version_of(CUFFT),
            cusolver=self._version_of(CUSOLVER),
        )
        self._multiplier: Multiplier | None = None
        self._transformer: Transformer | None = None
        self._solver: Solver | None = None
        self._own = threading.local()
        self._main: c_void_p | None = None
        self._several = gpu_count() > 1

    def attribute(self, which: int) -> int:
        found = c_int()
        self.cuda.cuDeviceGetAttribute(byref(found), which, self._device)
        return found.value

    def _version_of(self, library: Shared) -> str:
        """The version of a library that is found here, "" where there is none. The library is
        loaded for it only where its file does not tell."""
        path = find_library(library, self.version // 1000)
        if path is None:
            return ""
        return version_of(path) or str(self._loaded(library).version)

    def _loaded(self, library: Shared) -> Any:
        path = find_library(library, self.version // 1000)
        assert path is not None, f"the target names no {library.title}"
        if library is CUFFT:
            from tenfold.backends.cuda.library.cufft import load_cufft

            return load_cufft(path)
        from tenfold.backends.cuda.library.cusolver import load_cusolver

        return load_cusolver(path)

    def _text(self) -> str:
        room = ctypes.create_string_buffer(256)
        self.cuda.cuDeviceGetName(room, 256, self._device)
        return room.value.decode()

    def enter(self) -> Driver:
        """The driver's functions, with this GPU's context current in this thread."""
        if os.getpid() != self._process:
            raise forked()
        # Where there are several GPUs, whoever used another in this thread has left its context.
        if self._several or not getattr(self._own, "entered", False):
            with self._lock:
                if not self._context:
                    self.cuda.cuDevicePrimaryCtxRetain(byref(self._context), self._device)
            self.cuda.cuCtxSetCurrent(self._context)
            self._own.entered = True
        return self.cuda

    @property
    def context(self) -> c_void_p:
        self.enter()
        return self._context

    # Memory.

    def alloc(self, nbytes: int) -> int:
        found = c_uint64()
        self.enter().cuMemAlloc_v2(byref(found), max(nbytes, 16))
        return found.value

    def free(self, address: int) -> None:
        if os.getpid() == self._process:
            with suppress(DeviceProblem):  # of a GPU that gave up, which calls have told
                self.enter().cuMemFree_v2(address)

    def home(self, address: int) -> int:
        found = c_int()
        self.enter().cuPointerGetAttribute(byref(found), _ORDINAL, address)
        return found.value

    def pinned(self, nbytes: int) -> tuple[Array, int]:
        cuda, host, seen = self.enter(), c_void_p(), c_uint64()
        cuda.cuMemHostAlloc(byref(host), max(nbytes, 16), _MAPPED)
        cuda.cuMemHostGetDevicePointer_v2(byref(seen), host, 0)
        raw: Any = (ctypes.c_ubyte * max(nbytes, 16)).from_address(host.value or 0)
        weakref.finalize(raw, self._free_pinned, host.value or 0).atexit = False
        made = np.frombuffer(raw, np.uint8)
        made[...] = 0
        return made, seen.value

    def fault_word(self) -> FaultWord:
        return PinnedWord(*self.pinned(4))

    def result_block(self, nbytes: int) -> Array:
        return self.pinned(nbytes)[0]

    def view(self, block: Array, address: int, start: int, type: TensorType) -> Array:
        part = block[start : start + type.nbytes]
        return part.view(type.dtype).reshape(type.shape)

    def _free_pinned(self, host: int) -> None:
        if os.getpid() == self._process:
            self.enter().cuMemFreeHost(host)

    def memory(self) -> tuple[int, int]:
        """Bytes that are free, and all."""
        free, every = c_size_t(), c_size_t()
        self.enter().cuMemGetInfo_v2(byref(free), byref(every))
        return free.value, every.value

    # Streams.

    def stream(self) -> c_void_p:
        found = c_void_p()
        self.enter().cuStreamCreate(byref(found), _NON_BLOCKING)
        ended = weakref.finalize(found, self._end_stream, found.value or 0)
        ended.atexit = False  # the driver ends all when the process does
        return found

    @property
    def main(self) -> c_void_p:
        if self._main is None:
            made = self.stream()
            with self._lock:
                self._main = self._main or made
        return self._main

    def follow(self, stream: Any, other: Any) -> None:
        cuda, event = self.enter(), getattr(self._own, "event", None)
        if event is None:
            event = self._own.event = c_void_p()
            cuda.cuEventCreate(byref(event), _NO_TIMING)
            weakref.finalize(event, self._end_event, event.value or 0).atexit = False
        cuda.cuEventRecord(event, other)
        cuda.cuStreamWaitEvent(stream, event, 0)

    def _end_event(self, event: int) -> None:
        if os.getpid() == self._process:
            with suppress(DeviceProblem):
                self.enter().cuEventDestroy_v2(event)

    def capturing(self) -> c_void_p:
        """This thread's stream for what is captured: nothing is ever done in it."""
        found: c_void_p | None = getattr(self._own, "capturing", None)
        if found is None:
            found = self._own.capturing = self.stream()
        return found

    def _end_stream(self, stream: int) -> None:
        if os.getpid() == self._process:
            with suppress(DeviceProblem):
                self.enter().cuStreamDestroy_v2(stream)

    def upload(self, address: int, array: Array, stream: Any) -> None:
        if array.nbytes:
            source = array.__array_interface__["data"][0]
            self.enter().cuMemcpyHtoDAsync_v2(address, source, array.nbytes, stream)

    def download(self, array: Array, address: int, stream: Any) -> None:
        if array.nbytes:
            target = array.__array_interface__["data"][0]
            self.enter().cuMemcpyDtoHAsync_v2(target, address, array.nbytes, stream)

    def copy(self, target: int, source: int, nbytes: int, stream: Any) -> None:
        if nbytes:
            self.enter().cuMemcpyDtoDAsync_v2(target, source, nbytes, stream)

    def idle(self, stream: Any) -> bool:
        return self.enter().asked("cuStreamQuery", stream) != _NOT_READY

    def captured(self, stream: Any) -> bool:
        found = c_int()
        self.enter().cuStreamIsCapturing(stream, byref(found))
        return bool(found.value)

    def wait(self, stream: Any) -> None:
        self.enter().cuStreamSynchronize(stream)

    def settle(self) -> None:
        self.enter().cuCtxSynchronize()

    # Libraries.

    def multiplier(self) -> Multiplier:
        self.enter()
        with self._lock:
            if self._multiplier is None:
                library = find_cublas(self.version // 1000)
                assert library is not None, "the target names no cublasLt"
                self._multiplier = Multiplier(library)
            return self._multiplier

    def transformer(self) -> Transformer:
        from tenfold.backends.cuda.library.cufft import Transformer

        self.enter()
        with self._lock:
            if self._transformer is None:
                self._transformer = Transformer(self._loaded(CUFFT))
            return self._transformer

    def solver(self) -> Solver:
        from tenfold.backends.cuda.library.cusolver import Solver

        self.enter()
        with self._lock:
            if self._solver is None:
                self._solver = Solver(self._loaded(CUSOLVER))
            return self._solver

    # Code.

    def load(self, codes: Sequence[ModuleCode]) -> list[GpuModule]:
        from tenfold.backends.cuda.assemble import assemble

        assemble([one for one in codes if one.text])  # not what was read from a file
        return [self._module(one.image(self.capability, self.version)) for one in codes]

    def _module(self, image: bytes) -> GpuModule:
        """A module of PTX or machine code; what the driver's assembler says is in the error."""
        handle, said = c_void_p(), ctypes.create_string_buffer(_SAID)
        options = (c_int * 2)(_ERROR_LOG, _ERROR_LOG_BYTES)
        values = (c_void_p * 2)(ctypes.addressof(said), _SAID)
        given = (2, ctypes.addressof(options), ctypes.addressof(values))
        try:
            self.enter().cuModuleLoadDataEx(byref(handle), c_char_p(image), *given)
        except DeviceProblem as error:
            words = said.value.decode(errors="replace").strip()
            error.message += f": {words[:400]}" if words else ""
            raise
        return GpuModule(self, handle)

    def instantiate(self, recording: Recording, places: Sequence[int]) -> Launchable:
        from tenfold.backends.cuda.driver.graphs import Executable

        return Executable(self, recording, places)

    def release_graph(self, handle: c_void_p, graph: c_void_p) -> None:
        """Let go of a graph, which may be under way."""
        if os.getpid() == self._process:
            with suppress(DeviceProblem):
                self.wait(self.main)
                self.enter().cuGraphExecDestroy(handle)
                self.enter().cuGraphDestroy(graph)

    def launch(
        self, function: Any, blocks: int, threads: int, words: Sequence[Argument], stream: Any
    ) -> None:
        if not blocks:
            return
        raw = [word if isinstance(word, bytes) else word.to_bytes(8, "little") for word in words]
        kept = [ctypes.create_string_buffer(word, len(word)) for word in raw]
        places = (c_void_p * max(1, len(kept)))(*[ctypes.addressof(one) for one in kept])
        self.enter().cuLaunchKernel(
            function, blocks, 1, 1, threads, 1, 1, 0, stream, ctypes.addressof(places), None
        )


def gpu(number: int = 0) -> Gpu:
    """The GPU of this number."""
    return _gpu(number)


@cache
def _gpu(number: int) -> Gpu:
    count = gpu_count()
    if not 0 <= number < count:
        there = "there is none here" if not count else f"there are {count}"
        raise DeviceProblem(f"there is no GPU {number}: {there}", fix="give backend='cpu'")
    return Gpu(number)


def gpu_count() -> int:
    """How many GPUs the driver knows."""
    found = c_int()
    driver().cuDeviceGetCount(byref(found))
    return found.value
