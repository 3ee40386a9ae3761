"""Ufuncs beside NumPy's: values, dtypes, promotion, weak numbers, out=, where=, dtype=."""

from __future__ import annotations

import decimal
import enum
import itertools
import operator
import warnings
from typing import Any

import numpy as np
import pytest

from tenfold.errors import OverflowProblem, TenfoldError, TypeMismatch, Unsupported
from tenfold.trace.tables import UFUNCS
from tenfold.types import BFLOAT16, DTYPES, KIND, as_dtype

NUMPYS = [d for d in DTYPES.values() if d != BFLOAT16]
CORE = (np.matmul, np.vecdot, np.matvec, np.vecmat)
PLAIN = [u for u in UFUNCS if u not in CORE and u is not np.isnat]  # that is of dates alone


def _numpy(f: Any, *args: Any) -> Any:
    """NumPy's answer, or None where it has none."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return f(*args)
        except (TypeError, ValueError):
            return None


def _samples(dtype: Any) -> np.ndarray[Any, Any]:
    kind = KIND[as_dtype(dtype)]
    if kind == "b":
        return np.array([True, False, True, False])
    if kind == "u":
        return np.array([0, 1, 3, 7]).astype(dtype)
    if kind == "i":
        return np.array([0, 1, -3, 7]).astype(dtype)
    if kind == "c":
        return np.array([0, 1.5, -0.25 + 1j, 0.5 - 0.75j]).astype(dtype)
    return np.array([0.0, 0.5, -0.25, np.inf, np.nan, -3.0, 3.5, 2.5]).astype(dtype)


@pytest.mark.parametrize("ufunc", PLAIN, ids=lambda u: u.__name__)
def test_every_ufunc_is_numpys(ufunc: Any, compare: Any, trace: Any) -> None:
    met = 0
    for dtype in NUMPYS:
        x = _samples(dtype)
        args = (x,) if ufunc.nin == 1 else (x, np.roll(x, 1))
        if ufunc is np.power and KIND[dtype] == "i":
            args = (x, np.abs(args[1]))
        if ufunc is np.reciprocal and KIND[dtype] in "iu":
            args = (x[x != 0],)  # NumPy does not say what 1 / 0 is
        if KIND[dtype] == "i" and ufunc in (np.left_shift, np.right_shift):
            args = (x, np.abs(args[1]))
        if _numpy(ufunc, *args) is None:
            with pytest.raises(TenfoldError):
                trace(ufunc, *args)
            continue
        met += 1
        compare(ufunc, *args)
    assert met


PAIRED = (np.add, np.true_divide, np.floor_divide, np.power, np.less, np.bitwise_and, np.arctan2)


@pytest.mark.parametrize("ufunc", PAIRED, ids=lambda u: u.__name__)
def test_promotion_of_all_pairs(ufunc: Any, trace: Any) -> None:
    for left, right in itertools.product(NUMPYS, NUMPYS):
        x, y = np.ones(2, left), np.ones(2, right)
        expected = _numpy(ufunc, x, y)
        if expected is None:
            with pytest.raises(TypeMismatch):
                trace(ufunc, x, y)
            continue
        (type_,) = trace(ufunc, x, y).output_types
        assert type_.dtype == expected.dtype, (left, right)


@pytest.mark.parametrize("number", [1, 1.5, 2j, True])
def test_weak_numbers(number: Any, compare: Any) -> None:
    for dtype in NUMPYS:
        x = _samples(dtype)
        for op in (operator.add, operator.mul, operator.truediv):
            for f in (lambda x: op(x, number), lambda x: op(number, x)):  # noqa: B023
                compare(f, x)


def test_python_arguments_stay_weak(trace: Any) -> None:
    for number in (2, 2.5, 2j):
        x = np.ones(2, "f4")
        (type_,) = trace(lambda x, n: x * n, x, number).output_types
        assert type_.dtype == (x * number).dtype
    (type_,) = trace(lambda x, n: x * (n * 2 + 1), np.ones(2, "u1"), 3).output_types
    assert type_.dtype == np.uint8
    (type_,) = trace(lambda x, n: x * (n / 2), np.ones(2, "f2"), 3).output_types
    assert type_.dtype == np.float16


def test_bfloat16(trace: Any) -> None:
    def dtype(f: Any, *args: Any) -> str:
        (type_,) = trace(f, *args).output_types
        return str(type_.dtype)

    x = np.ones(3, BFLOAT16)
    assert dtype(lambda x: x * 2 + 1.5, x) == "bfloat16"
    assert dtype(lambda x: 2 / x, x) == "bfloat16"
    assert dtype(lambda x: x + 1j, x) == "complex64"
    assert dtype(np.sin, x) == "bfloat16"
    assert dtype(lambda x, y: x + y, x, np.ones(3, "f2")) == "float32"
    assert dtype(lambda x, y: x + y, x, np.ones(3, "f4")) == "float32"
    assert dtype(lambda x, y: x + y, x, np.ones(3, "i1")) == "bfloat16"
    assert dtype(lambda x, y: x + y, x, np.ones(3, "i4")) == "float64"
    assert dtype(lambda x: np.where(x > 1, x, 0.5), x) == "bfloat16"
    assert dtype(lambda x: x.mean(), x) == "bfloat16"
    assert dtype(lambda x: np.concatenate([x, x]), x) == "bfloat16"


def test_bfloat16_values(run: Any) -> None:
    x = np.array([1.0, 2.5, -3.0], BFLOAT16)
    (got,) = run(lambda x: x * 2 + 0.5, x)
    assert got.tolist() == [2.5, 5.5, -5.5]
    (got,) = run(lambda x: np.nan_to_num(x / 0), x)
    assert got.dtype == BFLOAT16
    assert np.isfinite(got.astype("f4")).all()


COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons_are_exact(op: Any, compare: Any) -> None:
    big = np.array([2**63, 2**64 - 1, 0, 5], np.uint64)
    signed = np.array([-1, 2**63 - 1, 0, 6], np.int64)
    compare(op, big, signed)
    compare(op, signed, big)
    compare(lambda x: op(x[:, None], big), signed)
    for number in (-1, 300, 2**70, -(2**70), 5, 2**63):
        for x in (np.array([0, 5, 255], np.uint8), big, signed):
            compare(lambda x: (op(x, number), op(number, x)), x)  # noqa: B023


@pytest.mark.parametrize("op", COMPARISONS)
def test_traced_python_integers_are_not_cut(op: Any, compare: Any) -> None:
    for number in (-1, 300, 5):
        compare(op, np.array([0, 5, 255], np.uint8), number)
        compare(op, number, np.array([0, 5, 44], np.uint8))


def test_out_of_range_literals(trace: Any) -> None:
    with pytest.raises(OverflowProblem, match="300 does not fit uint8"):
        trace(lambda x: x + 300, np.ones(2, "u1"))
    with pytest.raises(OverflowProblem, match="-1"):
        trace(lambda x: x * -1, np.ones(2, "u4"))


def test_great_literals(compare: Any, trace: Any) -> None:
    compare(lambda x: (x * 10**30, x + 10**12, x * -(10**25)), np.ones(2, "f4"))
    compare(lambda x: x * 2**70, np.ones(2, "c8"))
    (type_,) = trace(lambda x: x * 2**70, np.ones(2, BFLOAT16)).output_types
    assert type_.dtype == BFLOAT16
    with pytest.raises(OverflowProblem, match="1329 bits"):
        trace(lambda x: x * 10**400, np.ones(2, "f4"))


def test_traced_python_numbers_alone(compare: Any) -> None:
    compare(lambda x, n: (x * divmod(n, 3)[0], x + abs(-n), x * (n**2) / n), np.ones(2, "f4"), 7)
    compare(lambda x, z: x * abs(z), np.ones(2, "f4"), 3 + 4j)


def test_bools(compare: Any, trace: Any) -> None:
    x, y = np.array([True, False, True]), np.array([True, True, False])
    compare(lambda x, y: (x + y, x * y, np.maximum(x, y), np.minimum(x, y), ~x, x ^ y), x, y)
    compare(lambda x, y: (x & True, x | False, x + 1, x * 2.5, x < y), x, y)
    with pytest.raises(TypeMismatch, match="bitwise_xor"):
        trace(lambda x: x - x, x)
    with pytest.raises(TypeMismatch, match="logical_not"):
        trace(lambda x: -x, x)


def test_operators(compare: Any) -> None:
    x, y = np.array([7.5, -3.0, 2.0]), np.array([2.0, 4.0, -0.5])
    compare(lambda x, y: (x + y, x - y, x * y, x / y, x // y, x % y, x**2, divmod(x, y)), x, y)
    compare(lambda x, y: (1 + x, 1 - x, 2 * x, 2 / x, 7 // x, 7 % x, 2**x, divmod(7, x)), x, y)
    compare(lambda x, y: (-x, +x, abs(x), x == y, x != y, x < y, x >= 1), x, y)
    i, j = np.array([7, -3, 2]), np.array([2, 4, 1])
    compare(lambda i, j: (i & j, i | j, i ^ j, ~i, i << j, i >> j, 5 & i, 1 << j, i**j), i, j)
    compare(lambda x, y: (np.add(x, [1, 2, 3]), [1, 2, 3] * y, x - (1, 2, 3)), x, y)


def test_numpy_operands_on_either_side(compare: Any) -> None:
    w, s = np.arange(3.0), np.float32(2.5)
    x = np.ones(3, "f4")
    compare(lambda x: (w + x, x + w, s * x, x * s, w @ x, np.int8(3) - x, x[0] * w), x)


def test_numbers_of_other_classes(compare: Any, trace: Any) -> None:
    class Level(enum.IntEnum):
        HIGH = 3

    class Real(float):
        pass

    x = np.ones(3, "f4")
    compare(lambda x: (x * Level.HIGH, x + Real(0.5), round(x[0] * 2.5), round(x[0], 1).sum()), x)
    with pytest.raises(Unsupported, match="datetime64") as caught:
        trace(lambda x: x + np.array(["2020"], "M8[Y]"), x)
    assert "test_ufuncs.py" in str(caught.value)
    with pytest.raises(TypeMismatch, match="no array and no number"):
        trace(lambda x: np.add(x, decimal.Decimal(1)), x)


def test_special_ufuncs(compare: Any) -> None:
    x = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e-300])
    compare(lambda x: (np.modf(x), np.heaviside(x, 0.5), np.square(x), np.spacing(x)), x)
    compare(lambda x: np.ldexp(x, np.array([3, -4, 2000, -2000, 1, 0, 2, 500])), x)
    compare(lambda x: np.logaddexp2(x[:, None], x), x)
    compare(lambda x: (np.deg2rad(x), np.rad2deg(x), np.degrees(x), np.radians(x)), x)
    i = np.array([-(2**31), -5, 0, 7], np.int32)
    compare(lambda i: (np.bitwise_count(i), np.reciprocal(i[[1, 3]]), np.signbit(i)), i)
    compare(lambda i: (np.floor(i), np.ceil(i), np.trunc(i), np.rint(i), np.isnan(i)), i)
    compare(lambda x: (np.logical_and(x, 1), np.logical_not(x), np.logical_xor(x, x > 1)), x)


def test_dtype_argument(compare: Any, trace: Any) -> None:
    x = np.array([1, 2, 3], np.int32)
    compare(lambda x: (np.add(x, 1, dtype=np.float32), np.sqrt(x, dtype="f4")), x)
    with pytest.raises(TypeMismatch, match="dtype=int32"):
        trace(lambda x: np.add(x, 1, dtype=np.int32), np.ones(2))


def test_out_and_where(compare: Any, trace: Any) -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        z = y
        np.multiply(x, 2, out=y)
        np.negative(x, out=y, where=x > 1)
        np.add(x, 1, out=(y,), where=np.array([True, False, False]))
        return z, np.sum(x, out=y[:1].sum() if False else None)

    compare(f, np.array([1.0, 2.0, 3.0]))

    def g(x: Any) -> Any:
        whole, rest = x.copy(), x.copy()
        np.divmod(x, 2, out=(whole, rest))
        total = x[:1].copy()
        np.sum(x, axis=0, keepdims=True, out=total)
        return whole, rest, total

    compare(g, np.array([1.0, 2.0, 3.0]))
    with pytest.raises(Unsupported, match="where= without out="):
        trace(lambda x: np.add(x, 1, where=x > 1), np.ones(2))
    with pytest.raises(TypeMismatch, match="float64 result"):
        trace(lambda x: np.add(x, 1.5, out=x.astype(int)), np.ones(2))
    with pytest.raises(TypeMismatch, match="does not fit"):
        trace(lambda x: np.add(x, x[:, None], out=x.copy()), np.ones(2))


def test_methods_of_ufuncs(compare: Any, trace: Any) -> None:
    x = np.array([3.0, 1.0, 2.0])
    compare(lambda x: (np.add.outer(x, x[:2]), np.maximum.outer(x[None], x)), x)

    def f(x: Any) -> Any:
        y = x.copy()
        np.add.at(y, [0, 0, 2], x)
        np.maximum.at(y, np.array([1, 1]), 7.0)
        np.multiply.at(y, [2, 2], 3)
        np.minimum.at(y, [0], [0.5])
        return y

    compare(f, x)
    with pytest.raises(Unsupported, match=r"np.subtract.at"):
        trace(lambda x: np.subtract.at(x, [0, 0], 1), x)


def test_wrong_operands(trace: Any) -> None:
    x = np.ones(3)
    with pytest.raises(TypeMismatch, match="bitwise_and does not take float64"):
        trace(lambda x: x & x, x)
    with pytest.raises(TypeError):
        trace(lambda x: x + "a", x)
    with pytest.raises(TenfoldError, match="do not broadcast"):
        trace(lambda x: x + np.ones(4), x)
