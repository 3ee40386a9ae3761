"""reduce, accumulate and outer of every ufunc, beside NumPy's: where NumPy has no result for a
dtype, the traced one raises as well."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import reduce as fold
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import ConcreteError, IndexProblem, TenfoldError
from tenfold.trace.tables import UFUNCS

ALL = sorted({getattr(np, n) for n in dir(np) if isinstance(getattr(np, n), np.ufunc)}, key=str)
PAIRS = [u for u in ALL if u.nin == 2 and u.signature is None]
FOLDS = [u for u in PAIRS if u.nout == 1]
# On some machines NumPy's reduce of these leaves out all but the first and last element, where
# the elements lie side by side.
SKIPPING = (np.power, np.arctan2, np.ldexp)
DTYPES = ("?", "i1", "u2", "i8", "f4", "f8", "c8")


def _ids(ufunc: np.ufunc) -> str:
    return ufunc.__name__


def _same(f: Callable[..., Any], *arguments: Any, plain: Callable[..., Any] | None = None) -> bool:
    """Compare with NumPy, or with what is plain in it; whether NumPy has a result."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        traced = tn.jit(f, compile="never")
        try:
            expected = (plain or f)(*(a.copy() for a in arguments))
        except (TypeError, ValueError):
            with pytest.raises(TenfoldError):
                traced(*arguments)
            return False
        got = traced(*arguments)
        many = isinstance(expected, tuple)
        for a, b in zip(got if many else (got,), expected if many else (expected,), strict=True):
            assert np.asarray(a).dtype == b.dtype
            assert np.shape(a) == np.shape(b)
            eps = np.finfo(b.dtype).eps if b.dtype.kind in "fc" else 0
            np.testing.assert_allclose(a, b, 256 * eps, 256 * eps, equal_nan=True)
    return True


def _draw(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray[Any, Any]:
    made = np.random.default_rng(seed).integers(1, 5, shape)
    return (made * (0.75 + 0.25j) if dtype == "c8" else made).astype(dtype)


def test_every_ufunc_is_traced() -> None:
    assert set(ALL) <= set(UFUNCS)


@pytest.mark.parametrize("ufunc", FOLDS, ids=_ids)
def test_reduce(ufunc: np.ufunc) -> None:
    found = False
    for dtype in DTYPES:
        x = _draw(dtype, (3, 4))
        found |= _same(lambda x: ufunc.reduce(x), x)
        plain = (lambda x: fold(ufunc, x.T)[:, None]) if ufunc in SKIPPING else None
        found |= _same(lambda x: ufunc.reduce(x, axis=-1, keepdims=True), x, plain=plain)
    x = _draw("f8", (2, 3, 2)) if "dd->d" in ufunc.types else _draw("i8", (2, 3, 2))
    _same(lambda x: ufunc.reduce(x, axis=(0, 2)), x)
    _same(lambda x: ufunc.reduce(x, axis=None), x)
    _same(lambda x: ufunc.reduce(x, axis=1, initial=3), x)
    _same(lambda x: ufunc.reduce(x, axis=1), x[:, :1])
    _same(lambda x: ufunc.reduce(x, axis=1), x[:, :0])
    _same(lambda x: ufunc.reduce(x, axis=0, where=x > 2), x)
    assert found or not _reducible(ufunc)


def _reducible(ufunc: np.ufunc) -> bool:
    """Whether some loop of the ufunc gives what it takes."""
    return any(len(set(t.replace("->", ""))) == 1 and t[0] != "O" for t in ufunc.types)


@pytest.mark.parametrize("ufunc", FOLDS, ids=_ids)
def test_accumulate(ufunc: np.ufunc) -> None:
    for dtype in DTYPES:
        x = _draw(dtype, (3, 4))
        _same(lambda x: ufunc.accumulate(x), x)
        _same(lambda x: ufunc.accumulate(x, axis=-1), x)
    x = _draw("f8", (2, 3)) if "dd->d" in ufunc.types else _draw("i8", (2, 3))
    _same(lambda x: ufunc.accumulate(x, axis=1), x[:, :0])


@pytest.mark.parametrize("ufunc", PAIRS, ids=_ids)
def test_outer(ufunc: np.ufunc) -> None:
    for dtype in DTYPES:
        x, y = _draw(dtype, (3,)), _draw(dtype, (2, 2), 1)
        _same(lambda x, y: ufunc.outer(x, y), x, y)
    x = _draw("f8", (3,)) if "dd->d" in ufunc.types else _draw("i8", (3,))
    _same(lambda x, y: ufunc.outer(x, y), x, x[:0])
    _same(lambda x, y: ufunc.outer(x, y), x, x[0])


def test_lazy_arrays_fold_too() -> None:
    x = np.arange(1.0, 7.0).reshape(2, 3)
    lazy = tn.asarray(x)
    for f in (np.subtract.reduce, np.hypot.reduce, np.subtract.accumulate):
        np.testing.assert_allclose(np.asarray(f(lazy)), f(x), 1e-15)
    assert np.asarray(np.apply_along_axis(np.sum, 1, lazy)).tolist() == [6.0, 15.0]


RUNS: dict[str, list[int]] = {
    "even": [0, 2, 4],
    "uneven": [1, 2, 5],
    "falling": [4, 1, 3, 3, 0],
    "one": [2],
    "none": [],
}


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.multiply, np.subtract, np.bitwise_or])
def test_reduceat(ufunc: np.ufunc, runs: str) -> None:
    index = np.array(RUNS[runs], int)
    for x in (np.arange(6, dtype="i4"), np.arange(24, dtype="i1").reshape(6, 4)):
        for f in (
            lambda x: ufunc.reduceat(x, index),
            lambda x: ufunc.reduceat(x.T, np.array(RUNS[runs], int), axis=-1),
        ):
            got, want = tn.jit(f)(x), f(x)
            np.testing.assert_array_equal(got, want, strict=True)


def test_reduceat_says_what_it_can_not() -> None:
    x = np.arange(6.0)
    np.testing.assert_array_equal(
        tn.jit(lambda x: np.add.reduceat(x, [0, 3], dtype="f4"))(x), np.array([3, 12], "f4")
    )
    with pytest.raises(ConcreteError, match="how long the runs are"):
        tn.jit(lambda x, i: np.add.reduceat(x, i))(x, np.array([0, 2]))
    with pytest.raises(IndexProblem, match="out of range"):
        tn.jit(lambda x: np.add.reduceat(x, [0, 6]))(x)
