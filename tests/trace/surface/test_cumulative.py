"""Running sums, products and extremes beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import ShapeError, TypeMismatch

SOME = ("bool", "i8", "u32", "i64", "f32", "f64", "c64")
SHAPES = ((3, 4), (5,), (), (2, 0, 3), (0,), (2, 3, 4))


@pytest.mark.parametrize("function", [np.cumsum, np.cumprod, np.nancumsum, np.nancumprod])
def test_running_totals(function: Any, compare: Any, draw: Any) -> None:
    for dtype in SOME:
        for shape in SHAPES:
            x = draw(dtype, shape)
            if dtype == "f32" and x.size > 2 and "nan" in function.__name__:
                x.flat[1] = np.nan
            for axis in (None, 0, -1):
                if shape or axis is None:
                    compare(lambda x: function(x, axis=axis), x)  # noqa: B023
    compare(lambda x: function(x, 1, np.float32), draw("i16"))


def test_sixteen_bit_floats_run_in_f32(compare: Any, draw: Any) -> None:
    compare(np.cumsum, draw("f16", (9,)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("extent", [1, 2, 5, 40, 700])
def test_sums_of_negative_zeros_are_negative(extent: int, dtype: Any) -> None:
    """Up to the first element that is something else."""
    x = np.full((3, extent), -0.0, dtype)
    x[1, extent // 2 :] = 0.0
    x[2, extent // 2] = 1.0
    x[2, -1] = -1.0
    for axis, given in ((1, x), (0, np.ascontiguousarray(x.T))):
        found = tn.jit(lambda x: np.cumsum(x, axis))(given)  # noqa: B023
        wanted = np.cumsum(given, axis)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize("function", [np.cumulative_sum, np.cumulative_prod])
def test_the_standard_ones(function: Any, compare: Any, draw: Any) -> None:
    for dtype in SOME:
        compare(lambda x: function(x), draw(dtype, (5,)))
        for first in (False, True):
            compare(lambda x: function(x, axis=-1, include_initial=first), draw(dtype))  # noqa: B023
            compare(lambda x: function(x, axis=0, include_initial=first), draw(dtype, (0, 2)))  # noqa: B023


@pytest.mark.parametrize(
    "ufunc",
    [
        *(np.add, np.multiply, np.maximum, np.minimum, np.logical_or, np.logical_and),
        np.logical_xor,
        *(np.subtract, np.bitwise_or, np.bitwise_and, np.bitwise_xor, np.fmax, np.logaddexp),
        *(np.hypot, np.arctan2, np.gcd, np.true_divide),
    ],
)
def test_accumulate(ufunc: Any, compare: Any, draw: Any) -> None:
    floats = ufunc in (np.logaddexp, np.hypot, np.arctan2, np.true_divide)
    whole = ufunc in (np.bitwise_or, np.bitwise_and, np.bitwise_xor, np.gcd)
    for dtype in ("f64",) if floats else ("i32",) if whole else ("i32", "f64"):
        for axis in (0, 1):
            compare(lambda x: ufunc.accumulate(x, axis), draw(dtype))  # noqa: B023
        compare(lambda x: ufunc.accumulate(x), draw(dtype, (5,)))
    if ufunc in (np.bitwise_or, np.logical_and, np.maximum, np.add):
        compare(lambda x: ufunc.accumulate(x), draw("bool", (6,)))


def test_out_and_methods(compare: Any, draw: Any) -> None:
    def f(x: Any) -> Any:
        made = x * 0
        np.cumsum(x, axis=0, out=made)
        return made, x.cumsum(), x.cumprod(1)

    compare(f, draw("f64"))


def test_refusals(trace: Any, draw: Any) -> None:
    with pytest.raises(ShapeError, match="without an axis"):
        trace(lambda x: np.cumulative_sum(x), draw("f64"))
    with pytest.raises(ShapeError, match="accumulate of a 0-d array"):
        trace(lambda x: np.add.accumulate(x), draw("f64", ()))
    with pytest.raises(TypeMismatch, match=r"np\.less\.accumulate of f64"):
        trace(lambda x: np.less.accumulate(x), draw("f64"))


def test_a_loop_is_one_node(trace: Any, draw: Any) -> None:
    graph = trace(lambda x: np.subtract.accumulate(x), draw("f64", (500, 2)))
    assert [n.op for n in graph.nodes].count("scan") == 1
    assert len(graph.nodes) < 12
