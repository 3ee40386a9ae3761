"""What rows say about the edges, each with its test."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import IndexProblem, ShapeError, TypeMismatch, ValueProblem
from tenfold.types import DTYPES, KIND

One = Callable[..., Any]
INTS = [d for d in DTYPES.values() if KIND[d] in "iu"]
SIGNED = [d for d in DTYPES.values() if KIND[d] == "i"]
FLOATS = [d for d in DTYPES.values() if KIND[d] == "f"]
NAN, INF = np.nan, np.inf


def equal(got: Any, want: Any) -> None:
    np.testing.assert_array_equal(np.asarray(got, float), np.asarray(want, float))


# Integer arithmetic.


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integers_divide_by_zero_to_zero(one: One, dtype: Any) -> None:
    a = np.array([0, 5, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    for name in ("floordiv", "mod", "fmod"):
        equal(one(name, a, np.zeros(4, dtype)), np.zeros(4))


@pytest.mark.parametrize("dtype", SIGNED, ids=str)
def test_the_least_integer_by_minus_one(one: One, dtype: Any) -> None:
    least, minus = np.array(np.iinfo(dtype).min, dtype), np.array(-1, dtype)
    assert one("floordiv", least, minus) == least
    assert one("mod", least, minus) == 0
    assert one("fmod", least, minus) == 0
    assert one("neg", least) == least
    assert one("abs", least) == least


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integers_wrap(one: One, dtype: Any) -> None:
    limits = np.iinfo(dtype)
    most, least, unit = (np.array(v, dtype) for v in (limits.max, limits.min, 1))
    assert one("add", most, unit) == least
    assert one("sub", least, unit) == most
    assert int(one("mul", most, most)) == int(
        np.array((limits.max**2) % 2**limits.bits, np.uint64).astype(dtype)
    )
    assert one("reduce_sum", np.array([limits.max, 1], dtype), axes=(0,)) == least
    assert one("pow", np.array(2, dtype), np.array(limits.bits, dtype)) == 0


def test_signs_of_remainders(one: One) -> None:
    a, b = np.array([7, -7, 7, -7]), np.array([3, 3, -3, -3])
    equal(one("mod", a, b), [1, 2, -2, -1])
    equal(one("fmod", a, b), [1, -1, 1, -1])
    equal(one("floordiv", a, b), [2, -3, -3, 2])


def test_an_integer_to_a_negative_power_raises(one: One) -> None:
    with pytest.raises(ValueProblem, match=r"pow: an integer to a negative power \(-1\)"):
        one("pow", np.array([2, 3]), np.array([1, -1]))
    with pytest.raises(ValueProblem):
        one("pow", np.array(1), np.array(-2))
    equal(one("pow", np.array([2.0, 0.0]), np.array([-1.0, -1.0])), [0.5, INF])


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_shifts_too_wide_or_negative(one: One, dtype: Any) -> None:
    width = dtype.itemsize * 8
    x = np.array([1, 100], dtype)
    for amount in (width, width + 1, 127):
        by = np.array(amount, dtype)
        equal(one("shl", x, by), [0, 0])
        equal(one("shr", x, by), [0, 0])
    equal(one("shl", x, np.array(width - 1, dtype))[1], 0)
    if KIND[dtype] == "i":
        minus, negative = np.array(-1, dtype), np.array([-5, 5], dtype)
        equal(one("shl", negative, minus), [0, 0])
        equal(one("shr", negative, minus), [-1, 0])
        equal(one("shr", negative, np.array(width, dtype)), [-1, 0])


# Floats.


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_divide_by_zero_as_numpy(one: One, dtype: Any) -> None:
    a, zero = np.array([1, -1, 0, NAN], dtype), np.zeros(4, dtype)
    equal(one("div", a, zero), [INF, -INF, NAN, NAN])
    equal(one("mod", a, zero), [NAN] * 4)
    equal(one("fmod", a, zero), [NAN] * 4)
    equal(one("floordiv", a, zero), [INF, -INF, NAN, NAN])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan_in_extremes(one: One, dtype: Any) -> None:
    a, b = np.array([NAN, 1, NAN, 3], dtype), np.array([1, NAN, NAN, 2], dtype)
    equal(one("max", a, b), [NAN, NAN, NAN, 3])
    equal(one("min", a, b), [NAN, NAN, NAN, 2])
    equal(one("fmax", a, b), [1, 1, NAN, 3])
    equal(one("fmin", a, b), [1, 1, NAN, 2])
    x = np.array([[1, NAN, 3, NAN], [4, 6, 6, 5]], dtype)
    equal(one("reduce_max", x, axes=(1,)), [NAN, 6])
    equal(one("reduce_min", x, axes=(1,)), [NAN, 4])
    equal(one("argmax", x, axis=1), [1, 1])
    equal(one("argmin", x, axis=1), [1, 0])
    equal(one("clip", a, np.array(0, dtype), np.array(2, dtype)), [NAN, 1, NAN, 2])
    equal(one("clip", b, np.array(5, dtype), np.array(1.5, dtype))[[0, 3]], [1.5, 1.5])


def test_ties_and_order_of_argmax(one: One) -> None:
    assert one("argmax", np.array([-INF, -INF]), axis=0) == 0
    assert one("argmin", np.array([2, 1, 1]), axis=0) == 1
    assert one("argmax", np.array([False, True, True]), axis=0) == 1


def test_rounding_is_half_to_even(one: One) -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5])
    equal(one("round", x), [0, 2, 2, -0.0, -2])
    assert np.signbit(one("round", x)[3])
    equal(one("round", np.array([5, -7])), [5, -7])
    equal(one("floor", np.array([2**53 + 1]))[0], 2**53 + 1)


def test_comparisons_with_nan(one: One) -> None:
    x = np.array([NAN, 1.0])
    for name, want in (("eq", [0, 1]), ("ne", [1, 0]), ("lt", [0, 0]), ("le", [0, 1])):
        equal(one(name, x, x), want)


def test_signs_of_zero(one: One) -> None:
    zero = np.array([0.0, -0.0])
    equal(one("signbit", zero), [0, 1])
    equal(np.signbit(one("neg", zero)), [1, 0])
    equal(np.signbit(one("sqrt", zero)), [0, 1])
    equal(one("rsqrt", zero), [INF, -INF])
    equal(one("copysign", np.array([NAN, 2.0]), zero[::-1])[1], 2)
    equal(one("sign", np.array([NAN, -0.0, 3])), [NAN, 0, 1])


def test_the_ends_of_functions(one: One) -> None:
    big = np.array([1e4, -1e4])
    equal(one("sigmoid", big), [1, 0])
    equal(one("sigmoid", np.array([INF, -INF, NAN])), [1, 0, NAN])
    equal(one("exp", big), [INF, 0])
    equal(one("tanh", big), [1, -1])
    equal(one("log", np.array([0.0, -1.0, INF])), [-INF, NAN, INF])
    equal(one("log1p", np.array([-1.0, -2.0])), [-INF, NAN])
    equal(one("erf", np.array([INF, -INF, NAN])), [1, -1, NAN])
    equal(one("erfc", np.array([INF, -INF, NAN])), [0, 2, NAN])
    equal(one("logaddexp", np.array([-INF, INF]), np.array([-INF, 0.0])), [-INF, INF])
    equal(one("hypot", np.array([INF]), np.array([NAN])), [INF])
    equal(one("pow", np.array([NAN, 0.0, 2.0]), np.array([0.0, 0.0, NAN])), [1, 1, NAN])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nextafter_is_of_the_dtype_itself(one: One, dtype: Any) -> None:
    got = one("nextafter", np.array(1, dtype), np.array(2, dtype))
    assert float(got) == 1 + float(ml_dtypes.finfo(dtype).eps)
    assert float(one("nextafter", np.array(0, dtype), np.array(1, dtype))) > 0


def test_sixteen_bit_floats_round_after_every_op(one: One) -> None:
    for dtype in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)):
        eps = float(ml_dtypes.finfo(dtype).eps)
        unit, tiny = np.array(1, dtype), np.array(eps / 2, dtype)
        assert one("add", unit, tiny) == unit  # half to even
        assert float(one("add", np.array(1 + eps, dtype), tiny)) == 1 + 2 * eps


def test_sixteen_bit_floats_add_up_in_f32(one: One) -> None:
    for dtype in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)):
        ones = np.ones(5000, dtype)  # one by one they would stop at 2048 or 256
        assert one("reduce_sum", ones, axes=(0,)) == np.array(5000, np.float32).astype(dtype)
        axes = {"lhs_contract": (0,), "rhs_contract": (0,), "lhs_batch": (), "rhs_batch": ()}
        assert one("contract", ones, ones, **axes) == np.array(5000, np.float32).astype(dtype)
        x, at = np.zeros(1, dtype), np.zeros(5000, int)
        got = one("scatter", x, ones, at, axes=(0,), at=0, mode="raise", kind="add")
        assert got[0] == np.array(5000, np.float32).astype(dtype)


# Casts.


@pytest.mark.parametrize("source", [d for d in DTYPES.values() if KIND[d] in "fc"], ids=str)
@pytest.mark.parametrize("target", INTS, ids=str)
def test_floats_to_integers_saturate(one: One, source: Any, target: Any) -> None:
    limits = np.iinfo(target)
    x = np.array([NAN, INF, -INF, 2.9, -2.9, 60000], source)
    low = max(limits.min, -2)
    got = one("cast", x, dtype=target)
    assert [int(v) for v in got[:5]] == [0, limits.max, limits.min, 2, low]
    assert int(got[5]) == min(int(np.real(x[5])), limits.max)


@pytest.mark.parametrize("target", INTS, ids=str)
def test_floats_near_the_ends_of_integers(one: One, target: Any) -> None:
    limits = np.iinfo(target)
    below = np.nextafter(float(limits.max) + 1, 0)
    x = np.array([float(limits.max) + 1, below, float(limits.min), float(limits.min) - 0.5])
    got = [int(v) for v in one("cast", x, dtype=target)]
    assert got == [limits.max, min(int(below), limits.max), limits.min, limits.min]


def test_integers_to_integers_wrap(one: One) -> None:
    x = np.array([300, -1, 2**40 + 5])
    assert one("cast", x, dtype="u8").tolist() == [44, 255, 5]
    assert one("cast", x, dtype="i8").tolist() == [44, -1, 5]
    assert one("cast", np.array(2**64 - 1, np.uint64), dtype="i64") == -1


def test_casts_of_complex_and_bool(one: One) -> None:
    z = np.array([1.5 + 2j, 2j, 0, complex(NAN, 0)])
    equal(one("cast", z, dtype="f32"), [1.5, 0, 0, NAN])
    equal(one("cast", z, dtype="bool"), [1, 1, 0, 1])
    equal(one("cast", np.array([0.0, -0.0, NAN, 0.1]), dtype="bool"), [0, 0, 1, 1])
    equal(one("cast", np.array([True, False]), dtype="f16"), [1, 0])


def test_every_way_to_bfloat16_goes_through_f32(one: One) -> None:
    x = 1 + 2.0**-8 + 2.0**-40  # rounds to a tie in f32, and then to even
    assert float(one("cast", np.array(x), dtype="bf16")) == 1.0


def test_bitcast_keeps_bits(one: One) -> None:
    odd = np.array([0x7FC12345, 0xFF800001, 0x80000000], np.uint32)
    back = one("bitcast", one("bitcast", odd, dtype="f32"), dtype="u32")
    assert back.tolist() == odd.tolist()


def test_constants_keep_bits(one: One) -> None:
    data = np.array([0x7FC12345, 0x80000000], np.uint32).tobytes()
    assert one("constant", data=data, type="f32[2]").tobytes() == data


def test_iota_wraps(one: One) -> None:
    got = one("iota", dtype="i8", shape=(300,), axis=0)
    assert got[128] == -128
    assert got[299] == 43


# Reductions of nothing.


def test_reductions_of_nothing(one: One, infer: One) -> None:
    empty = np.zeros((0, 2))
    equal(one("reduce_sum", empty, axes=(0,)), [0, 0])
    equal(one("reduce_prod", empty, axes=(0,)), [1, 1])
    equal(one("reduce_any", empty.astype(bool), axes=(0,)), [0, 0])
    equal(one("reduce_all", empty.astype(bool), axes=(0,)), [1, 1])
    for name in ("reduce_max", "reduce_min"):
        with pytest.raises(ShapeError, match=f"{name}: axis 0 of f64\\[0,2\\] is empty"):
            infer(name, "f64[0,2]", axes=(0,))
        assert str(infer(name, "f64[0,2]", axes=(1,))) == "(f64[0],)"
    for name in ("argmax", "argmin"):
        with pytest.raises(ShapeError, match=f"{name}: axis 1 of f64\\[2,0\\] is empty"):
            infer(name, "f64[2,0]", axis=1)
        assert str(infer(name, "f64[2,0]", axis=0)) == "(i64[0],)"


# Indexing.


def test_gather_modes(one: One) -> None:
    x, given = np.arange(10, 14), {"axes": (0,), "at": 0}
    at = np.array([-5, -4, -1, 0, 3, 4, 9])
    assert one("gather", x, at, mode="clip", **given).tolist() == [10, 10, 10, 10, 13, 13, 13]
    assert one("gather", x, at, mode="wrap", **given).tolist() == [13, 10, 13, 10, 13, 10, 11]
    assert one("gather", x, at[1:5], mode="raise", **given).tolist() == [10, 13, 10, 13]
    for index in (-5, 4):
        with pytest.raises(IndexProblem, match=f"gather: index {index} is out of range for axis 0"):
            one("gather", x, np.array([0, index]), mode="raise", **given)
    huge = np.array([2**64 - 1], np.uint64)
    assert one("gather", x, huge, mode="clip", **given).tolist() == [13]
    assert one("gather", x, huge, mode="wrap", **given).tolist() == [13]
    with pytest.raises(IndexProblem):
        one("gather", x, huge, mode="raise", **given)


def test_small_index_dtypes_reach_past_themselves(one: One) -> None:
    x = np.arange(1000)
    at = np.array([-1, 127, -128], np.int8)
    got = one("gather", x, at, axes=(0,), at=0, mode="raise")
    assert got.tolist() == [999, 127, 872]
    got = one("gather", x, at, axes=(0,), at=0, mode="wrap")
    assert got.tolist() == [999, 127, 872]


def test_an_empty_axis_takes_no_index(infer: One) -> None:
    given = {"axes": (0,), "at": 0, "mode": "clip"}
    with pytest.raises(IndexProblem, match=r"gather: axis 0 of f32\[0,3\] is empty"):
        infer("gather", "f32[0,3]", "i64[2]", **given)
    assert str(infer("gather", "f32[0,3]", "i64[0]", **given)) == "(f32[0,3],)"


def test_repeated_indices(one: One) -> None:
    x, at = np.array([10, 20, 30]), np.array([[1, 1], [0, 1]])
    updates, given = np.array([[1, 2], [3, 4]]), {"axes": (0,), "at": 0, "mode": "raise"}
    for kind, want in (
        ("set", [3, 4, 30]),
        ("add", [13, 27, 30]),
        ("mul", [30, 160, 30]),
        ("min", [3, 1, 30]),
        ("max", [10, 20, 30]),
    ):
        assert one("scatter", x, updates, at, kind=kind, **given).tolist() == want


def test_scatter_out_of_range(one: One) -> None:
    x, given = np.zeros(3), {"axes": (0,), "at": 0, "kind": "add"}
    with pytest.raises(IndexProblem, match="scatter: index 3 is out of range for axis 0"):
        one("scatter", x, np.ones(1), np.array([3]), mode="raise", **given)
    at = np.array([3, -1, 7])
    equal(one("scatter", x, np.ones(3), at, mode="clip", **given), [1, 0, 2])
    equal(one("scatter", x, np.ones(3), at, mode="wrap", **given), [1, 1, 1])


def test_many_repeated_sets_keep_the_last(one: One) -> None:
    at = np.zeros(4096, np.int64)
    got = one(
        "scatter", np.zeros(1), np.arange(4096.0), at, axes=(0,), at=0, mode="raise", kind="set"
    )
    assert got[0] == 4095


def test_starts_are_clamped(one: One) -> None:
    x = np.arange(5)
    for start, want in ((-3, [0, 1, 2]), (1, [1, 2, 3]), (9, [2, 3, 4])):
        assert one("dynamic_slice", x, np.array(start), sizes=(3,)).tolist() == want
    huge = np.array(2**64 - 1, np.uint64)
    assert one("dynamic_slice", x, huge, sizes=(2,)).tolist() == [3, 4]
    got = one("dynamic_update", x, np.array([8, 9]), np.array(4))
    assert got.tolist() == [0, 1, 2, 8, 9]
    assert one("dynamic_update", x, np.array([8, 9]), np.array(-7)).tolist() == [8, 9, 2, 3, 4]
    assert x.tolist() == [0, 1, 2, 3, 4]


def test_pad_crops_after_spacing_out(one: One) -> None:
    x, value = np.array([1, 2, 3]), np.array(0)
    assert one("pad", x, value, low=(-1,), high=(-1,), interior=(1,)).tolist() == [0, 2, 0]
    assert one("pad", x, value, low=(2,), high=(-3,), interior=(0,)).tolist() == [0, 0]
    assert one("pad", x, value, low=(-3,), high=(2,), interior=(0,)).tolist() == [0, 0]


# Contractions, sorting, factoring.


def test_a_contraction_of_matrices_with_a_batch(one: One) -> None:
    a = np.arange(12.0).reshape(3, 4)
    axes = {"lhs_contract": (1,), "rhs_contract": (0,), "lhs_batch": (0,), "rhs_batch": (1,)}
    equal(one("contract", a, a.T, **axes), np.einsum("ij,ji->i", a, a.T))


def test_contractions_of_bool_integers_and_nothing(one: One) -> None:
    axes = {"lhs_contract": (1,), "rhs_contract": (0,), "lhs_batch": (), "rhs_batch": ()}
    a = np.array([[True, True], [False, False]])
    assert one("contract", a, a, **axes).tolist() == [[True, True], [False, False]]
    big = np.full((1, 2), 100, np.int8)
    assert one("contract", big, big.T, **axes)[0, 0] == np.array(20000).astype(np.int8)
    equal(one("contract", np.zeros((2, 0)), np.zeros((0, 2)), **axes), np.zeros((2, 2)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sorting_is_stable_with_nan_last(one: One, dtype: Any) -> None:
    x = np.array([NAN, 2, 0.0, -0.0, 2, -INF, INF, NAN], dtype)
    assert one("argsort", x, axis=0).tolist() == [5, 2, 3, 1, 4, 6, 0, 7]
    got = one("sort", x, axis=0)
    equal(got, [-INF, 0, 0, 2, 2, INF, NAN, NAN])
    equal(np.signbit(got[1:3].astype(float)), [0, 1])


def test_lu_of_a_singular_matrix(one: One, call: One) -> None:
    from tenfold.ops import TABLE

    a = np.array([[1.0, 2.0], [2.0, 4.0]])
    p, lower, upper = call(TABLE["lu"], [a], {})
    np.testing.assert_allclose(p @ lower @ upper, a)
    assert upper[1, 1] == 0


def test_svd_of_nan_raises(call: One) -> None:
    from tenfold.ops import TABLE

    with pytest.raises(ValueProblem, match="svd: the matrix has an inf or a NaN"):
        call(TABLE["svd"], [np.full((2, 2), NAN)], {"full_matrices": True, "compute_uv": True})


def test_host_results_are_checked_and_copied() -> None:
    from tenfold.ops.rows.effects import checked
    from tenfold.types import parse_type

    wanted = [parse_type("f32[3]")]
    with pytest.raises(
        TypeMismatch, match=r"call_host 'f': result 0 is f64\[3\], f32\[3\] declared"
    ):
        checked("f", [np.zeros(3)], wanted)
    with pytest.raises(TypeMismatch, match=r"result 0 is f32, f32\[3\] declared"):
        checked("f", [np.float32(1)], wanted)
    with pytest.raises(TypeMismatch, match="2 results, 1 declared"):
        checked("f", [1, 2], wanted)
    mine = np.zeros(3, np.float32)
    (copy,) = checked("f", [mine], wanted)
    mine[0] = 5
    assert copy[0] == 0


# Cumulative, special and searching.


def test_cumulative_edges(one: One) -> None:
    x = np.array([1.0, NAN, 2.0])
    equal(one("cummax", x, axis=0, reverse=False), [1, NAN, NAN])
    equal(one("cummin", x, axis=0, reverse=True), [NAN, NAN, 2])
    truths = np.array([False, True, False])
    assert one("cummax", truths, axis=0, reverse=False).tolist() == [False, True, True]
    assert one("cummin", truths, axis=0, reverse=False).tolist() == [False, False, False]
    most = np.array([127, 1], np.int8)
    assert one("cumsum", most, axis=0, reverse=False).tolist() == [127, -128]
    small = np.full(3000, 1.0, np.float16)
    assert one("cumsum", small, axis=0, reverse=False)[-1] == 3000  # in f16 it would stop at 2048


def test_special_edges(one: One) -> None:
    equal(one("erf_inv", np.array([1.0, -1.0, 1.5, -2.0, NAN])), [INF, -INF, NAN, NAN, NAN])
    assert np.signbit(one("erf_inv", np.array(-0.0)))
    equal(one("lgamma", np.array([0.0, -0.0, -1.0, -7.0, INF, -INF])), [INF] * 6)
    equal(one("digamma", np.array([0.0, -0.0, -1.0, -INF, INF])), [-INF, INF, NAN, NAN, INF])


def test_gcd_edges(one: One) -> None:
    least = np.array(-(2**31), np.int32)
    assert one("gcd", np.array(0), np.array(0)) == 0
    assert one("gcd", np.array(-12), np.array(18)) == 6
    assert one("gcd", least, np.array(0, np.int32)) == least
    assert one("gcd", least, np.array(6, np.int32)) == 2


def test_top_k_and_searchsorted_edges(one: One, call: Callable[..., Any]) -> None:
    from tenfold.ops import TABLE

    values, places = call(TABLE["top_k"], [np.array([1.0, NAN, 3.0, 3.0])], {"k": 3})
    equal(values, [NAN, 3, 3])
    assert places.tolist() == [1, 2, 3]
    line = np.array([1.0, 2.0, NAN])
    assert one("searchsorted", line, np.array([NAN]), side="left") == 2
    assert one("searchsorted", line, np.array([NAN]), side="right") == 3


def test_a_window_that_does_not_fit_is_left_out(one: One) -> None:
    x = np.arange(5)
    made = one("windows", x, window=(2,), strides=(2,), dilation=(1,))
    assert made.tolist() == [[0, 1], [2, 3]]
    assert one("windows", x, window=(6,), strides=(1,), dilation=(1,)).shape == (0, 6)


def test_the_kernel_of_conv_is_not_turned_round(one: One) -> None:
    x, w = np.array([[[1, 2, 3]]]), np.array([[[1, 10]]])
    given = {"strides": (1,), "low": (1,), "high": (1,), "x_dilation": (1,), "dilation": (1,)}
    assert one("conv", x, w, **given, groups=1).tolist() == [[[10, 21, 32, 3]]]
    wide = {**given, "low": (0,), "high": (0,), "x_dilation": (2,)}
    assert one("conv", x, w, **wide, groups=1).tolist() == [[[1, 20, 2, 30]]]


# Empty arrays, however long their other axes.

LONG = 1 << 24
EMPTY = {
    "iota": lambda x: tn.iota((0, LONG), axis=1) + x.astype(int),
    "tril": np.tril,
    "running sum": lambda x: np.cumsum(x, axis=1),
    "sort": lambda x: np.sort(x, axis=1),
    "sum": lambda x: x.sum(axis=1),
    "top_k of none": lambda x: tn.top_k(x.T, 0)[0].T,
    "searches": lambda x: tn.vmap(np.searchsorted)(x.T, x.T).T,
}


@pytest.mark.parametrize("how", ["never", "now"])
@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_array_takes_no_memory(name: str, how: str) -> None:
    f, x = tn.jit(EMPTY[name], compile=how, verify="off"), np.zeros((0, LONG))
    f.warm(x)
    tracemalloc.start()
    got = f(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert got.shape[0] == 0
    assert peak < LONG // 4


def test_what_is_not_finite_raises(one: One) -> None:
    x = np.array([1.0, -0.0, 5e-324])
    got = one("finite", x)
    np.testing.assert_array_equal(got, x)
    assert np.signbit(got[1])
    for odd in (NAN, np.inf, -np.inf):
        with pytest.raises(ValueProblem, match="is no finite number"):
            one("finite", np.array([1.0, odd]))
    assert one("finite", np.zeros((0, 2))).shape == (0, 2)


def test_what_is_refused_raises(one: One) -> None:
    assert one("refuse", np.zeros(3, bool), reason="too few").tolist() == [False] * 3
    with pytest.raises(ValueProblem, match="too few"):
        one("refuse", np.array([False, True]), reason="too few")
    assert one("refuse", np.zeros((0, 2), bool), reason="too few").shape == (0, 2)
