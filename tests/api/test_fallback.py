"""`fallback="error"`: what a backend can't do is refused, not done elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import Unsupported, ValueProblem


def sorted_complex(z: np.ndarray) -> np.ndarray:
    w = z * 2
    return np.sort(w)


def test_what_is_done_on_the_host_is_refused_by_its_line() -> None:
    z = np.array([2 + 1j, 1 - 1j])
    np.testing.assert_array_equal(tn.jit(sorted_complex)(z), np.sort(z * 2))
    f = tn.jit(sorted_complex, fallback="error")
    for _ in range(2):  # a plan that is there is refused alike
        with pytest.raises(Unsupported) as caught:
            f(z)
        assert caught.value.message.startswith("sort is done on the CPU in this plan for 'cpu': ")
        assert "test_fallback.py:14, in sorted_complex" in str(caught.value)
        assert "fallback='error'" in str(caught.value)
    with pytest.raises(Unsupported):
        f.plan(z)


def test_kernels_routines_and_hooks_are_not_refused() -> None:
    seen: list[float] = []

    @tn.jit(fallback="error")
    def f(x: np.ndarray) -> np.ndarray:
        tn.hook("seen", x.sum(), lambda v: seen.append(float(v)))
        return np.sort(x) @ np.tanh(x)

    x = np.array([3.0, 1.0, 2.0])
    np.testing.assert_allclose(f(x), np.sort(x) @ np.tanh(x))
    assert seen == [6.0]


def test_values_that_are_none() -> None:
    with pytest.raises(ValueProblem, match="fallback='host'"):
        tn.jit(np.tanh, fallback="host")
    for compile in ("background", "never"):
        with pytest.raises(ValueProblem, match="the evaluator answers"):
            tn.jit(np.tanh, fallback="error", compile=compile)
