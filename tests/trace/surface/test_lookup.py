"""Lookups and orders beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.errors import ShapeError


def test_interp(compare: Any, draw: Any) -> None:
    xp, fp = np.array([-2.0, -1.0, 0.5, 2.0]), np.array([1.0, 3.0, -2.0, 4.0])
    x = np.concatenate([np.linspace(-4, 4, 33), xp, [np.nan, np.inf]])
    compare(np.interp, x, xp, fp)
    compare(lambda x: np.interp(x, xp, fp, left=-9, right=7.5), x)
    compare(lambda x: np.interp(x, xp, fp, period=3.0), x[:-1])
    compare(lambda x: np.interp(x, xp, fp * 1j + 2), x)
    compare(lambda x: np.interp(x, xp[:1], fp[:1]), x)
    compare(lambda x: np.interp(x, np.arange(4), np.arange(4)), np.arange(-1, 6))
    compare(lambda x: np.interp(x, xp, np.array([1.0, np.inf, np.inf, 2.0])), x)


def test_isin(compare: Any, draw: Any) -> None:
    for dtype in ("i8", "u32", "f64", "bool"):
        for shape in ((3, 4), (), (0,)):
            for tests in ((5,), (0,), (2, 2), ()):
                x, t = draw(dtype, shape), draw(dtype, tests, 1)
                compare(lambda x, t: np.isin(x, t), x, t)
                compare(lambda x, t: np.isin(x, t, invert=True), x, t)
    compare(lambda x: np.isin(x, [1, 2.5, 3]), draw("i32"))
    nan = np.array([np.nan, 1.0])
    compare(np.isin, nan, nan)


def test_partition(run: Any, draw: Any) -> None:
    x = draw("f64", (5, 8))
    for axis in (None, 0, -1):
        (got,) = run(lambda x: np.partition(x, 3, axis), x)  # noqa: B023
        want = np.partition(x, 3, axis)
        assert np.array_equal(np.take(got, 3, axis), np.take(want, 3, axis))
        (places,) = run(lambda x: np.argpartition(x, 3, axis), x)  # noqa: B023
        whole = x.ravel() if axis is None else x
        at = 0 if axis is None else axis
        assert np.array_equal(np.take_along_axis(whole, places, at), got)


def test_lexsort(compare: Any, draw: Any) -> None:
    first, second = draw("i8", (30,)) % 3, draw("i8", (30,), 1) % 4
    compare(lambda a, b: np.lexsort((a, b)), first, second)
    compare(lambda a: np.lexsort(a), draw("i8", (3, 20)) % 3)
    compare(lambda a: np.lexsort((a, a[::-1]), axis=0), draw("i8", (6, 5)) % 3)


def test_sort_complex(compare: Any, draw: Any) -> None:
    for dtype in ("i8", "u16", "i32", "f32", "f64", "c64", "c128"):
        compare(np.sort_complex, draw(dtype, (2, 6)))


def test_refusals(trace: Any) -> None:
    with pytest.raises(ShapeError, match="interp: points"):
        trace(lambda x: np.interp(x, x, x[:2]), np.arange(3.0))
