"""Containers keep the order of their dicts."""

import numpy as np
import pytest

import tenfold as tn
from tenfold.trace.containers import flatten, matched


def chain(x, layers):
    for w in layers.values():
        x = x @ w
    return x


def layers():
    draw = np.random.default_rng(0)
    return {name: draw.normal(size=(3, 3)) for name in ("layer1", "layer2", "layer10")}


def test_a_dict_comes_in_the_callers_order():
    x, given = np.eye(3), layers()
    f = tn.jit(chain)
    for _ in range(3):
        np.testing.assert_allclose(f(x, given), chain(x, given), rtol=1e-12)
    assert f.traces == 1
    other = dict(reversed(given.items()))
    for _ in range(3):
        np.testing.assert_allclose(f(x, other), chain(x, other), rtol=1e-12)
        np.testing.assert_allclose(f(x, given), chain(x, given), rtol=1e-12)
    assert f.traces == 2


def test_keywords_come_in_the_callers_order():
    @tn.jit
    def product(x, **given):
        return chain(x, given)

    x, given = np.eye(3), layers()
    np.testing.assert_allclose(product(x, **given), chain(x, given), rtol=1e-12)
    other = dict(reversed(given.items()))
    np.testing.assert_allclose(product(x, **other), chain(x, other), rtol=1e-12)


def test_returned_dicts_keep_the_functions_order():
    f = tn.jit(lambda x: {"z": x, 2: x + 1, "a": {"c": x, "b": x}})
    for _ in range(3):
        found = f(np.ones(3))
        assert list(found) == ["z", 2, "a"]
        assert list(found["a"]) == ["c", "b"]


def test_keys_are_told_apart_by_type_and_bits():
    f = tn.jit(lambda d: d[next(iter(d))] * repr(d).count("-"))
    assert [f({k: np.ones(2)})[0] for k in (0.0, -0.0, 0, False, (0.0,), (-0.0,))] == [
        *(0, 1, 0, 0, 0, 1)
    ]
    assert f.traces == 6


def test_a_loop_takes_its_dict_back_in_any_order():
    def step(state):
        return {"x": state["x"] * 2, "n": state["n"] + 1}

    @tn.jit
    def run(x):
        return tn.while_loop(lambda s: s["n"] < 3, step, {"n": 0, "x": x})

    found = run(np.ones(2))
    assert list(found) == ["n", "x"]
    assert found["n"] == 3
    assert found["x"].tolist() == [8, 8]


def test_branches_may_give_their_dicts_in_other_orders():
    @tn.jit
    def choose(p, x):
        return tn.cond(p, lambda: {"a": x, "b": x * 2}, lambda: {"b": x * 3, "a": x * 4})

    x = np.ones(2)
    assert [choose(True, x)[k][0] for k in "ab"] == [1, 2]
    assert [choose(False, x)[k][0] for k in "ab"] == [4, 3]
    with pytest.raises(tn.TenfoldError, match="keys 'a', 'b' from"):
        tn.jit(lambda p, x: tn.cond(p, lambda: {"b": x, "a": x}, lambda: {"b": x, "c": x}))(True, x)


def test_axes_of_vmap_go_by_key():
    x = {"b": np.ones((3, 2)), "a": np.ones((2, 3))}
    f = tn.vmap(lambda d: {"s": d["a"].sum(), "t": d["b"]}, in_axes=({"a": 1, "b": 0},))
    assert list(f(x)) == ["s", "t"]
    assert f(x)["s"].tolist() == [2, 2, 2]


def test_host_calls_may_answer_in_another_order():
    out = {"a": tn.spec((), "float64"), "b": tn.spec((), "float64")}
    f = tn.jit(lambda x: tn.call_host(lambda v: {"b": v.max(), "a": v.min()}, out, x))
    assert f(np.array([1.0, 2.0])) == {"a": 1, "b": 2}


def test_matching_says_no_where_more_than_the_order_differs():
    one = flatten({"a": 1, "b": (2, {"d": 3, "c": 4})})
    other = flatten({"b": (20, {"c": 40, "d": 30}), "a": 10})
    assert matched(one[0], *other) == [10, 20, 30, 40]
    assert matched(one[0], *flatten({"a": 1, "b": (2, {"d": 3})})) is None
    assert matched(one[0], *flatten({"a": 1, "b": [2, {"d": 3, "c": 4}]})) is None
