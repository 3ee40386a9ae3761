"""np.unique and the operations on sets, whose results have the length of the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import ConcreteError, IndexProblem

RANDOM = np.random.default_rng(3)
INTS = RANDOM.integers(0, 5, (6, 3))
OTHERS = RANDOM.integers(2, 7, 8).astype(np.int32)
NANS = np.array([np.nan, 1, 2, np.nan, 1, -0.0, 0.0])
NOTHING = np.zeros(0)
ALL = {"return_index": True, "return_inverse": True, "return_counts": True}


def check(function: Callable[..., Any], *args: Any) -> None:
    """Equal to NumPy's: containers, dtypes, shapes, values."""
    got, want = tn.jit(function)(*args), function(*args)
    assert type(got) is type(want)
    several = isinstance(want, tuple)
    for a, b in zip(got if several else [got], want if several else [want], strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("x", [INTS, OTHERS, NANS, INTS > 2, INTS.astype("u1"), NOTHING])
def test_unique(x: Any) -> None:
    check(np.unique, x)
    check(lambda x: np.unique(x, **ALL), x)
    check(lambda x: np.unique(x, return_counts=True, equal_nan=False), x)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unique_rows(axis: int) -> None:
    for x in (INTS % 2, (INTS % 2).astype("f4"), INTS.reshape(3, 2, 3) % 2):
        check(lambda x: np.unique(x, axis=axis, **ALL), x)


@pytest.mark.parametrize("shape", [(3, 0), (0, 3)])
def test_unique_rows_of_nothing(shape: tuple[int, int]) -> None:
    check(lambda x: np.unique(x, axis=0, **ALL), np.zeros(shape))


@pytest.mark.parametrize("function", [np.unique_all, np.unique_counts, np.unique_inverse])
def test_unique_of_the_array_api(function: Any) -> None:
    check(function, INTS)
    check(function, NANS)


def test_unique_values_are_in_any_order() -> None:
    got = tn.jit(np.unique_values)(INTS)
    np.testing.assert_array_equal(np.sort(got), np.sort(np.unique_values(INTS)))


@pytest.mark.parametrize("function", [np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d])
def test_sets(function: Any) -> None:
    pairs = [(INTS, OTHERS), (OTHERS, INTS), (NANS, NANS[:3]), (NANS, INTS), (INTS > 1, OTHERS)]
    for a, b in (*pairs, (NOTHING, NANS), (NANS, NOTHING)):
        check(function, a, b)
    check(lambda x: function(x, [1, 2]), INTS)


def test_sets_of_distinct_values_keep_their_order() -> None:
    check(lambda a, b: np.setdiff1d(a, b, assume_unique=True), np.array([5, 3, 9]), OTHERS)
    check(lambda a, b: np.intersect1d(a, b, return_indices=True), INTS, OTHERS)


def test_lengths_of_later_calls_are_their_own() -> None:
    distinct = tn.jit(np.unique)
    for values in ([1, 1, 1], [3, 1, 2], [2, 1, 2]):
        assert distinct(np.array(values)).tolist() == sorted(set(values))
    assert distinct.traces == 1


def test_the_number_is_a_python_number() -> None:
    def count(x: Any) -> Any:
        return np.unique(x).size

    def mean(x: Any) -> Any:
        return np.unique(x).sum() / np.unique(x).size

    assert type(tn.jit(count)(INTS)) is int
    assert tn.jit(count)(INTS) == count(INTS)
    assert tn.jit(mean)(INTS.astype("f4")).dtype == np.float32


def test_converted_functions_may_ask_for_the_length() -> None:
    def count(x: Any) -> Any:
        n = len(np.unique(x))
        if n > 3:
            n = n + 100
        return n, len([x, x]), len(x)

    counted = tn.jit(count, control="convert")
    for x in (INTS, INTS % 2):
        assert counted(x) == count(x)
    with pytest.raises(ConcreteError, match=r"len\(\), a Python integer"):
        tn.jit(count)(INTS)


def test_bincount_with_a_length() -> None:
    counts = tn.jit(lambda x, w: (np.bincount(x, minlength=7), np.bincount(x, w, minlength=9)))
    x, w = OTHERS, np.linspace(0, 1, 8)
    for got, want in zip(
        counts(x, w), (np.bincount(x, None, 7), np.bincount(x, w, 9)), strict=True
    ):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want)
    with pytest.raises(IndexProblem, match="out of range"):
        counts(x + 3, w)
    with pytest.raises(ConcreteError, match="minlength=n"):
        tn.jit(lambda x: np.bincount(x))(x)
