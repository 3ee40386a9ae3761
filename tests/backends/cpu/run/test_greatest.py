"""The few greatest of many in plans: a routine, beside a stable sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.backends.cpu.backend import BACKEND
from tenfold.backends.cpu.run.compiled import CompiledProgram
from tenfold.ops import TABLE
from tenfold.ops.rows.searching import FEW, MANY
from tenfold.types import DTYPES, KIND

REAL = [name for name, dtype in DTYPES.items() if KIND[dtype] != "c"]


def draw(dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(sum(shape))
    x = random.standard_normal(shape) * 20
    if dtype == "bool":
        return x > 25
    # By way of integers: what a negative float is without a sign differs between processors.
    by_way = np.int64 if KIND[DTYPES[dtype]] in "iu" else np.float32
    made = x.astype(by_way).astype(DTYPES[dtype])
    if KIND[made.dtype] == "f":
        flat = made.reshape(-1)
        flat[::31], flat[1::11], flat[2::11], flat[3::13] = np.nan, 0.0, -0.0, np.inf
    return made


def greatest(x: np.ndarray[Any, Any], k: int) -> None:
    """A plan of one routine, that gives what the reference gives, bit for bit."""
    plan = BACKEND.plan(tn.trace(lambda x: tn.top_k(x, k), x))
    assert [step.name for step in plan.steps] == ["top_few"], plan.explain()
    for got, want in zip(CompiledProgram(plan)([x]), TABLE["top_k"].reference(x, k), strict=True):
        assert got.dtype == want.dtype
        assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", REAL)
def test_beside_a_sort(dtype: str) -> None:
    for k in (1, 2, 7, FEW):
        for shape in ((MANY * k,), (MANY * k + 5,), (3, 700), (2, 2, 257), (70_001,)):
            if shape[-1] >= MANY * k:
                greatest(draw(dtype, *shape), k)


@pytest.mark.parametrize("dtype", ["i8", "f32", "f64", "u64"])
def test_in_every_order(dtype: str) -> None:
    rising = np.sort(draw("i32", 5000)).astype(DTYPES[dtype])
    for x in (rising, rising[::-1].copy(), np.zeros_like(rising), np.repeat(rising[::10], 10)):
        greatest(x, 9)


def test_many_of_few_are_sorted() -> None:
    x = draw("f32", 100)
    for k in (FEW + 1, 100 // MANY + 1, 100):
        f = tn.jit(lambda x, k=k: tn.top_k(x, k))
        assert "top_few" not in {getattr(s, "name", "") for s in f.plan(x).steps}
        np.testing.assert_array_equal(f(x)[1], TABLE["top_k"].reference(x, k)[1])


def test_along_another_axis_and_in_lanes() -> None:
    x = draw("f64", 90, 6)
    want = TABLE["top_k"].reference(np.ascontiguousarray(x.T), 4)
    for got in (tn.jit(lambda x: tn.top_k(x, 4, axis=0))(x), tn.jit(tn.vmap(
        lambda line: tn.top_k(line, 4), in_axes=1, out_axes=1))(x)):  # fmt: skip
        np.testing.assert_array_equal(got[0], want[0].T)
        np.testing.assert_array_equal(got[1], want[1].T)
