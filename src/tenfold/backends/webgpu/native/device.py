"""A device: an adapter that is open, with its queue, memory, shaders and pipelines."""

from __future__ import annotations

import ctypes
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import addressof, byref, c_uint32, c_void_p
from time import perf_counter, sleep
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from tenfold.backends.device_memory import FIX, bytes_text
from tenfold.backends.webgpu.native import structs as s
from tenfold.backends.webgpu.native.adapter import Adapter
from tenfold.backends.webgpu.native.buffer import Bindings, Buffer, Group, Place, Range, words_of
from tenfold.backends.webgpu.native.library import Handle, check_process
from tenfold.errors import DeviceMemoryProblem, DeviceProblem
from tenfold.locks import Lock

Array = np.ndarray[Any, Any]

SHORT_OF_MEMORY = "the GPU's memory does not suffice"
SPARE = 8  # buffers at most that wait for another array
LESS = "give it less at a time, or give backend='cpu'"
MEMORY = s.STORAGE | s.COPY_SOURCE | s.COPY_TARGET
_EAGER, _NAP, _LONGEST = 3e-4, 3e-5, 1e-3  # seconds: asked all the time at first, then now and then
_devices: WeakValueDictionary[int, Device] = WeakValueDictionary()  # by what callbacks are given
_answers: list[Answer] = []  # all: the library may fill those that nobody waits for any more
_idle: list[Answer] = []


class Device:
    """What programs ask of a GPU. All of it may be asked by several threads at once."""

    lost: str | None = None

    def __init__(self, adapter: Adapter, number: int = 0) -> None:
        """An adapter, opened, and its number."""
        self.number = number
        wgpu = self.wgpu = adapter.wgpu
        self.adapter, self._process = adapter, os.getpid()
        self._told = threading.local()
        self.spare = deque[Buffer](maxlen=SPARE)  # of arrays that are gone, for others as large
        self._layouts: dict[tuple[int, ...], tuple[Handle, Handle]] = {}
        self._lock = Lock()
        _devices[id(self)] = self
        self.handle = Handle(self._opened(), wgpu.DeviceRelease)
        self.address = self.handle.address
        self._queue = Handle(wgpu.DeviceGetQueue(self.address), wgpu.QueueRelease, self.handle)
        self.queue = self._queue.address

    def _opened(self) -> int:
        adapter, found = self.adapter, list[Any]()
        features = [f for numbers in adapter.features.values() for f in numbers[:1]]
        wanted = (c_uint32 * len(features))(*features)
        limits = s.Limits.from_buffer_copy(adapter.limits)
        limits.next = None

        def told(status: int, device: int, message: Any, *_: Any) -> None:
            found.append((status, device, message.text))

        callback = s.DeviceFound(told)
        descriptor = s.DeviceDescriptor(
            feature_count=len(features), features=wanted, limits=addressof(limits),
            lost=s.CallbackInfo(None, s.SPONTANEOUS, _address(_lost), id(self), None),
            error=s.ErrorCallbackInfo(None, _address(_failed), id(self), None),
        )  # fmt: skip
        info = s.CallbackInfo(None, s.SPONTANEOUS, _address(callback), None, None)
        self.wgpu.AdapterRequestDevice(adapter.handle.address, byref(descriptor), info)
        if not found:  # it is told before the function ends, if Ctrl-C does not end the telling
            raise KeyboardInterrupt
        status, device, words = found[0]
        if status != s.SUCCESS:
            raise DeviceProblem(
                f"the adapter {adapter.name} can't be opened: {words}",
                fix="restart what else uses it, or give backend='cpu'",
            )
        made: int = device
        return made

    # Errors.

    def tell(self, kind: int, words: str) -> None:
        """An error of what this thread asked for."""
        self._told.errors = [*getattr(self._told, "errors", []), (kind, words)]

    def check(self, what: str) -> None:
        """Raise what was told of what this thread asked for."""
        errors: list[tuple[int, str]] = getattr(self._told, "errors", [])
        if not errors and self.lost is None:
            return
        self._told.errors = []
        if self.lost is None and any("device is lost" in words for _, words in errors):
            self.lost = "the driver does not say why"
        if self.lost is not None:
            raise DeviceProblem(
                f"the GPU is lost: {self.lost}",
                fix="start the process anew; report the program if that comes back",
            )
        kind, words = errors[0]
        if kind == s.OUT_OF_MEMORY or "ot enough memory" in words:
            raise DeviceMemoryProblem(SHORT_OF_MEMORY, fix=FIX)
        raise DeviceProblem(f"WebGPU: {what}: {words.strip()}", fix="report the program")

    def enter(self) -> None:
        """Raise where it can't be used: in the child of a fork, or since it was lost."""
        check_process(self._process)
        if self.lost is not None:
            self.check("")

    # Memory.

    def buffer(self, nbytes: int, usage: int = MEMORY) -> Buffer:
        """New memory, all zeros."""
        self.check_size(nbytes)
        size = words_of(nbytes)
        descriptor = s.BufferDescriptor(usage=usage, size=size)
        address = self.wgpu.DeviceCreateBuffer(self.address, byref(descriptor))
        made = Buffer(address, self.wgpu.BufferRelease, self.handle) if address else None
        self.check(f"{nbytes} bytes of memory")
        assert made is not None
        made.size = size
        return made

    def check_size(self, nbytes: int) -> None:
        """Raise where no memory can be as large."""
        most = self.adapter.limits.buffer_bytes
        if -(-nbytes // 4) * 4 > most:
            raise DeviceMemoryProblem(
                f"an array of {bytes_text(nbytes)} is too large for {self.adapter.name}, whose "
                f"largest has {bytes_text(most)}",
                fix=LESS,
            )

    def reused(self, nbytes: int) -> Buffer:
        """Memory that holds anything: that of an array which is gone, or new."""
        size = words_of(nbytes)
        for one in list(self.spare):
            if one.size == size:
                with suppress(ValueError):  # another thread was first
                    self.spare.remove(one)
                    return one
        return self.buffer(nbytes)

    def range(self, nbytes: int, usage: int = MEMORY) -> Range:
        """A new buffer as a whole."""
        return Range(self.buffer(nbytes, usage), 0, nbytes)

    def write(self, target: Range, array: Array) -> None:
        """Have these bytes lie there before what is submitted next. Up to three bytes behind them
        become zeros, where they end amid a word."""
        raw = array.reshape(-1).view(np.uint8) if array.flags.c_contiguous else _packed(array)
        if raw.size % 4:
            raw = np.concatenate([raw, np.zeros(-raw.size % 4, np.uint8)])
        if raw.size:
            self.wgpu.QueueWriteBuffer(
                self.queue, target.buffer.address, target.offset, raw.ctypes.data, raw.size
            )

    # Shaders.

    def shader(self, text: str) -> Handle:
        """A module of WGSL. Nothing is checked when it runs: who writes it stays within bounds."""
        source = s.ShaderSource(s.Chain(None, s.WGSL_SOURCE), s.text_of(text))
        descriptor = s.ShaderDescriptor(next=addressof(source))
        address = self.wgpu.DeviceCreateShaderModuleTrusted(self.address, byref(descriptor), 0)
        made = Handle(address, self.wgpu.ShaderModuleRelease, self.handle)
        self.check("a shader is not taken")
        return made

    def layout(self, kinds: tuple[int, ...]) -> tuple[Handle, Handle]:
        """The layout of bindings of these kinds, and that of pipelines with them."""
        with self._lock:
            found = self._layouts.get(kinds)
            if found is None:
                found = self._layouts[kinds] = self._layout(kinds)
            return found

    def _layout(self, kinds: tuple[int, ...]) -> tuple[Handle, Handle]:
        rows = (s.LayoutEntry * len(kinds))()
        for n, kind in enumerate(kinds):
            rows[n].binding, rows[n].visibility, rows[n].buffer.type = n, s.COMPUTE, kind
        group = Handle(
            self.wgpu.DeviceCreateBindGroupLayout(
                self.address, byref(s.LayoutDescriptor(count=len(kinds), entries=rows))
            ),
            self.wgpu.BindGroupLayoutRelease,
            self.handle,
        )
        one = (c_void_p * 1)(group.address)
        whole = Handle(
            self.wgpu.DeviceCreatePipelineLayout(
                self.address, byref(s.PipelineLayoutDescriptor(count=1, layouts=one))
            ),
            self.wgpu.PipelineLayoutRelease,
            group,
        )
        self.check(f"a layout of {len(kinds)} bindings")
        return group, whole

    def pipeline(self, module: Handle, kinds: tuple[int, ...], entry: str = "main") -> Handle:
        """A function of a module, compiled."""
        _, whole = self.layout(kinds)
        state = s.ComputeState(module=module.address, entry=s.text_of(entry))
        descriptor = s.PipelineDescriptor(layout=whole.address, compute=state)
        address = self.wgpu.DeviceCreateComputePipeline(self.address, byref(descriptor))
        made = Handle(address, self.wgpu.ComputePipelineRelease, module, whole)
        self.check("a shader can't be compiled")
        return made

    def bind_group(self, kinds: tuple[int, ...], ranges: Sequence[Range]) -> Group:
        """Memory for the bindings of a pipeline, in their order."""
        places = [one.buffer for one in ranges if isinstance(one.buffer, Place)]
        if not places:
            return self._group(kinds, ranges)
        made = Bindings(lambda: self._group(kinds, ranges))
        for place in places:
            place.bound_by(made)
        return made

    def _group(self, kinds: tuple[int, ...], ranges: Sequence[Range]) -> Handle:
        layout, _ = self.layout(kinds)
        rows = (s.GroupEntry * len(ranges))()
        buffers = [b.buffer if isinstance(b := one.buffer, Place) else b for one in ranges]
        for n, (one, buffer) in enumerate(zip(ranges, buffers, strict=True)):
            rows[n].binding, rows[n].buffer = n, buffer.address
            rows[n].offset = one.offset
            rows[n].size = min(words_of(one.size), buffer.size - one.offset)
        descriptor = s.GroupDescriptor(layout=layout.address, count=len(ranges), entries=rows)
        address = self.wgpu.DeviceCreateBindGroup(self.address, byref(descriptor))
        made = Handle(address, self.wgpu.BindGroupRelease, layout, *buffers)
        self.check("memory can't be bound")
        return made

    # Waiting.

    def poll(self) -> None:
        """Have callbacks be told what is done by now."""
        self.wgpu.DevicePoll(self.address, 0, None)

    def forget(self) -> None:
        """Have memory be given back that was let go of; it is nobody's in the child of a fork."""
        if self._process == os.getpid():
            self.poll()

    def wait(self, done: Callable[[], bool], what: str) -> None:
        """Ask again and again until it is done. Ctrl-C ends the waiting, not what is waited for."""
        since, nap = perf_counter(), _NAP
        self.poll()
        while not done():
            if self.lost is not None:
                self.check(what)
            if perf_counter() - since < _EAGER:
                sleep(0)
            else:
                sleep(nap)
                nap = min(nap * 1.2, _LONGEST)
            self.poll()

    def mark(self) -> Answer:
        """What is told when all is done that was submitted by now: `reach` waits for it."""
        answer = _answer()
        info = s.CallbackInfo(None, s.SPONTANEOUS, answer.address, None, None)
        self.wgpu.QueueOnSubmittedWorkDone(self.queue, info)
        return answer

    def reach(self, mark: Answer) -> None:
        """Wait until all is done that was submitted before the mark."""
        self.wait(lambda: bool(mark.told.status), "work")
        mark.taken()

    def settle(self) -> None:
        """Wait until all is done that was submitted: memory that it alone had is free then."""
        self.wgpu.DevicePoll(self.address, 1, None)

    def read(self, staging: Buffer, parts: Sequence[tuple[int, Array]]) -> None:
        """Wait until what was submitted has filled a staging buffer, and fill packed arrays with
        what lies from these places on."""
        answer = _answer()
        info = s.CallbackInfo(None, s.SPONTANEOUS, answer.address, None, None)
        size = max((-(-(at + array.nbytes) // 4) * 4 for at, array in parts), default=4)
        self.wgpu.BufferMapAsync(staging.address, s.READ, 0, size, info)
        self.check("results can't be read")
        self.wait(lambda: bool(answer.told.status), "results")
        status = answer.taken()
        if status != s.SUCCESS:
            self.check("results can't be read")
            raise DeviceProblem(f"WebGPU: results can't be read: status {status}")
        try:
            start = self.wgpu.BufferGetConstMappedRange(staging.address, 0, size)
            for at, array in parts:
                ctypes.memmove(array.ctypes.data, start + at, array.nbytes)
        finally:
            self.wgpu.BufferUnmap(staging.address)


def release_spare() -> int:
    """Give back the memory of arrays that are gone, and of all that was let go of: how many bytes
    were kept."""
    freed = 0
    for device in list(_devices.values()):
        while device.spare:
            with suppress(IndexError):  # another thread was first
                freed += device.spare.pop().size
        device.forget()
    return freed


def _packed(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


class Answer:
    """What is told of something that is waited for. No Python runs when it is told: a Ctrl-C that
    came meanwhile would be raised where it is lost, and the answer with it."""

    def __init__(self) -> None:
        self.told = s.Told()  # nothing yet
        self.callback = s.Done(self.told.__init__)  # fills its fields
        self.address = _address(self.callback)
        _answers.append(self)

    def taken(self) -> int:
        """What was told; the next one who asks may have this."""
        status: int = self.told.status
        self.told.status = 0
        _idle.append(self)
        return status


def _answer() -> Answer:
    """An answer that nobody waits for."""
    try:
        return _idle.pop()
    except IndexError:
        return Answer()


def _address(callback: Any) -> int:
    found = ctypes.cast(callback, c_void_p).value
    assert found is not None
    return found


def _on_error(_: Any, kind: int, message: Any, device: int, __: Any) -> None:
    found = _devices.get(device)
    if found is not None:
        found.tell(kind, message.text)


def _on_loss(_: Any, reason: int, message: Any, device: int, __: Any) -> None:
    found = _devices.get(device)
    if found is not None and reason != s.CANCELLED:
        found.lost = message.text or "the driver does not say why"


_failed, _lost = s.Failed(_on_error), s.Failed(_on_loss)
