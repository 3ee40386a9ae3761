"""Transforms beside NumPy's, to the rounding of another order of adding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.errors import TypeMismatch, ValueProblem

REAL = ("i32", "f16", "f32", "f64")
ALL = (*REAL, "c64", "c128")


def close(run: Any, f: Any, x: Any) -> None:
    (got,) = run(f, x)
    want = f(x)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    loose = (
        2e-3
        if x.dtype == np.float16
        else 1e-12
        if got.dtype in (np.float64, np.complex128)
        else 1e-5
    )
    scale = float(np.max(np.abs(want), initial=1))
    np.testing.assert_allclose(got, want, loose, loose * scale)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_along_an_axis(name: str, run: Any, draw: Any) -> None:
    function = getattr(np.fft, name)
    for dtype in REAL if name in ("rfft", "ihfft") else ALL:
        for shape, axis in (((8,), 0), ((5, 6), 0), ((5, 6), -1)):
            for n in (None, 4, 9):
                for norm in (None, "ortho", "forward"):
                    close(run, lambda x: function(x, n, axis, norm), draw(dtype, shape))  # noqa: B023


@pytest.mark.parametrize(
    "name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"]
)
def test_over_several_axes(name: str, run: Any, draw: Any) -> None:
    function = getattr(np.fft, name)
    for dtype in REAL if name.startswith("r") else ALL:
        x = draw(dtype, (3, 4, 5))
        close(run, lambda x: function(x), x)
        close(run, lambda x: function(x, norm="ortho"), x)
        close(run, lambda x: function(x, axes=(0, 2)), x)
        close(run, lambda x: function(x, s=(2, 6), axes=(1, 0)), x)


def test_orders_of_frequencies(compare: Any, draw: Any) -> None:
    for shape in ((5,), (4, 3)):
        compare(lambda x: (np.fft.fftshift(x), np.fft.ifftshift(x)), draw("f64", shape))
        compare(
            lambda x: (np.fft.fftshift(x, 0), np.fft.ifftshift(x, axes=(0,))), draw("i32", shape)
        )
    compare(lambda x: x * np.fft.fftfreq(5, 0.5), draw("f64", (5,)))
    compare(lambda x: x * np.fft.rfftfreq(8, 2.0), draw("f64", (5,)))


def test_refusals(trace: Any, draw: Any) -> None:
    with pytest.raises(TypeMismatch, match="rfft of c64"):
        trace(lambda x: np.fft.rfft(x), draw("c64"))
    with pytest.raises(ValueProblem, match="norm='loud'"):
        trace(lambda x: np.fft.fft(x, norm="loud"), draw("c64"))
    with pytest.raises(ValueProblem, match="fft of 0 points"):
        trace(lambda x: np.fft.fft(x, 0), draw("c64"))
