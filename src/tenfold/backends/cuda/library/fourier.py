"""Fourier transforms by cuFFT.

The library reads lines that lie one after another, or side by side; and it writes so. What comes
before an axis whose lines lie side by side takes a call for each of its parts, up to `PARTS`. Where
there are more, lines are laid one after another in scratch memory first, and the results are turned
back from there. Real numbers that it reads or writes begin at multiples of 16 bytes: they are
copied where they, or their parts, do not. What becomes real numbers is always copied, since the
library writes over it, and the imaginary parts at the ends are dropped. It does not scale: that is
done where results are turned back, else in place.

Its bits are not NumPy's, nor those of another version or chip. The same shapes give the same bits
in every run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod, sqrt
from typing import TYPE_CHECKING, Any

from tenfold.backends.cuda.library.cufft import COMPLEX, FROM_REAL, TO_REAL, Transform
from tenfold.backends.cuda.library.laying import Laying, Place
from tenfold.backends.cuda.library.routine import GpuRoutine
from tenfold.backends.cuda.library.stages import Stages
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.writer import SIZES
from tenfold.frozen import frozen
from tenfold.types import SHORT, TensorType

if TYPE_CHECKING:
    from tenfold.backends.cuda.driver.device import Device

_KINDS = {"fft": COMPLEX, "rfft": FROM_REAL, "irfft": TO_REAL}
PARTS = 8  # calls for one array at most
_ALIGNED = 16  # bytes at whose multiples real numbers are to begin
_REAL = {"c64": "f32", "c128": "f64"}
_PAIRED = {real: paired for paired, real in _REAL.items()}


@frozen
class FourierCall:
    """A `LibraryCall`: transforms by this version of cuFFT, from one place to another, in so many
    parts, which lie so many bytes apart here and there."""

    transform: Transform
    inverse: bool
    version: str
    source: Place
    target: Place
    parts: int
    apart: tuple[int, int]

    @property
    def made_by(self) -> str:
        return f"cuFFT {self.version}"

    @property
    def captured(self) -> bool:
        return True

    def prepare(self, device: Device, aligned: bool) -> int:
        return device.transformer().prepare(self.transform)

    def call(self, device: Device, stream: Any, addresses: Sequence[int]) -> None:
        source, target = (addresses[p.array] + p.start for p in (self.source, self.target))
        read, written = self.apart
        for n in range(self.parts):
            device.transformer().transform(
                self.transform, self.inverse, stream, source + n * read, target + n * written,
                addresses[-1],
            )  # fmt: skip


def fourier_routine(
    name: str, type: TensorType, given: Mapping[str, Any], *, target: CudaTarget, aligned: bool
) -> GpuRoutine | None:
    """The routine of a transform along `axis`; None where there is no library."""
    if not target.cufft:
        return None
    kind, axis = _KINDS[name], given["axis"]
    n, before, behind = type.shape[axis], prod(type.shape[:axis]), prod(type.shape[axis + 1 :])
    points = given["n"] if kind == TO_REAL else n
    m = n // 2 + 1 if kind == FROM_REAL else points
    inverse = kind == TO_REAL or bool(given.get("inverse"))
    read = SHORT[type.dtype]
    real = _REAL.get(read, read)
    written = real if kind == TO_REAL else _PAIRED[real]
    count = before * behind
    stages = Stages(2)
    if not count:
        return stages.routine()
    source, result = Place(0), Place(1)
    single = behind == 1 or before == 1

    def taken(extent: int, dtype: str) -> bool:
        """Whether the library takes an array as it lies."""
        if single:
            return aligned or dtype in _REAL
        whole = dtype in _REAL or (aligned and extent * behind * SIZES[dtype] % _ALIGNED == 0)
        return before <= PARTS and whole

    def between(extent: int, direct: bool) -> tuple[int, int]:
        return (behind, 1) if direct and behind > 1 else (1, extent)

    # What the library reads.
    as_it_is = kind != TO_REAL and taken(n, read)
    if not as_it_is:
        source = stages.room(count * n * SIZES[read])
        last = n - 1 if points % 2 == 0 else -1
        shape = (before, n, behind) if behind > 1 else (1, before, n)
        how = Laying(read, read, behind > 1, ends=kind == TO_REAL)
        stages.lay(how, Place(0), source, shape, last=last)

    # What it writes.
    direct = taken(m, written) and (single or as_it_is or kind != FROM_REAL)
    if not direct:
        over = kind == COMPLEX and not as_it_is
        result = source if over else stages.room(count * m * SIZES[written])
    parts = before if behind > 1 and (as_it_is or direct) else 1
    each = count // parts
    transform = Transform(kind, real, points, each, between(n, as_it_is), between(m, direct))
    apart = each * n * SIZES[read], each * m * SIZES[written]
    stages.call(FourierCall(transform, inverse, target.cufft, source, result, parts, apart))

    factor = factor_of(points, given["norm"], inverse)
    scaled = factor != 1
    if not direct:
        how = Laying(written, written, behind > 1, scaled)
        shape = (before, behind, m) if behind > 1 else (1, before, m)
        stages.lay(how, result, Place(1), shape, factor=factor)
    elif scaled:
        how = Laying(written, written, scaled=True)
        stages.lay(how, result, result, (1, count, m), factor=factor)
    return stages.routine()


def factor_of(points: int, norm: str, inverse: bool) -> float:
    """What results are multiplied by.

    >>> factor_of(4, "backward", True), factor_of(4, "ortho", True), factor_of(4, "forward", True)
    (0.25, 0.5, 1.0)
    """
    if norm == "ortho":
        return 1 / sqrt(points)
    return 1.0 if inverse == (norm == "forward") else 1 / points


def fourier_scratch(
    name: str, type: TensorType, given: Mapping[str, Any], target: CudaTarget
) -> int | None:
    """The bytes of its scratch memory, wherever its arrays begin; None where there is no
    routine."""
    found = [
        fourier_routine(name, type, given, target=target, aligned=aligned)
        for aligned in (False, True)
    ]
    return max((one.scratch for one in found if one is not None), default=None)
