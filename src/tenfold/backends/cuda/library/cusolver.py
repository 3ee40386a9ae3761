"""cuSOLVER by ctypes: its functions, errors in words, and factorings on a device.

Which version was found is part of the target (`CudaTarget.cusolver`), since results have its bits.
The library is loaded when the first factoring is prepared. Matrices lie column after column, in
double precision, as NumPy factors them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from ctypes import POINTER, byref, c_byte, c_int, c_void_p
from typing import Any

from tenfold.errors import DeviceMemoryProblem, DeviceProblem
from tenfold.frozen import frozen
from tenfold.locks import Lock

_STATUS = {
    1: "it could not begin",
    2: "memory does not suffice",
    3: "a value is not valid",
    4: "the chip is too old for it",
    6: "a kernel of its own failed",
    7: "it failed within",
    8: "it does not do such a matrix",
    9: "it does not do such a matrix",
}
_NO_MEMORY = 2
_UPPER, _TRANSPOSED, _AS_IT_IS = 1, 1, 0
_VALUES = 0  # of eigenvalues: no vectors
_NONE = ord("N")  # of singular values: no vectors

# What functions take, by a letter each: an int, an address on the device, a letter, and where the
# words of workspace are told.
_KIND: dict[str, Any] = {"i": c_int, "p": c_void_p, "c": c_byte, "w": POINTER(c_int)}
_FORMS = {
    "potrf": ("iipi", "iipipip"),
    "getrf": ("iipi", "iipippp"),
    "getrs": ("", "iiipippip"),
    "geqrf": ("iipi", "iipippip"),
    "orgqr": ("iiipip", "iiipippip"),
    "syevd": ("iiipip", "iiipippip"),
    "gesvd": ("ii", "cciipippipipipp"),
}
_COMPLEX = {"orgqr": "ungqr", "syevd": "heevd"}
VERSION = ("MAJOR_VERSION", "MINOR_VERSION", "PATCH_LEVEL")


@frozen
class Factoring:
    """What is asked of a matrix: the function by LAPACK's name for reals, the dtype (f64, c128),
    how many rows and columns it has, and a further count (right sides of `getrs`, reflections of
    `orgqr`). `turned`: solve with what lies transposed."""

    function: str
    dtype: str
    rows: int
    columns: int
    count: int = 0
    turned: bool = False


class Cusolver:
    """The functions of cuSOLVER: each raises where it fails."""

    def __init__(self, library: Any, path: str = "") -> None:
        self._library, self.path = library, path
        parts = []
        for which in range(len(VERSION)):
            found = c_int()
            library.cusolverGetProperty(which, byref(found))
            parts.append(str(found.value))
        self.version = ".".join(parts)

    def create(self) -> c_void_p:
        made = c_void_p()
        self._called("cusolverDnCreate", (POINTER(c_void_p),), (byref(made),))
        return made

    def set_stream(self, handle: c_void_p, stream: Any) -> None:
        self._called("cusolverDnSetStream", (c_void_p, c_void_p), (handle, stream))

    def words(self, handle: c_void_p, one: Factoring, given: Sequence[Any]) -> int:
        """How many elements of workspace a factoring takes."""
        form = _FORMS[one.function][0]
        if not form:
            return 0
        found = c_int()
        types = (c_void_p, *(_KIND[letter] for letter in form), _KIND["w"])
        self._called(f"{_name(one)}_bufferSize", types, (handle, *given, byref(found)))
        return found.value

    def factor(self, handle: c_void_p, one: Factoring, given: Sequence[Any]) -> None:
        types = (c_void_p, *(_KIND[letter] for letter in _FORMS[one.function][1]))
        self._called(_name(one), types, (handle, *given))

    def _called(self, name: str, types: tuple[Any, ...], args: tuple[Any, ...]) -> None:
        function = getattr(self._library, name)
        function.argtypes, function.restype = types, c_int
        status = function(*args)
        if status:
            raise self.problem(name, status)

    def problem(self, name: str, status: int) -> DeviceProblem:
        """A status other than success, as an error."""
        if status == _NO_MEMORY:
            return DeviceMemoryProblem(
                f"the GPU's memory does not suffice for cuSOLVER ({name})",
                fix="free arrays that lie on it, or give it less at a time",
            )
        words = _STATUS.get(status, f"error {status}")
        return DeviceProblem(
            f"cuSOLVER {self.version}: {words} (status {status} in {name})",
            fix="report the program; with TENFOLD_CUSOLVER=off the library is left alone",
        )


def _name(one: Factoring) -> str:
    own = one.dtype == "c128"
    function = _COMPLEX.get(one.function, one.function) if own else one.function
    return f"cusolverDn{'Z' if own else 'D'}{function}"


class Solver:
    """cuSOLVER on the device whose context is current when it is made. Any thread may call it."""

    def __init__(self, library: Cusolver) -> None:
        self.library = library
        self._words: dict[Factoring, int] = {}
        self._lock = Lock()
        self._handle = library.create()

    def prepare(self, one: Factoring) -> int:
        """The bytes of workspace that a factoring takes."""
        with self._lock:
            return self._elements(one) * (16 if one.dtype == "c128" else 8)

    def _elements(self, one: Factoring) -> int:
        found = self._words.get(one)
        if found is None:
            given = _sizes(one)
            found = self._words[one] = self.library.words(self._handle, one, given)
        return found

    def factor(
        self,
        one: Factoring,
        stream: Any,
        matrices: Iterable[tuple[Sequence[int], int]],
        workspace: int,
        finish: Callable[[], None],
    ) -> None:
        """Factor matrices in a stream, each with the addresses that it takes and another for what
        the library has to say of it, and finish that: the library has memory of its own, which the
        next call may not touch before. The addresses: of `potrf` the matrix; of `getrf` the matrix
        and the rows that were swapped; of `getrs` these and the right sides; of `geqrf` and `orgqr`
        the matrix and the reflections' factors; of `syevd` and `gesvd` the matrix and the
        values."""
        with self._lock:
            words = self._elements(one)
            self.library.set_stream(self._handle, stream)
            for places, info in matrices:
                given = _given(one, places, info, workspace, words)
                self.library.factor(self._handle, one, given)
            finish()


def _sizes(one: Factoring) -> tuple[Any, ...]:
    """What a function is given to say how much workspace it takes: sizes, and no addresses."""
    m, n = one.rows, one.columns
    match one.function:
        case "potrf":
            return (_UPPER, n, None, n)
        case "orgqr":
            return (m, n, one.count, None, m, None)
        case "syevd":
            return (_VALUES, _UPPER, n, None, n, None)
        case "gesvd":
            return (m, n)
    return (m, n, None, m)


def _given(
    one: Factoring, places: Sequence[int], info: int, workspace: int, words: int
) -> tuple[Any, ...]:
    m, n, a = one.rows, one.columns, places[0]
    match one.function:
        case "potrf":
            return (_UPPER, n, a, n, workspace, words, info)
        case "getrf":
            return (m, n, a, m, workspace, places[1], info)
        case "getrs":
            way = _TRANSPOSED if one.turned else _AS_IT_IS
            return (way, n, one.count, a, n, places[1], places[2], n, info)
        case "geqrf":
            return (m, n, a, m, places[1], workspace, words, info)
        case "orgqr":
            return (m, n, one.count, a, m, places[1], workspace, words, info)
        case "syevd":
            return (_VALUES, _UPPER, n, a, n, places[1], workspace, words, info)
        case _:  # gesvd
            return (_NONE, _NONE, m, n, a, m, places[1], None, m, None, n, workspace, words, None,
                    info)  # fmt: skip


def load_cusolver(path: str) -> Cusolver:
    """The library in a file."""
    try:
        return Cusolver(ctypes.CDLL(path), path)
    except (OSError, AttributeError) as error:
        raise DeviceProblem(
            f"{path} is no cuSOLVER that can be loaded: {error}",
            fix="install nvidia-cusolver again, or set TENFOLD_CUSOLVER=off to do without it",
        ) from None
