"""tn.fft: the standard's Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold.api.namespace.dispatch import apply, check_device
from tenfold.trace.lazy.host import lazy
from tenfold.trace.scope import current
from tenfold.trace.surface.emit import cast, traced

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def _one(function: Any, says: str) -> Callable[..., Any]:
    """A transform along one axis."""

    def transform(
        x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Any:
        return apply(function, x, n, axis, norm)

    transform.__name__ = transform.__qualname__ = function.__name__
    transform.__doc__ = says
    return transform


def _several(function: Any, says: str) -> Callable[..., Any]:
    """A transform along several axes."""

    def transform(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
        return apply(function, x, s, axes, norm)

    transform.__name__ = transform.__qualname__ = function.__name__
    transform.__doc__ = says
    return transform


fft = _one(np.fft.fft, "The Fourier transform.")
ifft = _one(np.fft.ifft, "The inverse Fourier transform.")
rfft = _one(np.fft.rfft, "The Fourier transform of real numbers: its first half.")
irfft = _one(np.fft.irfft, "The real numbers whose Fourier transform has this first half.")
hfft = _one(np.fft.hfft, "The real spectrum of a signal with Hermitian symmetry.")
ihfft = _one(np.fft.ihfft, "The signal with Hermitian symmetry that has this real spectrum.")
fftn = _several(np.fft.fftn, "The Fourier transform over several axes.")
ifftn = _several(np.fft.ifftn, "The inverse Fourier transform over several axes.")
rfftn = _several(np.fft.rfftn, "The Fourier transform of real numbers over several axes.")
irfftn = _several(np.fft.irfftn, "The inverse of `rfftn`.")


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of the elements of a Fourier transform."""
    return _frequencies(np.fft.fftfreq(n, d), dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of the elements of `rfft`."""
    return _frequencies(np.fft.rfftfreq(n, d), dtype, device)


def _frequencies(host: Any, dtype: Any, device: Any) -> Any:
    check_device(device)
    made = lazy(host) if current() is None else traced(host)
    return made if dtype is None else cast(made, dtype)


def fftshift(x: Any, /, *, axes: Any = None) -> Any:
    """A transform with the zero frequency moved to the middle."""
    return apply(np.fft.fftshift, x, axes)


def ifftshift(x: Any, /, *, axes: Any = None) -> Any:
    """The inverse of `fftshift`."""
    return apply(np.fft.ifftshift, x, axes)
