"""Cumulative ops against a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tenfold.ops import TABLE
from tenfold.types import KIND

STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
}


@pytest.mark.parametrize("name", STEPS)
def test_each_is_folded_with_those_before(name: str) -> None:
    op = TABLE[name]
    for sample in op.samples(np.random.default_rng(21)):
        (x,) = sample.inputs
        axis, reverse = sample.attributes["axis"], sample.attributes["reverse"]
        work = x.astype(np.float32) if x.dtype.itemsize == 2 and KIND[x.dtype] == "f" else x
        lines = np.moveaxis(work, axis, 0).copy()
        order = range(len(lines) - 2, -1, -1) if reverse else range(1, len(lines))
        for i in order:
            lines[i] = STEPS[name](lines[i + 1 if reverse else i - 1], lines[i])
        want = np.moveaxis(lines, 0, axis).astype(x.dtype)
        got = op.reference(x, **sample.attributes)
        assert got.dtype == x.dtype
        loose = 1e-6 if op.bound and x.dtype.kind == "c" else 0
        np.testing.assert_allclose(got.astype(complex), want.astype(complex), loose)
