"""wgpu-native, loaded: its functions by name, with what they are given."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from ctypes import POINTER, c_size_t, c_uint32, c_uint64, c_void_p
from functools import partial
from typing import Any, Self

from tenfold.backends.webgpu.native import structs as s
from tenfold.backends.webgpu.native.find import INSTALL, library_path
from tenfold.errors import DeviceProblem
from tenfold.locks import once

_P = c_void_p
MAJOR = 29  # the version whose structures are known here
NO_ADAPTER = "apt-get install mesa-vulkan-drivers libvulkan1, or a GPU's own driver"
# Of each function that is used what it gives, and what it is given.
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "GetVersion": (c_uint32,),
    "CreateInstance": (_P, _P),
    "InstanceEnumerateAdapters": (c_size_t, _P, POINTER(s.EnumerateOptions), POINTER(_P)),
    "AdapterGetInfo": (c_uint32, _P, POINTER(s.AdapterInfo)),
    "AdapterInfoFreeMembers": (None, s.AdapterInfo),
    "AdapterGetLimits": (c_uint32, _P, POINTER(s.Limits)),
    "AdapterHasFeature": (c_uint32, _P, c_uint32),
    "AdapterRequestDevice": (s.Future, _P, POINTER(s.DeviceDescriptor), s.CallbackInfo),
    "AdapterRelease": (None, _P),
    "DeviceGetQueue": (_P, _P),
    "DeviceCreateBuffer": (_P, _P, POINTER(s.BufferDescriptor)),
    "DeviceCreateShaderModuleTrusted": (_P, _P, POINTER(s.ShaderDescriptor), c_uint64),
    "DeviceCreateBindGroupLayout": (_P, _P, POINTER(s.LayoutDescriptor)),
    "DeviceCreatePipelineLayout": (_P, _P, POINTER(s.PipelineLayoutDescriptor)),
    "DeviceCreateComputePipeline": (_P, _P, POINTER(s.PipelineDescriptor)),
    "DeviceCreateBindGroup": (_P, _P, POINTER(s.GroupDescriptor)),
    "DeviceCreateCommandEncoder": (_P, _P, _P),
    "DevicePoll": (c_uint32, _P, c_uint32, POINTER(c_uint64)),
    "DeviceDestroy": (None, _P),
    "CommandEncoderBeginComputePass": (_P, _P, _P),
    "CommandEncoderCopyBufferToBuffer": (None, _P, _P, c_uint64, _P, c_uint64, c_uint64),
    "CommandEncoderClearBuffer": (None, _P, _P, c_uint64, c_uint64),
    "CommandEncoderFinish": (_P, _P, _P),
    "ComputePassEncoderSetPipeline": (None, _P, _P),
    "ComputePassEncoderSetBindGroup": (None, _P, c_uint32, _P, c_size_t, _P),
    "ComputePassEncoderDispatchWorkgroups": (None, _P, c_uint32, c_uint32, c_uint32),
    "ComputePassEncoderDispatchWorkgroupsIndirect": (None, _P, _P, c_uint64),
    "ComputePassEncoderEnd": (None, _P),
    "QueueWriteBuffer": (None, _P, _P, c_uint64, _P, c_size_t),
    "QueueOnSubmittedWorkDone": (s.Future, _P, s.CallbackInfo),
    "QueueSubmit": (None, _P, c_size_t, POINTER(_P)),
    "BufferMapAsync": (s.Future, _P, c_uint64, c_size_t, c_size_t, s.CallbackInfo),
    "BufferGetConstMappedRange": (_P, _P, c_size_t, c_size_t),
    "BufferUnmap": (None, _P),
    "BufferDestroy": (None, _P),
    **{
        f"{kind}Release": (None, _P)
        for kind in (
            "BindGroup", "BindGroupLayout", "Buffer", "CommandBuffer", "CommandEncoder",
            "ComputePassEncoder", "ComputePipeline", "Device", "PipelineLayout", "Queue",
            "ShaderModule",
        )
    },
}  # fmt: skip


class Library:
    """The functions of wgpu-native by their names without `wgpu`."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.process = os.getpid()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_let_be)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        signature = _SIGNATURES.get(name)
        if signature is None:
            raise AttributeError(name)
        try:
            function = getattr(self._library, f"wgpu{name}")
        except AttributeError:
            raise DeviceProblem(
                f"wgpu-native {self.version} has no wgpu{name}", fix=f"{INSTALL} --upgrade"
            ) from None
        function.restype, *given = signature
        function.argtypes = given
        self.__dict__[name] = function
        found: Callable[..., Any] = function
        return found

    @property
    def version(self) -> str:
        """
        >>> version_text(0x1D000101)
        '29.0.1.1'
        """
        return version_text(self.GetVersion())


def version_text(version: int) -> str:
    """A version as people write it."""
    return ".".join(str(version >> shift & 255) for shift in (24, 16, 8, 0))


class Handle(partial[None]):
    """Something of the library's that is let go of when nobody has this any more. The library
    ends the process where it is given what was let go of, so an object keeps what it hangs on.

    It is the call that lets go, made without any Python: a Ctrl-C would be raised where it is
    lost."""

    address: int

    def __new__(cls, address: int, release: Callable[[int], None], *kept: object) -> Self:
        made = super().__new__(cls, release, address)
        made.address, made._kept = address, kept
        return made

    _kept: tuple[object, ...]
    __del__ = partial.__call__


def _let_be() -> None:
    """In the child of a fork nothing of the parent's is touched."""
    Handle.__del__ = _untouched  # type: ignore[assignment]


def _untouched(handle: Handle) -> None:
    pass


def library() -> Library:
    """The library; an error says why there is none."""
    made = _loaded()
    check_process(made.process)
    return made


def check_process(process: int) -> None:
    """Raise in the child of a process that has used the library."""
    if process != os.getpid():
        raise DeviceProblem(
            "WebGPU does not work in the child of a process that has used it",
            fix="start processes by 'spawn' (multiprocessing.set_start_method), or use WebGPU in "
            "the children alone",
        )


@once
def _loaded() -> Library:
    path = library_path()
    try:
        made = Library(ctypes.CDLL(str(path)))
    except OSError as error:
        raise DeviceProblem(
            f"wgpu-native can't be loaded: {error}", fix=f"{INSTALL} --upgrade"
        ) from None
    if made.GetVersion() >> 24 != MAJOR:
        raise DeviceProblem(
            f"wgpu-native {made.version} may have another interface than {MAJOR}",
            fix="pip install 'wgpu==0.32.*'",
        )
    return made
