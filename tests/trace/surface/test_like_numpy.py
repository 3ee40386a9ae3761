"""Corners where results once differed from NumPy's: traced, lazy and compiled they are its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import tenfold as tn

NAN, INF = np.nan, np.inf


def _parts(x: Any) -> list[Any]:
    x = np.asarray(x)
    return [x.real, x.imag] if x.dtype.kind == "c" else [x]


def like_numpy(f: Callable[..., Any], *args: Any) -> None:
    """Fail unless a function gives NumPy's values, dtypes and signs of zero in every way to run."""
    with np.errstate(all="ignore"):
        wanted = f(*args)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for run in (
        lambda: tn.jit(f, compile="never")(*args),
        lambda: tn.jit(f, verify="off")(*args),
        lambda: f(*map(tn.asarray, args)),
    ):
        got = run()
        got = got if isinstance(got, tuple) else (got,)
        for a, b in zip(map(np.asarray, got), map(np.asarray, wanted), strict=True):
            assert a.dtype == b.dtype
            for p, q in zip(_parts(a), _parts(b), strict=True):
                np.testing.assert_allclose(p, q, 1e-5 if q.dtype.itemsize > 2 else 1e-2)
                if q.dtype.kind == "f":
                    known = ~np.isnan(q)
                    np.testing.assert_array_equal(np.signbit(p)[known], np.signbit(q)[known])


ZEROS = np.array([complex(a, b) for a in (-0.0, 0.0) for b in (-0.0, 0.0)])


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_running_sums_of_complex_zeros(dtype: str) -> None:
    for x in (*(ZEROS[[i, i, i]] for i in range(4)), ZEROS, ZEROS[::-1], np.tile(ZEROS[:1], 50)):
        x = x.astype(dtype)
        like_numpy(lambda x: (np.cumsum(x), np.add.accumulate(x), np.nancumsum(x)), x)
        like_numpy(lambda x: np.cumulative_sum(x, include_initial=True), x)
        like_numpy(lambda x: np.cumsum(x.reshape(-1, 1), axis=0), x[:4] if x.size > 3 else x)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_running_products_with_infinities(dtype: str) -> None:
    for x in (
        [1 + 1j, INF, 2j, complex(0, -INF)],
        [INF],
        [complex(-0.0, -0.0)] * 3,
        [1j] * 40,
        [complex(0, -1), complex(-0.0, 2), -3],
        [],
    ):
        made = np.array(x, dtype)
        like_numpy(lambda x: (np.cumprod(x), np.multiply.accumulate(x)), made)
        like_numpy(lambda x: np.cumprod(x[:, None], axis=1), made)


def test_an_index_out_of_range_where_nothing_would_be_written() -> None:
    def f(x: Any, i: Any) -> Any:
        x = x.copy()
        x[i] = 1.0
        return x

    for shape, index in (((3, 0), 5), ((3, 0), [5]), ((0, 3), 0), ((0, 3), [0]), ((0, 0), -1)):
        for given in (index, np.array(index)):
            with pytest.raises(IndexError):
                f(np.zeros(shape), given)
            for how in ({"compile": "never"}, {"verify": "off"}):
                with pytest.raises(IndexError):
                    tn.jit(f, **how)(np.zeros(shape), np.array(index))
                with pytest.raises(IndexError):
                    tn.jit(lambda x, given=given: f(x, given), **how)(np.zeros(shape))
            with pytest.raises(IndexError):
                np.asarray(f(tn.zeros(shape), given))


def test_an_index_out_of_range_of_ufunc_at() -> None:
    def f(x: Any, i: Any) -> Any:
        x = x.copy()
        np.add.at(x, (i, slice(0, 0)), 1.0)
        return x

    for run in (f, tn.jit(f), lambda x, i: np.asarray(f(tn.asarray(x), i))):
        with pytest.raises(IndexError):
            run(np.zeros((3, 2)), np.array([5]))


def test_averages_are_taken_in_floats() -> None:
    x = np.array([200, 100], np.uint8)
    like_numpy(lambda x: np.average(x, weights=x), np.array([200, 200], np.uint8))
    like_numpy(lambda x: np.average(x, weights=np.array([3, 4], np.uint8), returned=True), x)
    like_numpy(lambda x: np.average(x, weights=[1, 3]), x[::-1])
    for dtype in ("i1", "?", "f2", "f4", "c8"):
        for weights in ("u1", "f4", "f8"):
            w = np.array([1, 2], weights)
            like_numpy(lambda x, w: np.average(x, weights=w), np.array([100, 3]).astype(dtype), w)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[3, 2, 1], [1, 2, 3], [3, 3, 1], [3, 3], [2.0], [], (3, 2.5, 1)])
def test_bins_that_rise_or_fall(bins: Any, right: bool) -> None:
    x = np.array([0.5, 1, 1.5, 2, 3, 4, NAN, INF, -INF])
    like_numpy(lambda x: np.digitize(x, bins, right), x)
    if len(bins):
        like_numpy(lambda x: np.digitize(x, np.array(bins), right), x)
        like_numpy(lambda x, b: np.digitize(x, b, right), x, np.array(bins, float))
        like_numpy(lambda x, b: np.digitize(x, b, right), x, np.array(bins, float)[::-1])


def test_bins_without_an_order() -> None:
    with pytest.raises(ValueError, match="neither rise nor fall"):
        tn.jit(lambda x: np.digitize(x, [3, 2, 5]))(np.ones(2))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "c16", "?"])
def test_infinities_beyond_the_ends(dtype: str) -> None:
    for n, m in ((3, 2), (3, 3), (5, 1), (20, 7), (1, 1)):
        a, v = (np.arange(1.0, k + 1) % 3 for k in (n, m))
        if dtype[0] in "f":
            a[n // 2], v[0] = NAN if n == 5 else INF, INF
        a, v = a.astype(dtype), v.astype(dtype)
        for mode in ("full", "same", "valid"):
            like_numpy(lambda a, v, mode=mode: np.convolve(a, v, mode), a, v)
            like_numpy(lambda a, v, mode=mode: np.correlate(a, v, mode), a, v)
            like_numpy(lambda a, v, mode=mode: np.correlate(v, a, mode), a[::-1], v)
        if dtype != "?":
            like_numpy(lambda a, v: np.polymul(a, v), a, v)


def test_choices_of_one_dtype() -> None:
    i = np.array([0, 1])
    like_numpy(lambda i, x: np.choose(i, [x, 1]), i, np.array([2**63 + 1, 5], np.uint64))
    like_numpy(lambda i, x: np.choose(i, [x, 1.5]), i, np.array([1, 2], "f4"))
    like_numpy(lambda i, x: np.choose(i, [x, np.float32(2)]), i, np.array([1, 2], "i2"))
    like_numpy(lambda i: np.choose(i, [1, 2]), i)
    with pytest.raises(OverflowError):
        tn.jit(lambda i, x: np.choose(i, [x, 300]))(i, np.array([1, 2], np.uint8))


def test_reductions_of_one_element() -> None:
    for x in (np.array([-6]), np.array([[-6], [3]]), np.array([[-6, -3]]), np.array([6], "u1")):
        like_numpy(lambda x: (np.gcd.reduce(x), np.gcd.reduce(x, axis=-1)), x)
        like_numpy(lambda x: np.lcm.reduce(x, axis=-1, keepdims=True), x)
        like_numpy(lambda x: np.hypot.reduce(x.astype(float), axis=-1), x)
    like_numpy(lambda x: np.gcd.reduce(x, initial=-4), np.array([], int))


def test_variances_in_another_dtype() -> None:
    z = np.array([[0, 4 - 5.25j, 3.25 + 1j], [-5.75 + 1j, 1, 2j]])
    for x in (z, z.astype("c8"), z.real, z.real.astype("f4"), z.real.astype("i1"), z.real > 0):
        for dtype in ("f4", "f8"):
            with (
                pytest.warns(np.exceptions.ComplexWarning) if x.dtype.kind == "c" else nullcontext()
            ):
                wanted = np.var(x, axis=0, dtype=dtype), np.std(x, dtype=dtype, ddof=1)
            got = tn.jit(
                lambda x, d=dtype: (np.var(x, axis=0, dtype=d), np.std(x, dtype=d, ddof=1))
            )(x)
            for a, b in zip(got, wanted, strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_allclose(a, b, 1e-5)


def test_polynomials_of_small_integers() -> None:
    for dtype in ("?", "i1", "u8", "f2"):
        for p in (np.array([1, 2, 6], np.uint64), np.array([3, 4], np.int8)):
            like_numpy(lambda x, p: np.polyval(p, x), np.ones(3, dtype), p)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("exponent", [0, 1, 0.0, 1.0])
def test_powers_0_and_1(dtype: str, exponent: float) -> None:
    parts = (0.0, -0.0, 1.5, -2.0, INF, -INF, NAN)
    x = np.array([complex(a, b) if dtype[0] == "c" else a for a in parts for b in parts], dtype)
    like_numpy(lambda x: (np.power(x, exponent), x**exponent), x)
    ops = {node.op for node in tn.trace(lambda x: x**exponent, x).nodes}
    assert ops <= {"constant", "broadcast", "eq", "select"}


def test_powers_of_bools() -> None:
    x = np.array([True, False])
    like_numpy(lambda x: (x**2, np.power(x, 2), x**1, x**True, x**0.5, 2**x, np.square(x)), x)
    like_numpy(lambda x: x**2, np.array(True)[None])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_spacing(dtype: str) -> None:
    top, tiny = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    x = np.array([-1, -0.0, 0, -2, 1, -1.5, 3, INF, -INF, NAN, tiny, -tiny, top, -top], dtype)
    like_numpy(lambda x: np.spacing(x), x)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_reciprocals_of_complex_numbers(dtype: str) -> None:
    parts = (0.0, -0.0, 1.0, -2.0, 3.0, INF, -INF, NAN)
    z = np.array([complex(a, b) for a in parts for b in parts], dtype)
    like_numpy(lambda z: (np.reciprocal(z), z**-1), z)


@pytest.mark.parametrize("sparse", [False, True])
def test_grids_that_are_not_copied(sparse: bool) -> None:
    x = np.arange(3.0)
    like_numpy(lambda x: tuple(np.meshgrid(x, x + 1, copy=False, sparse=sparse)), x)


def test_fillings_of_nan_are_real() -> None:
    like_numpy(lambda x: np.nan_to_num(x, nan=1, posinf=2.0, neginf=-3), np.array([NAN, INF, -INF]))
    with pytest.raises(TypeError):
        tn.jit(lambda x: np.nan_to_num(x, nan=1j))(np.ones(2))


@pytest.mark.parametrize("odd", [NAN, INF, -INF])
def test_a_histogram_has_a_finite_range(odd: float) -> None:
    x = np.array([1.0, 2.0, odd])
    for f in (
        lambda x: np.histogram(x),
        lambda x: np.histogram_bin_edges(x),
        lambda x: np.histogram2d(x, x[::-1]),
        lambda x: np.histogramdd(x[:, None]),
    ):
        with pytest.raises(ValueError, match="finite"), np.errstate(all="ignore"):
            f(x)
        for how in ({"compile": "never"}, {"verify": "off"}, {}):
            g = tn.jit(f, **how)
            with pytest.raises(ValueError, match="no finite number"):
                g(x)
            g(np.array([1.0, 2.0, 3.0]))
        with pytest.raises(ValueError, match="no finite number"):
            np.asarray(f(tn.asarray(x))[0])
    with pytest.raises(ValueError, match="not finite"):
        tn.jit(lambda x: np.histogram(x, range=(0.0, odd)))(x)
    like_numpy(lambda x: np.histogram(x, range=(0, 2)), x)
    like_numpy(lambda x: np.histogram(x, range=(0, 2)), x.astype("f4"))


def test_edges_of_a_histogram_rise() -> None:
    for f in (
        lambda x: np.histogram(x, [2, 1]),
        lambda x: np.histogram(x, np.array([2.0, 1.0])),
        lambda x: np.histogramdd(x[:, None], [[2.0, 1.0]]),
        lambda x: np.histogram(x, range=(2, 1)),
    ):
        with pytest.raises(ValueError, match=r"rise|falls"):
            tn.jit(f)(np.ones(3))
    like_numpy(lambda x: np.histogram(x, [1, 1, 2]), np.ones(3))
    like_numpy(lambda x: np.histogram(x), np.array([], float))
