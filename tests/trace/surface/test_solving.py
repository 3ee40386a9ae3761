"""np.linalg beside NumPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import MatrixProblem, ShapeError

DTYPES = ("i32", "f32", "f64", "c64", "c128")


def close(run: Any, f: Any, *args: Any) -> None:
    want = f(*args)
    wants = want if isinstance(want, tuple) else (want,)
    for got, w in zip(run(f, *args), wants, strict=True):
        w = np.asarray(w)
        assert (got.dtype, got.shape) == (w.dtype, w.shape)
        loose = 1e-9 if w.dtype in (np.float64, np.complex128) else 2e-3
        np.testing.assert_allclose(got, w, loose, loose)


def positive(draw: Any, dtype: Any, shape: Any = (3, 3)) -> Any:
    x = draw(dtype, shape)
    made = x @ np.conj(np.swapaxes(x, -1, -2)) + 3 * np.eye(shape[-1], dtype=x.dtype)
    return made.astype(x.dtype)


@pytest.mark.parametrize(
    "f",
    [
        np.linalg.cholesky,
        lambda x: np.linalg.cholesky(x, upper=True),
        np.linalg.eigvalsh,
        lambda x: np.linalg.eigh(x, "U")[0],
        np.linalg.inv,
        np.linalg.det,
        np.linalg.slogdet,
        np.linalg.pinv,
        lambda x: np.linalg.pinv(x[..., :2] * 1.0, rtol=None),
        np.linalg.matrix_rank,
        np.linalg.cond,
        lambda x: np.linalg.cond(x, -2),
        lambda x: np.linalg.cond(x, 1),
        lambda x: np.linalg.cond(x, "fro"),
        lambda x: np.linalg.matrix_power(x, 5),
        lambda x: np.linalg.matrix_power(x, 0),
        lambda x: np.linalg.matrix_power(x, -2),
        lambda x: np.linalg.solve(x, x[..., :1]),
        lambda x: np.linalg.solve(x, np.ones(3)),
        lambda x: np.linalg.norm(x, 2, (-2, -1)),
        lambda x: np.linalg.norm(x, -2, (-2, -1), keepdims=True),
        lambda x: np.linalg.norm(x, "nuc", (-2, -1)),
        lambda x: np.linalg.matrix_norm(x, ord=2),
        lambda x: np.linalg.vector_norm(x, axis=(-2, -1), ord=3),
        lambda x: np.linalg.vector_norm(x, axis=(0, 1), keepdims=True),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_of_a_positive_matrix(f: Any, dtype: str, run: Any, draw: Any) -> None:
    close(run, f, positive(draw, dtype))
    close(run, f, positive(draw, dtype, (2, 3, 3)))


def test_eigenvalues(run: Any, draw: Any) -> None:
    for dtype in DTYPES:
        x = draw(dtype, (2, 4, 4))
        (w,) = run(np.linalg.eigvals, x)
        values, vectors = run(np.linalg.eig, x)
        assert w.dtype.kind == "c"
        loose = 1e-9 if w.dtype == np.complex128 else 2e-3
        np.testing.assert_allclose(
            np.sort_complex(w.round(3)), np.sort_complex(np.linalg.eigvals(x).round(3)), loose, 2e-3
        )
        np.testing.assert_allclose(x @ vectors, vectors * values[..., None, :], loose, loose * 10)
        h = x + np.conj(np.swapaxes(x, -1, -2))
        values, vectors = run(np.linalg.eigh, h)
        np.testing.assert_allclose(h @ vectors, vectors * values[..., None, :], loose, loose * 10)


def test_right_sides_broadcast(run: Any, draw: Any) -> None:
    a = positive(draw, "f64", (2, 1, 3, 3))
    close(run, np.linalg.solve, a, draw("f64", (4, 3, 2)))
    close(run, np.linalg.solve, a[0, 0], draw("f32", (3,)))


def test_triangular_solve(draw: Any) -> None:
    a, b = positive(draw, "f64"), draw("f64", (3, 2))
    for lower in (True, False):
        one = np.tril(a) if lower else np.triu(a)
        np.testing.assert_allclose(one @ tn.triangular_solve(a, b, lower=lower), b)
        x = tn.jit(lambda a, b: tn.triangular_solve(a, b, lower=lower, transpose=True))(a, b)  # noqa: B023
        np.testing.assert_allclose(one.T @ x, b)


@pytest.mark.parametrize("rcond", [None, -1, 0.5])
def test_lstsq(rcond: Any, run: Any, draw: Any) -> None:
    for dtype in ("f64", "c64", "i32"):
        for columns in ((), (2,)):
            a, b = draw(dtype, (6, 3)), draw(dtype, (6, *columns), 1)
            x, rest, rank, s = run(lambda a, b: np.linalg.lstsq(a, b, rcond), a, b)
            want = np.linalg.lstsq(a, b, rcond)
            loose = 1e-8 if x.dtype == np.float64 else 1e-3
            np.testing.assert_allclose(x, want[0], loose, loose)
            np.testing.assert_allclose(s, want[3], loose, loose)
            assert rank == want[2]
            if rank == 3:
                np.testing.assert_allclose(rest, want[1], loose, loose)
    assert run(lambda a, b: np.linalg.lstsq(a, b)[1], draw("f64", (2, 3)), np.ones(2))[0].size == 0


def test_multi_dot(run: Any, draw: Any) -> None:
    shapes = ((2, 9), (9, 3), (3, 11), (11, 4))
    arrays = [draw("f64", s, i) for i, s in enumerate(shapes)]
    close(run, lambda *a: np.linalg.multi_dot(list(a)), *arrays)
    vectors = [draw("f64", (9,)), *arrays[1:3], draw("f64", (11,), 5)]
    close(run, lambda *a: np.linalg.multi_dot(list(a)), *vectors)


def test_tensors(run: Any, draw: Any) -> None:
    a, b = draw("f64", (6, 4, 2, 3, 4)), draw("f64", (6, 4))
    close(run, np.linalg.tensorsolve, a, b)
    close(run, lambda a: np.linalg.tensorinv(a, 2), draw("f64", (4, 6, 8, 3)))
    close(
        run,
        lambda a, b: np.linalg.tensorsolve(a, b, (0, 2)),
        draw("f64", (2, 6, 3, 1)),
        np.ones((6, 1)),
    )


def test_what_can_not_be_solved(run: Any, trace: Any) -> None:
    flat = np.ones((2, 2))
    for f in (np.linalg.inv, lambda x: np.linalg.solve(x, x), lambda x: np.linalg.cholesky(-x)):
        with pytest.raises(np.linalg.LinAlgError):
            f(flat)
        with pytest.raises(MatrixProblem):
            run(f, flat)
    with pytest.raises(ShapeError, match="inv: f64"):
        trace(np.linalg.inv, np.ones((2, 3)))
