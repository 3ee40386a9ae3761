"""Arrays that lie on an adapter: results that stayed, or what `tn.device_put` gives.

Each is a buffer of its own. What is submitted is done in order, so nobody has to wait for what made
an array but who reads it on the host. Its memory is freed with it; the library keeps that for what
is still under way.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.backends.array import HOST, ArrayOnDevice, HostArray, elsewhere, host_array
from tenfold.backends.webgpu.native import structs as s
from tenfold.backends.webgpu.native.buffer import Buffer, Lease, Range
from tenfold.backends.webgpu.native.commands import Commands
from tenfold.errors import DeviceMemoryProblem, DeviceProblem
from tenfold.types import DType

if TYPE_CHECKING:
    from tenfold.backends.webgpu.native.device import Device

_WEBGPU, _PINNED = 15, 3  # DLPack's numbers of its memory, and of the host's that GPUs may read
_PIECE = 64 << 20  # bytes that come back at once
_REUSED = 128 << 20  # bytes of an array at most whose memory waits for another


class DeviceArray(ArrayOnDevice):
    """A packed array in an adapter's memory. Other libraries can't share it: WebGPU has no way to
    hand memory on."""

    def __init__(self, device: Device, shape: tuple[int, ...], dtype: DType) -> None:
        """Memory for an array, which holds anything."""
        self.device, self.shape, self.dtype = device, shape, dtype
        device.enter()
        self.buffer = self._allocated()
        self.range = Range(self.buffer, 0, self.nbytes)
        # New memory takes longer than most results: it is made by the driver, and filled with 0.
        self._lease = Lease(self.buffer, device.spare) if self.nbytes <= _REUSED else None

    def _allocated(self) -> Buffer:
        with suppress(DeviceMemoryProblem):
            return self.device.reused(self.nbytes)
        from tenfold.backends.webgpu.run.program import release_rooms

        release_rooms()  # what programs keep while nobody calls them
        self.device.settle()
        return self.device.buffer(self.nbytes)

    @property
    def place(self) -> str:
        return place_of(self.device)

    def numpy(self) -> HostArray:
        made: HostArray = np.empty(self.shape, self.dtype)
        raw, device = made.reshape(-1).view(np.uint8), self.device
        device.enter()
        if raw.size:
            staging = device.buffer(min(raw.size, _PIECE), s.MAP_READ | s.COPY_TARGET)
        for start in range(0, raw.size, _PIECE):
            piece = raw[start : start + _PIECE]
            commands = Commands(device)
            commands.copy(self.range.part(start, piece.size), staging, 0)
            commands.submit()
            device.read(staging, [(0, piece)])
        return made

    def copy(self) -> DeviceArray:
        made = DeviceArray(self.device, self.shape, self.dtype)
        commands = Commands(self.device)
        commands.copy(self.range, made.range.buffer, 0)
        commands.submit()
        return made

    def _given_back(self, made: Any) -> DeviceArray:
        return put(made, self.device)

    # To other libraries: by a copy on the host alone.

    def __dlpack_device__(self) -> tuple[int, int]:
        return _WEBGPU, self.device.number

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if dl_device is None or dl_device[0] != HOST or copy is False:
            raise BufferError(
                f"an array on {self.place} can't be shared with other libraries: give them a copy "
                "on the host, x.numpy()"
            )
        return self.numpy().__dlpack__(max_version=max_version)


def place_of(device: Device) -> str:
    """What users call a device."""
    return f"webgpu:{device.number}"


def put(given: Any, device: Device) -> DeviceArray:
    """An array on a device: itself where it lies there, else a copy."""
    if isinstance(given, DeviceArray) and given.device is device:
        return given
    device.check_size(getattr(given, "nbytes", 0))  # before it is packed
    host = given.numpy() if isinstance(given, ArrayOnDevice) else host_array(given)
    made = DeviceArray(device, host.shape, host.dtype)
    device.write(made.range, host)
    Commands(device).submit()  # else it waits for others' work, and holds memory meanwhile
    return made


def check_place(given: Any, device: Device, name: str) -> None:
    """Raise where an array lies on another adapter, or in the memory of another backend's device.
    What lies on the host is copied."""
    if isinstance(given, ArrayOnDevice):
        if getattr(given, "device", None) is not device:
            raise elsewhere(name, given.place, place_of(device))
        return
    if hasattr(given, "__dlpack_device__") and given.__dlpack_device__()[0] not in (HOST, _PINNED):
        kind = type(given)
        raise DeviceProblem(
            f"{name} is a {kind.__module__}.{kind.__name__} on a GPU, and WebGPU can't take memory "
            "of other libraries",
            fix="give a copy on the host",
        )
