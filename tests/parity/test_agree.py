"""The rule of agreement refuses wrong results of every kind, and lets off only what it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import TenfoldError
from tenfold.graph import Builder, Graph
from tenfold.ops import TABLE
from tenfold.ops.agreement.units import unit
from tenfold.parity.rule.agree import Uncertain, compare, judged
from tenfold.types import KIND, TensorType

Array = np.ndarray[Any, Any]
NAMES = [name for name, op in TABLE.items() if not op.effect]
FEW = 12  # samples of a row


def graph_of(name: str, arrays: list[Array], attributes: Any, scopes: Any = ()) -> Graph:
    builder = Builder(TABLE)
    given = [builder.parameter(TensorType(a.dtype, a.shape)) for a in arrays]
    return builder.finish(builder.node(name, given, attributes, scopes))


def one(name: str, *arrays: Array, **attributes: Any) -> Any:
    """The result of one op on right inputs, with its bound."""
    (found,) = judged(graph_of(name, list(arrays), attributes), arrays)
    return found


def refused(found: Any, *got: Any) -> bool:
    made = np.array(got, found.value.dtype).reshape(found.value.shape)
    return not compare(made, found.value, found.allowed).agrees


def wrong(name: str, value: Array, at: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """What could stand in one place of a result and must not."""
    held = value[at]
    kind = KIND[value.dtype]
    if kind == "b":
        yield "the other", ~held
    elif kind in "iu":
        yield "one more", held + np.array(1, value.dtype)
        yield "a bit", held ^ np.array(1 << (8 * value.dtype.itemsize - 2), value.dtype)
    elif np.isnan(held):
        yield "no NaN", value.dtype.type(1)
    else:
        yield "a NaN", value.dtype.type(np.nan)
        if not np.isfinite(held):
            yield "the largest", value.dtype.type(np.finfo(np.float16).max)
            yield "the other infinity", -held
            return
        yield "an infinity", value.dtype.type(np.inf)
        yield "another", held + value.dtype.type(1 + abs(held))
        least = unit(np.asarray(TABLE[name].bound_from, value.dtype))
        near = float(max(unit(np.asarray(held)), least)) * 2 * (TABLE[name].bound + 6)
        if name in MEASURED:
            near = max(near, 1e-3 + float(abs(held)) * 1e-3)
        if near < 1e-2 * (1 + abs(held)) and not TABLE[name].scopes:
            yield "a few units more", held + value.dtype.type(near)
        if kind == "f" and held == 0 and name not in UNSIGNED and not TABLE[name].bound:
            yield "the other zero", -held


MEASURED = (  # by other numbers than the one that is wrong
    *("reduce_sum", "reduce_prod", "contract", "conv", "conv_valid", "cumsum", "scatter"),
    *("fft", "rfft", "irfft"),
    *("lu", "qr", "svd", "cholesky", "eigh", "solve", "inv", "triangular_solve", "det", "slogdet"),
)
UNSIGNED = ("max", "min", "fmax", "fmin", "reduce_max", "reduce_min", "cummax", "cummin", "clip",
            "scatter")  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@np.errstate(all="ignore")
def test_what_is_wrong_is_refused(name: str) -> None:
    samples = list(TABLE[name].samples(np.random.default_rng(8)))
    tried = 0
    for sample in samples[:: max(1, len(samples) // FEW)]:
        given = [np.asarray(a) for a in sample.inputs]
        try:
            found = judged(graph_of(name, given, sample.attributes, sample.scopes), given)
        except (TenfoldError, Uncertain):
            continue
        for result in found:
            assert compare(result.value.copy(), result.value, result.allowed).agrees
            if name == "eig":  # signs and order are settled by nobody
                continue
            for at in list(np.ndindex(result.value.shape))[:4]:
                for what, other in wrong(name, result.value, at):
                    got = result.value.copy()
                    got[at] = other
                    told = compare(got, result.value, result.allowed)
                    assert told.at == at, f"{what}: {other} for {result.value[at]}"
                    tried += 1
    assert tried or name in ("while", "hook", "eig"), "nothing was tried"


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


def test_infinite_and_nan_terms_settle_a_sum() -> None:
    assert refused(one("reduce_sum", f32(1, np.inf, 2), axes=(0,)), 5)
    assert refused(one("reduce_sum", f32(1, np.inf, 2), axes=(0,)), np.nan)
    assert refused(one("reduce_sum", f32(1, np.nan, 2), axes=(0,)), 3)
    assert refused(one("reduce_sum", f32(np.inf, -np.inf), axes=(0,)), np.inf)
    found = one("reduce_sum", f32(3e38, 3e38, -3e38), axes=(0,))  # here the order decides
    assert not refused(found, 3e38)
    assert not refused(found, np.inf)


def test_a_sum_is_held_to_its_magnitudes_not_to_the_reference_s_own_error() -> None:
    many = np.full((20000, 2), 0.1, np.float32)
    found = one("reduce_sum", many, axes=(0,))
    right = many.astype(np.float64).sum(axis=0)
    off = abs(float(found.value[0]) - right[0])
    assert off > 50 * float(unit(found.value)[0])  # it adds one row after the other
    assert not refused(found, *right)
    assert refused(found, *(right - 3 * off))
    few = f32(1, 2, 3, 4)
    assert refused(one("reduce_sum", few, axes=(0,)), np.float32(10) + np.float32(1e-4))


def test_sixteen_bit_sums_are_rounded_once() -> None:
    halves = np.full(64, 1.0, np.float16)
    found = one("reduce_sum", halves, axes=(0,))
    assert refused(found, 64 + 4 * 2.0**-4)
    assert not refused(one("reduce_sum", np.full(3, 6e4, np.float16), axes=(0,)), np.inf)
    assert refused(one("reduce_sum", np.array([6e4, 6e4, -6e4], np.float16), axes=(0,)), 5e4)


def test_subnormal_products_go_rounded_or_unrounded_into_a_sum() -> None:
    over = {"lhs_contract": (0,), "rhs_contract": (0,), "lhs_batch": (), "rhs_batch": ()}
    least = np.float64(5e-324)
    found = one("contract", np.full(8, 0.5), np.full(8, least), **over)
    assert found.value == 0  # each half of the least is rounded to nothing
    assert not refused(found, 4 * least)
    assert refused(found, 20 * least)
    assert refused(one("contract", np.full(8, 0.5), np.full(8, 1e-300), **over), 4.0001e-300)


def test_products_in_any_order() -> None:
    wide = one("reduce_prod", np.array([1e300, 1e300, 1e-300]), axes=(0,))
    assert not refused(wide, np.inf)
    assert not refused(wide, 1e300)
    long = np.full(90, 2.0)  # far from overflow in this type
    assert refused(one("reduce_prod", long, axes=(0,)), 2.0**91)
    assert refused(one("reduce_prod", f32(1e30, 1e30, np.nan), axes=(0,)), 0)
    assert refused(one("reduce_prod", f32(2, np.inf, 3), axes=(0,)), 6)


def test_the_product_of_one_number_is_that_number() -> None:
    assert refused(one("reduce_prod", f32(-0.0), axes=(0,)), 0.0)
    assert refused(one("reduce_prod", f32(3), axes=(0,)), np.nextafter(f32(3), f32(4)))
    single = one("reduce_prod", np.array([complex(-0.0, -0.0)]), axes=(0,))
    assert not refused(single, 0j)
    assert refused(single, 1e-300j)
    large = one("reduce_prod", np.array([1e308 + 1j]), axes=(0,))
    assert refused(large, 1e308 + 2j)
    assert refused(one("reduce_prod", np.array([3 + 1j]), axes=(0,)), np.nextafter(3, 4) + 1j)


def test_exact_ops_give_the_very_bits() -> None:
    third = f32(1) / f32(3)
    assert refused(one("add", third, f32(1)), np.nextafter(f32(4) / f32(3), f32(2)))
    assert refused(one("sqrt", f32(2)), np.nextafter(np.sqrt(f32(2)), f32(2)))
    assert refused(one("mul", f32(3), third), np.nextafter(f32(1), f32(2)))
    assert refused(one("neg", f32(0)), 0.0)
    assert refused(one("mul", f32(-1), f32(0)), 0.0)
    assert not refused(one("max", f32(0), f32(-0.0)), -0.0)


def test_a_product_may_go_unrounded_into_a_sum_but_is_stored_rounded() -> None:
    b = Builder(TABLE)
    x, y, z = (b.parameter(TensorType(np.dtype(np.float32), (1,))) for _ in "xyz")
    (product,) = b.node("mul", [x, y])
    (total,) = b.node("add", [product, z])
    arrays = [f32(1 + 2**-12), f32(1 + 2**-12), f32(-1)]
    stored, summed = judged(b.finish([product, total]), arrays)
    fused = np.float32(float(arrays[0][0]) ** 2 - 1)
    assert fused != summed.value[0]
    assert not refused(summed, fused)
    assert refused(summed, fused + np.float32(2**-20))
    assert refused(stored, np.nextafter(stored.value[0], f32(2)[0]))


def test_what_is_added_to_an_operand_is_held_to_its_magnitude() -> None:
    a = f32(-0.6931)
    found = one("logaddexp", a, a)
    assert abs(float(found.value[0])) < 1e-4
    assert not refused(found, found.value[0] + 2 * unit(a)[0])
    assert refused(found, found.value[0] + 10 * unit(a)[0])


def test_complex_infinities_are_settled_where_nothing_overflows() -> None:
    z, w = np.array([np.inf + 1j], np.complex64), np.array([2 - 1j], np.complex64)
    found = one("mul", z, w)
    assert refused(found, 1)
    assert refused(found, complex(-np.inf, np.inf))
    huge = np.array([1e30 + 1e30j], np.complex64)
    assert not refused(one("mul", huge, huge), complex(np.nan, np.inf))
    assert refused(one("div", w, z), 1)


def test_the_sign_of_a_computed_nan_is_open_and_that_of_a_given_one_is_not() -> None:
    b = Builder(TABLE)
    x, y = (b.parameter(TensorType(np.dtype(np.float32), (1,))) for _ in "xy")
    (made,) = b.node("sub", [x, x])
    (open_sign,) = b.node("signbit", [made])
    (copied,) = b.node("copysign", [y, made])
    graph = b.finish([open_sign, copied])
    flag, signed = judged(graph, [f32(np.inf), f32(3)])
    assert not refused(flag, ~flag.value[0])
    assert not refused(signed, -signed.value[0])
    assert refused(signed, 30)
    assert refused(one("signbit", f32(np.nan)), True)
    assert refused(one("copysign", f32(3), f32(-np.nan)), 3)


def test_a_tie_lets_off_the_neighbour_alone() -> None:
    b = Builder(TABLE)
    (x,) = (b.parameter(TensorType(np.dtype(np.float32), (2,))) for _ in "x")
    (made,) = b.node("exp", [x])
    (whole,) = b.node("cast", [made], {"dtype": "i32"})
    (found,) = judged(b.finish([whole]), [np.log(f32(2, 2.5)).astype(np.float32)])
    near = found.value.copy()
    near[0] = 3 - near[0]  # 2 lies within the bound of 2
    assert compare(near, found.value, found.allowed).ties == 1
    assert refused(found, near[0], 3)
    assert refused(found, found.value[0] + 2, 2)
    assert refused(found, found.value[0] - 2, 2)


def test_a_wrong_bit_behind_an_infinite_bound_stays_where_it_is() -> None:
    """What may be anything in one element says nothing of the others."""
    values = np.array([[3e38, 3e38, -3e38], [1, 2, 3]], np.float32)
    found = one("reduce_sum", values, axes=(1,))
    assert np.isinf(found.allowed[0])
    assert refused(found, found.value[0], 7)


def test_a_product_that_may_wrap_is_open_where_its_factors_are() -> None:
    def squared(x: Any) -> Any:
        bits = np.exp(x).view(np.int32)
        return bits * bits, np.exp(x).astype(np.int32) * 3

    given = f32(0.5, 1.0, 2.0)
    graph = tn.jit(squared).trace(given)
    bits, small = judged(graph, [given])
    assert np.isinf(bits.allowed).all()
    assert np.isfinite(small.allowed).all()
    assert not compare(small.value + 50, small.value, small.allowed).agrees


def test_a_pole_within_the_bound_is_found() -> None:
    """What may be 0 within rounding has no finite lgamma for certain, though the ends of its
    range have; what may not, has."""
    b = Builder(TABLE)
    x, y = (b.parameter(TensorType(np.dtype(np.float32), (2,))) for _ in "xy")
    (near,) = b.node("sub", [b.node("exp", [x])[0], y])
    graph = b.finish(b.node("lgamma", [near]))
    given = f32(0.7, 0.7)
    (found,) = judged(graph, [given, np.nextafter(np.exp(given), f32(0.0, 0.0)) - f32(0, 1)])
    assert np.isfinite(found.value).all()
    assert not refused(found, np.inf, found.value[1])
    assert refused(found, found.value[0], np.inf)


@pytest.mark.parametrize("name", ["mod", "fmod"])
def test_a_remainder_is_open_where_the_quotient_may_be_another(name: str) -> None:
    b = Builder(TABLE)
    x, y = (b.parameter(TensorType(np.dtype(np.float32), (50,))) for _ in "xy")
    (divisor,) = b.node("exp", [y])
    graph = b.finish(b.node(name, [x, divisor]))
    given = np.linspace(1, 2, 50, dtype=np.float32)
    small = np.full(50, np.log(1e-9), np.float32)
    (found,) = judged(graph, [given, small])
    other = (found.value + np.float32(0.5e-9)) % np.float32(1e-9)
    assert not refused(found, *other)
    assert refused(found, *(other + np.float32(1e-8)))
    (found,) = judged(graph, [given + 6, np.full(50, np.log(4.5), np.float32)])
    assert refused(found, *(found.value + np.float32(1e-4)))  # no multiple of 4.5 is near


def test_complex_products_of_a_scatter_are_held_to_their_factors() -> None:
    x = np.array([1 + 2j, 3 - 1j, 1e30 + 1e30j], np.complex64)
    updates = np.array([2 + 1j, 1 - 1j, 1e30 - 1e30j, 1e30], np.complex64)
    at = np.array([0, 0, 2, 2])
    found = one("scatter", x, updates, at, axes=(0,), at=0, mode="raise", kind="mul")
    first, second, _ = found.value
    assert not refused(found, first * np.float32(1 + 2e-7), second, complex(np.nan, np.inf))
    assert refused(found, first * np.float32(1 + 1e-5), second, 0)
    assert refused(found, first, second + np.float32(1e-6), 0)  # nothing was joined to it


def test_a_running_sum_is_held_to_the_exact_one() -> None:
    """NumPy adds one after the other, so a million terms are off by more than any tree's."""
    x = np.full(1_000_000, 0.1)
    found = one("cumsum", x, axis=0, reverse=False)
    exact = np.cumsum(x.astype(np.longdouble)).astype(np.float64)
    assert not refused(found, exact)
    exact[999_999] += 3e-6
    assert refused(found, exact)


@pytest.mark.parametrize(("rows", "columns"), [(3000, 3000), (20_000, 300), (100_000, 50)])
def test_a_large_product_is_held_to_the_exact_one(rows: int, columns: int) -> None:
    v, m = np.full(rows, 0.1), np.full((rows, columns), 0.1)
    axes = {"lhs_contract": (0,), "rhs_contract": (0,), "lhs_batch": (), "rhs_batch": ()}
    found = one("contract", v, m, **axes)
    exact = np.full(columns, float(np.longdouble(0.1) ** 2 * rows))
    assert not refused(found, exact)
    lost = exact.copy()
    lost[columns // 2] -= 0.01  # one of the terms
    assert refused(found, lost)
    assert refused(found, exact * (1 + 1e-10))


def test_a_library_s_product_may_add_one_term_after_the_other() -> None:
    a, b = np.full((40, 30_000), 0.1, np.float32), np.full((30_000, 20), 0.1, np.float32)
    axes = {"lhs_contract": (1,), "rhs_contract": (0,), "lhs_batch": (), "rhs_batch": ()}
    found = one("contract", a, b, **axes)
    serial = np.add.accumulate(np.full(30_000, a[0, 0] * b[0, 0]))[-1]
    assert not refused(found, np.full((40, 20), serial))
    assert refused(found, np.full((40, 20), serial) * np.float32(1.01))
    # A kernel does better: of two vectors that would be wrong.
    found = one("contract", a[0], b[:, 0], **(axes | {"lhs_contract": (0,)}))
    assert refused(found, np.asarray(serial))


def test_any_of_many_near_ties_may_be_the_extreme() -> None:
    """A few trials miss most of them."""
    x = np.zeros((2, 40), "f4")
    x[1, 7] = -3.0
    graph = tn.trace(lambda x: np.argmin(np.exp(x), axis=1), x)
    (found,) = judged(graph, [x])
    for place in (0, 13, 39):
        assert compare(np.array([place, 7]), found.value, found.allowed).agrees
    assert not compare(np.array([0, 8]), found.value, found.allowed).agrees


def test_what_is_moved_by_a_period_may_be_anything_in_range() -> None:
    x = np.array([60.0, 0.5], "f4")
    graph = tn.trace(lambda x: np.sin(np.exp(x)), x)
    (found,) = judged(graph, [x])
    assert compare(np.array([-1.0, found.value[1]], "f4"), found.value, found.allowed).agrees
    assert compare(np.array([1.0, found.value[1]], "f4"), found.value, found.allowed).agrees
    wrong = np.array([found.value[0], found.value[1] + 0.01], "f4")
    assert not compare(wrong, found.value, found.allowed).agrees


@pytest.mark.parametrize("function", [np.sin, np.cos, np.sinh, np.cosh, np.exp])
def test_complex_infinities_behind_a_period_have_any_signs(function: Any) -> None:
    """Complex numbers off by more than a period, whose sines overflow."""
    given = np.arange(3e20, 6e21, 1e20) * (1 + 1j)

    def program(x: Any) -> Any:
        return function(x * 3.3 / 7.1 * 1.7)

    graph = tn.jit(program).trace(given)
    (one,) = judged(graph, [given])
    assert np.isinf(one.allowed).all()
    near = np.array([0.3 + 0.2j])
    (one,) = judged(tn.jit(program).trace(near), [near])
    assert one.allowed.max() < 1e-14


def test_a_power_whose_base_and_exponent_are_off_may_be_none() -> None:
    """Of a base that may be just below 0, and an exponent that may be just beside 1."""
    x = np.array([0.0, 0.7], "f4")
    graph = tn.trace(lambda x: np.power(np.exp(x) - 1, np.exp(x)), x)
    (found,) = judged(graph, [x])
    assert compare(np.array([np.nan, found.value[1]], "f4"), found.value, found.allowed).agrees
    assert not compare(np.array([0.0, np.nan], "f4"), found.value, found.allowed).agrees


def test_a_modulus_may_move_whichever_way_the_parts_do() -> None:
    """Both parts moved up leave this one where it is."""
    x = np.array([1.0], "f4")
    graph = tn.trace(lambda x: np.abs(np.exp(np.exp(np.exp(x))) * (1 - 1j)), x)
    (found,) = judged(graph, [x])
    assert compare(found.value + np.float32(50), found.value, found.allowed).agrees
    assert not compare(found.value + np.float32(5000), found.value, found.allowed).agrees


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_a_pole_within_a_bound_is_tried(dtype: str) -> None:
    """A bool that hangs on the last bits is 0 or 1, and a little more than that off as a number."""
    x = np.array([0.5, 2.0])
    edge = np.exp(x[0])

    def f(x: Any) -> Any:
        return np.ones(2, dtype) / (np.exp(x) <= edge).astype(dtype)

    (found,) = judged(tn.trace(f, x), [x])
    other = found.value.copy()
    other[0] = np.inf if dtype == "f8" else complex(np.inf, np.nan)
    assert compare(other, found.value, found.allowed).agrees


def test_the_sign_of_a_nan_that_is_the_least_is_nobodys_promise() -> None:
    x = np.array([[np.nan, -1.0], [np.nan, 2.0]], "f2")
    (found,) = judged(tn.trace(lambda x: np.signbit(x.min(0)), x), [x])
    assert compare(np.array([True, True]), found.value, found.allowed).agrees
    assert compare(np.array([False, True]), found.value, found.allowed).agrees
    assert not compare(np.array([False, False]), found.value, found.allowed).agrees


def test_a_product_of_one_term_may_go_unrounded_into_a_sum() -> None:
    drawn = np.random.default_rng(0).uniform(0.5, 2, 100).astype("f4")
    fused = (drawn.astype("f8") * drawn + 1).astype("f4")
    apart = fused != drawn * drawn + np.float32(1)
    assert apart.any()
    x = drawn[apart][:1, None]
    (found,) = judged(tn.trace(lambda x: (x @ x) + np.float32(1), x), [x])
    assert compare(fused[apart][:1, None], found.value, found.allowed).agrees
    assert not compare(found.value + np.float32(1e-5), found.value, found.allowed).agrees


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_factors_of_both_signs_may_all_be_off_in_one_direction(dtype: str) -> None:
    """Moved up by their bounds, positive and negative factors would make up for each other."""
    x = np.linspace(-0.1, 0.1, 256).astype(dtype)
    signs = np.resize([1.0, -1.0], 256)
    graph = tn.trace(lambda x, signs: np.prod(np.exp(x) * signs), x, signs)
    (found,) = judged(graph, [x, signs])
    eps = np.finfo(found.value.dtype).eps
    assert compare(found.value * (1 + 900 * eps), found.value, found.allowed).agrees
    assert not compare(found.value * (1 + 20000 * eps), found.value, found.allowed).agrees


@pytest.mark.parametrize("shape", [(), (3,)])
def test_an_integer_made_of_what_may_be_anything_may_be_anything(shape: tuple[int, ...]) -> None:
    """Infinities are tried for a single number, too."""
    x = np.full((*shape, 2), complex(-np.inf, 0.5), np.complex64)
    y = np.full(2, complex(-np.inf, 0.5), np.complex64)
    graph = tn.trace(lambda x, y: (x @ y).astype(np.uint64), x, y)
    (found,) = judged(graph, [x, y])
    most = np.full(shape, np.iinfo(np.uint64).max, np.uint64)
    assert compare(most, found.value, found.allowed).agrees
