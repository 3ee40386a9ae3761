"""Fourier: the functions of np.fft. Single precision stays single, as in NumPy 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold.errors import ShapeError, TypeMismatch, ValueProblem
from tenfold.trace.array import Array
from tenfold.trace.surface.emit import axes_of, axis_of, cast, emit, fail, on, static_int, traced
from tenfold.trace.surface.into import write
from tenfold.trace.surface.ufuncs.composed import number
from tenfold.trace.tables import FUNCTIONS
from tenfold.types import BFLOAT16, C64, C128, DTYPES, F32, F64, KIND

_NORMS = {None: "backward", "backward": "backward", "ortho": "ortho", "forward": "forward"}
_OTHER_WAY = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _norm(norm: Any) -> str:
    if norm not in _NORMS:
        fail(ValueProblem, f"fft: norm={norm!r}", "say 'backward', 'ortho' or 'forward'")
    return _NORMS[norm]


def _real(name: str, a: Any) -> Array:
    x = traced(a)
    if KIND[x.dtype] == "c":
        fail(TypeMismatch, f"{name} of {x.type}", "it takes real numbers: np.fft.fft, or x.real")
    return cast(x, F32 if x.dtype in (DTYPES["f16"], BFLOAT16, F32) else F64)


def _complex(a: Any) -> Array:
    x = traced(a)
    if KIND[x.dtype] == "c":
        return x
    return cast(x, C64 if x.dtype in (DTYPES["f16"], BFLOAT16, F32) else C128)


def _sized(name: str, x: Array, n: int, axis: int) -> Array:
    """An axis cut or padded with zeros to so many elements."""
    if n < 1:
        fail(ValueProblem, f"{name} of {n} points", "there must be at least one")
    extent = x.shape[axis]
    if n < extent:
        stops = tuple(n if a == axis else m for a, m in enumerate(x.shape))
        return emit("slice", x, starts=(0,) * x.ndim, stops=stops, steps=(1,) * x.ndim)
    if n > extent:
        high = tuple(n - extent if a == axis else 0 for a in range(x.ndim))
        none = (0,) * x.ndim
        return emit("pad", x, number(0, x.dtype), low=none, high=high, interior=none)
    return x


def _points(n: Any, extent: int) -> int:
    return extent if n is None else static_int(n, "fft: the number of points")


def _finish(result: Array, out: Any) -> Array:
    return result if out is None else write(out, result)


def _whole(name: str, inverse: bool) -> Callable[..., Array]:
    def apply(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Array:
        x = _complex(a)
        at = axis_of(axis, x.ndim)
        x = _sized(name, x, _points(n, x.shape[at]), at)
        return _finish(emit("fft", x, axis=at, inverse=inverse, norm=_norm(norm)), out)

    return apply


fft = on(np.fft.fft)(_whole("fft", False))
ifft = on(np.fft.ifft)(_whole("ifft", True))


@on(np.fft.rfft)
def rfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Array:
    x = _real("rfft", a)
    at = axis_of(axis, x.ndim)
    x = _sized("rfft", x, _points(n, x.shape[at]), at)
    return _finish(emit("rfft", x, axis=at, norm=_norm(norm)), out)


@on(np.fft.irfft)
def irfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Array:
    half = traced(a).dtype == DTYPES["f16"]  # of these NumPy gives its like back
    x = _complex(a)
    at = axis_of(axis, x.ndim)
    count = _points(n, (x.shape[at] - 1) * 2)
    if count < 1:
        fail(ValueProblem, f"irfft of {count} points", "there must be at least one: give n")
    x = _sized("irfft", x, count // 2 + 1, at)
    made = emit("irfft", x, axis=at, n=count, norm=_norm(norm))
    return _finish(cast(made, DTYPES["f16"]) if half else made, out)


@on(np.fft.hfft)
def hfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Array:
    x = traced(a)
    conjugated = emit("conj", x) if KIND[x.dtype] == "c" else x
    return irfft(conjugated, n, axis, _OTHER_WAY[_norm(norm)], out)


@on(np.fft.ihfft)
def ihfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Array:
    made = emit("conj", rfft(a, n, axis, _OTHER_WAY[_norm(norm)]))
    return _finish(made, out)


# Over several axes.


def _several(x: Array, s: Any, axes: Any) -> tuple[list[Any], list[int]]:
    """The numbers of points and the axes; an axis may come twice, as NumPy has it."""
    if axes is None:
        last = x.ndim if s is None else len(s)
        chosen = list(range(x.ndim - last, x.ndim))
    else:
        chosen = [axes_of(axis, x.ndim)[0] for axis in axes]
    counts: list[Any] = [None] * len(chosen) if s is None else list(s)
    if len(counts) != len(chosen):
        fail(ShapeError, f"fft: {len(counts)} lengths for {len(chosen)} axes", "one for each axis")
    return [None if n == -1 else n for n in counts], chosen


def _each(name: str, step: Callable[..., Array]) -> Callable[..., Array]:
    def apply(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Array:
        x = _complex(a)
        counts, chosen = _several(x, s, axes)
        for n, axis in zip(reversed(counts), reversed(chosen), strict=True):
            x = step(x, n, axis, norm)
        return _finish(x, out)

    return apply


fftn = on(np.fft.fftn)(_each("fftn", fft))
ifftn = on(np.fft.ifftn)(_each("ifftn", ifft))


@on(np.fft.rfftn)
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Array:
    x = _real("rfftn", a)
    counts, chosen = _several(x, s, axes)
    if not chosen:
        fail(ValueProblem, "rfftn over no axes", "name at least one")
    x = rfft(x, counts[-1], chosen[-1], norm)
    for n, axis in zip(counts[-2::-1], chosen[-2::-1], strict=True):
        x = fft(x, n, axis, norm)
    return _finish(x, out)


@on(np.fft.irfftn)
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Array:
    x = _complex(a)
    counts, chosen = _several(x, s, axes)
    if not chosen:
        fail(ValueProblem, "irfftn over no axes", "name at least one")
    for n, axis in zip(counts[:-1], chosen[:-1], strict=True):
        x = ifft(x, n, axis, norm)
    return _finish(irfft(x, counts[-1], chosen[-1], norm), out)


def _plane(step: Callable[..., Array]) -> Callable[..., Array]:
    def apply(
        a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None
    ) -> Array:
        return step(a, s, axes, norm, out)

    return apply


fft2 = on(np.fft.fft2)(_plane(fftn))
ifft2 = on(np.fft.ifft2)(_plane(ifftn))
rfft2 = on(np.fft.rfft2)(_plane(rfftn))
irfft2 = on(np.fft.irfft2)(_plane(irfftn))


# Frequencies in another order.


def _rolled(a: Any, axes: Any, shift: Callable[[int], int]) -> Array:
    x = traced(a)
    chosen: Sequence[int] = axes_of(axes, x.ndim)
    if not x.ndim:
        fail(ShapeError, "a shift of a 0-d array", "give it at least one axis")
    made: Array = FUNCTIONS[np.roll](x, tuple(shift(x.shape[i]) for i in chosen), tuple(chosen))
    return made


@on(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Array:
    return _rolled(x, axes, lambda n: n // 2)


@on(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Array:
    return _rolled(x, axes, lambda n: -(n // 2))
