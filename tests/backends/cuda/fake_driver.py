"""A driver that is none: functions of libcuda that answer as a driver would, for what can't be had
on a machine without a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from tenfold.backends.cuda.driver.library import _SIGNATURES

MESSAGES = {2: b"out of memory", 100: b"no CUDA-capable device is detected",
            700: b"an illegal memory access was encountered"}  # fmt: skip
_ATTRIBUTES = {16: 132, 38: 60 << 20}


class FakeFunction:
    """A function of the library: what ctypes would give."""

    native: list[Any] = []  # noqa: RUF012  for all: code that calls one may outlive its library

    def __init__(self, work: Callable[..., int], name: str) -> None:
        self.work, self.name = work, name
        self.argtypes: Any = None
        self.restype: Any = None

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        """Where native code finds it, for good."""
        kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * len(_SIGNATURES[self.name]))
        self.native.append(kind(self.work))
        return ctypes.cast(self.native[-1], ctypes.c_void_p)

    def __call__(self, *args: Any) -> int:
        return self.work(*args)


class FakeLibrary:
    """libcuda with some GPUs. `fails` are statuses by the name of a function."""

    def __init__(
        self,
        gpus: int = 1,
        capability: tuple[int, int] = (9, 0),
        version: int = 13000,
        init: int = 0,
        fails: dict[str, int] | None = None,
    ) -> None:
        self.gpus, self.capability, self.version = gpus, capability, version
        self.fails = {"cuInit": init, **(fails or {})}
        self.called: list[str] = []
        self.pinned: list[Any] = []
        self.images: list[bytes] = []
        self.says = b""  # what its assembler finds wrong
        self.room = 1 << 62  # bytes of memory
        self.full = False  # until something is freed
        self.refused: list[int] = []
        self.current = -1  # the GPU whose context is the thread's
        self.allocated: list[tuple[int, int]] = []  # GPU and bytes
        self.next = 0x7F00_0000_0000

    def __getattr__(self, name: str) -> FakeFunction:
        if not name.startswith("cu"):
            raise AttributeError(name)
        work = getattr(self, f"_{name}", lambda *args: 0)

        def call(*args: Any) -> int:
            self.called.append(name)
            return self.fails.get(name, 0) or work(*args)

        return FakeFunction(call, name)

    def _cuGetErrorString(self, status: int, text: Any) -> int:  # noqa: N802
        words = MESSAGES.get(status)
        if words is None:
            return 1
        text._obj.value = words
        return 0

    def _cuDriverGetVersion(self, found: Any) -> int:  # noqa: N802
        return _put(found, self.version)

    def _cuDeviceGetCount(self, found: Any) -> int:  # noqa: N802
        return _put(found, self.gpus)

    def _cuDeviceGet(self, found: Any, number: int) -> int:  # noqa: N802
        return _put(found, number)

    def _cuDeviceGetName(self, room: Any, size: int, which: int) -> int:  # noqa: N802
        room.value = b"Fake GPU"
        return 0

    def _cuDeviceGetAttribute(self, found: Any, which: int, device: int) -> int:  # noqa: N802
        major, minor = self.capability
        return _put(found, {75: major, 76: minor, **_ATTRIBUTES}.get(which, 0))

    def _cuDevicePrimaryCtxRetain(self, found: Any, device: int) -> int:  # noqa: N802
        return _put(found, 0xC0DE + device)

    def _cuCtxSetCurrent(self, context: Any) -> int:  # noqa: N802
        self.current = getattr(context, "value", context) - 0xC0DE
        return 0

    def _cuMemGetInfo_v2(self, free: Any, every: Any) -> int:  # noqa: N802
        return _put(free, 60 << 30) or _put(every, 80 << 30)

    def _cuMemAlloc_v2(self, found: Any, nbytes: int) -> int:  # noqa: N802
        self.allocated.append((self.current, nbytes))
        if nbytes > self.room or self.full:
            self.refused.append(nbytes)
            return 2
        self.next += -(-nbytes // 512) * 512
        return _put(found, self.next)

    def _cuMemFree_v2(self, address: int) -> int:  # noqa: N802
        self.full = False
        return 0

    def _cuMemHostAlloc(self, found: Any, nbytes: int, flags: int) -> int:  # noqa: N802
        self.pinned.append(ctypes.create_string_buffer(nbytes))
        return _put(found, ctypes.addressof(self.pinned[-1]))

    def _cuModuleLoadDataEx(  # noqa: N802
        self, found: Any, image: Any, count: int, options: int, values: int
    ) -> int:
        self.images.append(image.value)
        if self.says:
            assert list((ctypes.c_int * count).from_address(options)) == [5, 6]
            room, size = (ctypes.c_void_p * count).from_address(values)
            ctypes.memmove(room, self.says, min(len(self.says) + 1, size))
            return 218
        return _put(found, 0x30D)

    def _cuStreamCreate(self, found: Any, flags: int) -> int:  # noqa: N802
        return _put(found, 0x5711)


def _put(found: Any, value: int) -> int:
    """Fill in what a pointer leads to."""
    target: Any = found._obj if hasattr(found, "_obj") else found
    if isinstance(target, (ctypes._SimpleCData,)):
        target.value = value
    return 0
