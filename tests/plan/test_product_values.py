"""Products beside NumPy's: every dtype, layouts, nothing to add up, and what is not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.types import BFLOAT16

Array = np.ndarray[Any, Any]


def compiled(a: Any, b: Any) -> Any:
    return tn.jit(lambda a, b: a @ b)(a, b)


SHAPES = [((70, 40), (40, 50)), ((300,), (300, 200)), ((200, 300), (300,)), ((9, 40, 33), (33, 40))]
SHAPES += [
    ((6, 40, 33), (6, 33, 36)),
    ((5, 1, 64), (5, 64, 90)),
    ((400,), (400,)),
    ((40, 1), (1, 40)),
]


def drawn(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    random = np.random.default_rng(seed)
    if dtype[0] in "iu":
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, shape, dtype, endpoint=True)
    if dtype == "?":
        return random.random(shape) < 0.1
    made = random.standard_normal(shape)
    return (made + 1j * random.standard_normal(shape) if dtype[0] == "c" else made).astype(dtype)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"])
@pytest.mark.parametrize("shapes", SHAPES)
def test_integers_wrap_and_truths_are_any(shapes: Any, dtype: str) -> None:
    a, b = (drawn(shape, dtype, n) for n, shape in enumerate(shapes))
    np.testing.assert_array_equal(compiled(a, b), a @ b)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("shapes", SHAPES)
def test_floats(shapes: Any, dtype: str) -> None:
    a, b = (drawn(shape, dtype, n) for n, shape in enumerate(shapes))
    got, wide = compiled(a, b), a.astype("c16") @ b.astype("c16")
    assert got.dtype == a.dtype
    np.testing.assert_allclose(got, wide, rtol=0, atol=1e-3 if dtype in ("f4", "c8") else 1e-11)


@pytest.mark.parametrize("dtype", [np.dtype("f2"), BFLOAT16])
@pytest.mark.parametrize("shapes", SHAPES)
def test_sixteen_bits_add_up_in_float32(shapes: Any, dtype: Any) -> None:
    a, b = (drawn(shape, "f4", n).astype(dtype) for n, shape in enumerate(shapes))
    got, wide = compiled(a, b), a.astype("f8") @ b.astype("f8")
    assert got.dtype == dtype
    step = 2.0**-11 if dtype == "f2" else 2.0**-8
    bound = step * np.abs(wide) + 1e-5 * (np.abs(a.astype("f8")) @ np.abs(b.astype("f8")))
    assert (np.abs(got.astype("f8") - wide) <= bound).all()


@pytest.mark.parametrize(
    "shapes", [((0, 5), (5, 3)), ((4, 0), (0, 3)), ((0,), (0, 7)), ((0,), (0,))]
)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "?", "c8", "f2"])
def test_a_sum_of_nothing_is_0(shapes: Any, dtype: str) -> None:
    a, b = (np.ones(shape, dtype) for shape in shapes)
    np.testing.assert_array_equal(compiled(a, b), a @ b)


@pytest.mark.parametrize("shapes", SHAPES)
def test_what_is_not_finite_spreads_as_in_numpy(shapes: Any) -> None:
    a, b = (drawn(shape, "f4", n) for n, shape in enumerate(shapes))
    a.flat[7], a.flat[-1], b.flat[3], b.flat[20] = np.nan, np.inf, -np.inf, 0.0
    with np.errstate(all="ignore"):
        got, want = compiled(a, b), a @ b
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite])
    np.testing.assert_allclose(got[finite], want[finite], atol=1e-3)


def test_layouts_and_dtypes_that_differ() -> None:
    a, b = drawn((300, 200), "f4", 0), drawn((400, 120), "f8", 1)
    for left, right in ((a.T, a), (a[::2], b[::2]), (a[:, ::-1], b[::2]), (a, b.T[:, :200].T)):
        np.testing.assert_allclose(compiled(left, right), left @ right, atol=1e-3)
    whole = drawn((300, 200), "i4", 2)
    got = compiled(whole.T, a)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, whole.T @ a, rtol=1e-9)


@pytest.mark.parametrize("terms", [33, 256, 257, 1024, 1025])
@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ("i1", "i1", "i4"),
        ("u1", "i1", "i4"),
        ("u1", "u1", "i8"),
        ("i2", "i1", "i4"),
        ("u2", "u2", "i4"),  # it wraps
        ("i1", "i1", "i1"),  # and so does this
        ("i2", "i2", "i2"),
    ],
)
def test_small_integers_are_multiplied_exactly(
    left: str, right: str, result: str, terms: int
) -> None:
    """By panels that add up in 32 bits, or cast to floats, as long as every sum is exact."""
    a, b = drawn((40, terms), left, 1), drawn((terms, 36), right, 2)
    a[:2], b[:, :2] = np.iinfo(left).min, np.iinfo(right).min
    a[2:4], b[:, 2:4] = np.iinfo(left).max, np.iinfo(right).max

    def product(a: Any, b: Any) -> Any:
        return a.astype(result) @ b.astype(result)

    f = tn.jit(product)
    np.testing.assert_array_equal(f(a, b), product(a, b))
    assert any(step.kind == "routine" for step in f.plan(a, b).steps)
