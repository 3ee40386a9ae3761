"""The rules for integers that are not settled hold for every value they may have, and narrow."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import TypeMismatch
from tenfold.graph import Builder
from tenfold.graph.op import Op
from tenfold.ops import TABLE
from tenfold.ops.agreement import many, spreads
from tenfold.ops.agreement.moved import distance, moved
from tenfold.parity.rule.agree import _call, compare, judged
from tenfold.parity.rule.bounds import settled_spread, spread_of
from tenfold.types import KIND, TensorType

Array = np.ndarray[Any, Any]

# Rules of ops that make an element from many, or from others than bytes: tried by hand.
ELSEWHERE = (
    many.SUMS, many.CONTRACTION, many.FACTORS, many.RUNNING_FACTORS, many.SCATTER,
    spreads.RANDOM, spreads.CHOSEN,
    many.LEAST, many.MOST, many.ORDER, many.GREATEST,
)  # fmt: skip


def takes_bytes(op: Op) -> bool:
    """Whether a row has a rule for integers, and is elementwise on bytes."""
    if spread_of(op.name).rule is None or not op.elementwise or op.attributes:
        return False
    try:
        op.infer((TensorType(np.dtype(np.int8), ()),) * (op.arity or 0), {}, ())
    except TypeMismatch:
        return False
    return True


ELEMENTWISE = {name: op.arity or 0 for name, op in TABLE.items() if takes_bytes(op)}
CASTS = [("cast", "bool"), ("cast", "i8"), ("cast", "u8"), ("cast", "i32"), ("bitcast", "i8"),
         ("bitcast", "u8")]  # fmt: skip


def node_of(name: str, of: Any, arity: int, alike: bool, **attributes: Any) -> Any:
    builder = Builder(TABLE)
    given = [builder.parameter(TensorType(np.dtype(of), ())) for _ in range(arity)]
    return builder.finish(builder.node(name, given[:1] * 2 if alike else given, attributes)).nodes[
        0
    ]


def within(value: int, error: float, dtype: Any) -> Array:
    """All that an integer may be."""
    limits = np.iinfo(dtype)
    low, high = max(value - error, limits.min), min(value + error, limits.max)
    return np.arange(int(low), int(high) + 1).astype(dtype)


def drawn(random: np.random.Generator, dtype: Any) -> tuple[int, float]:
    limits = np.iinfo(dtype)
    edge = [limits.min, limits.max, 0, 1, limits.max - 3]
    value = random.choice(edge) if random.random() < 0.3 else random.integers(
        limits.min, limits.max, endpoint=True
    )  # fmt: skip
    return int(value), float(random.choice([0, 0, 1, 2, 5, 30, 200, np.inf]))


@np.errstate(all="ignore")
def holds(node: Any, dtype: Any, drawings: list[tuple[int, float]], alike: bool) -> None:
    values = [np.array(v, dtype) for v, _ in drawings]
    errors = [np.array(e) for _, e in drawings]
    every = [within(v, e, dtype) for v, e in drawings]
    results = _call(node, values)
    (far,) = settled_spread(node, values, errors, results, _call) or [None]
    assert far is not None
    grids = every[:1] * 2 if alike else list(np.meshgrid(*every, indexing="ij"))
    if node.op == "pow" and KIND[np.dtype(dtype)] == "i":
        grids[1] = np.maximum(grids[1], 0)
    (found,) = _call(node, grids)
    off = distance(found, np.broadcast_to(results[0], found.shape))
    assert off.max() <= far, f"{node.op} {drawings}: {off.max()} apart, bound {far}"


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_rule_holds_for_all_that_the_operands_may_be(name: str, dtype: Any) -> None:
    random = np.random.default_rng(5)
    arity = ELEMENTWISE[name]
    node = node_of(name, dtype, arity, False)
    for _ in range(60 if arity < 3 else 20):
        drawings = [drawn(random, dtype) for _ in range(arity)]
        if arity == 3:  # all at once would be millions
            drawings = [(v, min(e, 30.0)) for v, e in drawings]
        if name in ("shl", "shr", "pow") and random.random() < 0.7:
            drawings[1] = (int(random.integers(0, 7)), 0.0)
        if name == "pow" and drawings[1][0] < 0:
            continue
        holds(node, dtype, drawings, False)
    if arity == 2 and name != "pow":
        for _ in range(20):
            holds(node_of(name, dtype, 2, True), dtype, [drawn(random, dtype)] * 2, True)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize(("name", "to"), CASTS)
def test_a_rule_of_casts_holds(name: str, to: str, dtype: Any) -> None:
    random = np.random.default_rng(6)
    for _ in range(60):
        node = node_of(name, dtype, 1, False, dtype=to)
        holds(node, dtype, [drawn(random, dtype)], False)


@np.errstate(all="ignore")
def test_bools_are_tried_in_all_ways() -> None:
    for name, values in product(
        ("add", "mul", "and", "or", "xor"), product((False, True), repeat=2)
    ):
        node = node_of(name, np.bool_, 2, False)
        given = [np.array(v) for v in values]
        results = _call(node, given)
        found = settled_spread(node, given, [np.array(1.0)] * 2, results, _call)
        assert found is not None
        assert found[0] == 1


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_complex_numbers_are_compared_by_parts_that_may_be_anything_within_their_bounds(
    name: str,
) -> None:
    """All that parts on a grid may be; where no two of them meet, the comparison is settled."""
    node = node_of(name, np.complex128, 2, False)
    places = [complex(*at) for at in product((0.0, 1.0, 5.0), repeat=2)]
    for a, b, (p, q) in product(places, places, ((0.0, 0.0), (0.0, 2.0), (2.0, 1.0))):
        values, errors = [np.array(a), np.array(b)], [np.array(p), np.array(q)]
        results = _call(node, values)
        (far,) = settled_spread(node, values, errors, results, _call) or [None]
        steps = np.arange(-2.0, 3.0)
        shifts = (steps[:, None] + 1j * steps).ravel()
        every = [
            value + shifts[np.maximum(np.abs(shifts.real), np.abs(shifts.imag)) <= error]
            for value, error in zip(values, errors, strict=True)
        ]
        (found,) = _call(node, list(np.meshgrid(*every, indexing="ij")))
        assert far is not None
        assert far >= (found != results[0]).max()
        if p == q == 0.0 or abs(a.real - b.real) > p + q:
            assert far == 0


@pytest.mark.parametrize("name", ["argsort", "top_k"])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.float32, np.float16])
def test_positions_in_an_order_that_is_open_hold_for_all_orders(name: str, dtype: Any) -> None:
    random = np.random.default_rng(5)
    attributes = {"axis": 0} if name == "argsort" else {"k": 3}
    builder = Builder(TABLE)
    x = builder.parameter(TensorType(np.dtype(dtype), (5,)))
    made = builder.node(name, [x], attributes)
    node = builder.finish(made if isinstance(made, tuple) else (made,)).nodes[0]
    settled = 0
    for _ in range(60):
        value = random.integers(0, 2 if dtype is np.bool_ else 6, 5).astype(dtype)
        error = random.choice([0, 0, 1], 5).astype(float)
        results = _call(node, [value])
        found = settled_spread(node, [value], [error], results, _call)
        assert found is not None
        ways = [
            sorted({moved(value, error, way)[n] for way in (-1.0, 1.0)} | {value[n]})
            for n in range(5)
        ]
        seen = [np.zeros(r.shape) for r in results]
        for one in product(*ways):
            others = _call(node, [np.array(one, dtype)])
            seen = [
                np.maximum(s, distance(o, r)) for s, o, r in zip(seen, others, results, strict=True)
            ]
        for far, most in zip(found, seen, strict=True):
            assert (most <= far).all(), (value, error)
        settled += int((found[-1] == 0).sum())
        if not error.any():
            assert not any(f.any() for f in found)
    assert settled > 60


def test_the_greatest_are_open_where_one_may_be_anything() -> None:
    """It may be less than all others: then the third is among the two greatest."""
    builder = Builder(TABLE)
    x = builder.parameter(TensorType(np.dtype(np.float32), (2, 4)))
    node = builder.finish(builder.node("top_k", [x], {"k": 2})).nodes[0]
    value = np.array([[5, 3, -1, -2], [5, 3, -1, -2]], np.float32)
    error = np.array([[0, np.inf, 0, 0], [0, 0.5, 0, 0]])
    values, places = settled_spread(node, [value], [error], _call(node, [value]), _call) or ()
    assert values.tolist() == [[np.inf, np.inf], [0, 0.5]]
    assert places.tolist() == [[3, 2], [0, 0]]


def test_an_order_is_open_among_neighbours_alone() -> None:
    def program(x: Any) -> Any:
        return np.argsort(np.exp(np.log(x)), axis=-1)

    given = np.array([[1.0, 2.0, 2.0, 5.0], [4.0, 3.0, 2.0, 1.0]], np.float32)
    (one,) = judged(tn.jit(program).trace(given), [given])
    assert one.error.tolist() == [[0, 1, 1, 0], [0, 0, 0, 0]]


def test_a_quotient_that_may_be_one_may_equal_one() -> None:
    x = np.array(0.08817808397479969 - 0.33998806649274527j)  # by itself: 0.9999999999999999
    graph = tn.jit(lambda x: x / x == 1).trace(x)
    (found,) = judged(graph, [x])
    assert not found.value
    assert compare(np.array(True), found.value, found.allowed).agrees


def test_what_may_be_nan_may_differ_from_itself() -> None:
    def program(x: Any) -> Any:
        wide = x.sum()  # which overflows in one order and not in another
        one = np.exp(x[2])
        return wide == wide, wide < wide, one == one, one != one

    given = np.array([3e38, 3e38, -3e38], np.float32)
    graph = tn.jit(program).trace(given)
    assert [float(one.allowed) for one in judged(graph, [given])] == [1, 0, 0, 0]


def test_comparisons_of_floats_meet_within_their_bounds() -> None:
    def program(x: Any, y: Any) -> Any:
        a, b = np.exp(x), np.exp(y)
        return a == y, a == b, a < b, a < 3

    x, y = np.full(2, 0.5, np.float32), np.array([np.exp(np.float32(0.5)), 2], np.float32)
    graph = tn.jit(program).trace(x, y)
    found = [one.allowed.tolist() for one in judged(graph, [x, y])]
    assert found == [[1, 0], [0, 0], [0, 0], [0, 0]]


def test_all_rules_are_tried_here() -> None:
    assert len(ELEMENTWISE) > 30
    apart = {name for name, _ in CASTS}
    for name in TABLE:
        if spread_of(name).rule is not None:
            tried = name in ELEMENTWISE or name in apart or spread_of(name) in ELSEWHERE
            assert tried, f"the rule of {name} for integers that are not settled is not tried"


def test_sums_of_many_hold_and_stay_in_their_rows() -> None:
    random = np.random.default_rng(7)
    value = random.integers(-20, 20, (3, 4)).astype(np.int8)
    error = np.array([[0, 0, 0, 0], [0, 3, 0, 2], [0, 90, 90, 0]], float)
    for name, given in (("reduce_sum", {"axes": (1,)}), ("cumsum", {"axis": 1, "reverse": False})):
        builder = Builder(TABLE)
        x = builder.parameter(TensorType(np.dtype(np.int8), (3, 4)))
        node = builder.finish(builder.node(name, [x], given)).nodes[0]
        (far,) = settled_spread(node, [value], [error], _call(node, [value]), _call) or [None]
        assert far is not None
        last = far if name == "reduce_sum" else far[:, -1]
        assert last.tolist() == [0, 5, np.inf]


def around(x: Any) -> Any:
    """Integers off by a few, large and small."""
    return np.exp(x).view(np.int32)


def test_what_narrows_an_integer_that_may_be_anything_bounds_it() -> None:
    def narrowed(x: Any) -> Any:
        wild = around(x) * around(x)  # anything
        return (
            np.clip(wild, 10, 14),
            wild % 7,
            wild & 6,
            (wild > 0).astype(np.int32) + 3,
            np.minimum(wild, 5) * 0 + np.abs(wild).clip(2, 7),
            wild * 0,
            np.where(x > 0, 1, wild),
        )

    given = np.array([0.5, 1.0, 2.0], np.float32)
    graph = tn.jit(narrowed).trace(given)
    spread = [float(one.error.max()) for one in judged(graph, [given])]
    assert spread == [4, 14, 6, 1, 5, 0, 0]


def test_a_fault_behind_unsettled_integers_is_found() -> None:
    def program(x: Any) -> Any:
        bits = around(x)
        return bits + 1000, bits ^ (1 << 20), bits // 16, np.maximum(bits, 3), bits.view(np.uint32)

    given = np.array([0.5, 1.0, 2.0], np.float32)
    graph = tn.jit(program).trace(given)
    for one in judged(graph, [given]):
        assert np.isfinite(one.allowed).all()
        assert not compare(one.value + 2000, one.value, one.allowed).agrees
        assert not compare(one.value ^ 1 << 24, one.value, one.allowed).agrees


def test_what_no_rule_narrows_stays_open_to_the_end() -> None:
    """What was once taken for settled: bits of two trials for those of all."""

    def program(x: Any) -> Any:
        bits = around(x)
        wild = bits * bits
        return (
            wild.view(np.uint32),
            wild.astype(np.int16),
            wild[::2].reshape(-1).view(np.uint32) >> np.uint32(0),
        )

    given = np.array([0.5, 1.0, 2.0], np.float32)
    graph = tn.jit(program).trace(given)
    for one in judged(graph, [given]):
        width = np.iinfo(one.value.dtype)
        least, most = np.full_like(one.value, width.min), np.full_like(one.value, width.max)
        for other in (one.value + one.value.dtype.type(1), least, most):
            assert compare(other, one.value, one.allowed).agrees


def test_an_integer_next_to_its_limit_is_moved_only_if_it_is_off() -> None:
    near = np.array([2**63 - 100, 2**63 - 100], np.int64)
    up = moved(near, np.array([0.0, 3.0]), 1.0)
    assert up.tolist()[0] == 2**63 - 100
    assert distance(near, near - np.array([0, 3])).tolist() == [0, 3]
