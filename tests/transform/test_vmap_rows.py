"""vmap over random numbers, linear algebra, transforms and what needs a size, beside a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn

KEYS = tn.random.split(tn.random.key(11), 4)
X = np.random.default_rng(0).standard_normal((4, 5, 5))
POSITIVE = X @ np.swapaxes(X, 1, 2) + 3 * np.eye(5)

CASES: dict[str, tuple[Any, Any]] = {
    "bits": (lambda k: tn.random.bits(k, (3,)), KEYS),
    "uniform": (lambda k: tn.random.uniform(k, (2, 3), np.float32), KEYS),
    "integers": (lambda k: tn.random.integers(k, -5, 5, (6,)), KEYS),
    "normal": (lambda k: tn.random.normal(k, (3,)), KEYS),
    "gamma": (lambda k: tn.random.gamma(k, 0.7, (3,)), KEYS),
    "poisson": (lambda k: tn.random.poisson(k, 20.0, (3,)), KEYS),
    "permutation": (lambda k: tn.random.permutation(k, 6), KEYS),
    "split": (lambda k: tn.random.split(k, 3), KEYS),
    "cumsum": (lambda x: np.cumsum(x, axis=1), X),
    "accumulate": (lambda x: np.subtract.accumulate(x), X),
    "solve": (lambda x: np.linalg.solve(x, x[0]), POSITIVE),
    "cholesky": (np.linalg.cholesky, POSITIVE),
    "eigvalsh": (np.linalg.eigvalsh, POSITIVE),
    "det": (np.linalg.det, X),
    "pinv": (np.linalg.pinv, X),
    "fft": (lambda x: np.fft.fft2(x), X),
    "irfft": (lambda x: np.fft.irfft(x, 7, axis=0), X),
    "searchsorted": (lambda x: np.searchsorted(np.sort(x[0]), x), X),
    "top_k": (lambda x: tn.top_k(x, 2, axis=0), X),
    "nonzero": (lambda x: tn.nonzero(x > 0, size=9), X),
    "unique": (lambda x: tn.unique(np.round(x), size=6, return_counts=True), X),
    "bincount": (lambda x: tn.bincount((x > 0).ravel().astype(int), length=2), X),
    "histogram": (lambda x: np.histogram(x, 4), X),
    "convolve": (lambda x: np.convolve(x[0], x[1, :2]), X),
    "conv": (lambda x: tn.conv(x[None, None], x[None, None, :2, :2], padding="same"), X),
    "reduce_window": (lambda x: tn.reduce_window(x, "max", 2, padding="same"), X),
    "interp": (lambda x: np.interp(x[0], np.arange(5.0), x[1]), X),
    "gcd": (lambda x: np.gcd((x * 50).astype(int), 12), X),
    "lgamma": (tn.lgamma, X),
}


@pytest.mark.parametrize("name", CASES)
def test_vmap_is_a_loop(name: str) -> None:
    f, given = CASES[name]
    got = tn.vmap(f)(given)
    want = [tn.jit(f)(one) for one in given]
    rows = got if isinstance(got, tuple) else (got,)
    wants = zip(*want, strict=True) if isinstance(got, tuple) else [want]
    for a, b in zip(rows, wants, strict=True):
        np.testing.assert_allclose(a, np.stack(b), 1e-9, 1e-12)


def test_a_lane_that_is_not_active_does_not_raise() -> None:
    x = np.stack([POSITIVE[0], -np.ones((5, 5))])

    def root(x: Any) -> Any:
        return tn.cond(x[0, 0] > 0, np.linalg.cholesky, lambda x: x, x)

    got = tn.vmap(root)(x)
    np.testing.assert_allclose(got[0], np.linalg.cholesky(x[0]))
    assert np.array_equal(got[1], x[1])
