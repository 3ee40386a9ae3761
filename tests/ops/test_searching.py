"""searchsorted, top_k and gcd against Python's own."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tenfold.errors import ShapeError
from tenfold.ops import TABLE


def key(value: Any) -> tuple[bool, float]:
    number = value.item() if value.dtype.kind != "V" else float(value)
    nan = isinstance(number, float) and math.isnan(number)
    return nan, 0 if nan else number


def test_searchsorted() -> None:
    op = TABLE["searchsorted"]
    for sample in op.samples(np.random.default_rng(25)):
        line, values = sample.inputs
        side = sample.attributes["side"]
        find = bisect.bisect_left if side == "left" else bisect.bisect_right
        got = op.reference(line, values, side)
        for at in np.ndindex(*values.shape):
            keys = [key(v) for v in line[at[:-1]]]
            assert got[at] == find(keys, key(values[at]))


@pytest.mark.parametrize("name", ["top_k", "top_few"])
def test_top_k(name: str) -> None:
    op = TABLE[name]
    for sample in op.samples(np.random.default_rng(26)):
        (x,), k = sample.inputs, sample.attributes["k"]
        values, places = op.reference(x, k)
        for at in np.ndindex(*x.shape[:-1]):
            row = [key(v) for v in x[at]]
            want = sorted(range(len(row)), key=lambda i: row[i], reverse=True)[:k]
            assert places[at].tolist() == want
            assert values[at].tobytes() == x[at][want].tobytes()


def test_refusals(infer: Callable[..., Any]) -> None:
    with pytest.raises(ShapeError, match=r"top_k: k=4 of f32\[3\]"):
        infer("top_k", "f32[3]", k=4)
    with pytest.raises(ShapeError, match="the same leading axes"):
        infer("searchsorted", "f32[2,3]", "f32[4]", side="left")


def test_gcd() -> None:
    op = TABLE["gcd"]
    for sample in op.samples(np.random.default_rng(27)):
        a, b = np.broadcast_arrays(*sample.inputs)
        got = op.reference(a, b)
        for at in np.ndindex(*a.shape):
            want = math.gcd(a[at].item(), b[at].item())
            assert int(got[at]) % 2 ** (8 * a.dtype.itemsize) == want
