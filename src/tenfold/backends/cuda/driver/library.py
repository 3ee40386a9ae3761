"""libcuda by ctypes: its functions, what they are given, and errors in words."""

from __future__ import annotations

import ctypes
import os
from ctypes import c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from functools import cache
from typing import Any

from tenfold.errors import DeviceMemoryProblem, DeviceProblem

_P = ctypes.POINTER
_NAMES = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")
_open = ctypes.CDLL
OUT_OF_MEMORY = 2
# After one of these nothing can be done on the device by this process any more.
_STICKY = {
    700: "a kernel touched memory that is not its own",
    702: "a kernel ran too long",
    710: "a kernel failed an assertion",
    714: "the hardware's stack was damaged",
    715: "a kernel has an instruction that the chip does not know",
    716: "a kernel touched memory at an odd address",
    719: "a kernel failed for a reason that the driver does not tell",
}
# What else is known by its number: what it is, and what to do.
_KNOWN = {
    3: ("the driver was not begun in this process", "use CUDA in one process of a fork alone"),
    46: ("the GPU is another process's alone", "end that process, or give backend='cuda:1'"),
    100: (
        "the driver finds no GPU",
        "see what nvidia-smi finds, and whether CUDA_VISIBLE_DEVICES hides it; or give "
        "backend='cpu'",
    ),
    209: ("the driver has no code for this GPU", "report the program; backend='cpu' runs it"),
    218: ("the driver does not take the code", "report the program; backend='cpu' runs it"),
    222: ("the code is newer than the driver", "install a newer driver, or give backend='cpu'"),
    803: (
        "the driver and its library do not fit each other",
        "restart the machine, since one of them was updated; or give backend='cpu'",
    ),
    804: (
        "the driver's library for newer versions of CUDA does not work with this GPU",
        "take CUDA's folder 'compat' out of LD_LIBRARY_PATH, or give backend='cpu'",
    ),
}
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (_P(c_int),),
    "cuDeviceGetCount": (_P(c_int),),
    "cuDeviceGet": (_P(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (_P(c_int), c_int, c_int),
    "cuDeviceTotalMem_v2": (_P(c_size_t), c_int),
    "cuDevicePrimaryCtxRetain": (_P(c_void_p), c_int),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxGetCurrent": (_P(c_void_p),),
    "cuCtxSynchronize": (),
    "cuMemGetInfo_v2": (_P(c_size_t), _P(c_size_t)),
    "cuMemAlloc_v2": (_P(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemHostAlloc": (_P(c_void_p), c_size_t, c_uint),
    "cuMemHostGetDevicePointer_v2": (_P(c_uint64), c_void_p, c_uint),
    "cuMemFreeHost": (c_void_p,),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (c_uint64, c_uint64, c_size_t, c_void_p),
    "cuMemsetD8Async": (c_uint64, ctypes.c_ubyte, c_size_t, c_void_p),
    "cuMemsetD32Async": (c_uint64, c_uint, c_size_t, c_void_p),
    "cuStreamCreate": (_P(c_void_p), c_uint),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamQuery": (c_void_p,),
    "cuStreamIsCapturing": (c_void_p, _P(c_int)),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuEventCreate": (_P(c_void_p), c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventSynchronize": (c_void_p,),
    "cuEventElapsedTime_v2": (_P(ctypes.c_float), c_void_p, c_void_p),
    "cuEventDestroy_v2": (c_void_p,),
    "cuModuleLoadDataEx": (_P(c_void_p), c_char_p, c_uint, c_void_p, c_void_p),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (_P(c_void_p), c_void_p, c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuLaunchKernel": (c_void_p, *(c_uint,) * 7, c_void_p, c_void_p, c_void_p),
    "cuGraphCreate": (_P(c_void_p), c_uint),
    "cuGraphDestroy": (c_void_p,),
    "cuGraphAddNode_v2": (_P(c_void_p), c_void_p, c_void_p, c_void_p, c_size_t, c_void_p),
    "cuGraphInstantiateWithFlags": (_P(c_void_p), c_void_p, c_uint64),
    "cuGraphExecDestroy": (c_void_p,),
    "cuGraphExecKernelNodeSetParams_v2": (c_void_p, c_void_p, c_void_p),
    "cuGraphExecMemcpyNodeSetParams": (c_void_p, c_void_p, c_void_p, c_void_p),
    "cuGraphLaunch": (c_void_p, c_void_p),
    "cuGraphExecChildGraphNodeSetParams": (c_void_p, c_void_p, c_void_p),
    "cuStreamBeginCapture_v2": (c_void_p, c_int),
    "cuStreamEndCapture": (c_void_p, _P(c_void_p)),
    "cuGraphConditionalHandleCreate": (_P(c_uint64), c_void_p, c_void_p, c_uint, c_uint),
    "cuPointerGetAttribute": (c_void_p, c_int, c_uint64),
    "cuGetErrorName": (c_int, _P(c_char_p)),
    "cuGetErrorString": (c_int, _P(c_char_p)),
}


class Driver:
    """The functions of libcuda: each raises where it fails."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.process = os.getpid()

    def __getattr__(self, name: str) -> Any:
        """One of the functions; the newest of several versions that this driver has."""
        signature = _SIGNATURES.get(name)
        if signature is None:
            raise AttributeError(name)
        try:
            function = getattr(self._library, name)
        except AttributeError:
            older = name.removesuffix("_v2")
            function = getattr(self._library, older, None)
            if function is None:
                raise DeviceProblem(
                    f"NVIDIA's driver has no {name}", fix="install a newer driver"
                ) from None
        function.argtypes, function.restype = signature, c_int

        def call(*args: Any) -> None:
            status = function(*args)
            if status:
                raise self.problem(name, status)

        self.__dict__[name] = call
        return call

    def asked(self, name: str, *args: Any) -> int:
        """The status that a function gives, where some are no errors."""
        getattr(self, name)  # it has its signature now
        status = int(getattr(self._library, name)(*args))
        if status in _STICKY:
            raise self.problem(name, status)
        return status

    def address(self, name: str) -> int:
        """Where a function lies, for native code that calls it."""
        found = ctypes.cast(getattr(self._library, name), c_void_p).value
        assert found is not None
        return found

    def problem(self, name: str, status: int) -> DeviceProblem:
        """A status other than success, as an error."""
        text = c_char_p()
        words = f"error {status}"
        if not self._library.cuGetErrorString(status, ctypes.byref(text)) and text.value:
            words = text.value.decode()
        if status == OUT_OF_MEMORY:
            return DeviceMemoryProblem(
                "the GPU's memory does not suffice",
                fix="free arrays that lie on it, or give it less at a time",
            )
        if status in _STICKY:
            return DeviceProblem(
                f"the GPU gave up: {_STICKY[status]} ({words}, in {name})",
                fix="this process can't use it any more: start another; and report the program",
            )
        if status in _KNOWN:
            what, fix = _KNOWN[status]
            return DeviceProblem(f"{what} ({words}, in {name})", fix=fix)
        return DeviceProblem(f"CUDA: {words} (in {name})")


def driver() -> Driver:
    """NVIDIA's driver, begun; an error says why there is none."""
    made = _begun()
    if made.process != os.getpid():
        raise forked()
    return made


def forked() -> DeviceProblem:
    """The error of a child whose parent has used the driver."""
    return DeviceProblem(
        "CUDA does not work in the child of a process that has used it",
        fix="start processes by 'spawn' (multiprocessing.set_start_method), or use CUDA in the "
        "children alone",
    )


def opened() -> Any:
    """The driver's library, which is not begun by that: whoever forks then may use it."""
    for name in _NAMES:
        try:
            return _open(name)
        except OSError:
            continue
    raise DeviceProblem(
        "there is no NVIDIA driver here (libcuda.so.1)",
        fix="install NVIDIA's driver, or give backend='cpu'",
    )


@cache
def _begun() -> Driver:
    made = Driver(opened())
    made.cuInit(0)
    return made
