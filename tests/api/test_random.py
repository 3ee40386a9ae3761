"""Random numbers: keys, bits that never change, and distributions against scipy's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import ShapeError, TypeMismatch, ValueProblem
from tenfold.ops import TABLE

KEY = tn.random.key(2024)
MANY = (4000,)


def test_bits_are_the_blocks_of_the_key() -> None:
    k0, k1, count = (np.array(v, np.uint32) for v in (0, 2024, range(6)))
    x, y = TABLE["threefry"].reference(k0, k1, count, np.zeros((), np.uint32))
    assert np.array_equal(tn.random.bits(KEY, (2, 3)).ravel(), x)
    wide = (x.astype(np.uint64) << np.uint64(32)) | y
    assert np.array_equal(tn.random.bits(KEY, 6, np.uint64), wide)
    assert np.array_equal(tn.random.bits(KEY, 6, np.uint8), (x >> 24).astype(np.uint8))
    assert np.array_equal(tn.random.bits(KEY, 4), x[:4])


def test_seeds() -> None:
    assert tn.random.key(2**40 + 3).tolist() == [256, 3]
    assert tn.random.key(-1).tolist() == [2**32 - 1] * 2
    traced = tn.jit(tn.random.key)
    for seed in (5, -1, 2**40 + 3):
        assert np.array_equal(traced(seed), tn.random.key(seed))
        assert np.array_equal(traced(np.int64(seed)), tn.random.key(seed))


def test_keys_never_meet() -> None:
    keys = [KEY, *tn.random.split(KEY, 50), *(tn.random.fold_in(KEY, i) for i in range(50))]
    pairs = tn.random.bits(KEY, 50, np.uint64)
    keys += [np.array([p >> np.uint64(32), p & np.uint64(2**32 - 1)], np.uint32) for p in pairs]
    assert len({tuple(k.tolist()) for k in keys}) == len(keys)


def test_folding_takes_a_traced_number() -> None:
    folded = tn.jit(tn.random.fold_in)
    for data in (0, 7, -2):
        want = tn.random.fold_in(KEY, data)
        assert np.array_equal(folded(KEY, data), want)
        assert np.array_equal(folded(KEY, np.int32(data)), want)


def test_a_key_draws_the_same_inside_and_outside() -> None:
    for name in ("bits", "uniform", "normal", "exponential", "gumbel"):
        draw = getattr(tn.random, name)
        got, want = tn.jit(lambda k: draw(k, (50,)))(KEY), draw(KEY, (50,))  # noqa: B023
        if name in ("bits", "uniform"):
            assert np.array_equal(got, want)
        np.testing.assert_allclose(got, want, 1e-13)
    loop = tn.jit(
        lambda k: tn.map(lambda i: tn.random.uniform(tn.random.fold_in(k, i)), np.arange(4))
    )
    assert loop(KEY).tolist() == [
        float(tn.random.uniform(tn.random.fold_in(KEY, i))) for i in range(4)
    ]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_uniform(dtype: Any) -> None:
    x = tn.random.uniform(KEY, MANY, dtype)
    assert x.dtype == dtype
    wide = x.astype(np.float64)
    assert wide.min() >= 0
    assert wide.max() < 1
    digits = {2: 11 if dtype == np.float16 else 8, 4: 24, 8: 53}[x.dtype.itemsize]
    assert np.all(wide * 2.0**digits == np.floor(wide * 2.0**digits))
    assert abs(wide.mean() - 0.5) < 0.02
    y = tn.random.uniform(KEY, MANY, dtype, -3, 5).astype(np.float64)
    assert y.min() >= -3
    assert y.max() < 5


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_integers(dtype: Any) -> None:
    x = tn.random.integers(KEY, 3, 9, MANY, dtype)
    assert x.dtype == dtype
    counts = np.bincount(x.astype(np.int64), minlength=9)
    assert counts[:3].sum() == 0
    assert np.all(np.abs(counts[3:] - 4000 / 6) < 120)
    info = np.iinfo(dtype)
    every = tn.random.integers(KEY, int(info.min), int(info.max), MANY, dtype, endpoint=True)
    assert every.min() < info.min // 2 + info.max // 4
    assert every.max() > info.max // 4 * 3
    traced = tn.jit(lambda k, a, b: tn.random.integers(k, a, b, MANY, dtype))
    got = traced(KEY, np.array(3, dtype), np.array(9, dtype))
    assert set(np.unique(got).tolist()) == set(range(3, 9))


def test_wide_integers_are_fair() -> None:
    span = 3 * 2**61  # of 64 bits a remainder would hit the lower third twice as often
    x = tn.random.integers(KEY, 0, span, (6000,))
    thirds = np.bincount((x // 2**61).astype(int), minlength=3)
    assert np.all(np.abs(thirds - 2000) < 150)
    # against Python's own product of 128 digits
    a, b = (tn.random.bits(tn.random.fold_in(KEY, i), 50, np.uint64) for i in range(2))
    from tenfold.api.random.draws import _product

    got = tn.jit(_product)(a, b)
    assert got.tolist() == [(int(p) * int(q)) >> 64 for p, q in zip(a, b, strict=True)]


CASES: list[tuple[str, tuple[Any, ...], str, tuple[Any, ...], dict[str, Any]]] = [
    ("normal", (), "norm", (), {}),
    ("exponential", (), "expon", (), {}),
    ("laplace", (), "laplace", (), {}),
    ("gumbel", (), "gumbel_r", (), {}),
    ("logistic", (), "logistic", (), {}),
    ("cauchy", (), "cauchy", (), {}),
    ("rayleigh", (), "rayleigh", (), {}),
    ("weibull", (1.7,), "weibull_min", (1.7,), {}),
    ("pareto", (3.0,), "lomax", (3.0,), {}),
    ("lognormal", (), "lognorm", (1.0,), {}),
    ("truncated_normal", (-1.0, 2.0), "truncnorm", (-1.0, 2.0), {}),
    ("gamma", (0.4,), "gamma", (0.4,), {}),
    ("gamma", (3.5,), "gamma", (3.5,), {}),
    ("beta", (2.0, 0.7), "beta", (2.0, 0.7), {}),
    ("chisquare", (3.0,), "chi2", (3.0,), {}),
    ("student_t", (4.0,), "t", (4.0,), {}),
]


@pytest.mark.parametrize(
    ("name", "given", "other", "shape", "more"), CASES, ids=[f"{c[0]}{c[1]}" for c in CASES]
)
def test_distributions(name: str, given: Any, other: str, shape: Any, more: Any) -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy has the distributions")
    draw = getattr(tn.random, name)
    for number, dtype in enumerate((np.float64, np.float32)):
        x = draw(tn.random.fold_in(KEY, number), *given, shape=MANY, dtype=dtype, **more)
        assert x.dtype == dtype
        assert stats.kstest(x.astype(np.float64), other, shape).pvalue > 1e-3
    assert draw(KEY, *given, shape=(2, 0), dtype=np.float16).dtype == np.float16


@pytest.mark.parametrize(
    ("name", "given", "other"),
    [
        ("poisson", (2.5,), ("poisson", 2.5)),
        ("poisson", (60.0,), ("poisson", 60.0)),
        ("geometric", (0.3,), ("geom", 0.3)),
    ],
)
def test_counts(name: str, given: Any, other: Any) -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy has the distributions")
    x = getattr(tn.random, name)(KEY, *given, shape=MANY)
    assert x.dtype == np.int64
    law = getattr(stats, other[0])(other[1])
    values, counts = np.unique(x, return_counts=True)
    common = values[4000 * law.pmf(values) > 8]
    want = 4000 * law.pmf(common)
    seen = counts[np.isin(values, common)]
    assert stats.chi2.sf(np.sum((seen - want) ** 2 / want), len(common)) > 1e-3


def test_parameters_broadcast() -> None:
    means = np.array([1.0, 5.0, 30.0])
    for name in ("poisson", "gamma"):
        x = getattr(tn.random, name)(KEY, means, (2000, 3))
        np.testing.assert_allclose(x.mean(0), means, 0.1)
    assert tn.random.gamma(KEY, means).shape == (3,)
    assert tn.random.bernoulli(KEY, np.array([0.0, 1.0])).tolist() == [False, True]


def test_vectors() -> None:
    cov = np.array([[2.0, 0.6], [0.6, 1.0]])
    x = tn.random.multivariate_normal(KEY, np.array([1.0, -1.0]), cov, (5000,))
    np.testing.assert_allclose(x.mean(0), [1, -1], atol=0.08)
    np.testing.assert_allclose(np.cov(x.T), cov, atol=0.15)
    shares = tn.random.dirichlet(KEY, np.array([1.0, 2.0, 5.0]), (3000,))
    np.testing.assert_allclose(shares.sum(1), 1)
    np.testing.assert_allclose(shares.mean(0), [1 / 8, 2 / 8, 5 / 8], atol=0.02)


def test_permutation() -> None:
    order = tn.random.permutation(KEY, 100)
    assert sorted(order.tolist()) == list(range(100))
    assert order.tolist() != list(range(100))
    x = np.arange(12).reshape(3, 4)
    turned = tn.jit(lambda k, x: tn.random.permutation(k, x, axis=1))(KEY, x)
    assert np.array_equal(np.sort(turned, 1), x)
    assert np.array_equal(turned[0] + 4, turned[1])


def test_choice() -> None:
    x = np.array([10, 20, 30, 40])
    p = np.array([0.1, 0.0, 0.6, 0.3])
    drawn = tn.random.choice(KEY, x, MANY, p=p)
    np.testing.assert_allclose([np.mean(drawn == v) for v in x], p, atol=0.03)
    assert sorted(tn.random.choice(KEY, x, (4,), replace=False).tolist()) == x.tolist()
    once = tn.random.choice(KEY, 4, (3,), replace=False, p=p)
    assert set(once.tolist()) == {0, 2, 3}
    assert tn.random.choice(KEY, np.ones((2, 5)), (3,), axis=1).shape == (2, 3)
    classes = tn.random.categorical(KEY, np.log(p + 1e-9), shape=MANY)
    np.testing.assert_allclose(np.bincount(classes, minlength=4) / 4000, p, atol=0.03)


def test_refusals() -> None:
    with pytest.raises(TypeMismatch, match=r"random.bits: the key is i64\[2\], not u32\[2\]"):
        tn.random.bits(np.array([1, 2]))
    with pytest.raises(ShapeError, match="the key is u32"):
        tn.random.normal(tn.random.split(KEY))
    with pytest.raises(ValueProblem, match="from 5 to 5"):
        tn.random.integers(KEY, 5, 5)
    with pytest.raises(ValueProblem, match="widen dtype"):
        tn.random.integers(KEY, 0, 300, dtype=np.int8)
    with pytest.raises(TypeMismatch, match="dtype int64"):
        tn.random.normal(KEY, dtype=int)
    with pytest.raises(ValueProblem, match="5 from 4 without replacing"):
        tn.random.choice(KEY, 4, (5,), replace=False)
    with pytest.raises(ValueProblem, match="lesser end first"):
        tn.random.uniform(KEY, (), low=2, high=1)
