"""Convolutions and windows beside NumPy's and beside loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib import stride_tricks
from numpy.lib.stride_tricks import as_strided

import tenfold as tn
from tenfold.errors import IndexProblem, MutationError, ShapeError, ValueProblem


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("function", [np.convolve, np.correlate])
def test_lines(function: Any, mode: Any, compare: Any, draw: Any) -> None:
    for dtype in ("bool", "i16", "f32", "f64", "c64", "u8"):
        for n, m in ((7, 3), (3, 7), (6, 4), (4, 4), (1, 1), (5, 1)):
            compare(lambda a, v: function(a, v, mode), draw(dtype, (n,)), draw(dtype, (m,), 1))
    compare(lambda a, v: function(a, v, mode), draw("i32", (5,)), draw("f32", (2,)))


def test_conv_promotes_and_pads(draw: Any) -> None:
    x, w = draw("i32", (1, 2, 6, 5)), draw("f32", (3, 2, 3, 2), 1)
    got = tn.jit(lambda x, w: tn.conv(x, w, padding=((1, 1), (0, 1))))(x, w)
    wide = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 1)))
    views = np.lib.stride_tricks.sliding_window_view(wide, (3, 2), (2, 3))
    want = np.einsum("nchwij,ocij->nohw", views, w)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, want)
    assert tn.conv(x, w, padding="same", strides=2).shape == (1, 3, 3, 3)
    assert tn.conv(x, w, padding=1, dilation=2).shape == (1, 3, 4, 5)
    with pytest.raises(ShapeError, match="conv: strides"):
        tn.conv(x, w, strides=(1, 1, 1))
    with pytest.raises(ValueProblem, match="padding='wide'"):
        tn.conv(x, w, padding="wide")


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min", "mean"])
def test_reduce_window(kind: str, draw: Any) -> None:
    for dtype in ("i16", "u8", "f64", "f32"):
        x = draw(dtype, (7, 6))
        views = np.lib.stride_tricks.sliding_window_view(x, (3, 2))[::2]
        got = tn.jit(lambda x: tn.reduce_window(x, kind, (3, 2), strides=(2, 1)))(x)
        want = getattr(np, kind)(views, axis=(2, 3))
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, 1e-6)
        wide = tn.reduce_window(x, kind, 3, padding="same")
        for at in ((0, 0), (3, 3), (6, 5)):
            inside = x[tuple(slice(max(i - 1, 0), i + 2) for i in at)]
            np.testing.assert_allclose(wide[at], getattr(np, kind)(inside), 1e-5)


def test_reduce_window_of_ufuncs_and_dilation(draw: Any) -> None:
    x = draw("f64", (9,))
    got = tn.reduce_window(x, np.maximum, 3, dilation=2)
    assert np.array_equal(got, np.max([x[:5], x[2:7], x[4:]], 0))
    assert np.array_equal(tn.reduce_window(x, "max", 3, initial=100.0), np.full(7, 100.0))


def test_reduce_window_with_a_function(draw: Any) -> None:
    x = draw("i64", (6,))
    got = tn.jit(lambda x: tn.reduce_window(x, lambda a, b: a - b, 2, initial=7, padding=1))(x)
    wide = np.pad(x, 1, constant_values=7)
    assert np.array_equal(got, 7 - wide[:-1] - wide[1:])
    with pytest.raises(ValueProblem, match="no initial"):
        tn.reduce_window(x, lambda a, b: a - b, 2)
    with pytest.raises(ValueProblem, match="f='median'"):
        tn.reduce_window(x, "median", 2)


def test_sliding_window_view(compare: Any, draw: Any) -> None:
    view = np.lib.stride_tricks.sliding_window_view
    compare(lambda x: view(x, (2, 3)), draw("i32"))
    compare(lambda x: view(x, 2, 0), draw("i32"))
    compare(lambda x: view(x, 2, axis=-1), draw("i32", (2, 3, 4)))
    compare(lambda x: view(x, (2, 2), axis=(0, 0)), draw("i32", (5,)))


STRIDED = {
    "windows": lambda x: as_strided(x, (2, 4, 3, 3), x.strides * 2),
    "through the module": lambda x: stride_tricks.as_strided(x, (23,), (8,)) * 2,
    "of a part": lambda x: as_strided(x[1:, 2:], (2, 3), (48, 8)) + 1,
    "transposed": lambda x: as_strided(x.T, (2, 3), x.T.strides),
    "backwards": lambda x: as_strided(x[::-1], (4, 2), x[::-1].strides),
    "beyond the part": lambda x: as_strided(x[0], (12,), (8,)),
    "some columns": lambda x: as_strided(x[:, ::2], strides=(48, 8)),
    "nothing": lambda x: as_strided(x, (0, 99), (8, 8)),
    "strides": lambda x: np.array(x.strides + x.T.strides + x[::2, ::-1].strides),
}


@pytest.mark.parametrize("name", STRIDED)
def test_as_strided(name: str, draw: Any) -> None:
    function, x = STRIDED[name], draw("f64", (4, 6))
    np.testing.assert_array_equal(tn.jit(function)(x), function(x), strict=True)


def test_as_strided_is_a_view() -> None:
    def program(x: Any) -> Any:
        rows = as_strided(x, (5, 3), (8, 8))
        as_strided(x, (3,), (16,))[:] = -1.0
        known = np.arange(6.0)
        pairs = as_strided(known, (5, 2), (8, 8))
        known[1] = x[0]  # the array is traced from here on, and so is its view
        return rows, pairs

    x, y = np.arange(7.0), np.arange(7.0)
    for got, want in zip(tn.jit(program)(x), program(y), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(x, y)

    def several(x: Any) -> None:
        as_strided(x, (5, 3), (8, 8))[:] = 0

    with pytest.raises(MutationError, match="in several places"):
        tn.jit(several)(x)


def test_as_strided_stays_within_the_array() -> None:
    x = np.arange(10)
    for shape, strides in (((9, 3), (8, 8)), ((3,), (-8,)), ((2,), (4,))):
        with pytest.raises(IndexProblem, match="as_strided"):
            tn.jit(lambda x, n=shape, s=strides: as_strided(x, n, s))(x)
    with pytest.raises(ShapeError, match="one for each"):
        tn.jit(lambda x: as_strided(x, (2, 2), (8,)))(x)
    assert tn.asarray(np.zeros((2, 3))).strides == (24, 8)
