"""The namespace: the standard's names, and what differs from NumPy's."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tenfold as tn

X = np.array([[3.0, -1.0, 2.5], [0.5, 4.0, -2.0]])
N = np.array([[3, 1, 2], [1, 4, 1]])
B = np.array([[True, False, True], [False, False, True]])
S = np.array([[4.0, 1.0], [1.0, 3.0]])

# What tn gives, and what NumPy gives for the same.
SAME: list[tuple[Any, Any]] = [
    (lambda: tn.acos(tn.asarray(X) / 9), np.arccos(X / 9)),
    (lambda: tn.atan2(tn.asarray(X), tn.asarray(X) + 1), np.arctan2(X, X + 1)),
    (lambda: tn.pow(tn.asarray(N), 2), N**2),
    (lambda: tn.bitwise_left_shift(tn.asarray(N), tn.asarray(N)), N << N),
    (lambda: tn.bitwise_invert(tn.asarray(B)), ~B),
    (lambda: tn.conj(tn.asarray(X) * 1j), np.conj(X * 1j)),
    (lambda: tn.round(tn.asarray(X)), np.round(X)),
    (lambda: tn.clip(tn.asarray(X), -1, 2), np.clip(X, -1, 2)),
    (lambda: tn.clip(tn.asarray(N), max=2), np.clip(N, None, 2)),
    (lambda: tn.concat([tn.asarray(X), tn.asarray(X)], axis=1), np.concatenate([X, X], 1)),
    (lambda: tn.concat([tn.asarray(X), tn.asarray(X)], axis=None), np.concatenate([X, X], None)),
    (lambda: tn.permute_dims(tn.asarray(X), (1, 0)), X.T),
    (lambda: tn.matrix_transpose(tn.asarray(X)), X.T),
    (lambda: tn.repeat(tn.asarray(X), 2, axis=0), np.repeat(X, 2, 0)),
    (lambda: tn.repeat(tn.asarray(X), tn.asarray([1, 2]), axis=0), np.repeat(X, [1, 2], 0)),
    (lambda: tn.tile(tn.asarray(X), (2, 1)), np.tile(X, (2, 1))),
    (lambda: tn.roll(tn.asarray(X), 1, axis=1), np.roll(X, 1, 1)),
    (lambda: tn.unstack(tn.asarray(X), axis=1)[2], X[:, 2]),
    (lambda: tn.expand_dims(tn.asarray(X), axis=1), X[:, None]),
    (lambda: tn.sort(tn.asarray(X), descending=True), -np.sort(-X)),
    (lambda: tn.argsort(tn.asarray([1, 2, 1, 2]), descending=True), np.array([1, 3, 0, 2])),
    (lambda: tn.searchsorted(tn.asarray([1, 2, 4]), tn.asarray(N)), np.searchsorted([1, 2, 4], N)),
    (lambda: tn.take(tn.asarray(X), tn.asarray([2, 0]), axis=1), X[:, [2, 0]]),
    (lambda: tn.where(tn.asarray(B), tn.asarray(X), 0), np.where(B, X, 0)),
    (lambda: tn.count_nonzero(tn.asarray(B), axis=0), np.count_nonzero(B, 0)),
    (lambda: tn.argmax(tn.asarray(X), axis=1, keepdims=True), np.argmax(X, 1, keepdims=True)),
    (lambda: tn.std(tn.asarray(X), correction=1), np.std(X, ddof=1)),
    (lambda: tn.sum(tn.asarray(N, dtype=tn.uint8)), np.sum(N.astype("u1"))),
    (lambda: tn.mean(tn.asarray(X), axis=0, keepdims=True), X.mean(0, keepdims=True)),
    (
        lambda: tn.cumulative_sum(tn.asarray(X), axis=1, include_initial=True),
        np.cumulative_sum(X, axis=1, include_initial=True),
    ),
    (lambda: tn.cumulative_prod(tn.asarray(X), axis=0), np.cumprod(X, 0)),
    (lambda: tn.diff(tn.asarray(X), axis=1, prepend=tn.zeros((2, 1))), np.diff(X, prepend=0)),
    (lambda: tn.vecdot(tn.asarray(X), tn.asarray(X), axis=-2), (X * X).sum(0)),
    (lambda: tn.tensordot(tn.asarray(X), tn.asarray(X), axes=2), np.tensordot(X, X, 2)),
    (lambda: tn.linspace(0, 1, num=5), np.linspace(0, 1, 5)),
    (lambda: tn.linspace(0, 2j, num=3), np.linspace(0, 2j, 3)),
    (lambda: tn.arange(1, 10, 3), np.arange(1, 10, 3)),
    (lambda: tn.arange(0.0, 1.0, 0.25, dtype=tn.float32), np.arange(0, 1, 0.25, "f4")),
    (lambda: tn.eye(2, 3, k=1), np.eye(2, 3, 1)),
    (lambda: tn.full((2, 2), 7), np.full((2, 2), 7)),
    (lambda: tn.full_like(tn.asarray(X), 2), np.full_like(X, 2)),
    (lambda: tn.tril(tn.asarray(X), k=1), np.tril(X, 1)),
    (lambda: tn.meshgrid(tn.arange(2), tn.arange(3))[1], np.meshgrid([0, 1], [0, 1, 2])[1]),
    (lambda: tn.linalg.inv(tn.asarray(S)), np.linalg.inv(S)),
    (lambda: tn.linalg.solve(tn.asarray(S), tn.asarray(S)), np.eye(2)),
    (lambda: tn.linalg.cholesky(tn.asarray(S), upper=True), np.linalg.cholesky(S).T),
    (lambda: tn.linalg.eigh(tn.asarray(S)).eigenvalues, np.linalg.eigh(S).eigenvalues),
    (lambda: tn.linalg.det(tn.asarray(S)), np.linalg.det(S)),
    (lambda: tn.linalg.slogdet(tn.asarray(S)).logabsdet, np.linalg.slogdet(S).logabsdet),
    (lambda: tn.linalg.svdvals(tn.asarray(X)), np.linalg.svd(X)[1]),
    (lambda: tn.linalg.pinv(tn.asarray(X)), np.linalg.pinv(X)),
    (lambda: tn.linalg.matrix_norm(tn.asarray(S)), np.linalg.norm(S)),
    (lambda: tn.linalg.vector_norm(tn.asarray(X), axis=1, ord=1), np.abs(X).sum(1)),
    (lambda: tn.linalg.matrix_power(tn.asarray(S), 3), S @ S @ S),
    (lambda: tn.linalg.matrix_rank(tn.asarray(S)), np.array(2)),
    (lambda: tn.linalg.trace(tn.asarray(X), offset=1), np.trace(X, 1)),
    (lambda: tn.linalg.diagonal(tn.asarray(X)), np.diagonal(X)),
    (lambda: tn.linalg.outer(tn.asarray(X[0]), tn.asarray(X[1])), np.outer(X[0], X[1])),
    (lambda: tn.linalg.cross(tn.asarray(X), tn.asarray(X[0])), np.linalg.cross(X, X[0])),
    (lambda: tn.fft.fft(tn.asarray(X)), np.fft.fft(X)),
    (lambda: tn.fft.irfft(tn.asarray(X), n=4, axis=0), np.fft.irfft(X, 4, 0)),
    (lambda: tn.fft.rfftn(tn.asarray(X)), np.fft.rfftn(X)),
    (lambda: tn.fft.fftshift(tn.asarray(X)), np.fft.fftshift(X)),
    (lambda: tn.fft.fftfreq(4, d=0.5), np.fft.fftfreq(4, 0.5)),
]


@pytest.mark.parametrize(("make", "expected"), SAME, ids=range(len(SAME)))
def test_the_standards_functions_on_lazy_arrays(make: Any, expected: Any) -> None:
    got = make()
    assert isinstance(got, tn.Array)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-12, atol=1e-12)


def test_the_namespace_works_inside_jit() -> None:
    @tn.jit
    def f(x: Any) -> Any:
        y = tn.concat([tn.sqrt(x), tn.zeros(2)])
        assert x.__array_namespace__() is tn
        return tn.sum(y) + tn.linalg.vector_norm(tn.asarray([3.0, 4.0]))

    assert float(f(np.array([4.0, 9.0]))) == 10.0


def test_what_an_array_says() -> None:
    x = tn.zeros((2, 3), dtype=tn.float32)
    assert x.__array_namespace__(api_version="2024.12") is tn
    with pytest.raises(ValueError, match="1999"):
        x.__array_namespace__(api_version="1999.12")
    assert x.device == "cpu"
    assert x.to_device("cpu") is x
    with pytest.raises(ValueError, match="device"):
        x.to_device("gpu")
    with pytest.raises(ValueError, match="device"):
        tn.zeros(2, device="gpu")
    assert (x.ndim, x.size, x.dtype, x.T.shape, x.mT.shape) == (2, 6, tn.float32, (3, 2), (3, 2))


def test_what_the_namespace_says() -> None:
    info = tn.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["integral"] == tn.int64
    assert set(info.dtypes(kind="signed integer")) == {"int8", "int16", "int32", "int64"}
    assert info.dtypes(kind=("bool", "complex floating")).keys() == {
        "bool",
        "complex64",
        "complex128",
    }
    assert info.capabilities()["data-dependent shapes"]
    assert tn.__array_api_version__ == "2024.12"


def test_dtypes() -> None:
    assert tn.isdtype(tn.bfloat16, "real floating")
    assert tn.isdtype(tn.int8, (tn.int16, "integral"))
    assert not tn.isdtype(tn.bool, "numeric")
    with pytest.raises(ValueError, match="no kind"):
        tn.isdtype(tn.int8, "whole")
    assert tn.result_type(tn.asarray([1], dtype=tn.int8), 2) == tn.int8
    assert tn.result_type(tn.uint8, tn.int8) == tn.int16
    assert tn.can_cast(tn.int8, tn.int16)
    assert not tn.can_cast(tn.asarray([1.0]), tn.float32)
    assert tn.finfo(tn.complex64).dtype == tn.float32
    assert tn.finfo(tn.bfloat16).bits == 16
    assert tn.iinfo(tn.asarray([1], dtype=tn.uint8)).max == 255
    with pytest.raises(TypeError, match="no floating"):
        tn.finfo(tn.int8)
    with pytest.raises(TypeError, match="no integer"):
        tn.iinfo(tn.float32)


def test_asarray() -> None:
    x = tn.asarray([[1, 2], [3, 4]])
    assert x.dtype == tn.int64
    assert tn.asarray(x) is x
    assert tn.asarray(x, copy=True) is not x
    assert tn.asarray(x, dtype=tn.float32).dtype == tn.float32
    with pytest.raises(ValueError, match="needs a copy"):
        tn.asarray(x, dtype=tn.float32, copy=False)
    assert tn.asarray([x[0], [5, 6]]).tolist() == [[1, 2], [5, 6]]
    assert tn.asarray([tn.asarray(1.5), 2.0]).tolist() == [1.5, 2.0]
    assert tn.asarray(True).dtype == tn.bool
    assert tn.asarray(2.5).dtype == tn.float64
    assert tn.asarray(np.float32(2)).dtype == tn.float32
    assert tn.asarray(memoryview(b"ab")).tolist() == [97, 98]
    with pytest.raises(NotImplementedError, match="no dtype"):
        tn.asarray(["a"])
    with pytest.raises(NotImplementedError, match="no dtype"):
        tn.asarray(np.array([object()]))


def test_nonzero_in_jit_takes_a_size() -> None:
    assert tn.jit(lambda x: tn.nonzero(x, size=2))(np.array([0, 3, 5, 7]))[0].tolist() == [1, 2]
    assert tn.jit(tn.nonzero)(np.array([0, 3]))[0].tolist() == [1]


@pytest.mark.parametrize("dtype", [tn.complex64, tn.complex128])
def test_complex_functions_at_the_edges_follow_the_standard(dtype: Any) -> None:
    inf, nan = np.inf, np.nan
    given = [complex(-0.0, 0.0), complex(inf, 0.0), complex(-inf, inf), complex(inf, nan)]
    got = np.asarray(tn.expm1(tn.asarray(given, dtype=dtype)))
    assert not np.signbit(got[0].real)
    assert [complex(v) for v in got[:3]] == [0j, complex(inf, 0), -1 + 0j]
    assert got[3].real == inf
    assert np.isnan(got[3].imag)
    got = np.asarray(tn.tanh(tn.asarray([complex(inf, 2.0), complex(-inf, -2.0)], dtype=dtype)))
    assert got.tolist() == [1, -1]
    assert np.signbit(got.imag).tolist() == [False, True]
    plain = np.array([0.5 + 2j, -1e-9 + 1e-9j, 3 - 1j], dtype)
    np.testing.assert_array_equal(tn.expm1(tn.asarray(plain)), np.expm1(plain))
    np.testing.assert_array_equal(tn.tanh(tn.asarray(plain)), np.tanh(plain))
    x = tn.asarray([0.5], dtype=tn.float32)
    assert tn.expm1(x).dtype == tn.float32


def test_unique() -> None:
    values, indices, inverse, counts = tn.unique_all(tn.asarray(N))
    assert values.tolist() == [1, 2, 3, 4]
    assert indices.tolist() == [1, 2, 0, 4]
    assert inverse.shape == N.shape
    assert counts.tolist() == [3, 1, 1, 1]


def test_every_name_is_there() -> None:
    for name in tn.__all__:
        assert getattr(tn, name) is not tn, name
    assert {"linalg", "fft"} <= set(dir(tn))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tn.nothing  # noqa: B018


def test_what_is_imported_late_stays_late() -> None:
    code = "import sys, tenfold; print([m for m in sys.modules if 'namespace.fft' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
