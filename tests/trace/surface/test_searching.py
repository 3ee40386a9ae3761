"""Searching, counting and what needs a size, beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import ConcreteError, IndexProblem, ShapeError, TypeMismatch


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side: Any, compare: Any, draw: Any) -> None:
    for dtype in ("i8", "u32", "i64", "f32", "f64", "bool"):
        for n, shape in ((7, (3, 4)), (8, ()), (1, (5,)), (0, (2,)), (4, (0,))):
            line = np.sort(draw(dtype, (n,)))
            compare(lambda a, v: np.searchsorted(a, v, side), line, draw(dtype, shape, 1))
    line = np.array([1.0, 2.0, np.nan, np.nan])
    compare(lambda a, v: np.searchsorted(a, v, side), line, np.array([np.nan, 0, 2, 3]))
    compare(lambda a, v: np.searchsorted(a, v, side), np.arange(5), np.array([0.5, 3.0]))


def test_searchsorted_with_a_sorter(compare: Any, draw: Any) -> None:
    x = draw("f64", (9,))
    compare(lambda a, v, s: np.searchsorted(a, v, sorter=s), x, draw("f64", (4,), 1), np.argsort(x))


def test_digitize(compare: Any, draw: Any) -> None:
    bins = np.array([-2.0, 0.0, 1.0, 2.5])
    for right in (False, True):
        compare(lambda x: np.digitize(x, bins, right), draw("f64"))  # noqa: B023
        compare(lambda x: np.digitize(x, bins[::-1].copy(), right), draw("f64"))  # noqa: B023


def test_a_method(compare: Any, draw: Any) -> None:
    compare(lambda a, v: a.searchsorted(v, "right"), np.sort(draw("f64", (9,))), draw("f64", (4,)))


def test_numbers_and_lists_are_taken_too() -> None:
    assert [a.tolist() for a in tn.top_k([3, 1, 2], np.int64(2))] == [[3, 2], [0, 2]]
    assert tn.unique(list(range(20)) * 2, size=np.int32(3)).tolist() == [0, 1, 2]


def test_top_k() -> None:
    x = np.random.default_rng(0).integers(0, 9, (3, 8, 2))
    values, places = tn.jit(lambda x: tn.top_k(x, 3, axis=1))(x)
    assert np.array_equal(values, -np.sort(-x, 1)[:, :3])
    assert np.array_equal(np.take_along_axis(x, places, 1), values)
    with pytest.raises(ShapeError, match="top_k: k=9"):
        tn.top_k(np.zeros(3), 9)


def test_nonzero() -> None:
    x = np.array([[0, 5, 0], [7, 0, 9]])
    want = np.nonzero(x)
    for got in (tn.nonzero(x, size=3), tn.jit(lambda x: tn.nonzero(x, size=3))(x)):
        assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))
    assert [a.tolist() for a in tn.nonzero(x, size=5, fill_value=-1)] == [
        [0, 1, 1, -1, -1],
        [1, 0, 2, -1, -1],
    ]
    assert [a.tolist() for a in tn.nonzero(x, size=2)] == [[0, 1], [1, 0]]
    assert tn.flatnonzero(x, size=4).tolist() == [1, 3, 5, 0]
    assert np.array_equal(tn.argwhere(x, size=3), np.argwhere(x))
    assert [a.tolist() for a in tn.nonzero(np.zeros((0, 2)), size=2)] == [[0, 0], [0, 0]]
    assert [a.tolist() for a in tn.nonzero(x, size=0)] == [[], []]
    assert [a.tolist() for a in tn.nonzero(np.array(3.0), size=2)] == [[0, 0]]


def test_compress() -> None:
    x, mask = np.arange(12.0).reshape(3, 4), np.array([True, False, True])
    assert np.array_equal(tn.compress(mask, x, 0, size=2), np.compress(mask, x, 0))
    assert tn.compress(mask, x, size=3, fill_value=-1).tolist() == [0, 2, -1]
    assert tn.compress(mask[:0], x, 1, size=1).tolist() == [[0], [0], [0]]


@pytest.mark.parametrize("dtype", ["i32", "f64", "bool", "c64"])
def test_unique(dtype: Any, draw: Any) -> None:
    x = draw(dtype, (5, 4))
    want = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    size = len(want[0])
    got = tn.jit(lambda x: tn.unique(x, True, True, True, size=size))(x)
    for a, b in zip(got, want, strict=True):
        assert np.array_equal(a, b)
    values, counts = tn.unique(x, return_counts=True, size=size + 2, fill_value=1)
    assert np.array_equal(values, [*want[0], 1, 1])
    assert np.array_equal(counts, [*want[3], 0, 0])
    assert np.array_equal(tn.unique(x, size=1), want[0][:1])


def test_unique_of_nan_and_nothing() -> None:
    x = np.array([np.nan, 1.0, np.nan, -0.0, 0.0])
    want, counts = np.unique(x, return_counts=True)
    got = tn.unique(x, return_counts=True, size=len(want))
    np.testing.assert_array_equal(got[0], want)
    assert np.array_equal(got[1], counts)
    assert tn.unique(np.zeros(0), size=2, fill_value=7.0).tolist() == [7, 7]


def test_bincount() -> None:
    x = np.array([0, 1, 1, 3, 2, 1, 7], np.int16)
    assert np.array_equal(tn.bincount(x, length=8), np.bincount(x))
    w = np.linspace(0, 1, 7)
    np.testing.assert_allclose(tn.bincount(x, w, length=9), np.bincount(x, w, 9))
    assert tn.bincount(x[:0], length=2).tolist() == [0, 0]
    for bad in (np.array([9]), np.array([-1])):
        with pytest.raises(IndexProblem):
            tn.bincount(bad, length=9)
    with pytest.raises(TypeMismatch):
        tn.bincount(np.array([1.0]), length=2)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.histogram(x),
        lambda x: np.histogram(x, 4),
        lambda x: np.histogram(x, 5, (-2, 2)),
        lambda x: np.histogram(x, [-3.0, -1.0, 0.0, 2.0]),
        lambda x: np.histogram(x, 3, density=True),
        lambda x: np.histogram(x, 3, weights=x * 2),
        lambda x: np.histogram_bin_edges(x, 4),
    ],
)
def test_histogram(f: Any, compare: Any, draw: Any) -> None:
    for dtype in ("f64", "i32", "u8"):
        compare(f, draw(dtype, (40,)))
    compare(f, draw("f64", (3, 4)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_histogram_beside_edges(compare: Any, dtype: Any) -> None:
    """Numbers at and next to edges, where a bin that is worked out may be one off."""
    for count in (7, 10, 49):
        edges = np.linspace(0.1, 2.9, count + 1) * (1 if np.dtype(dtype).kind == "f" else 100)
        near = [np.nextafter(edges, end) for end in (-1e9, 1e9)]
        x = np.concatenate([edges, *near]).astype(dtype)
        compare(lambda x, count=count: np.histogram(x, count), x)
        compare(lambda x, count=count: np.histogram(x, count, (0.5, 2.0)), x)


def test_histogram_of_one_value(compare: Any) -> None:
    compare(lambda x: np.histogram(x, 3), np.full(4, 2.5))


def test_unknown_sizes_say_the_remedy(trace: Any, draw: Any) -> None:
    x = draw("i64", (4,))
    for f, remedy in (
        (lambda x: np.nonzero(x)[0][1:], r"tn\.nonzero\(x, size=n"),
        (lambda x: np.flatnonzero(x)[1:], r"tn\.nonzero\(x, size=n"),
        (lambda x: np.compress(x > 0, x)[1:], r"tn\.compress\(mask, x, size=n"),
        (lambda x: np.extract(x > 0, x)[1:], r"tn\.compress\(mask, x, size=n"),
        (np.bincount, r"tn\.bincount\(x, length=n"),
    ):
        with pytest.raises(ConcreteError, match=remedy):
            trace(f, x)
