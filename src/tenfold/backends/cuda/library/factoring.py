"""Factorings and solutions by cuSOLVER; small ones are functions of ours (`small`).

As NumPy's, they are in double precision whatever the dtype: matrices are copied and cast first. The
library has columns one after another, so a matrix that is copied as it is, is to it the transposed
one: that does for symmetric matrices and what is solved with a transposed matrix; others are turned
over. A matrix with an inf or a NaN in it, and one that the library leaves unsolved (a singular one,
say), is the evaluator's: it raises NumPy's error, or gives what NumPy gives.

Signs of eigenvectors and of singular vectors are LAPACK's own, so only values are asked for here.
Matrices are factored one by one: several of fewer than `LEAST` rows or columns are the host's.

The library waits now and then, and has memory of its own: its steps stand between graphs, and one
ends before the next begins. Its bits are its own; the same matrices give the same bits in every
run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from tenfold.backends.cuda.library.cusolver import Factoring
from tenfold.backends.cuda.library.determinant import determinant_launch, determinant_text
from tenfold.backends.cuda.library.laying import DIAGONAL, LOWER, UPPER, Laying, Place
from tenfold.backends.cuda.library.routine import GpuRoutine
from tenfold.backends.cuda.library.small import small_routine
from tenfold.backends.cuda.library.stages import Stages
from tenfold.backends.cuda.library.unsolved import unsolved_launch, unsolved_text
from tenfold.backends.cuda.library.unswapped import unswapped_launch, unswapped_text
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.writer import SIZES
from tenfold.frozen import frozen
from tenfold.types import SHORT, TensorType

if TYPE_CHECKING:
    from tenfold.backends.cuda.driver.device import Device

Given = Mapping[str, Any]
LEAST = 128  # rows and columns from which on several matrices are factored one by one
_WIDE = {"f32": "f64", "f64": "f64", "c64": "c128", "c128": "c128"}
_REAL = {"f32": "f32", "f64": "f64", "c64": "f32", "c128": "f64"}
_INT = 4


@frozen
class FactoringCall:
    """A `LibraryCall`: so many matrices factored by this version of cuSOLVER, each at its places,
    which lie so many bytes apart."""

    factoring: Factoring
    version: str
    count: int
    places: tuple[tuple[Place, int], ...]
    info: Place

    @property
    def made_by(self) -> str:
        return f"cuSOLVER {self.version}"

    @property
    def captured(self) -> bool:
        return False

    def prepare(self, device: Device, aligned: bool) -> int:
        return device.solver().prepare(self.factoring)

    def call(self, device: Device, stream: Any, addresses: Sequence[int]) -> None:
        info = addresses[self.info.array] + self.info.start
        matrices = []
        for n in range(self.count):
            places = [addresses[p.array] + p.start + n * apart for p, apart in self.places]
            matrices.append((places, info + _INT * n))
        device.solver().factor(
            self.factoring, stream, matrices, addresses[-1], lambda: device.wait(stream)
        )


class _Factored:
    """The routine of a node on its way: matrices of rows and columns, in double precision."""

    def __init__(self, type: TensorType, arrays: int, version: str) -> None:
        *before, self.m, self.n = type.shape
        self.count, self.version = prod(before), version
        self.dtype = SHORT[type.dtype]
        self.wide, self.size = _WIDE[self.dtype], SIZES[_WIDE[self.dtype]]
        self.stages = Stages(arrays)
        self.infos = list[Place]()

    def room(self, elements: int) -> Place:
        """Memory for so many elements of each matrix."""
        return self.stages.room(self.count * elements * self.size)

    def take(self, source: Place, target: Place, m: int, n: int, turned: bool) -> None:
        """Copy matrices, turned over or as they are."""
        how = Laying(self.dtype, self.wide, turned, told=True)
        self.stages.lay(how, source, target, (self.count, m, n))

    def give(self, source: Place, target: Place, m: int, n: int, turned: bool = False) -> None:
        """Copy results, which are then rows one after another."""
        self.stages.lay(Laying(self.wide, self.dtype, turned), source, target, (self.count, m, n))

    def factor(self, one: Factoring, *places: tuple[Place, int]) -> None:
        """Have matrices factored, whose places lie so many bytes apart."""
        info = self.stages.room(self.count * _INT)
        self.infos.append(info)
        self.stages.call(FactoringCall(one, self.version, self.count, places, info))

    def asked(
        self, function: str, m: int, n: int, count: int = 0, turned: bool = False
    ) -> Factoring:
        return Factoring(function, self.wide, m, n, count, turned)

    def pivoted(self, turned: bool) -> tuple[tuple[Place, int], tuple[Place, int]]:
        """Square matrices in two triangles, and which rows were swapped."""
        n = self.n
        a, swaps = self.room(n * n), self.stages.room(self.count * n * _INT)
        self.take(Place(0), a, n, n, turned)
        made = (a, n * n * self.size), (swaps, n * _INT)
        self.factor(self.asked("getrf", n, n), *made)
        return made

    def routine(self) -> GpuRoutine:
        """What it has come to; what is unsolved is told of."""
        for info in self.infos:
            self.stages.launch(unsolved_launch(info, self.count), unsolved_text)
        return self.stages.routine(checks=True)


def _cholesky(f: _Factored, types: Sequence[TensorType], given: Given) -> None:
    a = f.room(f.n * f.n)
    f.take(Place(0), a, f.n, f.n, False)
    f.factor(f.asked("potrf", f.n, f.n), (a, f.n * f.n * f.size))
    how = Laying(f.wide, f.dtype, part=LOWER)
    f.stages.lay(how, a, Place(1), (f.count, f.n, f.n))


def _solve(f: _Factored, types: Sequence[TensorType], given: Given) -> None:
    columns, n = types[1].shape[-1], f.n
    factored = f.pivoted(False)
    b = f.room(n * columns)
    f.take(Place(1), b, n, columns, True)
    solved = f.asked("getrs", n, n, columns, turned=True)
    f.factor(solved, *factored, (b, n * columns * f.size))
    f.give(b, Place(2), columns, n, turned=True)


def _triangular(f: _Factored, types: Sequence[TensorType], given: Given) -> None:
    """The triangle as the second of two that pivoting gives, of which the first is a unit matrix.
    A zero on its diagonal shows in results, which are then no finite numbers."""
    columns, n, lower = types[1].shape[-1], f.n, given["lower"]
    a, b = f.room(n * n), f.room(n * columns)
    how = Laying(f.dtype, f.wide, not lower, told=True, part=LOWER, ones=given["unit"])
    f.stages.lay(how, Place(0), a, (f.count, n, n))
    swaps = f.stages.room(f.count * n * _INT)
    f.stages.launch(unswapped_launch(swaps, f.count, n), unswapped_text)
    f.take(Place(1), b, n, columns, True)
    places = (a, n * n * f.size), (swaps, n * _INT), (b, n * columns * f.size)
    f.factor(f.asked("getrs", n, n, columns, turned=lower), *places)
    given_back = Laying(f.wide, f.dtype, turned=True, told=True)
    f.stages.lay(given_back, b, Place(2), (f.count, columns, n))


def _inv(f: _Factored, types: Sequence[TensorType], given: Given) -> None:
    """The inverse of the transposed matrix, which lies as the inverse does."""
    n = f.n
    factored = f.pivoted(False)
    b = f.room(n * n)
    unit = Laying(f.wide, f.wide, part=DIAGONAL, ones=True)
    f.stages.lay(unit, factored[0][0], b, (f.count, n, n))
    f.factor(f.asked("getrs", n, n, n), *factored, (b, n * n * f.size))
    f.give(b, Place(1), n, n)


def _determinant(f: _Factored, types: Sequence[TensorType], given: Given) -> None:
    (a, _), (swaps, _) = f.pivoted(False)
    results = (Place(1), Place(2)) if f.stages.arrays == 3 else (Place(1),)
    logs = len(results) == 2
    f.stages.launch(
        determinant_launch(f.dtype, logs, a, swaps, results, f.count, f.n),
        lambda target: determinant_text(f.dtype, logs, target),
    )


def _qr(f: _Factored, types: Sequence[TensorType], given: Given) -> None:
    m, n, mode = f.m, f.n, given["mode"]
    least = min(m, n)
    width = m if mode == "complete" else least  # columns of Q
    across = n if mode == "r" else max(n, width)
    a, factors = f.room(m * across), f.room(least)
    each = m * across * f.size
    how = Laying(f.dtype, f.wide, turned=True, told=True)
    if across == n:
        f.stages.lay(how, Place(0), a, (f.count, m, n))
    for k in range(f.count if across > n else 0):  # there is to be room behind each
        source = Place(0, k * m * n * SIZES[f.dtype])
        f.stages.lay(how, source, Place(a.array, a.start + k * each), (1, m, n))
    places = (a, each), (factors, least * f.size)
    f.factor(f.asked("geqrf", m, n), *places)
    rows = m if mode == "complete" else least
    triangle = Laying(f.wide, f.dtype, turned=True, part=UPPER)
    result = Place(1 if mode == "r" else 2)
    f.stages.lay(triangle, a, result, (f.count, n, rows), apart=(m, m * across))
    if mode != "r":
        f.factor(f.asked("orgqr", m, width, least), *places)
        how = Laying(f.wide, f.dtype, turned=True)
        f.stages.lay(how, a, Place(1), (f.count, width, m), apart=(m, m * across))


def _eigenvalues(f: _Factored, types: Sequence[TensorType], given: Given) -> None:
    a, values = f.room(f.n * f.n), f.stages.room(f.count * f.n * 8)
    f.take(Place(0), a, f.n, f.n, not given["lower"])
    f.factor(f.asked("syevd", f.n, f.n), (a, f.n * f.n * f.size), (values, f.n * 8))
    _give_values(f, values, f.n)


def _singular_values(f: _Factored, types: Sequence[TensorType], given: Given) -> None:
    """Of what has at least as many rows as columns: the matrix or the transposed one."""
    most, least = max(f.m, f.n), min(f.m, f.n)
    a, values = f.room(f.m * f.n), f.stages.room(f.count * least * 8)
    f.take(Place(0), a, f.m, f.n, f.m > f.n)
    f.factor(f.asked("gesvd", most, least), (a, f.m * f.n * f.size), (values, least * 8))
    _give_values(f, values, least)


def _give_values(f: _Factored, values: Place, n: int) -> None:
    f.stages.lay(Laying("f64", _REAL[f.dtype]), values, Place(1), (1, f.count, n))


Write = Callable[[_Factored, Sequence[TensorType], Given], None]
# The writer of each, and how many arrays a node has: inputs and outputs.
_WRITERS: dict[str, tuple[Write, int]] = {
    "cholesky": (_cholesky, 2),
    "solve": (_solve, 3),
    "triangular_solve": (_triangular, 3),
    "inv": (_inv, 2),
    "det": (_determinant, 2),
    "slogdet": (_determinant, 3),
    "qr": (_qr, 3),
    "eigh": (_eigenvalues, 2),
    "svd": (_singular_values, 2),
}


def factoring_routine(
    name: str, types: Sequence[TensorType], given: Given, target: CudaTarget
) -> GpuRoutine | None:
    """The routine of a node; None where it is the host's."""
    small = small_routine(name, types, given)
    if small is not None:
        return small
    vectors = given.get("vectors") or given.get("compute_uv")
    if not target.cusolver or name not in _WRITERS or vectors or why_not(types):
        return None
    return _written(name, tuple(types), tuple(sorted(given.items())), target.cusolver)


@lru_cache(maxsize=256)  # a step that is in no graph asks at each call
def _written(
    name: str, types: tuple[TensorType, ...], given: tuple[tuple[str, Any], ...], version: str
) -> GpuRoutine:
    write, arrays = _WRITERS[name]
    own = dict(given)
    arrays -= name == "qr" and own["mode"] == "r"
    made = _Factored(types[0], arrays, version)
    write(made, types, own)
    return made.routine()


def why_not(types: Sequence[TensorType]) -> str:
    """Why matrices of such types are the host's, or nothing."""
    *before, m, n = types[0].shape
    if not all(type.size for type in types):
        return "there is nothing in it"
    if prod(before) > 1 and min(m, n) < LEAST:
        return "many small matrices are LAPACK's"
    return ""


def factoring_reason(name: str, types: Sequence[TensorType], target: CudaTarget) -> str:
    """Why a node is the host's."""
    if not target.cusolver:
        return "LAPACK factors and solves matrices, where there is no cuSOLVER"
    if name not in _WRITERS:
        return "cuSOLVER does not do it as LAPACK does"
    return why_not(types) or "signs of vectors are LAPACK's own"
