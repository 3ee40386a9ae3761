"""The runner of these tests: a function on NumPy arrays, beside the same function traced."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tenfold.graph import Graph
from tenfold.reference.evaluate import evaluate
from tenfold.trace.containers import flatten
from tenfold.trace.function import Leaf, trace_function
from tenfold.types import DTYPES, KIND, TensorType, as_dtype

FUZZ = {"f": 4, "c": 8}  # units in the last place


def _leaf(i: int, x: Any) -> Leaf:
    weak = type(x) if type(x) in (int, float, complex) else None
    array = np.asarray(x)
    return Leaf(TensorType(as_dtype(array.dtype), array.shape), f"a{i}", weak)


def _trace(f: Callable[..., Any], *args: Any) -> Any:
    leaves = [_leaf(i, x) for i, x in enumerate(args)]
    return trace_function(f, leaves, lambda arrays: f(*arrays))


def run_traced(f: Callable[..., Any], *args: Any) -> list[np.ndarray[Any, Any]]:
    """The flat results of a function, traced and evaluated."""
    traced = _trace(f, *args)
    inputs = [np.asarray(x) for x in args] + [c.array for c in traced.captures]
    return evaluate(traced.graph, inputs)


def same(got: Any, expected: Any, exact: bool, label: str = "") -> None:
    expected = np.asarray(expected)
    assert got.dtype == expected.dtype, (label, got.dtype, expected.dtype)
    assert got.shape == expected.shape, (label, got.shape, expected.shape)
    kind = KIND[expected.dtype]
    if exact or kind in "biu":
        np.testing.assert_array_equal(got, expected, label)
        return
    if expected.dtype.name == "bfloat16":
        tolerance, got, expected = 2.0**-6, got.astype("f4"), expected.astype("f4")
    else:
        tolerance = FUZZ[kind] * 4 * np.finfo(expected.dtype).eps
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(got, expected, tolerance, tolerance, equal_nan=True)


def compare_runs(f: Callable[..., Any], *args: Any, exact: bool = False) -> None:
    """Fail unless the traced function gives NumPy's results, in NumPy's dtypes."""
    copies = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        _, expected = flatten(f(*copies))
    got = run_traced(f, *args)
    assert len(got) == len(expected)
    for i, (a, b) in enumerate(zip(got, expected, strict=True)):
        same(a, b, exact, f"result {i}")


@pytest.fixture(scope="session")
def compare() -> Callable[..., None]:
    return compare_runs


@pytest.fixture(scope="session")
def run() -> Callable[..., list[np.ndarray[Any, Any]]]:
    return run_traced


@pytest.fixture(scope="session")
def trace() -> Callable[..., Graph]:
    return lambda f, *args: _trace(f, *args).graph


@pytest.fixture(scope="session")
def draw() -> Callable[..., np.ndarray[Any, Any]]:
    """Draws an array: some ordinary values, some zeros, no extremes."""

    def make(dtype: Any, shape: Any = (3, 4), seed: int = 0) -> np.ndarray[Any, Any]:
        random = np.random.default_rng(seed)
        dtype = DTYPES[dtype] if dtype in DTYPES else as_dtype(dtype)  # a short name, mostly
        kind = KIND[dtype]
        if kind == "b":
            return random.integers(0, 2, shape).astype(dtype)
        if kind in "iu":
            return random.integers(0 if kind == "u" else -9, 10, shape).astype(dtype)
        values = np.round(random.normal(0, 2, shape) * 16) / 16
        if kind == "c":
            values = values + 1j * np.round(random.normal(0, 2, shape) * 16) / 16
        return np.asarray(values).astype(dtype)

    return make
