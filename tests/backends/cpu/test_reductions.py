"""Reductions of every kind, dtype and axis against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.backends.llvm.target import LLVMTarget
from tenfold.kernel import Builder
from tenfold.types import DTYPES
from tests.backends.cpu.running import Program, every_target, random, reduction

Array = np.ndarray[Any, Any]


SHAPES = [
    ((7,), (0,)),
    ((1000,), (0,)),
    ((40003,), (0,)),
    ((5, 3), (1,)),
    ((5, 16), (1,)),
    ((3, 65), (1,)),
    ((4, 1003), (1,)),
    ((9, 33), (0,)),
    ((70, 300), (0,)),
    ((50, 1030), (0,)),
    ((6, 20, 7), (1,)),
    ((6, 20, 33), (0, 2)),
    ((3, 4, 50), (1, 2)),
    ((3, 40, 5), (0, 1)),
    ((2, 3, 4, 17), (0, 2)),
    ((4, 0), (1,)),
    ((0, 4), (1,)),
    ((1, 1), (0, 1)),
]


@every_target
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_float_reductions(
    shape: tuple[int, ...], axes: tuple[int, ...], target: LLVMTarget
) -> None:
    x = random(shape)
    kept = tuple(n for k, n in enumerate(shape) if k not in axes)
    for kind, reference in (("sum", np.sum), ("max", np.max), ("min", np.min), ("argmax", None)):
        if x.size == 0 and kind != "sum":
            continue
        out, places = np.full(kept, 5, np.float32), np.full(kept, 5, np.int64)
        Program(reduction(kind, "f32", shape, axes), target)(x, out, places)
        if reference is not None:
            want = reference(x.astype(np.float64), axis=axes)
            np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-4, err_msg=kind)
        else:
            rows = np.moveaxis(x, axes, range(-len(axes), 0)).reshape((*kept, -1))
            np.testing.assert_array_equal(places, rows.argmax(-1))
            np.testing.assert_array_equal(out, rows.max(-1))


@every_target
@pytest.mark.parametrize("dtype", ["i8", "u8", "i32", "u64", "f64", "f16", "bf16", "bool", "c64"])
def test_reductions_of_dtypes(dtype: str, target: LLVMTarget) -> None:
    kinds = {"sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max}
    if dtype == "bool":
        kinds = {"any": np.any, "all": np.all, "max": np.max, "min": np.min}
    elif dtype[0] == "c":
        kinds = {"sum": np.sum, "prod": np.prod}
    for shape, axis in (((6, 37), 1), ((37, 6), 0), ((90, 40), 0), ((3, 500), 1)):
        drawn = random(shape, dtype)
        if dtype == "c64":
            drawn = np.exp(1j * random(shape, "f32", 1)).astype(DTYPES[dtype])
        for kind, reference in kinds.items():
            x = drawn
            if dtype in ("f16", "bf16") and kind == "prod":  # near 1, or nothing is left
                x = (1 + drawn.astype(np.float32) / 16).astype(DTYPES[dtype])
            out, places = np.zeros(shape[1 - axis], DTYPES[dtype]), np.zeros(shape[1 - axis], "i8")
            Program(reduction(kind, dtype, shape, (axis,)), target)(x, out, places)
            with np.errstate(all="ignore"):
                if DTYPES[dtype].kind in "iub":
                    want = reference(
                        x,
                        axis=axis,
                        **({"dtype": DTYPES[dtype]} if kind in ("sum", "prod") else {}),
                    )
                    np.testing.assert_array_equal(out, want, err_msg=kind)
                    continue
                wide = x.astype(np.complex128 if dtype[0] == "c" else np.float64)
                want = reference(wide, axis=axis)
            tolerance = {"f16": 2e-3, "bf16": 2e-2, "f64": 1e-12}.get(dtype, 1e-4)
            found = out.astype(wide.dtype)
            np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance, err_msg=kind)


@every_target
@pytest.mark.parametrize("axis", [0, 1])
def test_nan_and_ties(axis: int, target: LLVMTarget) -> None:
    x = random((40, 200))
    x[3, 5] = x[3, 150] = np.nan
    x[20, 70] = np.nan
    x[4] = -np.inf
    x[:, 9] = -np.inf
    x[5, 7] = x[5, 160] = x[30, 7] = 99
    x[6] = np.inf
    kept = x.shape[1 - axis]
    for kind in ("max", "min", "argmax", "argmin", "sum"):
        out, places = np.zeros(kept, np.float32), np.zeros(kept, np.int64)
        Program(reduction(kind, "f32", x.shape, (axis,)), target)(x, out, places)
        with np.errstate(all="ignore"):
            if kind.startswith("arg"):
                np.testing.assert_array_equal(places, getattr(np, kind)(x, axis=axis))
                np.testing.assert_array_equal(out, getattr(np, kind[3:])(x, axis=axis))
            elif kind == "sum":
                np.testing.assert_allclose(out, np.sum(x, axis=axis), rtol=1e-4, atol=1e-4)
            else:
                np.testing.assert_array_equal(out, getattr(np, kind)(x, axis=axis))


def test_sum_is_as_accurate_as_numpy() -> None:
    x = np.random.default_rng(1).random(3_000_001, dtype=np.float32)
    out, places = np.zeros(1, np.float32), np.zeros(1, np.int64)
    Program(reduction("sum", "f32", x.shape, (0,)))(x, out, places)
    true = x.astype(np.float64).sum()
    assert abs(out[0] - true) / true < 3e-7
    again = np.zeros(1, np.float32)
    Program(reduction("sum", "f32", x.shape, (0,)), strict=True)(x, again, places)
    assert again[0] == out[0]


@every_target
def test_nested_reductions(target: LLVMTarget) -> None:
    """The sum over columns of the greatest of each column's rows."""
    batch, rows, columns = 4, 9, 35
    b = Builder()
    x, out = b.buffer("f32", batch * rows * columns), b.buffer("f32", batch, "write")
    i = b.axis(batch)
    inner, p = b.reduced(rows, 1)
    outer, q = b.reduced(columns, 2)
    top = b.reduce("max", (inner,), b.load(x, i * rows * columns + p * columns + q))
    b.store(out, i, b.reduce("sum", (outer,), top))
    xs, got = random((batch, rows, columns)), np.zeros(batch, np.float32)
    Program(b.finish(), target)(xs, got)
    np.testing.assert_allclose(got, xs.max(1).sum(1), rtol=1e-5)


@every_target
def test_row_sums_of_sixteen_bit_floats_round_once(target: LLVMTarget) -> None:
    x = np.full((3, 3000), 1.001, np.float16)
    out, places = np.zeros(3, np.float16), np.zeros(3, np.int64)
    Program(reduction("sum", "f16", x.shape, (1,)), target)(x, out, places)
    want = x.astype(np.float32).sum(1).astype(np.float16)
    np.testing.assert_allclose(out.astype(float), want.astype(float), rtol=1e-3)


@every_target
def test_complex_columns(target: LLVMTarget) -> None:
    """Sums of complex numbers down many rows of many columns."""
    x = (random((60, 600), "f32") + 1j * random((60, 600), "f32", 1)).astype(np.complex64)
    out, places = np.zeros(600, np.complex64), np.zeros(600, np.int64)
    Program(reduction("sum", "c64", x.shape, (0,)), target)(x, out, places)
    np.testing.assert_allclose(out, x.sum(0), rtol=1e-4, atol=1e-4)
