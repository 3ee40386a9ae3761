"""What cuFFT and cuSOLVER make of arrays on a GPU: only where there is one, and these libraries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.registry import backend_record
from tenfold.cache import plans
from tenfold.errors import MatrixProblem
from tenfold.ops import TABLE
from tenfold.parity.certificate import Certificate
from tenfold.parity.check import check
from tests.backends.cuda.against import graph_of, ordinary

CUDA = backend_record("cuda")
_MISSING = CUDA.missing()
pytestmark = pytest.mark.skipif(_MISSING is not None, reason=f"no GPU: {_MISSING}")

TRANSFORMS = ("fft", "rfft", "irfft")
MATRICES = ("cholesky", "solve", "triangular_solve", "inv", "det", "slogdet", "lu", "qr", "eigh",
            "svd")  # fmt: skip


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tn.config, "cache", None)
    plans.clear()
    yield
    plans.clear()


def certified(name: str, arrays: Any, **given: Any) -> None:
    """The node agrees with NumPy, and has the same bits in three runs."""
    graph = graph_of(name, arrays, **given)
    program = CUDA.compile(graph)
    runs = [program(arrays) for _ in range(3)]
    for one in runs[1:]:
        assert [a.tobytes() for a in one] == [a.tobytes() for a in runs[0]]
    found = check(program, graph, arrays).verdict
    assert isinstance(found, Certificate), found


@pytest.mark.parametrize("name", [*TRANSFORMS, *MATRICES])
def test_samples(name: str) -> None:
    for sample in TABLE[name].samples(np.random.default_rng(1)):
        certified(name, [np.asarray(a) for a in sample.inputs], **dict(sample.attributes))


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((1021, 64), 0), ((64, 1021), 1), ((7, 4096, 5), 1), ((1 << 18,), 0)]
)
def test_large_transforms(dtype: str, shape: tuple[int, ...], axis: int) -> None:
    x, n = ordinary(dtype, shape), shape[axis]
    certified("fft", [x], axis=axis, inverse=True, norm="backward")
    certified("rfft", [np.ascontiguousarray(x.real)], axis=axis, norm="ortho")
    certified("irfft", [x], axis=axis, n=2 * n - 1, norm="backward")


@pytest.mark.parametrize("dtype", ["f32", "f64", "c64", "c128"])
@pytest.mark.parametrize("shape", [(150, 150), (3, 130, 130), (1000, 8, 8)])
def test_matrices(dtype: str, shape: tuple[int, ...]) -> None:
    x, b = ordinary(dtype, shape), ordinary(dtype, (*shape[:-1], 7))
    certified("solve", [x, b])
    certified("inv", [x])
    certified("slogdet", [x])
    definite = x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1])
    certified("cholesky", [definite.astype(x.dtype)])


def test_what_is_unsolved() -> None:
    for n in (4, 140):
        f = tn.jit(lambda x: np.linalg.inv(x), backend="cuda")
        for _ in range(2):
            with pytest.raises(MatrixProblem, match="singular"):
                f(np.ones((n, n)))
            np.testing.assert_allclose(f(np.eye(n) * 2), np.eye(n) / 2)
