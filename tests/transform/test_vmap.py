"""vmap: axes, containers, inside and outside jit, captured arrays."""

from __future__ import annotations

import inspect
from collections import namedtuple
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest

import tenfold as tn

Pair = namedtuple("Pair", "left right")
X = np.arange(12.0).reshape(2, 3, 2)
BIG = np.arange(40.0)


@dataclass
class Layer:
    weight: Any
    bias: Any
    name: str = field(default="layer", metadata={"static": True})


# -- axes


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_in_axes_and_out_axes(axis: int) -> None:
    f = lambda x: np.sort(-x, 1) * x.sum()  # noqa: E731
    rows = [f(np.take(X, k, axis)) for k in range(X.shape[axis])]
    for out in (0, 1, 2, -1, -3):
        got = tn.vmap(f, in_axes=axis, out_axes=out)(X)
        np.testing.assert_array_equal(got, np.stack(rows, out))


def test_an_axis_for_each_argument() -> None:
    f = lambda a, b, c: a @ b + c  # noqa: E731
    b, c = np.arange(3.0), np.arange(2.0)
    got = tn.vmap(f, in_axes=(2, None, 0))(X, b, c)
    np.testing.assert_array_equal(got, np.stack([X[:, :, k] @ b + c[k] for k in range(2)]))
    got = tn.vmap(f, in_axes=[0, None, None])(X, X[0].T, c[1])
    np.testing.assert_array_equal(got, np.stack([row @ X[0].T + c[1] for row in X]))


def test_containers_and_prefixes() -> None:
    def f(params: Any, x: Any) -> Any:
        layer, pair = params["layer"], params["pair"]
        assert layer.name == "first"
        return {"y": layer.weight @ x + layer.bias, "p": Pair(pair.left + x, (pair.right, None))}

    layer = Layer(np.arange(18.0).reshape(3, 2, 3), np.ones((2, 3)), "first")
    params = {"layer": layer, "pair": Pair(np.arange(3.0), 7)}
    x = np.arange(6.0).reshape(3, 2)
    with pytest.raises(tn.TenfoldError, match=r"args\[0\]"):
        tn.vmap(f, in_axes=({"layer": 0}, 1))(params, x)
    axes = ({"layer": Layer(1, 0, "first"), "pair": None}, 1)
    got = tn.vmap(f, in_axes=axes, out_axes={"y": 1, "p": Pair(0, None)})(params, x)
    want = []
    for k in range(2):
        own = Layer(layer.weight[:, k], layer.bias[k], "first")
        want.append(f({**params, "layer": own}, x[:, k]))
    np.testing.assert_array_equal(got["y"], np.stack([w["y"] for w in want], 1))
    np.testing.assert_array_equal(got["p"].left, np.stack([w["p"].left for w in want]))
    assert got["p"].right == (7, None)


def test_what_all_lanes_share_reaches_the_function_as_it_is() -> None:
    seen: list[Any] = []

    def f(x: Any, n: int, g: Any, name: str, w: Any) -> Any:
        seen.append((n, g, name))
        return sum((g(x) for _ in range(n)), start=w)

    got = tn.vmap(f, in_axes=(0, None, None, None, None))(np.arange(3.0), 2, np.exp, "n", 1.0)
    assert seen == [(2, np.exp, "n")]
    np.testing.assert_array_equal(got, 1 + np.exp(np.arange(3.0)) + np.exp(np.arange(3.0)))


def test_arguments_by_keyword() -> None:
    f = lambda x, *, scale=1.0, shift=0.0: x * scale + shift  # noqa: E731
    x = np.arange(3.0)
    assert tn.vmap(f)(x, scale=x).tolist() == [0, 1, 4]
    assert tn.vmap(f, in_axes=(0,))(x, shift=x).tolist() == [0, 2, 4]
    assert tn.vmap(f)(x).tolist() == [0, 1, 2]
    assert str(inspect.signature(tn.vmap(f))) == str(inspect.signature(f))


def test_the_number_of_lanes_may_be_said() -> None:
    assert tn.vmap(lambda: 3, size=2)().tolist() == [3, 3]
    assert tn.vmap(lambda x: x + 1, in_axes=None, size=2)(np.ones(1)).tolist() == [[2], [2]]
    assert tn.vmap(lambda x: x + 1, size=2)(np.ones(2)).tolist() == [2, 2]


def test_results_that_all_lanes_share() -> None:
    f = lambda x, w: (x * w, w + 1, 5, np.float32(2))  # noqa: E731
    x, w = np.arange(3), np.arange(2)
    got = tn.vmap(f, in_axes=(0, None), out_axes=(0, None, None, None))(x, w)
    assert got[0].tolist() == [[0, 0], [0, 1], [0, 2]]
    assert got[1].tolist() == [1, 2]
    assert type(got[2]) is int
    assert type(got[3]) is np.float32
    spread = tn.vmap(f, in_axes=(0, None))(x, w)
    assert [s.shape for s in spread] == [(3, 2), (3, 2), (3,), (3,)]
    assert spread[3].dtype == np.float32


def test_results_are_numpy_arrays_with_numpys_dtypes() -> None:
    for dtype in ("bool", "int8", "uint64", "float16", "complex64"):
        x = np.ones(3, dtype)
        made = tn.vmap(lambda v: v + 1)(x)
        assert type(made) is np.ndarray
        assert made.dtype == (x + 1).dtype
    half = tn.vmap(lambda v: v * 2)(np.ones(3, tn.spec((), "bfloat16").dtype))
    assert half.dtype == tn.spec((), "bfloat16").dtype


def test_overflow_and_nan_as_in_a_loop(compare: Any) -> None:
    compare(lambda v: (v * v, v << 1, -v, v // (v - v), v % 3), np.array([127, -128, 5], "i1"))
    compare(
        lambda v: (np.sqrt(v), v / 0, v * 0, np.fmax(v, 1)), np.array([np.nan, -1, np.inf, -0.0])
    )


# -- inside and outside jit


def test_jit_of_vmap_and_vmap_of_jit() -> None:
    inner = tn.jit(lambda x, w: x @ w)
    for f in (
        tn.vmap(inner, in_axes=(0, None)),
        tn.jit(tn.vmap(inner, in_axes=(0, None))),
        tn.jit(tn.vmap(lambda a, b: a @ b, in_axes=(0, None))),
        tn.jit(lambda a, b: tn.vmap(inner, in_axes=(0, None))(a, b)),
    ):
        np.testing.assert_array_equal(f(X, np.ones((2, 4))), X @ np.ones((2, 4)))


def test_jit_of_vmap_traces_once() -> None:
    f = tn.jit(tn.vmap(lambda x, n: x * n, in_axes=(0, None)))
    for n in (2, 3):
        assert f(np.arange(3), n).tolist() == [0, n, 2 * n]
    assert f.traces == 1


def test_a_python_number_stays_weak_inside_jit() -> None:
    f = tn.jit(tn.vmap(lambda x, n: x * n, in_axes=(0, None)))
    assert f(np.ones(2, "f4"), 3).dtype == np.float32
    assert f(np.ones(2, "i1"), 3).dtype == np.int8
    for g in (f, tn.vmap(lambda x, n: x * n, in_axes=(0, None))):
        with pytest.raises(OverflowError):
            g(np.ones(2, "i1"), 300)


def test_a_traced_array_from_outside_is_shared() -> None:
    @tn.jit
    def f(x: Any, w: Any) -> Any:
        total = w.sum()
        inner = tn.vmap(lambda row: row * total + tn.vmap(lambda v: v * total)(w))
        return inner(x) + total

    x, w = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0])
    np.testing.assert_array_equal(f(x, w), x * 3 + w * 3 + 3)


def test_captured_arrays_are_named_and_looked_at_again() -> None:
    box = {"w": BIG.copy()}
    f = tn.jit(tn.vmap(lambda x: (x * box["w"]).sum()))
    x = np.ones((2, 40))
    assert f(x).tolist() == [780, 780]
    assert list(f.captures(x)) == ["box['w']"]
    box["w"] = BIG + 1
    assert f(x).tolist() == [820, 820]
    assert f.traces == 1
    assert tn.vmap(lambda x: (x * BIG).sum())(x).tolist() == [780, 780]


def test_vmap_as_a_decorator_of_methods_and_partials() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = np.arange(3.0)

        @partial(tn.vmap, in_axes=(None, 0))
        def apply(self, x: Any) -> Any:
            """Scale."""
            return x * self.w

    model = Model()
    np.testing.assert_array_equal(model.apply(np.ones((2, 3))), np.stack([model.w] * 2))
    assert Model.apply.__doc__ == "Scale."
    scaled = tn.vmap(partial(lambda k, x: x * k, 3))
    assert scaled(np.arange(2)).tolist() == [0, 3]
    assert tn.vmap(np.sin)(BIG).tolist() == np.sin(BIG).tolist()


def test_a_lane_that_is_updated_does_not_reach_the_caller() -> None:
    def scalar(x: Any) -> Any:
        x += 1  # a NumPy scalar is bound anew
        return x

    def copied(x: Any) -> Any:
        y = x.copy()
        y[0] = 100
        return y

    def own(x: Any) -> Any:
        x[0] = 100
        return x

    given = np.arange(4.0)
    assert tn.vmap(scalar)(given).tolist() == [1, 2, 3, 4]
    assert tn.vmap(copied)(given.reshape(2, 2)).tolist() == [[100, 1], [100, 3]]
    rows = given.reshape(2, 2)
    assert tn.vmap(own)(rows).tolist() == [[100, 1], [100, 3]]
    assert tn.vmap(own, in_axes=None, size=3)(given).tolist() == [[100, 1, 2, 3]] * 3
    assert tn.jit(tn.vmap(own))(rows).tolist() == [[100, 1], [100, 3]]
    assert given.tolist() == [0, 1, 2, 3]


def test_factorisations_sorts_and_indexing(compare: Any) -> None:
    random = np.random.default_rng(0)
    m = random.standard_normal((3, 4, 4))
    i = random.integers(0, 4, (3, 2))
    compare(lambda m: tuple(np.linalg.qr(m)), m)
    compare(lambda m: np.linalg.svd(m, compute_uv=False), m)
    compare(lambda m, i: (np.sort(m, 0), np.argsort(m[i], 1), m[:, i], m[i, i]), m, i)

    def write(m: Any, i: Any) -> Any:
        m = m.copy()
        m[i, 1:] = i[:, None]
        m[0] += m[i].sum()
        return m

    compare(write, m, i)


def test_leaks_are_found() -> None:
    kept: list[Any] = []
    tn.vmap(lambda x: kept.append(x) or x)(np.ones(2))
    with pytest.raises(tn.TenfoldError, match="leaked"):
        kept[0] + 1


# -- errors


def message(error: BaseException) -> list[str]:
    return [line for line in str(error).splitlines() if not line.startswith("  at ")]


def pick(x: Any, w: Any) -> Any:
    return x


WRONG: dict[str, tuple[Any, list[str]]] = {
    "sizes that differ": (
        lambda: tn.vmap(pick, in_axes=(0, {"a": 0, "b": None}))(X, {"a": X[0], "b": 1}),
        [
            "vmap of pick: the number of lanes differs",
            "  axis 0 of x has 2",
            "  axis 0 of w['a'] has 3",
            "  give all mapped axes one extent, or in_axes=None for what all lanes share",
        ],
    ),
    "a size that differs": (
        lambda: tn.vmap(pick, in_axes=-1, size=5)(X, X),
        [
            "vmap of pick: the number of lanes differs",
            "  axis 2 of x has 2",
            "  axis 2 of w has 2",
            "  size is 5",
            "  give all mapped axes one extent, or in_axes=None for what all lanes share",
        ],
    ),
    "no size": (
        lambda: tn.vmap(pick, in_axes=None)(X, X),
        [
            "vmap of pick: nothing says how many lanes there are",
            "  map at least one array with in_axes, or say size=n",
        ],
    ),
    "a size that is none": (
        lambda: tn.vmap(pick, size=-1)(X, X),
        ["vmap of pick: size is -1", "  give 0 lanes or more"],
    ),
    "a number with lanes": (
        lambda: tn.vmap(pick)(X, 2.0),
        [
            "vmap of pick: axis 0 of w, which is f64 and has no axes",
            "  stack the lanes into one array, or in_axes=None for what all lanes share",
        ],
    ),
    "an axis that is not there": (
        lambda: tn.vmap(pick, in_axes=3)(X, X),
        [
            "vmap of pick: axis 3 of x, which is f64[2,3,2] and has 3 axes",
            "  give an axis from -3 to 2, or in_axes=None for what all lanes share",
        ],
    ),
    "a result's axis that is not there": (
        lambda: tn.vmap(pick, out_axes=3)(X, X),
        [
            "vmap of pick: axis 3 of result, which is f64[3,2] and has 3 axes with the lanes",
            "  give an axis from -3 to 2",
        ],
    ),
    "too few axes": (
        lambda: tn.vmap(pick, in_axes=(0,))(X, X),
        [
            "vmap of pick: in_axes has 1 entries for 2 arguments",
            "  give one entry for each argument that is not given by keyword, or one number",
        ],
    ),
    "axes that do not fit": (
        lambda: tn.vmap(pick, in_axes=(0, {"b": 0}))(X, {"a": X}),
        [
            "vmap of pick: in_axes does not fit args",
            "  args[1]: a dict with keys 'b' in in_axes, a dict with keys 'a' in args",
            "  give one number for all, or the same containers as far as they go",
        ],
    ),
    "results' axes that do not fit": (
        lambda: tn.vmap(pick, out_axes=(0, 1))(X, X),
        [
            "vmap of pick: out_axes does not fit result",
            "  result: a tuple of 2 in out_axes, an array in result",
            "  give one number for all, or the same containers as far as they go",
        ],
    ),
    "an axis that is no number": (
        lambda: tn.vmap(pick, in_axes=(0, 1.5))(X, X),
        [
            "vmap of pick: in_axes holds a float, 1.5",
            "  give integers, None where the lanes share it, and containers of these",
        ],
    ),
    "a result that differs": (
        lambda: tn.vmap(pick, out_axes=None)(X, X),
        [
            "vmap of pick: out_axes is None for result, which differs between lanes",
            "  give it an axis, such as out_axes=0",
        ],
    ),
    "a result from no lane": (
        lambda: tn.vmap(lambda x: 1, out_axes=None)(np.ones(0)),
        [
            "vmap of <lambda>: out_axes is None for result, which comes from no lane: there are "
            "none",
            "  give it an axis, such as out_axes=0",
        ],
    ),
    "no array": (
        lambda: tn.vmap(pick)(X, object()),
        [
            "vmap of pick: w is an object, which has no axis for lanes",
            "  pass an array, or in_axes=None for what all lanes share",
        ],
    ),
    "no function": (
        lambda: tn.vmap(3),
        ["vmap: f is an int, not a function", "  wrap what it gives: lambda *args: value"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(name: str) -> None:
    call, want = WRONG[name]
    for attempt in (call, tn.jit(lambda: call())):
        with pytest.raises(tn.TenfoldError) as caught:
            attempt()
        assert message(caught.value) == want
        assert f"at {__file__}:" in str(caught.value)


def test_an_error_inside_the_function_names_its_line() -> None:
    def f(x: Any, y: Any) -> Any:
        return x + y  # the line meant

    with pytest.raises(ValueError) as caught:
        tn.vmap(f)(np.ones((2, 3)), np.ones((2, 4)))
    assert message(caught.value)[0] == (
        "add: f64[3] and f64[4] do not broadcast (axis 0: 3 against 4)"
    )
    assert "the line meant" in str(caught.value)
