"""Special functions against scipy's: the references, and what compiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tenfold.graph import Builder
from tenfold.ops import TABLE
from tenfold.types import TensorType

special = pytest.importorskip("scipy.special", reason="scipy has the other ones")

NAMES = {"erf_inv": special.erfinv, "lgamma": special.gammaln, "digamma": special.digamma}
POINTS = {
    "erf_inv": np.concatenate(
        [
            np.linspace(-1, 1, 401),
            1 - np.geomspace(2.0**-53, 0.5, 60),
            np.geomspace(1e-300, 0.5, 60),
            [0.0, -0.0, 1.5, -2.0, np.nan, np.inf],
        ]
    ),
    "lgamma": np.concatenate(
        [
            np.linspace(0.01, 12, 700),
            np.linspace(-6.3, -0.01, 137),
            np.geomspace(1e-30, 1e30, 90),
            -np.geomspace(1e-30, 0.4, 30),
            [0.0, -0.0, -1.0, -7.0, np.inf, np.nan, 1.0, 2.0, 1e306],
        ]
    ),
    "digamma": np.concatenate(
        [
            np.linspace(0.01, 30, 400),
            # between the poles: close to them scipy loses digits
            (np.linspace(0.3, 0.7, 21) - np.arange(1, 8)[:, None]).ravel(),
            np.geomspace(1e-30, 1e30, 90),
            [0.0, -0.0, -1.0, -7.0, np.inf, np.nan, -np.inf],
        ]
    ),
}


def units(name: str, got: Any, want: Any) -> float:
    """The greatest error in units in the last place, by the rule that the file says."""
    info = ml_dtypes.finfo(got.dtype)
    got, want = got.astype(np.float64), want.astype(np.float64)
    want = np.where(np.abs(want) > float(info.max), np.copysign(np.inf, want), want)
    plain = np.isfinite(want)
    np.testing.assert_array_equal(got[~plain], want[~plain])
    least = float(info.smallest_normal) if name == "erf_inv" else 1.0
    size = np.maximum(np.abs(want[plain]), least)
    unit = np.exp2(np.floor(np.log2(size))) * float(info.eps)
    return float(np.max(np.abs(got[plain] - want[plain]) / unit))


def lowered(name: str, x: Any, run: Callable[..., Any]) -> Any:
    builder = Builder(TABLE)
    value = builder.parameter(TensorType(x.dtype, x.shape))
    lowering: Any = TABLE[name].lowering
    (made,) = run(builder.finish(lowering.compose(builder, [value], {})), [x])
    return made


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_special_functions(name: str, dtype: Any, run: Callable[..., Any]) -> None:
    op = TABLE[name]
    x = POINTS[name].astype(dtype)
    want = NAMES[name](x.astype(np.float64))
    # scipy has digamma(-inf) as -inf, its limit along no path.
    want = np.where(np.isneginf(x.astype(float)), op.reference(x).astype(float), want)
    assert units(name, op.reference(x), want) <= (op.bound if dtype == np.float64 else 1)
    assert units(name, lowered(name, x, run), want) <= op.bound + 1


def test_lgamma_keeps_its_digits_near_its_zeros(run: Callable[..., Any]) -> None:
    euler, half, third = 0.5772156649015329, math.pi**2 / 12, 0.40068563438653143
    for dtype in (np.float64, np.float32):
        away = np.geomspace(1e-6, 1e-5, 20)
        for x in (1 + away, 1 - away, 2 + away, 2 - away):
            given = x.astype(dtype)
            z = given.astype(np.float64) - np.round(x)
            want = -euler * z + half * z**2 - third * z**3  # of 1 + z
            if x[0] > 1.5:
                want = (1 - euler) * z + (half - 0.5) * z**2 - (third - 1 / 3) * z**3
            for got in (lowered("lgamma", given, run), TABLE["lgamma"].reference(given)):
                np.testing.assert_allclose(got, want, 16 * float(np.finfo(dtype).eps))
