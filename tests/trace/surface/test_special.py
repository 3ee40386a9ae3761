"""Special functions and the last ufuncs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import TypeMismatch
from tenfold.trace.tables import UFUNCS


def test_every_ufunc_is_there() -> None:
    ufuncs = {getattr(np, n) for n in dir(np) if isinstance(getattr(np, n), np.ufunc)}
    assert not ufuncs - set(UFUNCS)


def test_special_functions() -> None:
    special = pytest.importorskip("scipy.special", reason="scipy has the other ones")
    x = np.linspace(-0.99, 0.99, 31)
    for name, other in (
        ("erf", special.erf),
        ("erfc", special.erfc),
        ("erf_inv", special.erfinv),
        ("lgamma", special.gammaln),
        ("digamma", special.digamma),
        ("sigmoid", special.expit),
    ):
        function = getattr(tn, name)
        np.testing.assert_allclose(function(x), other(x), 1e-12)
        assert tn.jit(function)(x.astype(np.float32)).dtype == np.float32
        np.testing.assert_allclose(function(3), other(3.0) if name != "erf_inv" else np.nan)
    with pytest.raises(TypeMismatch, match="lgamma"):
        tn.lgamma(np.array(1j))


def test_i0(compare: Any) -> None:
    x = np.concatenate([np.linspace(-40, 40, 101), [0.0, 300.0, 700.0]])
    compare(np.i0, x)
    compare(np.i0, np.arange(5))
    (got,) = [tn.jit(np.i0)(np.array([0.0, 1.5, 50.0], np.float32))]
    np.testing.assert_allclose(got, np.i0(np.array([0.0, 1.5, 50.0])), 1e-5)


@pytest.mark.parametrize("ufunc", [np.gcd, np.lcm])
def test_divisors(ufunc: Any, compare: Any, draw: Any) -> None:
    for dtype in ("i8", "u16", "i64", "u64"):
        compare(ufunc, draw(dtype), draw(dtype, (4,), 1))
    compare(ufunc, draw("i8"), draw("u16", (4,)))
    compare(lambda x: ufunc(x, 6), draw("i32"))
    with pytest.raises(TypeMismatch):
        tn.jit(ufunc)(np.ones(2), np.ones(2))


def test_frexp(compare: Any) -> None:
    for dtype in (np.float16, np.float32, np.float64):
        info = np.finfo(dtype)
        x = [0.0, -0.0, 1.0, -3.5, info.max, info.tiny, info.smallest_subnormal, 0.1]
        x += [-info.smallest_subnormal * 5, np.inf, -np.inf, np.nan]
        compare(np.frexp, np.array(x, dtype), exact=True)
    compare(np.frexp, np.arange(5))


def test_isnat_takes_no_numbers(trace: Any) -> None:
    with pytest.raises(TypeMismatch, match=r"np\.isnat does not take"):
        trace(np.isnat, np.ones(2))
