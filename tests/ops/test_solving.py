"""What solves, multiplied back; what can't be solved, said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tenfold.errors import MatrixProblem, ShapeError
from tenfold.ops import TABLE


def _adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def _loose(x: Any) -> float:
    return 1e-9 if x.dtype.name in ("float64", "complex128") else 1e-3


def test_cholesky() -> None:
    for sample in TABLE["cholesky"].samples(np.random.default_rng(31)):
        (x,) = sample.inputs
        lower = TABLE["cholesky"].reference(x)
        assert np.array_equal(lower, np.tril(lower))
        np.testing.assert_allclose(lower @ _adjoint(lower), x, _loose(x), _loose(x))


def test_eigh() -> None:
    for sample in TABLE["eigh"].samples(np.random.default_rng(32)):
        (x,) = sample.inputs
        w, *rest = TABLE["eigh"].reference(x, **sample.attributes)
        assert np.all(np.diff(w, axis=-1) >= 0)
        np.testing.assert_allclose(
            np.sum(w, -1), np.trace(x, axis1=-2, axis2=-1).real, _loose(x), _loose(x)
        )
        for v in rest:
            back = (v * w[..., None, :]) @ _adjoint(v)
            np.testing.assert_allclose(back, x, _loose(x), _loose(x))


def test_eig() -> None:
    for sample in TABLE["eig"].samples(np.random.default_rng(33)):
        (x,) = sample.inputs
        w, *rest = TABLE["eig"].reference(x, **sample.attributes)
        assert w.dtype.kind == "c"
        np.testing.assert_allclose(
            np.sum(w, -1), np.trace(x, axis1=-2, axis2=-1), _loose(x), _loose(x)
        )
        for v in rest:
            np.testing.assert_allclose(x @ v, v * w[..., None, :], _loose(x), _loose(x))


def test_solve() -> None:
    for sample in TABLE["solve"].samples(np.random.default_rng(34)):
        a, b = sample.inputs
        x = TABLE["solve"].reference(a, b)
        np.testing.assert_allclose(a @ x, b, 10 * _loose(a), 10 * _loose(a))


def test_inv() -> None:
    for sample in TABLE["inv"].samples(np.random.default_rng(37)):
        (a,) = sample.inputs
        unit = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
        back = a @ TABLE["inv"].reference(a)
        np.testing.assert_allclose(back, unit, 10 * _loose(a), 10 * _loose(a))


def test_triangular_solve() -> None:
    for sample in TABLE["triangular_solve"].samples(np.random.default_rng(35)):
        (a, b), given = sample.inputs, sample.attributes
        x = TABLE["triangular_solve"].reference(a, b, **given)
        one = np.tril(a) if given["lower"] else np.triu(a)
        if given["unit"]:
            i = np.arange(a.shape[-1])
            one[..., i, i] = 1
        loose = 10 * _loose(a) * max(1, float(np.max(np.abs(x), initial=0)))
        np.testing.assert_allclose(one @ x, b, loose, loose)


def _cofactors(x: Any) -> Any:
    if not len(x):
        return 1
    minors = (np.delete(x[1:], j, 1) for j in range(len(x)))
    return sum((-1) ** j * x[0, j] * _cofactors(m) for j, m in enumerate(minors))


def test_determinants() -> None:
    for sample in TABLE["det"].samples(np.random.default_rng(36)):
        (x,) = sample.inputs
        det = TABLE["det"].reference(x)
        sign, log = TABLE["slogdet"].reference(x)
        for at in np.ndindex(*x.shape[:-2]):
            want = _cofactors(x[at])
            np.testing.assert_allclose(det[at], want, _loose(x), _loose(x))
            np.testing.assert_allclose(sign[at] * np.exp(log[at]), want, _loose(x), _loose(x))


def test_what_can_not_be_solved(one: Callable[..., Any], infer: Callable[..., Any]) -> None:
    flat = np.ones((2, 2))
    with pytest.raises(MatrixProblem, match="inv: the matrix is singular"):
        one("inv", flat)
    with pytest.raises(MatrixProblem, match="solve: the matrix is singular"):
        one("solve", flat, flat)
    with pytest.raises(np.linalg.LinAlgError, match="triangular_solve: the matrix is singular"):
        one("triangular_solve", np.zeros((2, 2)), flat, lower=True, unit=False)
    with pytest.raises(MatrixProblem, match="cholesky: the matrix is not positive definite"):
        one("cholesky", -flat)
    with pytest.raises(MatrixProblem, match="eig: no eigenvalues"):
        one("eig", flat * np.nan, vectors=False)
    assert one("det", flat) == 0
    with pytest.raises(ShapeError, match=r"det: f32\[2,3\] is no square matrix"):
        infer("det", "f32[2,3]")
    with pytest.raises(ShapeError, match=r"solve: f32\[2,2\] and f32\[3,1\] do not fit"):
        infer("solve", "f32[2,2]", "f32[3,1]")
