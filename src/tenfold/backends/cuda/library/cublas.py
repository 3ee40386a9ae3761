"""cublasLt by ctypes: its functions, and errors in words.

Which version was found is part of the target (`CudaTarget.cublas`), since products have its bits.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, byref, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from functools import cache
from typing import Any

from tenfold.backends.cuda.find import CUBLAS, asked, files
from tenfold.errors import DeviceMemoryProblem, DeviceProblem
from tenfold.frozen import frozen
from tenfold.locks import Lock

MAJORS = tuple(major for _, major in CUBLAS.majors)  # of which the numbers below hold

_STATUS = {
    1: "it could not begin",
    3: "memory does not suffice",
    7: "a value is not valid",
    8: "the chip is too old for it",
    11: "memory can't be reached",
    13: "a kernel of its own failed",
    14: "it failed within",
    15: "it does not do such a product",
}
_NO_MEMORY = 3
_ATTRIBUTE = (c_void_p, c_int, c_void_p, c_size_t)
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cublasLtCreate": (POINTER(c_void_p),),
    "cublasLtMatmulDescCreate": (POINTER(c_void_p), c_int, c_int),
    "cublasLtMatmulDescSetAttribute": _ATTRIBUTE,
    "cublasLtMatmulDescDestroy": (c_void_p,),
    "cublasLtMatrixLayoutCreate": (POINTER(c_void_p), c_int, c_uint64, c_uint64, c_int64),
    "cublasLtMatrixLayoutSetAttribute": _ATTRIBUTE,
    "cublasLtMatrixLayoutDestroy": (c_void_p,),
    "cublasLtMatmulPreferenceCreate": (POINTER(c_void_p),),
    "cublasLtMatmulPreferenceSetAttribute": _ATTRIBUTE,
    "cublasLtMatmulPreferenceDestroy": (c_void_p,),
    "cublasLtMatmulAlgoGetHeuristic": (*(c_void_p,) * 7, c_int, c_void_p, POINTER(c_int)),
    "cublasLtMatmul": (*(c_void_p,) * 14, c_size_t, c_void_p),
}

# The library's own numbers. Of operations and layouts:
_LEFT_TURNED, _RIGHT_TURNED, _TRANSPOSED = 3, 4, 1
_BATCH, _APART = 5, 6
# Of preferences: bytes of workspace, how partial sums are added, and where operands begin.
_WORKSPACE, _REDUCTIONS, _ALIGNMENTS = 1, 3, (5, 6, 7, 8)
_IN_WORKSPACE = 2  # partial sums stay in the workspace, in the dtype that sums have: none rounded
# Of dtypes: how elements of operands lie, in which dtype sums are made (f32 without TF32 is 68),
# factors, and how elements of the result lie.
_DTYPES = {
    "f32": (0, 68, 0, 0),
    "f64": (1, 70, 1, 1),
    "f16": (2, 68, 0, 2),
    "bf16": (14, 68, 0, 14),
    "c64": (4, 68, 4, 4),
    "c128": (5, 70, 5, 5),
    "i8": (3, 72, 10, 10),  # in i32
}
# Room for 1 and 0, by which a product and what was there are multiplied.
_FACTORS: dict[int, Any] = {
    0: ctypes.c_float * 2,
    1: ctypes.c_double * 2,
    4: ctypes.c_float * 4,
    5: ctypes.c_double * 4,
    10: c_int32 * 2,
}


class _Heuristic(ctypes.Structure):
    """What the library says of an algorithm."""

    _fields_ = [
        ("algorithm", c_uint64 * 8),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", ctypes.c_float),
        ("reserved", c_int * 4),
    ]


class Cublas:
    """The functions of cublasLt: each raises where it fails."""

    def __init__(self, library: Any, path: str = "") -> None:
        self._library, self.path = library, path
        library.cublasLtGetVersion.restype = c_size_t
        number = int(library.cublasLtGetVersion())
        self.major = number // 10000
        self.version = f"{self.major}.{number // 100 % 100}.{number % 100}"

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
                f"the GPU's memory does not suffice for cublasLt ({name})",
                fix="free arrays that lie on it, or give it less at a time",
            )
        words = _STATUS.get(status, f"error {status}")
        return DeviceProblem(
            f"cublasLt {self.version}: {words} (status {status} in {name})",
            fix="report the program; with TENFOLD_CUBLAS=off products are our own",
        )


@cache
def find_cublas(newest: int) -> Cublas | None:
    """cublasLt for a driver that serves this major version of CUDA, or None where there is none
    that can be loaded."""
    said = asked(CUBLAS)
    for path in files(CUBLAS, newest) if said is None else filter(None, [said]):
        try:
            found = Cublas(ctypes.CDLL(path), path)
        except (OSError, AttributeError):
            continue  # another chip's, or a file that is no such library
        if found.major in MAJORS and found.major <= newest:
            return found
    if said:
        raise DeviceProblem(
            f"{CUBLAS.variable} is {said!r}, which is no cublasLt that this driver can serve",
            fix=f"give one of major version {' or '.join(str(m) for m in MAJORS if m <= newest)}",
        )
    return None


@frozen
class Multiplication:
    """One call: so many products, each of m rows and n columns of k terms, of matrices that lie row
    after row, of a dtype; of i8 the result is i32. `left` and `right`: that operand lies
    transposed. `workspace` bytes are lent; all operands begin at multiples of `aligned` bytes."""

    dtype: str
    batch: int
    m: int
    n: int
    k: int
    left: bool
    right: bool
    workspace: int
    aligned: int


@frozen(eq=False)
class _Prepared:
    """What the library is given for a multiplication, whatever its addresses."""

    operation: c_void_p
    layouts: tuple[c_void_p, c_void_p, c_void_p]
    algorithm: Any
    factors: Any
    zero: int  # where the second factor begins


class Multiplier:
    """cublasLt on the device whose context is current when it is made. Any thread may call it.

    An algorithm is asked for once for each multiplication, and is plain data: `algorithms` has them
    all, and whoever keeps them elsewhere may give them again, so that nothing is asked.
    """

    def __init__(self, library: Cublas) -> None:
        self.library = library
        self.algorithms: dict[Multiplication, bytes] = {}
        self._prepared: dict[Multiplication, _Prepared] = {}
        self._lock = Lock()
        self._handle = c_void_p()
        library.cublasLtCreate(byref(self._handle))

    def multiply(
        self,
        one: Multiplication,
        stream: Any,
        left: int,
        right: int,
        result: int,
        workspace: int,
    ) -> None:
        """Multiply what lies at these addresses, in a stream; it may be captured into a graph."""
        found = self._prepared.get(one) or self.prepare(one)
        # The library has columns one after another: to it our matrices are transposed, and what is
        # asked for is the transposed product, with the operands the other way about.
        alpha = ctypes.addressof(found.factors)
        second, first, made = found.layouts
        self.library.cublasLtMatmul(
            self._handle, found.operation, alpha, right, first, left, second, alpha + found.zero,
            result, made, result, made, ctypes.addressof(found.algorithm), workspace or None,
            one.workspace, stream,
        )  # fmt: skip

    def prepare(self, one: Multiplication) -> _Prepared:
        """What the library is given for a multiplication, made once: the first of a dtype takes
        about 0.1 s. Nothing is put into a stream."""
        with self._lock:
            if one in self._prepared:
                return self._prepared[one]
            library = self.library
            element, sums, scale, result = _DTYPES[one.dtype]
            operation = c_void_p()
            library.cublasLtMatmulDescCreate(byref(operation), sums, scale)
            for attribute, turned in ((_LEFT_TURNED, one.right), (_RIGHT_TURNED, one.left)):
                if turned:
                    value = c_int32(_TRANSPOSED)
                    library.cublasLtMatmulDescSetAttribute(operation, attribute, byref(value), 4)
            layouts = (
                self._layout(element, one.batch, *_lies(one.m, one.k, one.left)),
                self._layout(element, one.batch, *_lies(one.k, one.n, one.right)),
                self._layout(result, one.batch, one.n, one.m),
            )
            kept = self.algorithms.get(one)
            if kept is None:
                kept = self._ask(one, operation, layouts)
                self.algorithms[one] = kept
            factors = _FACTORS[scale](1)  # the rest is 0
            algorithm = (ctypes.c_ubyte * len(kept)).from_buffer_copy(kept)
            made = _Prepared(operation, layouts, algorithm, factors, ctypes.sizeof(factors) // 2)
            self._prepared[one] = made
            return made

    def _layout(self, element: int, batch: int, rows: int, columns: int) -> c_void_p:
        """A matrix of so many rows and columns, column after column, and as many after it."""
        library, made = self.library, c_void_p()
        library.cublasLtMatrixLayoutCreate(byref(made), element, rows, columns, rows)
        if batch > 1:
            count, apart = c_int32(batch), c_int64(rows * columns)
            library.cublasLtMatrixLayoutSetAttribute(made, _BATCH, byref(count), 4)
            library.cublasLtMatrixLayoutSetAttribute(made, _APART, byref(apart), 8)
        return made

    def _ask(self, one: Multiplication, operation: c_void_p, layouts: Sequence[c_void_p]) -> bytes:
        """The library's own choice among its algorithms: of all that add in the sums' dtype."""
        library, preference = self.library, c_void_p()
        library.cublasLtMatmulPreferenceCreate(byref(preference))
        try:
            given: list[tuple[int, Any]] = [
                (_WORKSPACE, c_uint64(one.workspace)),
                (_REDUCTIONS, c_int32(_IN_WORKSPACE)),
                *((which, c_int32(one.aligned)) for which in _ALIGNMENTS),
            ]
            for which, value in given:
                library.cublasLtMatmulPreferenceSetAttribute(
                    preference, which, byref(value), ctypes.sizeof(value)
                )
            found, count = _Heuristic(), c_int()
            second, first, made = layouts
            library.cublasLtMatmulAlgoGetHeuristic(
                self._handle, operation, first, second, made, made, preference, 1,
                ctypes.addressof(found), byref(count),
            )  # fmt: skip
        finally:
            library.cublasLtMatmulPreferenceDestroy(preference)
        if count.value < 1 or found.state:
            raise DeviceProblem(
                f"cublasLt {library.version} has no algorithm for {one}",
                fix="report the program; with TENFOLD_CUBLAS=off the library is left alone",
            )
        return bytes(found.algorithm)


def _lies(rows: int, columns: int, turned: bool) -> tuple[int, int]:
    """The rows and columns that the library sees of a matrix: what lies transposed it sees as it
    is."""
    return (rows, columns) if turned else (columns, rows)
