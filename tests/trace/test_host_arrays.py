"""Arrays made in a traced function: known until something traced is written to them."""

from __future__ import annotations

import copy
import pickle
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import ConcreteError, MutationError, ScopeError
from tenfold.trace.array import Array
from tenfold.trace.containers import flatten

X = np.array([0.5, -1.25, 3.0, 2.0])
M = np.arange(20.0).reshape(4, 5) / 7


def _same(function: Callable[..., Any], *args: Any) -> None:
    got = tn.jit(function)(*(a.copy() for a in args))
    expected = function(*(a.copy() for a in args))
    for one, other in zip(flatten(got)[1], flatten(expected)[1], strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, 1e-12)


# Known values reach Python.


def _plainly(x: Any) -> Any:
    a = np.array([[1.5, 2], [3, 4]])
    n = np.arange(6)
    assert int(n[1]) == 1
    assert type(n[1]) is np.int64
    assert float(a[0, 0]) == 1.5
    assert [10, 20, 30][n[2]] == 30
    assert list(range(np.array([2, 3])[0])) == [0, 1]
    assert [int(i) for i in np.arange(3)] == [0, 1, 2]
    assert not np.zeros(3).any()
    assert np.zeros(3).tolist() == [0, 0, 0]
    assert np.array(7).item() == 7
    assert complex(np.array(2)) == 2
    assert 3 in n
    assert 9 not in n
    assert len(a) == 2
    assert bool((a == a).all())
    assert (a == None).tolist() == [[False] * 2] * 2  # noqa: E711
    assert repr(a) == "array([[1.5, 2. ],\n       [3. , 4. ]])"
    assert str(n) == "[0 1 2 3 4 5]"
    assert f"{np.array(1.5):.2f}" == "1.50"
    assert np.array(a).dtype == a.dtype == np.float64
    assert a.strides == (16, 8)
    assert a.flags.c_contiguous
    assert np.zeros((200, 100)).strides == (800, 8)
    assert a.sum() == 10.5
    assert type(a.sum()) is np.float64
    assert a.T.tolist() == [[1.5, 3], [2, 4]]
    assert a.max(axis=0).tolist() == [3, 4]
    assert n.searchsorted(3) == 3
    assert n.cumsum().tolist() == [0, 1, 3, 6, 10, 15]
    assert np.linalg.det(np.eye(3)) == 1
    assert np.unique(np.array([3, 1, 3])).tolist() == [1, 3]
    assert np.nonzero(n > 3)[0].tolist() == [4, 5]
    assert n[n > 3].tolist() == [4, 5]
    assert np.add.reduce(n) == 15
    assert np.add.outer(n, n)[2, 3] == 5
    assert divmod(n, 4)[1].tolist() == [0, 1, 2, 3, 0, 1]
    assert (2**n).tolist() == [1, 2, 4, 8, 16, 32]
    assert (-a @ a).shape == (2, 2)
    assert (M[np.arange(2)] + np.ones(5)).shape == (2, 5)
    assert np.array_equal(pickle.loads(pickle.dumps(n)), np.array([0, 1, 2, 3, 4, 5]))
    assert copy.deepcopy(n).tolist() == n.tolist()
    assert n.astype(np.int64, copy=False) is n
    assert np.asarray(n) is n
    assert np.array(n) is not n
    assert isinstance(np.array(["a"]), np.ndarray)  # of a dtype that Tenfold lacks
    assert np.array([1, None])[1] is None
    return x.reshape(np.array([2, 2]))


def test_known_values_reach_python() -> None:
    _same(_plainly, X)


def test_what_is_computed_of_known_arrays_is_no_part_of_the_program() -> None:
    def function(x: Any) -> Any:
        a = np.arange(6) * 2
        a[0] = 5
        a += 1
        np.add(a, 1, out=a)
        a.sort()
        if a.sum() > 3:
            x = x * int(a[0])
        return x

    assert [node.op for node in tn.trace(function, X).nodes] == ["constant", "mul"]
    _same(function, X)


def test_a_known_array_is_read_only_for_others() -> None:
    def function(x: Any) -> Any:
        a = np.zeros(4)
        a.__array__()[0] = 1
        return x + a

    with pytest.raises(ValueError, match="read-only"):
        tn.trace(function, X)


# Writing.


def _rows(x: Any) -> Any:
    a = np.zeros((3, 4))
    for row in a:
        row[:] = x
    return a


def _views(x: Any) -> Any:
    a = np.zeros((4, 5))
    row, column, turned, part, flat = a[1], a[:, 2], a.T, a[1:3, ::2], a.reshape(-1)
    deep = part[1:]
    row[:4] = x
    column += x
    turned[0] = 7
    part[0, 0] = x[2]
    flat[-1] = x[3]
    deep[:] += 1
    return a, row, column, turned, part, flat, deep


def _views_before(x: Any) -> Any:
    """Written on the host first, then by traced values."""
    a = np.ones((150, 150))
    part = a[2:4]
    a[2] = 5
    part[1, 1] = 3
    kept = part * 2
    a[3, :4] = x
    return a[:6], part, kept


def _aliases(x: Any) -> Any:
    a = np.zeros(4)
    b, c = a, a[...]
    a += x
    b -= 1
    c[0] = 9
    d = a
    a = a + 1
    return a, b, c, d


def _without_axes(x: Any) -> Any:
    a = np.array(0.0)
    b = a
    a += x[0]
    a += x[1]
    c = np.zeros(())
    c[...] = x[2]
    d = np.array(x[0])
    e = d
    d *= 3
    return a, b, c, d, e


def _out(x: Any) -> Any:
    a, b, c = np.empty(4), np.ones((2, 4)), np.zeros(4)
    np.add(x, 1, out=a)
    np.multiply(x, 2, out=b[1])
    np.copyto(c[1:], x[1:])
    np.subtract(a, c, a)
    return a, b, c, np.cumsum(x, out=np.zeros(4)), np.sum(b, 0, None, c)


def _functions(x: Any) -> Any:
    a, b, c, d, e = np.zeros(4), np.zeros(4), np.zeros((4, 4)), np.zeros(4), np.zeros(4)
    a.fill(x[2])
    b.put([0, 2], x[:2])
    np.fill_diagonal(c, x[0])
    np.put_along_axis(d, np.array([1]), x[:1], 0)
    np.add.at(e, np.array([1, 1, 3]), x[0])
    f = np.arange(4.0)
    f.put(np.arange(2), 9)
    f[np.array([True, False, False, True])] = x[1]
    return a, b, c, d, e, f


def _on_the_host_first(x: Any) -> Any:
    a = np.zeros(4)
    a[1] = 3
    first = a + x
    a[2] = 4
    second = a + x
    a[0] = x[0]
    a[3] = 8
    return first, second, a + x


def _given_out(x: Any) -> Any:
    a = np.zeros((2, 3))
    a.flat[1] = 4
    first = a * x[0]
    a.flat[2] = 5
    return first, a * x[0]


def _traced_index(x: Any) -> Any:
    i = x.argmax()
    a = np.zeros((4, 3))
    table = np.arange(8) * 2
    a[i] = 5
    a[i] += x[0]
    row = a[i]
    row[0] = -1
    return a, table[i], np.arange(12).reshape(4, 3)[i], table[np.array([0, 1])] + table[i]


def _conversions(x: Any) -> Any:
    a = np.zeros((2, 2))
    a[0] = x[:2]
    b, c, d, e = np.array(a), a.copy(), np.ascontiguousarray(a.T), np.asarray(a)
    b[1], c[1], d[1], e[1] = 5, x[2], 6, 7
    return a, b, c, d, e


def _stencil(x: Any) -> Any:
    a = np.zeros((6, 6))
    a[1:5, 1:5] = x.reshape(2, 2).repeat(2, 0).repeat(2, 1)
    b = np.empty_like(a)
    for _ in range(3):
        b[...] = 0
        b[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        )
        a[1:-1, 1:-1] = b[1:-1, 1:-1]
    return a


def _loops(x: Any) -> Any:
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        y[i] = x[: i + 1].sum()
    mean = np.zeros(2)
    mean += y[:2]
    mean /= 2
    table = np.zeros((len(x), 3), dtype=x.dtype)
    for i in np.arange(len(x)):
        table[i, 0], table[i, 1:] = x[i], i
    return y, mean, table


WRITTEN = [
    *(_rows, _views, _views_before, _aliases, _without_axes, _out, _functions),
    *(_on_the_host_first, _given_out, _traced_index, _conversions, _stencil, _loops),
]


@pytest.mark.parametrize("function", WRITTEN)
def test_written_as_in_numpy(function: Callable[..., Any]) -> None:
    _same(function, X)


def test_results_in_place_follow_numpys_rules() -> None:
    def wrong_dtype(x: Any) -> Any:
        a = np.zeros(4, int)
        a += x
        return a

    def wrong_shape(x: Any) -> Any:
        a = np.zeros(2)
        a[:] = x
        return a

    def on_host(x: Any) -> Any:
        a = np.zeros(4, int)
        a += 0.5
        return x

    for wrong in (wrong_dtype, wrong_shape, on_host):
        with pytest.raises((TypeError, ValueError)):
            wrong(X)
        with pytest.raises((TypeError, ValueError)):
            tn.trace(wrong, X)


def test_numpys_errors_show_the_users_lines_alone() -> None:
    def broadcast(x: Any) -> Any:
        return np.zeros(3) + np.zeros(4)

    def assigned(x: Any) -> Any:
        np.zeros(3)[:] = np.ones(5)

    def in_place(x: Any) -> Any:
        a = np.zeros(3, int)
        a += 0.5

    wrong = [
        *(broadcast, assigned, in_place, lambda x: np.zeros(-1), lambda x: np.array([[1], 2])),
        *(lambda x: np.zeros(3)[7], lambda x: np.arange(3).reshape(2, 2)),
    ]
    for function in wrong:
        with pytest.raises((TypeError, ValueError, IndexError)) as caught:
            tn.jit(function)(X)
        files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert {*files} == {__file__}


def test_after_that_it_has_no_value() -> None:
    uses: list[Callable[[Any], Any]] = [
        *(bool, int, float, list, np.ndarray.tolist),
        *(lambda a: a.tolist(), lambda a: range(a[0]), lambda a: np.asarray_chkfinite(a)),
    ]
    for use in uses:

        def function(x: Any, use: Any = use) -> Any:
            a = np.zeros(1)
            view = a[:]
            a[0] = x[0]
            return use(view), use(a)

        if use is list:
            tn.trace(lambda x: function(x)[0][0], X)
            continue
        with pytest.raises((ConcreteError, TypeError)):
            tn.trace(lambda x: function(x), X)


# Scopes.


def test_in_branches_and_bodies() -> None:
    def function(x: Any) -> Any:
        outer = np.arange(4.0)

        def step(carry: Any, v: Any) -> Any:
            made = np.zeros(4)
            made[1:] = v
            made[0] = carry[-1]
            return carry + made * outer, made.max()

        def late() -> Any:
            made = np.ones(4)
            made *= x
            return made

        scanned = tn.scan(step, np.zeros(4), x)
        chosen = tn.cond(x[0] > 0, late, lambda: np.zeros(4))
        counted = tn.fori_loop(0, 3, lambda i, c: c + np.ones(4), np.zeros(4))
        mapped = tn.map(lambda v: np.array([v, 1.0]), x)
        return scanned, chosen, counted, mapped, tn.vmap(lambda v: np.full(3, v))(x)

    carry, tops = np.zeros(4), []
    for v in X:
        made = np.array([carry[-1], v, v, v])
        tops.append(made.max())
        carry = carry + made * np.arange(4.0)
    (got, maxima), chosen, counted, mapped, spread = tn.jit(function)(X)
    np.testing.assert_allclose(got, carry)
    np.testing.assert_allclose(maxima, tops)
    np.testing.assert_allclose(chosen, X)
    np.testing.assert_allclose(counted, [3] * 4)
    np.testing.assert_allclose(mapped, np.stack([X, np.ones(4)], 1))
    np.testing.assert_allclose(spread, np.stack([X] * 3, 1))


@pytest.mark.parametrize("value", [lambda v: v, lambda v: 1.0], ids=["traced", "known"])
def test_an_outer_array_is_not_written_inside_a_body(value: Callable[[Any], Any]) -> None:
    def function(x: Any) -> Any:
        made = np.zeros(4)

        def step(carry: Any, v: Any) -> Any:
            made[0] = value(v)
            return carry, v

        return tn.scan(step, 0.0, x)

    with pytest.raises(MutationError, match="inside scan of step"):
        tn.trace(function, X)


def test_an_array_is_not_written_where_its_maker_is_not_traced() -> None:
    def leaked(x: Any) -> Any:
        made = None

        def step(carry: Any, v: Any) -> Any:
            nonlocal made
            made = np.zeros(4)
            return carry, v

        tn.scan(step, 0.0, x)
        assert made is not None
        made[0] = 1
        return x

    def in_a_thread(x: Any) -> Any:
        made, errors = np.zeros(4), []

        def work() -> None:
            try:
                made[0] = 1
            except ScopeError as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        raise errors[0]

    for wrong in (leaked, in_a_thread):
        with pytest.raises(ScopeError, match="is updated where that is not traced"):
            tn.trace(wrong, X)


def test_a_jitted_function_inside_takes_known_arrays() -> None:
    inner = tn.jit(lambda a, b: a + b)
    _same(lambda x: (inner(np.ones(4), x), inner(np.ones(2), np.arange(2))), X)


def test_what_is_kept_is_a_lazy_array_when_the_trace_is_over() -> None:
    kept: dict[int, Any] = {}

    def function(x: Any) -> Any:
        if 4 not in kept:
            kept[4] = np.arange(4.0)
        return x * kept[4]

    f = tn.jit(function)
    for _ in range(2):
        assert f(X).tolist() == (X * np.arange(4.0)).tolist()
    assert isinstance(kept[4], Array)
    assert (kept[4] + 1).tolist() == [1, 2, 3, 4]


def test_known_arrays_are_results_too() -> None:
    def function(x: Any) -> Any:
        a = np.arange(3)
        a[0] = 7
        return a, a[1], {"b": np.zeros((2, 2))}, np.float32(1) * a

    _same(function, X)


def test_lazy_arrays_outside_a_trace_are_as_before() -> None:
    lazy = tn.asarray([1.0, 2.0])
    assert isinstance(np.zeros(2) + lazy, Array)
    assert isinstance(np.array([1.0, 2.0]), np.ndarray)
    assert (lazy + np.ones(2)).tolist() == [2, 3]
    _same(lambda x: x[:2] + np.asarray(lazy) + np.ones(2), X)
