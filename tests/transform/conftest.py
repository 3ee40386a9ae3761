"""A batch is a loop: what vmap gives is compared with what a loop over the lanes gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.trace.containers import flatten


def identical(got: Any, want: Any) -> None:
    """Equal containers, dtypes, shapes and values, NaN equal to NaN, -0 not equal to 0."""
    (structure, one), (wanted, other) = flatten(got), flatten(want)
    assert structure == wanted
    for a, b in zip(one, other, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if b.dtype.kind in "fcV":  # V: bfloat16
            wide = np.complex128 if b.dtype.kind == "c" else np.float64
            with np.errstate(invalid="ignore"):  # signalling NaN
                a, b = a.astype(wide), b.astype(wide)
            for part in (np.real, np.imag):
                number = ~np.isnan(part(b))
                assert (np.signbit(part(a)) == np.signbit(part(b)))[number].all()
        np.testing.assert_array_equal(a, b)


def stacked(results: list[Any]) -> Any:
    """The results of a loop as one container of stacked arrays."""
    structure, _ = flatten(results[0])
    leaves = [flatten(result)[1] for result in results]
    return structure.unflatten([np.stack([np.asarray(x) for x in row]) for row in zip(*leaves)])  # noqa: B905


def lanes(xs: Any, count: int) -> list[Any]:
    """The arguments of each lane, from arrays whose first axis the lanes lie along."""
    structure, leaves = flatten(xs)
    return [structure.unflatten([leaf[k] for leaf in leaves]) for k in range(count)]


def compare(function: Callable[..., Any], *xs: Any) -> Any:
    """What vmap gives, outside jit and inside, if that is what a loop over the lanes gives."""
    count = len(flatten(xs)[1][0])
    once = tn.jit(function)
    want = stacked([once(*arguments) for arguments in lanes(xs, count)])
    got = tn.vmap(function)(*xs)
    identical(got, want)
    identical(tn.jit(tn.vmap(function))(*xs), want)
    return got


@pytest.fixture(name="compare")
def compare_fixture() -> Callable[..., Any]:
    return compare


@pytest.fixture(name="identical")
def identical_fixture() -> Callable[[Any, Any], None]:
    return identical


@pytest.fixture(name="stacked")
def stacked_fixture() -> Callable[[list[Any]], Any]:
    return stacked
