"""Powers by known exponents: within four units of NumPy's, edges and all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 1e160, 1e-160, 5e-324]
SPECIAL += [3e38, -3e38, 1e-45, 2.0**-127, 1e25, -1e-25, 3.0, -2.5]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("exponent", [-16, -3, -2, -0.5, 1.5, 2.5, 3.5, 3, 4, 5, 6, 7, 12, 16, 5.0])
def test_powers_are_numpys_within_four_units(exponent: float, dtype: str) -> None:
    drawn = np.random.default_rng(5)
    with np.errstate(all="ignore"):
        values = [SPECIAL, drawn.standard_normal(5000) * 3, np.exp2(drawn.uniform(-99, 99, 5000))]
        x = np.concatenate(values).astype(dtype)
        want = np.power(x, np.full(1, exponent, dtype))
        got: Any = tn.jit(lambda x: x**exponent)(x)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        ordered = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[ordered]), np.signbit(want[ordered]))
        np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
        finite = np.isfinite(want)
        off = np.abs(got - want)[finite] / np.spacing(np.abs(want))[finite]
    assert off.max() <= 4


@pytest.mark.parametrize("exponent", [-2, 3, 5, 1.5])
def test_a_short_exponent_is_no_real_power(exponent: float) -> None:
    plan = tn.jit(lambda x: x**exponent).plan(np.ones(9))
    assert not any(i.op == "pow" for kernel in plan.kernels for i in kernel.instructions)


def test_other_exponents_and_dtypes_are_pow() -> None:
    for x, exponent in ((np.ones(3), 0.3), (np.ones(3), 40), (np.ones(3, "f2"), 3)):
        graph = tn.jit(lambda x, e=exponent: x**e).trace(x)
        assert "constant_pow" not in {node.op for node in graph.nodes}
