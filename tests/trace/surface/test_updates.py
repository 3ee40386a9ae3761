"""In-place updates: aliases and views see them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.errors import MutationError, TypeMismatch
from tenfold.trace.function import Leaf, trace_function
from tenfold.types import TensorType

X = np.arange(6.0)
M = np.arange(12.0).reshape(3, 4)


def test_aliases_see_updates(compare: Any) -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        z = y
        y += 1
        y[0] = 9
        z *= 2
        z[1:] += x[1:]
        z[[0, 2]] -= 1
        np.add(z, 1, out=z)
        return y, z, x

    compare(f, X)


def test_every_in_place_operator(compare: Any) -> None:
    def f(x: Any, i: Any) -> Any:
        y = x + 0
        y += 1
        y -= 0.5
        y *= x
        y /= 2
        y **= 2
        y //= 3
        y %= 5
        j = i + 0
        j <<= 2
        j >>= 1
        j |= 8
        j &= 13
        j ^= 5
        m = x.reshape(2, 3).copy()
        m @= np.eye(3)
        return y, j, m

    compare(f, X, np.arange(4))


def test_parts_are_updated(compare: Any) -> None:
    def f(m: Any) -> Any:
        y = m.copy()
        y[1:] += 10
        y[:, 0] *= -1
        y[0, 1] += 5
        y[::2, ::-1] -= m[::2]
        y[..., -1] = 0
        return y

    compare(f, M)


def test_numbers_are_bound_anew(compare: Any) -> None:
    def f(x: Any) -> Any:
        total = x.sum()
        before = total
        total += 1
        first = x[0]
        first *= 5
        return total, before, first, x

    compare(f, X)


def test_python_numbers_are_bound_anew(compare: Any) -> None:
    def f(x: Any, n: Any) -> Any:
        m = n
        n += 1
        return x * n, x * m

    compare(f, X.astype("f4"), 2)


def test_a_view_of_what_nobody_else_sees_is_an_array(compare: Any) -> None:
    def f(x: Any) -> Any:
        y = (x + 1).reshape(2, 3)
        y += 1
        y[0, 0] = 7
        z = np.ones_like(x)[1:]
        z[0] = 5
        w = x.copy().T
        w *= 2
        return y, z, w

    compare(f, X)


def test_fresh_arrays_are_no_views(compare: Any) -> None:
    def f(m: Any) -> Any:
        y = m.copy()
        parts = [y[[0, 1]], y.flatten(), y.copy(), y.astype(float), y[y.argmax(0)]]
        y += 100
        for part in parts:
            part += 1
        return y, *parts

    compare(f, M)


VIEWS = {
    "slice": lambda m: m[1:],
    "row": lambda m: m[1],
    "dots": lambda m: m[...],
    "all": lambda m: m[:],
    "reshape": lambda m: m.reshape(4, 3),
    "same shape": lambda m: m.reshape(3, 4),
    "ravel": lambda m: m.ravel(),
    "T": lambda m: m.T,
    "transpose": lambda m: np.transpose(m),
    "swapaxes": lambda m: m.swapaxes(0, 1),
    "moveaxis": lambda m: np.moveaxis(m, 0, 1),
    "squeeze": lambda m: np.squeeze(m),
    "expand": lambda m: np.expand_dims(m, 0),
    "new": lambda m: m[None],
    "broadcast": lambda m: np.broadcast_to(m, (2, 3, 4)),
    "real": lambda m: m.real,
    "flip": lambda m: np.flip(m),
    "diagonal": lambda m: m.diagonal(),
    "split": lambda m: np.split(m, 3)[1],
    "view": lambda m: m.view(),
    "bits": lambda m: m.view(np.int64),
    "view of a view": lambda m: m[1:][:, 1:],
    "atleast": lambda m: np.atleast_1d(m),
    "traced row": lambda m: m[m.argmax(0)[0] * 0],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str, compare: Any, trace: Any) -> None:
    view = VIEWS[name]

    def read_late(m: Any) -> Any:
        y = m.copy()
        v = view(y)
        y += 1
        return v, y

    def through(m: Any) -> Any:
        y = m.copy()
        v = view(y)
        v += 1
        return y, v

    def assigned(m: Any) -> Any:
        y = m.copy()
        v = view(y)
        v[0] = 1
        return y, v

    compare(read_late, M)
    for f in (through, assigned):
        if name in ("broadcast", "diagonal"):
            with pytest.raises(MutationError, match="read-only"):
                trace(f, M)
        else:
            compare(f, M)


def test_arguments_that_are_updated_are_noted() -> None:
    def trace(f: Any) -> Any:
        leaf = Leaf(TensorType(np.dtype(float), (6,)), "weights")
        return trace_function(f, [leaf], lambda arrays: f(*arrays))

    def add(x: Any) -> Any:
        x += 1
        return x

    def assign(x: Any) -> Any:
        x[0] = 1
        return x

    def out(x: Any) -> Any:
        return np.add(x, 1, out=x)

    def part(x: Any) -> Any:
        x[1:] += 1
        return x

    for f in (add, assign, out, part):
        traced = trace(f)
        assert (traced.updates, traced.returned) == ((0,), (0,))
        assert len(traced.graph.outputs) == 1

    def copied(x: Any) -> Any:
        x = x.copy()
        x += 1
        return x

    assert trace(copied).updates == ()


def test_updates_that_would_change_the_type(trace: Any) -> None:
    def grow(x: Any) -> Any:
        y = x.copy()
        y += np.ones((2, 6))
        return y

    def widen(x: Any) -> Any:
        y = x.astype(int)
        y += 1.5
        return y

    def unsigned(x: Any) -> Any:
        y = x.astype(np.uint8)
        y += np.ones(6, np.int64)
        return y

    with pytest.raises(TypeMismatch, match="would change"):
        trace(grow, X)
    with pytest.raises(TypeMismatch, match="can't turn float64 into int64"):
        trace(widen, X)
    with pytest.raises(TypeMismatch, match="can't turn"):
        trace(unsigned, X)


def test_updates_keep_the_dtype(compare: Any) -> None:
    def f(x: Any) -> Any:
        y = x.astype(np.float32)
        y += x
        z = x.astype(np.uint8)
        z += 3
        return y, z

    compare(f, X)


def test_arrays_that_are_not_made_by_a_constructor_take_no_traced_values(trace: Any) -> None:
    outside = np.zeros(6)

    def f(x: Any) -> Any:
        total = outside * 2
        total += x
        return total

    def g(x: Any) -> Any:
        total = outside.copy()
        np.copyto(total, x)
        return total

    for wrong in (f, g):
        with pytest.raises(MutationError, match=r"w = np\.array\(w\)"):
            trace(wrong, X)
