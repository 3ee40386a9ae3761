"""Array methods and attributes beside NumPy's."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import Unsupported
from tenfold.trace.array import Array


def _sorted(x: Any) -> Any:
    y, z = x.copy(), x.copy()
    y.sort()
    z.sort(axis=0, kind="stable")
    return y, z


def _filled(x: Any) -> Any:
    y = x.copy()
    y.fill(3)
    z = x.copy()
    z.put([0, 5], [7, 8])
    return y, z


METHODS: dict[str, Any] = {
    "sums": lambda x: (x.sum(), x.sum(0, "f8"), x.sum(axis=1, keepdims=True), x.prod(axis=0)),
    "extremes": lambda x: (x.max(), x.min(axis=1), x.max(0, keepdims=True), x.max(initial=99)),
    "positions": lambda x: (x.argmax(), x.argmin(axis=1), x.argsort(-1, "stable")),
    "statistics": lambda x: (x.mean(), x.mean(axis=0), x.var(1), x.std(0, ddof=1), x.std()),
    "truth": lambda x: (x.any(), x.all(axis=0), x.any(1, keepdims=True)),
    "shapes": lambda x: (x.reshape(4, 3), x.reshape((2, -1)), x.ravel(), x.flatten(), x.squeeze()),
    "axes": lambda x: (x.T, x.mT, x.transpose(), x.transpose(1, 0), x.swapaxes(0, 1)),
    "choice": lambda x: (x.take([0, 2], axis=1), x.repeat(2, axis=0), x.clip(0, 2), x.clip(max=1)),
    "clip names": lambda x: (x.clip(min=1), x.clip(min=0, max=3)),
    "products": lambda x: (x.dot(x.T), x.trace(), x.diagonal(1), x @ x.T),
    "casts": lambda x: (x.astype("f4"), x.astype(bool), x.round(), x.round(1), x.copy()),
    "bits": lambda x: x.astype("f4").view(np.int32),
    "parts": lambda x: (x.real, x.imag, x.conj(), x.conjugate()),
    "sort": _sorted,
    "fill": _filled,
    "asks": lambda x: np.array([x.ndim, x.size, x.itemsize, x.nbytes, len(x), x.shape[1]]),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("dtype", ["i32", "f64"])
def test_methods(name: str, dtype: str, compare: Any, draw: Any) -> None:
    compare(METHODS[name], draw(dtype))


def test_numbers_give_numbers(compare: Any) -> None:
    compare(
        lambda x: (x.sum(), x.T, x.reshape(-1), x.ravel(), x[()], x[...], x[None]), np.float32(3)
    )


def test_unknown_arguments_are_named(trace: Any, draw: Any) -> None:
    with pytest.raises(TypeError, match=r"sum\(\) got an unexpected keyword argument 'axes'"):
        trace(lambda x: x.sum(axes=0), draw("f32"))


def test_casts(trace: Any, draw: Any) -> None:
    with pytest.raises(Unsupported, match="nonsense is no dtype"):
        trace(lambda x: x.astype("nonsense"), draw("f32"))
    trace(lambda x: x.astype("f8", casting="safe"), draw("f32"))


def test_views_as_subclasses_are_refused(trace: Any) -> None:
    for f in (lambda x: x.view(np.matrix), lambda x: x.view(type=np.matrix)):
        with pytest.raises(Unsupported, match=r"a subclass of np\.ndarray"):
            trace(f, np.ones(3))
    x = np.array([1.0, -2.0])
    for f in (lambda x: x.view(np.ndarray) * 2, lambda x: x.view("i8", np.ndarray)):
        np.testing.assert_array_equal(tn.jit(f)(x), f(x), strict=True)


def test_indexing_keeps_its_signature() -> None:
    assert list(inspect.signature(Array.__setitem__).parameters) == ["self", "key", "value"]
    assert list(inspect.signature(Array.__getitem__).parameters) == ["self", "key"]
