"""Ufuncs of scipy.special on traced arrays, beside SciPy's own."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import TypeMismatch, Unsupported
from tenfold.trace.surface.numbers.scipy_special import TRACED

special = pytest.importorskip("scipy.special", reason="SciPy is what it is compared with")

EPS = float(np.finfo(float).eps)
# How far a function may lie from SciPy's, in units of its value and in units of 1. Some of SciPy's
# are the farther ones from the truth: near a zero of theirs, and erfc where it is small.
NEAR: dict[str, tuple[float, float]] = {
    "cosm1": (4, 4),
    "digamma": (64, 16),
    "erfc": (512, 0),
    "ndtr": (512, 0),
    "log_ndtr": (512, 0),
    "psi": (64, 16),
    "gamma": (12, 0),
    "gammaln": (4, 4),
    "loggamma": (4, 4),
    "i0": (12, 0),
    "i0e": (12, 0),
    "i1": (16, 0),
    "i1e": (12, 0),
    "pseudo_huber": (32, 0),
}
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.5, 20.0, -20.0, 38.0, np.inf, -np.inf, np.nan, 1e-300]


def _samples(name: str) -> tuple[Any, ...]:
    random = np.random.default_rng(3)
    drawn = [
        random.normal(0, 3, 400),
        random.uniform(0, 1, 400),
        random.uniform(-36, 36, 400),
        random.choice([-1, 1], 200) * 10.0 ** random.uniform(-300, 300, 200),
        1 + random.normal(0, 1e-3, 50),
    ]
    x = np.concatenate([*drawn, EDGES])
    if getattr(special, name).nin == 1:
        return (x,)
    pairs = np.array(np.meshgrid(EDGES, EDGES)).reshape(2, -1)
    size = np.abs(x)
    other = size * (1 + random.normal(0, 0.1, x.size))
    return (
        np.concatenate([x, size, pairs[0]]),
        np.concatenate([random.permutation(x), other, pairs[1]]),
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted(set(TRACED) - {"kl_div"}))
def test_beside_scipy(name: str, run: Any) -> None:
    ufunc, arguments = getattr(special, name), _samples(name)
    units, unit = NEAR.get(name, (4, 0))
    got = tn.jit(lambda *x: ufunc(*x))(*arguments)
    with np.errstate(all="ignore"):
        expected = ufunc(*arguments)
    # SciPy takes some numbers that are less than normal for 0.
    np.testing.assert_allclose(got, expected, units * EPS, unit * EPS + 1e-307)
    with np.errstate(all="ignore"):
        singles = [a.astype(np.float32) for a in arguments]
        got, expected = tn.jit(lambda *x: ufunc(*x))(*singles), ufunc(*singles)
    assert got.dtype == expected.dtype == np.float32
    np.testing.assert_allclose(got, expected, 4 * 2.0**-23, (unit + 1) * 2.0**-120)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_difference_of_larger_numbers() -> None:
    x, y = _samples("kl_div")
    with np.errstate(all="ignore"):
        got, expected = tn.jit(special.kl_div)(x, y), special.kl_div(x, y)
        bound = 8 * EPS * (np.abs(x) + np.abs(y) + np.abs(special.rel_entr(x, y)))
    whole = np.isfinite(expected) & np.isfinite(bound)
    assert np.all(np.abs(got - expected)[whole] <= bound[whole])
    np.testing.assert_array_equal(got[~np.isfinite(expected)], expected[~np.isfinite(expected)])


def test_dtypes_are_scipys(compare: Any) -> None:
    for dtype in (bool, np.int8, np.int64, np.float16, np.float32):
        compare(special.expit, np.array([0, 1, 1]).astype(dtype))
        compare(special.xlogy, np.array([0, 1, 1]).astype(dtype), np.array([1.0, 2.0, 3.0]))
    compare(lambda x: special.xlogy(2, x), np.array([1.0, 2.0], np.float32))
    compare(lambda x: special.log1p(x), np.array([1 + 2j]))
    with pytest.raises(TypeMismatch, match=r"scipy\.special\.erf of complex"):
        tn.jit(special.erf)(np.array([1j]))


def test_methods_and_selections(compare: Any) -> None:
    x = np.array([0.5, 1.5, 2.5])
    compare(lambda x: special.xlogy.outer(x, x), x)
    compare(lambda x: special.entr(x[x > 1]).sum(), x)
    compare(lambda x: (special.ndtr(x, out=np.copy(x)), special.expit(x) @ x), x)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_written_with_numpys() -> None:
    x = np.array([[0.5, 1.0, -np.inf], [3.0, 800.0, 0.0]])
    w = np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 2.0]])
    for f in (
        special.logsumexp,
        lambda x: special.logsumexp(x, axis=1, keepdims=True),
        lambda x: special.logsumexp(x, axis=0, b=w),
        lambda x: special.logsumexp(x, b=w, return_sign=True)[0],
        special.softmax,
        lambda x: special.softmax(x, axis=1),
        lambda x: special.log_softmax(x, axis=-1),
        special.softplus,
    ):
        np.testing.assert_allclose(tn.jit(f)(x), f(x), 4 * EPS, 4 * EPS)
    got = tn.jit(special.softmax)(x.astype(np.float32))
    assert got.dtype == np.float32


def test_what_is_not_traced_is_named() -> None:
    with pytest.raises(Unsupported, match=r"scipy\.special\.ndtri is not") as caught:
        tn.jit(lambda x: special.ndtri(x))(np.ones(2))
    assert "tn.call_host" in str(caught.value)
    assert "nearest" not in str(caught.value)
    odd = np.frompyfunc(abs, 1, 1)
    with pytest.raises(Unsupported, match="the ufunc abs"):
        tn.jit(odd)(np.ones(2))


def test_scipy_is_not_loaded_by_us() -> None:
    import subprocess

    code = "import sys, numpy as np, tenfold as tn; tn.jit(np.exp)(np.ones(2)); print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "scipy" not in found.stdout.split()
