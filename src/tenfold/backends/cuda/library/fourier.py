"""Fourier transforms by cuFFT.

The library reads lines that lie one after another, or side by side where nothing comes before the
axis; and it writes so. Elsewhere lines are laid one after another in scratch memory first, or the
results are turned back from there. Real numbers that it reads or writes begin at multiples of 16
bytes: they are copied where they do not. What becomes real numbers is always copied, since the
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
_REAL = {"c64": "f32", "c128": "f64"}
_PAIRED = {real: paired for paired, real in _REAL.items()}


@frozen
class FourierCall:
    """A `LibraryCall`: transforms by this version of cuFFT, from one place to another."""

    transform: Transform
    inverse: bool
    version: str
    source: Place
    target: Place

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
        device.transformer().transform(
            self.transform, self.inverse, stream, source, target, addresses[-1]
        )


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
    packed = behind == 1 or before == 1
    source, result = Place(0), Place(1)

    def between(extent: int, direct: bool) -> tuple[int, int]:
        return (behind, 1) if direct and behind > 1 else (1, extent)

    # What the library reads.
    as_it_is = packed and (kind == COMPLEX or (kind == FROM_REAL and aligned))
    if not as_it_is:
        source = stages.room(count * n * SIZES[read])
        last = n - 1 if points % 2 == 0 else -1
        shape = (before, n, behind) if behind > 1 else (1, before, n)
        how = Laying(read, read, behind > 1, ends=kind == TO_REAL)
        stages.lay(how, Place(0), source, shape, last=last)

    # What it writes.
    direct = packed and (kind != TO_REAL or aligned)
    if not direct:
        over = kind == COMPLEX and not as_it_is
        result = source if over else stages.room(count * m * SIZES[written])
    transform = Transform(kind, real, points, count, between(n, as_it_is), between(m, direct))
    stages.call(FourierCall(transform, inverse, target.cufft, source, result))

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
