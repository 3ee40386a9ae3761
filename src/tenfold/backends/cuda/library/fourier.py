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
from tenfold.backends.cuda.library.laying import Laying, Place, laid
from tenfold.backends.cuda.library.routine import GpuRoutine, LibraryCall, RoutineLaunch
from tenfold.backends.cuda.target import CudaTarget
from tenfold.backends.llvm.text import Fragment
from tenfold.backends.llvm.writer import SIZES
from tenfold.frozen import frozen
from tenfold.types import SHORT, TensorType

if TYPE_CHECKING:
    from tenfold.backends.cuda.driver.device import Device

FOURIER = {"fft": COMPLEX, "rfft": FROM_REAL, "irfft": TO_REAL}
_ALIGN = 256  # of parts of scratch memory
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
    kind, axis = FOURIER[name], given["axis"]
    n, before, behind = type.shape[axis], prod(type.shape[:axis]), prod(type.shape[axis + 1 :])
    points = given["n"] if kind == TO_REAL else n
    m = n // 2 + 1 if kind == FROM_REAL else points
    inverse = kind == TO_REAL or bool(given.get("inverse"))
    read = SHORT[type.dtype]
    real = _REAL.get(read, read)
    written = real if kind == TO_REAL else _PAIRED[real]
    count = before * behind
    if not count:
        return GpuRoutine(_no_text, "", ())
    packed = behind == 1 or before == 1
    source, result = Place(0), Place(1)
    launches: list[RoutineLaunch | LibraryCall] = []
    layings, scratch = dict[str, Laying](), 0

    def lay(how: Laying, *given: Any) -> None:
        layings[how.name] = how
        launches.append(laid(how, *given))

    def room(dtype: str, elements: int) -> Place:
        nonlocal scratch
        made = Place(2, scratch)
        scratch += -(-elements * SIZES[dtype] // _ALIGN) * _ALIGN
        return made

    def between(extent: int, direct: bool) -> tuple[int, int]:
        return (behind, 1) if direct and behind > 1 else (1, extent)

    # What the library reads.
    as_it_is = packed and (kind == COMPLEX or (kind == FROM_REAL and aligned))
    if not as_it_is:
        source = room(read, count * n)
        ends = kind == TO_REAL
        last = n - 1 if points % 2 == 0 else -1
        how = Laying(read, read, behind > 1, ends=ends)
        shape = (before, n, behind) if behind > 1 else (1, before, n)
        lay(how, Place(0), source, shape, last)

    # What it writes.
    direct = packed and (kind != TO_REAL or aligned)
    if not direct:
        result = source if kind == COMPLEX and not as_it_is else room(written, count * m)
    transform = Transform(kind, real, points, count, between(n, as_it_is), between(m, direct))
    launches.append(FourierCall(transform, inverse, target.cufft, source, result))

    factor = factor_of(points, given["norm"], inverse)
    scaled = factor != 1
    if not direct:
        how = Laying(written, written, behind > 1, scaled)
        shape = (before, behind, m) if behind > 1 else (1, before, m)
        lay(how, result, Place(1), shape, -1, factor)
    elif scaled:
        lay(Laying(written, written, scaled=True), result, result, (1, count, m), -1, factor)

    def text(target: CudaTarget) -> Fragment:
        parts = [how.text(target) for how in layings.values()]
        declared = dict.fromkeys(line for part in parts for line in part.declarations)
        return Fragment(tuple(declared), "\n".join(part.body for part in parts))

    return GpuRoutine(text, " ".join(layings), tuple(launches), scratch)


def _no_text(target: CudaTarget) -> Fragment:
    return Fragment((), "")


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
