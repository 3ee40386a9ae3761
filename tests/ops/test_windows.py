"""Windows and convolutions against loops over positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tenfold.errors import ShapeError
from tenfold.ops import TABLE


def test_windows(same: Callable[..., None]) -> None:
    op = TABLE["windows"]
    for sample in op.samples(np.random.default_rng(23)):
        (x,), given = sample.inputs, sample.attributes
        got = op.reference(x, **given)
        rank = x.ndim
        want = np.empty(got.shape, got.dtype)
        for at in np.ndindex(*got.shape):
            want[at] = x[
                tuple(
                    at[a] * given["strides"][a] + at[rank + a] * given["dilation"][a]
                    for a in range(rank)
                )
            ]
        same(got, want)
        for n, w, d, s, count in zip(
            x.shape, given["window"], given["dilation"], given["strides"], got.shape, strict=False
        ):
            assert count == len(range(0, n - (w - 1) * d, s))


@pytest.mark.parametrize("name", ["conv", "conv_valid"])
def test_conv(name: str) -> None:
    op = TABLE[name]
    for sample in op.samples(np.random.default_rng(24)):
        (x, w), given = sample.inputs, sample.attributes
        got = op.reference(x, w, **given)
        none, one = (0,) * (x.ndim - 2), (1,) * (x.ndim - 2)
        g = {"low": none, "high": none, "x_dilation": one, **given}
        wide = complex if x.dtype.kind == "c" else float if x.dtype.kind == "f" else object
        want = np.zeros(got.shape, wide)
        each, share = w.shape[1], w.shape[0] // g["groups"]
        for n, o, *out in np.ndindex(*got.shape):
            for c, *k in np.ndindex(*w.shape[1:]):
                place = [
                    p * s + q * d - a
                    for p, s, q, d, a in zip(
                        out, g["strides"], k, g["dilation"], g["low"], strict=True
                    )
                ]
                if any(p % e for p, e in zip(place, g["x_dilation"], strict=True)):
                    continue
                at = [p // e for p, e in zip(place, g["x_dilation"], strict=True)]
                if all(0 <= p < m for p, m in zip(at, x.shape[2:], strict=True)):
                    seen = x[(n, o // share * each + c, *at)]
                    want[(n, o, *out)] += seen.item() * w[(o, c, *k)].item()
        if wide is object:
            want = np.asarray(want % 2**64, np.uint64).astype(got.dtype)
        loose = 1e-2 if got.dtype.itemsize == 2 else 1e-4
        np.testing.assert_allclose(got.astype(complex), want.astype(complex), loose, loose)


def test_refusals(infer: Callable[..., Any]) -> None:
    given = {"strides": (1,), "low": (0,), "high": (0,), "x_dilation": (1,), "dilation": (1,)}
    with pytest.raises(ShapeError, match="do not meet in 2 groups"):
        infer("conv", "f32[1,3,5]", "f32[4,3,2]", **given, groups=2)
    with pytest.raises(ShapeError, match="spatial axes"):
        infer("conv", "f32[1,3,5,5]", "f32[4,3,2]", **given, groups=1)
    with pytest.raises(ShapeError, match="strides has 1 entries"):
        infer("conv", "f32[1,3,5,5]", "f32[4,3,2,2]", **given, groups=1)
    with pytest.raises(ShapeError, match=r"strides .* below 1"):
        infer("windows", "f32[5]", window=(2,), strides=(0,), dilation=(1,))
    with pytest.raises(ShapeError, match="the padding leaves"):
        infer("conv", "f32[1,1,2]", "f32[1,1,1]", **{**given, "low": (-3,)}, groups=1)
