"""Every constructor of NumPy's inside a traced function, beside NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import ConcreteError, MutationError, Unsupported
from tenfold.trace.array import Array
from tenfold.trace.containers import flatten
from tenfold.trace.swap.constructors import substitutes

X = np.array([0.5, -1.25, 3.0, 2.0])
PLAIN = np.arange(6, dtype="f4").reshape(2, 3)  # captured

# Calls of what is known while tracing.
KNOWN: dict[str, list[Callable[[], Any]]] = {
    "zeros": [
        lambda: np.zeros(3),
        lambda: np.zeros((2, 3), "f4", order="F"),
        lambda: np.zeros(np.array([2, 3]), dtype=int),
        lambda: np.zeros((), device="cpu"),
        lambda: np.zeros(0, like=np.ones(2)),
        lambda: np.zeros((300, 300)),
    ],
    "as_strided": [lambda: np.lib.stride_tricks.as_strided(np.arange(5), (3, 3), (8, 8))],
    "ndenumerate": [lambda: [v * p[0] for p, v in np.ndenumerate(np.arange(6.0).reshape(2, 3))]],
    "nditer": [lambda: [x * 2 for x in np.nditer(np.arange(3.0))]],
    "ones": [lambda: np.ones(3), lambda: np.ones(shape=(2, 0), dtype=bool)],
    "full": [
        lambda: np.full(3, 7),
        lambda: np.full((2, 2), [1.5, 2]),
        lambda: np.full((200, 200), np.arange(200)),
        lambda: np.full(2, np.array(3), "u1"),
    ],
    "empty": [lambda: np.empty((2, 3)) * 0, lambda: np.empty(2, int) * 0],
    "zeros_like": [lambda: np.zeros_like(PLAIN), lambda: np.zeros_like([1, 2], dtype="f4")],
    "ones_like": [lambda: np.ones_like(PLAIN, shape=4), lambda: np.ones_like(3)],
    "full_like": [lambda: np.full_like(PLAIN, 2), lambda: np.full_like(np.zeros(3), np.nan)],
    "empty_like": [lambda: np.empty_like(PLAIN) * 0],
    "arange": [
        lambda: np.arange(5),
        lambda: np.arange(2, 40, 3),
        lambda: np.arange(30, 0, -1, dtype="u1"),
        lambda: np.arange(0.0, 40),
        lambda: np.arange(0, 1, 0.05),
        lambda: np.arange(-20.0, 20, dtype="f4"),
    ],
    "eye": [lambda: np.eye(3), lambda: np.eye(9, 7, dtype=int), lambda: np.eye(5, k=1)],
    "identity": [lambda: np.identity(6, "f4")],
    "tri": [lambda: np.tri(4, 5, -1)],
    "indices": [lambda: np.indices((3, 7)), lambda: np.indices((2, 2), sparse=True)],
    "linspace": [lambda: np.linspace(0, 1, 5), lambda: np.linspace(0, 9, 40, retstep=True)],
    "logspace": [lambda: np.logspace(0, 2, 5)],
    "geomspace": [lambda: np.geomspace(1, 16, 5)],
    "bartlett": [lambda: np.bartlett(9)],
    "blackman": [lambda: np.blackman(9)],
    "hamming": [lambda: np.hamming(9)],
    "hanning": [lambda: np.hanning(20)],
    "kaiser": [lambda: np.kaiser(9, 14)],
    "vander": [lambda: np.vander([1, 2, 3])],
    "meshgrid": [lambda: np.meshgrid([1, 2], [3, 4, 5])],
    "diag_indices": [lambda: np.diag_indices(3)],
    "mask_indices": [lambda: np.mask_indices(3, np.triu)],
    "tril_indices": [lambda: np.tril_indices(3)],
    "triu_indices": [lambda: np.triu_indices(3, 1)],
    "array": [
        lambda: np.array([1, 2.5]),
        lambda: np.array([[1, 2], [3, 4]], "f4", ndmin=3),
        lambda: np.array(3.5),
        lambda: np.array(PLAIN),
        lambda: np.array([np.zeros(2), np.ones(2)]),
        lambda: np.array((np.float32(1), 1)),
        lambda: np.array([True, 2]),
    ],
    "asarray": [lambda: np.asarray([1, 2]), lambda: np.asarray(PLAIN, int), lambda: np.asarray(4)],
    "asanyarray": [lambda: np.asanyarray([[1.0]])],
    "asarray_chkfinite": [lambda: np.asarray_chkfinite([1.0, 2])],
    "ascontiguousarray": [lambda: np.ascontiguousarray(PLAIN.T), lambda: np.ascontiguousarray(2)],
    "asfortranarray": [lambda: np.asfortranarray([[1, 2], [3, 4]])],
    "require": [lambda: np.require([1, 2], float, "W")],
    "copy": [lambda: np.copy(PLAIN), lambda: np.copy([1, 2])],
    "fromfunction": [lambda: np.fromfunction(lambda i, j: i * 10 + j, (2, 3))],
    "fromiter": [
        lambda: np.fromiter((i * i for i in range(4)), float),
        lambda: np.fromiter(iter([1, 2, 3]), int, count=2),
    ],
    "tile": [lambda: np.tile([1, 2], 3)],
    "repeat": [lambda: np.repeat(3, 4)],
    "diag": [lambda: np.diag([1, 2]), lambda: np.diag(np.eye(3)) + 0],
    "diagflat": [lambda: np.diagflat([1, 2])],
    "tril": [lambda: np.tril([[1, 2], [3, 4]])],
    "triu": [lambda: np.triu([[1, 2], [3, 4]])],
    "concatenate": [lambda: np.concatenate([[1], [2, 3]])],
    "stack": [lambda: np.stack([[1, 2], [2, 3]])],
    "vstack": [lambda: np.vstack([[1, 2], [2, 3]])],
    "hstack": [lambda: np.hstack([[1, 2], [2, 3]])],
    "dstack": [lambda: np.dstack([[1, 2], [2, 3]])],
    "column_stack": [lambda: np.column_stack([[1, 2], [2, 3]])],
    "block": [lambda: np.block([[1, 2], [3, 4]])],
    "atleast_1d": [lambda: np.atleast_1d(3)],
    "atleast_2d": [lambda: np.atleast_2d([1, 2])],
    "atleast_3d": [lambda: np.atleast_3d([1, 2])],
    "fftfreq": [lambda: np.fft.fftfreq(20, 0.5)],
    "rfftfreq": [lambda: np.fft.rfftfreq(9)],
    "r_": [lambda: np.r_[1, 2:5, [7.5]], lambda: np.r_["0,2", [1, 2], [3, 4]]],
    "c_": [lambda: np.c_[[1, 2], [3, 4]]],
    "mgrid": [lambda: np.mgrid[0:3, 0:2], lambda: np.mgrid[0:1:30j]],
    "ogrid": [lambda: np.ogrid[0:3, 0:2]],
}

# Calls with something traced in them.
TRACED: list[Callable[[Any], Any]] = [
    lambda x: np.array(x),
    lambda x: np.array(x, "f4", ndmin=3),
    lambda x: np.array([[x[0], 1], [2, x[1]]]),
    lambda x: np.array([x, np.zeros(4), [1, 2, 3, 4]]),
    lambda x: np.array([x > 0, [True] * 4]),
    lambda x: np.array([x[0] > 0, 2]),
    lambda x: np.array((x.astype("f4")[0], 1)),
    lambda x: np.array([x.astype("f4"), x.astype("i2")]),
    lambda x: np.array([x[0], 1.5], dtype=int),
    lambda x: np.array([[x[0]], [x[1]]]).shape,
    lambda x: np.asarray(x, dtype=complex),
    lambda x: np.asanyarray([x, x]),
    lambda x: np.ascontiguousarray(x.reshape(2, 2).T),
    lambda x: np.ascontiguousarray(x[0]),
    lambda x: np.asfortranarray(x.reshape(2, 2)),
    lambda x: np.require(x, "f4", ["C", "W"]),
    lambda x: np.copy(x),
    lambda x: np.full((2, 4), x),
    lambda x: np.full(3, x[1], "f4"),
    lambda x: np.full_like(PLAIN, x[2]),
    lambda x: np.full_like(x, 3),
    lambda x: np.zeros_like(x, dtype=int),
    lambda x: np.empty_like(x) * 0,
    lambda x: np.ones_like(x, shape=(2, 2)),
    lambda x: np.zeros(3, like=x),
    lambda x: np.array([1, 2], like=x),
    lambda x: np.fromiter((v * 2 for v in x), "f8", count=3),
    lambda x: np.fromfunction(lambda i, j: i * x[0] + j, (2, 3)),
    lambda x: np.linspace(0, x[2], 5),
    lambda x: np.r_[x, 0, 1:3, np.ones(2)],
    lambda x: np.r_[x.astype("f4"), 1],
    lambda x: np.r_[x.astype("f4"), 1.5, [1, 2]],
    lambda x: np.r_["-1,2,0", x, x],
    lambda x: np.r_["0,2", x, [1, 2, 3, 4]],
    lambda x: np.r_["1", x.reshape(2, 2), np.ones((2, 1))],
    lambda x: np.c_[x, np.arange(4), x > 0],
    lambda x: np.c_[x.reshape(2, 2), x[:2]],
    lambda x: np.tile([x[0], x[1]], 2),
    lambda x: np.diag([x[0], 2]),
    lambda x: np.fft.fftfreq(5, x[0]),
    lambda x: np.arange(4) * x + np.eye(4) @ x + np.hanning(4),
    lambda x: [row * x for row in np.eye(4)],
    lambda x: x[np.arange(4)[::-1]] + x[np.array([0, 0, 1, 1])],
    lambda x: x.reshape(np.array([2, 2])).sum(int(np.arange(3)[1])),
]


def _same(got: Any, expected: Any) -> None:
    got, expected = flatten(got)[1], flatten(expected)[1]
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        made = np.asarray(one)
        assert made.dtype == np.asarray(other).dtype
        np.testing.assert_array_equal(made, other)


def test_every_constructor_has_a_case() -> None:
    assert {one.name for one in substitutes()} == KNOWN.keys()


@pytest.mark.parametrize(
    "call", [c for calls in KNOWN.values() for c in calls], ids=[n for n in KNOWN for _ in KNOWN[n]]
)
def test_of_what_is_known(call: Callable[[], Any]) -> None:
    def function(x: Any) -> Any:
        made = call()
        for one in flatten(made)[1]:
            assert not isinstance(one, np.ndarray)
            if isinstance(one, Array):
                assert repr(one.tolist()) == repr(np.array(one).tolist())
        return made, [one + x.sum() for one in flatten(made)[1]]

    _same(tn.jit(function, compile="never")(X), function_on_numpy(call))


def function_on_numpy(call: Callable[[], Any]) -> Any:
    made = call()
    return made, [one + X.sum() for one in flatten(made)[1]]


@pytest.mark.parametrize(
    "call", [c for calls in KNOWN.values() for c in calls], ids=[n for n in KNOWN for _ in KNOWN[n]]
)
def test_written_to(call: Callable[[], Any]) -> None:
    """What was made takes traced values, and whoever holds it sees them."""

    def function(x: Any) -> Any:
        made = [one for one in flatten(call())[1] if np.ndim(one)]
        held = list(made)
        for one in made:
            one[..., :1] = x[2]
        return held

    _same(tn.jit(function, compile="never")(X), function(X))


@pytest.mark.parametrize("call", TRACED)
def test_of_what_is_traced(call: Callable[[Any], Any]) -> None:
    _same(tn.jit(call, compile="never")(X), call(X))
    _same(tn.jit(call)(X), call(X))


def test_a_number_that_is_traced() -> None:
    for call in (
        lambda n: np.asarray(n),
        lambda n: np.array([n, 1.5]),
        lambda n: np.full(3, n),
        lambda n: np.r_[n, np.zeros(2, "f4")],
        lambda n: np.zeros(2, "f4") + n,
    ):
        _same(tn.jit(call)(2), call(2))


@pytest.mark.parametrize(
    "call",
    [
        lambda n: np.zeros(n),
        lambda n: np.empty(shape=n),
        lambda n: np.full((2, n), 1.5),
        lambda n: np.arange(n),
        lambda n: np.tri(n),
        lambda n: np.hanning(n),
        lambda n: np.mgrid[0:n, 0:2],
    ],
)
def test_an_extent_that_is_traced_is_refused(call: Callable[[Any], Any]) -> None:
    with pytest.raises(ConcreteError, match="make the argument static"):
        tn.jit(call)(3)
    _same(tn.jit(call, static=0)(3), call(3))


# What they are in the graph.


def _nodes(function: Callable[..., Any]) -> list[str]:
    return [node.op for node in tn.trace(function, X).nodes]


def _inputs(function: Callable[..., Any]) -> list[str]:
    return [p.name for p in tn.trace(function, X).parameters]


def test_arrays_of_one_number_are_broadcast() -> None:
    for make in (
        lambda: np.zeros(4),
        lambda: np.ones((300, 4)),
        lambda: np.full((300, 4), 2.5),
        lambda: np.zeros((300, 300))[5:9, 2:6],
        lambda: np.ones(4) * 3,
    ):
        assert _nodes(lambda x, make=make: x + make()) == ["constant", "broadcast", "add"]


def test_counting_and_identities_take_no_input() -> None:
    counting = [lambda: np.arange(100), lambda: np.arange(7, 307, 3), lambda: np.mgrid[:9, :9][1]]
    for make in (*counting, lambda: np.arange(50.0)[::-1], lambda: np.eye(30)):
        assert _inputs(lambda x, make=make: x[0] + make()) == ["x"]
    assert _nodes(lambda x: x[0] + np.arange(100.0)).count("iota") == 1


def test_other_arrays_are_constants_and_inputs() -> None:
    assert _nodes(lambda x: x + np.linspace(0, 1, 4)) == ["constant", "add"]
    assert _inputs(lambda x: x[0] + np.linspace(0, 1, 40)) == ["x", "made.0"]

    def twice(x: Any) -> Any:
        made = np.linspace(0, 1, 40)
        return x[0] + made, x[1] * made

    assert _inputs(twice) == ["x", "made.0"]


def test_zeros_of_both_signs_are_told_apart() -> None:
    for make in (
        lambda: np.array([0.0, -0.0, 0.0] * 10),
        lambda: np.array([-0.0, 1.0, 2.0, *range(3, 40)]),
        lambda: np.full(40, -0.0),
    ):
        got = tn.jit(lambda x, make=make: make() * x[2])(X)
        assert np.signbit(got).tolist() == np.signbit(make() * X[2]).tolist()


def test_large_arrays_take_no_memory_while_they_have_one_number() -> None:
    def function(x: Any) -> Any:
        made = np.zeros((1 << 14, 1 << 14))
        return made[3, :4] + x

    assert tn.jit(function)(X).tolist() == X.tolist()


def test_a_captured_array_is_itself_and_its_copy_is_not() -> None:
    weights = np.arange(30.0)

    def function(x: Any) -> Any:
        assert np.asarray(weights) is weights
        copied = np.array(weights)
        copied[:4] = x
        return copied, weights[np.arange(4)] * x

    _same(tn.jit(function)(X), function(X))
    with pytest.raises(tn.errors.ConcreteError, match=r"np\.array\(w\)"):
        tn.jit(lambda x: np.asarray(weights).__setitem__(0, x[0]))(X)


def test_another_array_in_the_place_of_one_computed_with_traces_anew() -> None:
    box = [np.arange(4.0)]
    f = tn.jit(lambda x: box[0] * x + (np.ones(4) + box[0]))
    assert f(X).tolist() == (box[0] * X + (np.ones(4) + box[0])).tolist()
    box[0] = np.arange(4.0) + 5
    assert f(X).tolist() == (box[0] * X + (np.ones(4) + box[0])).tolist()


def test_elements_are_gone_over_with_their_places() -> None:
    def program(x: Any) -> Any:
        total = 0.0
        for (i, j), value in np.ndenumerate(x):
            total = total + value * (i + 10 * j)
        for place, value in np.ndenumerate(np.arange(3.0)):
            total = total + value * place[0]
        return total

    x = np.arange(6.0).reshape(2, 3)
    assert tn.jit(program)(x) == program(x)


def test_iterators_walk_what_is_known() -> None:
    def program(x: Any) -> Any:
        walk = np.nditer([np.arange(3.0), np.ones((2, 1)), None])
        for a, b, total in walk:
            total[...] = a + b
        return x + walk.operands[2]

    x = np.ones(3)
    np.testing.assert_array_equal(tn.jit(program)(x), program(x))
    with pytest.raises(Unsupported, match=r"np\.nditer walks through memory"):
        tn.jit(lambda x: [v * 2 for v in np.nditer(x)])(x)


def test_an_array_from_outside_beside_a_traced_one_is_not_written():
    outside = np.arange(3.0)

    def write(x):
        one, _ = np.atleast_1d(outside, x)
        one[0] = x[1]  # in NumPy this reaches `outside`
        return one

    with pytest.raises(MutationError, match="read-only"):
        tn.jit(write)(np.ones(3))
    assert outside[0] == 0


@pytest.mark.parametrize(
    "convert",
    [
        lambda x: np.asarray(x, order="F"),
        lambda x: np.asarray(x, order="C"),
        lambda x: np.asarray(x.T, order="C"),
        lambda x: np.asarray(x.T, order="F"),
        lambda x: np.array(x, copy=None, order="F"),
        lambda x: np.require(x.T, requirements="C"),
        lambda x: np.require(x, requirements=["C", "W"]),
        lambda x: x.astype(float, order="F", copy=False),
        lambda x: x.astype(float, order="C", copy=False),
        lambda x: np.ascontiguousarray(x[1:]),
        lambda x: np.ascontiguousarray(x.T),
        lambda x: np.ascontiguousarray(x[:, 1]),
        lambda x: np.asfortranarray(x),
        lambda x: np.asfortranarray(x[0]),
        lambda x: np.asfortranarray(x.T),
    ],
)
def test_an_order_is_a_copy_where_numpy_copies(convert):
    def write(x):
        y = convert(x)
        y[...] = 7
        return y

    mine, theirs = np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(tn.jit(write)(mine), write(theirs))
    np.testing.assert_array_equal(mine, theirs)


def test_an_order_without_a_copy_is_refused():
    with pytest.raises(ValueError, match="without a copy"):
        tn.jit(lambda x: np.array(x.T, copy=False, order="C"))(np.ones((3, 4)))
