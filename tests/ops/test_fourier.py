"""Transforms against the sum they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tenfold.errors import ShapeError
from tenfold.ops import TABLE


def _sum(x: Any, axis: int, sign: int, norm: str) -> Any:
    n = x.shape[axis]
    turns = np.outer(np.arange(n), np.arange(n)) / n
    made = np.moveaxis(np.tensordot(np.exp(sign * 2j * np.pi * turns), x, ([0], [axis])), 0, axis)
    scale = {"backward": 1 if sign < 0 else n, "forward": n if sign < 0 else 1, "ortho": n**0.5}
    return made / scale[norm]


@pytest.mark.parametrize("name", ["fft", "rfft", "irfft"])
def test_transforms(name: str) -> None:
    op = TABLE[name]
    for sample in op.samples(np.random.default_rng(37)):
        (x,), given = sample.inputs, sample.attributes
        got = op.reference(x, **given)
        axis, norm = given["axis"], given["norm"]
        if name == "irfft":
            n = given["n"]
            lines = np.moveaxis(x, axis, 0).astype(complex)
            lines[0] = lines[0].real
            if n % 2 == 0:
                lines[-1] = lines[-1].real
            mirror = np.conj(lines[1 : (n + 1) // 2][::-1])
            whole = np.moveaxis(np.concatenate([lines, mirror]), 0, axis)
            want = _sum(whole, axis, 1, norm).real
        else:
            want = _sum(x, axis, 1 if given.get("inverse") else -1, norm)
            want = want[tuple(slice(n) for n in got.shape)]
        loose = 1e-10 if x.dtype.itemsize == 16 or x.dtype == np.float64 else 1e-4
        np.testing.assert_allclose(got, want, loose, loose)


def test_refusals(infer: Callable[..., Any]) -> None:
    with pytest.raises(ShapeError, match=r"fft: axis 0 of c64\[0\] is empty"):
        infer("fft", "c64[0]", axis=0, inverse=False, norm="backward")
    with pytest.raises(ShapeError, match="irfft: 9 points from 3 frequencies"):
        infer("irfft", "c64[3]", axis=0, n=9, norm="backward")
