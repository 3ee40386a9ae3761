"""Functions with an op of their own that NumPy lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

from tenfold.trace.surface import special


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (special.erf, scipy.special.erf),
        (special.erfc, scipy.special.erfc),
        (special.sigmoid, scipy.special.expit),
        (special.rsqrt, lambda x: 1 / np.sqrt(x)),
    ],
)
def test_special(ours: Any, theirs: Any, run: Any) -> None:
    x = np.array([0.25, 1.0, 3.5])
    (got,) = run(ours, x)
    np.testing.assert_allclose(got, theirs(x), rtol=1e-14)
    (got,) = run(ours, x.astype(np.float32))
    assert got.dtype == np.float32
    (got,) = run(ours, np.array([1, 2]))
    assert got.dtype == np.float64
    (got,) = run(lambda x: x * ours(0.5), x.astype(np.float16))
    assert got.dtype == np.float64
