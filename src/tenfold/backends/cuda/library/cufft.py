"""cuFFT by ctypes: its functions, errors in words, and transforms on a device.

Which version was found is part of the target (`CudaTarget.cufft`), since transforms have its bits.
The library is loaded when the first transform is prepared.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_int, c_longlong, c_size_t, c_void_p
from typing import Any

from tenfold.errors import DeviceMemoryProblem, DeviceProblem
from tenfold.frozen import frozen
from tenfold.locks import Lock

_STATUS = {
    1: "a plan is not valid",
    2: "memory does not suffice",
    4: "a value is not valid",
    5: "it failed within",
    6: "a kernel of its own failed",
    7: "it could not begin",
    8: "it does not do so many points",
    9: "an array begins at an odd place",
    11: "the plan is another GPU's",
    13: "it has no memory to work in",
    14: "it does not do such a transform",
    16: "it does not do such a transform",
    17: "a library that it calls is missing",
}
_NO_MEMORY = 2
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cufftGetVersion": (POINTER(c_int),),
    "cufftCreate": (POINTER(c_int),),
    "cufftDestroy": (c_int,),
    "cufftSetAutoAllocation": (c_int, c_int),
    "cufftMakePlanMany64": (
        c_int, c_int, *(POINTER(c_longlong),) * 2, c_longlong, c_longlong, POINTER(c_longlong),
        c_longlong, c_longlong, c_int, c_longlong, POINTER(c_size_t),
    ),
    "cufftSetStream": (c_int, c_void_p),
    "cufftSetWorkArea": (c_int, c_void_p),
    "cufftExecC2C": (c_int, c_void_p, c_void_p, c_int),
    "cufftExecR2C": (c_int, c_void_p, c_void_p),
    "cufftExecC2R": (c_int, c_void_p, c_void_p),
    "cufftExecZ2Z": (c_int, c_void_p, c_void_p, c_int),
    "cufftExecD2Z": (c_int, c_void_p, c_void_p),
    "cufftExecZ2D": (c_int, c_void_p, c_void_p),
}  # fmt: skip

COMPLEX, FROM_REAL, TO_REAL = "complex", "from real", "to real"
# By the kind of a transform and the dtype of its real parts: the library's number and function.
_KINDS = {
    (COMPLEX, "f32"): (0x29, "cufftExecC2C"),
    (FROM_REAL, "f32"): (0x2A, "cufftExecR2C"),
    (TO_REAL, "f32"): (0x2C, "cufftExecC2R"),
    (COMPLEX, "f64"): (0x69, "cufftExecZ2Z"),
    (FROM_REAL, "f64"): (0x6A, "cufftExecD2Z"),
    (TO_REAL, "f64"): (0x6C, "cufftExecZ2D"),
}
_FORWARD, _INVERSE = -1, 1


@frozen
class Transform:
    """So many transforms of a kind and so many points, one after another or side by side: what lies
    between neighbouring points, and between transforms, where they are read and where they are
    written, in elements."""

    kind: str
    dtype: str  # of real parts
    points: int
    count: int
    read: tuple[int, int]
    written: tuple[int, int]


class Cufft:
    """The functions of cuFFT: each raises where it fails."""

    def __init__(self, library: Any, path: str = "") -> None:
        self._library, self.path, self.version = library, path, ""
        found = c_int()
        self.cufftGetVersion(byref(found))
        number = found.value
        self.version = f"{number // 1000}.{number // 100 % 10}.{number % 100}"

    def __getattr__(self, name: str) -> Any:
        signature = _SIGNATURES.get(name)
        if signature is None:
            raise AttributeError(name)
        function = getattr(self._library, name)
        function.argtypes, function.restype = signature, c_int

        def call(*args: Any) -> None:
            status = function(*args)
            if status:
                raise self.problem(name, status)

        self.__dict__[name] = call
        return call

    def problem(self, name: str, status: int) -> DeviceProblem:
        """A status other than success, as an error."""
        if status == _NO_MEMORY:
            return DeviceMemoryProblem(
                f"the GPU's memory does not suffice for cuFFT ({name})",
                fix="free arrays that lie on it, or give it less at a time",
            )
        words = _STATUS.get(status, f"error {status}")
        return DeviceProblem(
            f"cuFFT {self.version}: {words} (status {status} in {name})",
            fix="report the program; with TENFOLD_CUFFT=off the library is left alone",
        )


class Transformer:
    """cuFFT on the device whose context is current when transforms are prepared. Any thread may
    call it.

    A plan of the library is made once for each transform, and kept: graphs read its memory.
    """

    def __init__(self, library: Cufft) -> None:
        self.library = library
        self._plans: dict[Transform, tuple[c_int, int]] = {}
        self._lock = Lock()  # a plan is told where to work before each call

    def prepare(self, one: Transform) -> int:
        """Have a transform ready; it gives the bytes of memory to work in."""
        with self._lock:
            return self._plan(one)[1]

    def transform(
        self, one: Transform, inverse: bool, stream: Any, source: int, target: int, workspace: int
    ) -> None:
        """Transform what lies at an address, in a stream; it may be captured into a graph."""
        with self._lock:
            plan, nbytes = self._plan(one)
            library = self.library
            library.cufftSetStream(plan, stream)
            if nbytes:
                library.cufftSetWorkArea(plan, workspace)
            way = (_INVERSE if inverse else _FORWARD,) if one.kind == COMPLEX else ()
            getattr(library, _KINDS[one.kind, one.dtype][1])(plan, source, target, *way)

    def _plan(self, one: Transform) -> tuple[c_int, int]:
        found = self._plans.get(one)
        if found is None:
            found = self._plans[one] = self._made(one)
        return found

    def _made(self, one: Transform) -> tuple[c_int, int]:
        library, plan, nbytes = self.library, c_int(), c_size_t()
        library.cufftCreate(byref(plan))
        try:
            library.cufftSetAutoAllocation(plan, 0)
            n, whole = (c_longlong * 1)(one.points), (c_longlong * 1)(one.points)
            library.cufftMakePlanMany64(
                plan, 1, n, whole, *one.read, whole, *one.written, _KINDS[one.kind, one.dtype][0],
                one.count, byref(nbytes),
            )  # fmt: skip
        except DeviceProblem:
            library.cufftDestroy(plan)
            raise
        return plan, nbytes.value


def load_cufft(path: str) -> Cufft:
    """The library in a file."""
    try:
        return Cufft(ctypes.CDLL(path), path)
    except (OSError, AttributeError) as error:
        raise DeviceProblem(
            f"{path} is no cuFFT that can be loaded: {error}",
            fix="install nvidia-cufft again, or set TENFOLD_CUFFT=off to do without it",
        ) from None
