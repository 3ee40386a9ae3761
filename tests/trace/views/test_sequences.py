"""Programs drawn at random that take views and write to them: all arrays end as NumPy's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tenfold as tn

Action = Callable[[list[Any]], None]  # on all arrays that there are

DTYPES = ["f8", "f4", "i4", "u1", "c16"]


def _taken(at: int, take: Callable[[Any], Any]) -> Action:
    return lambda pool: pool.append(take(pool[at]))


def _written(at: int, write: Callable[[Any, list[Any]], None]) -> Action:
    return lambda pool: write(pool[at], pool)


@st.composite
def keys(draw: Any, shape: tuple[int, ...]) -> Any:
    """A basic key of an array of this shape."""
    parts: list[Any] = []
    count = draw(st.integers(0, len(shape)))
    dots = draw(st.sampled_from([None, "before", "after"]))
    for extent in shape[len(shape) - count :] if dots == "before" else shape[:count]:
        if draw(st.booleans()):
            parts.append(None)
        kind = draw(st.sampled_from(["slice", "slice", "whole", "place"]))
        if kind == "place" and extent:
            parts.append(draw(st.integers(-extent, extent - 1)))
        elif kind == "slice":
            bound = st.none() | st.integers(-extent - 1, extent + 1)
            step = draw(st.sampled_from([2, -1, None, 1, -2, 3]))
            parts.append(slice(draw(bound), draw(bound), step))
        else:
            parts.append(slice(None))
    if dots is None:
        return tuple(parts)
    return (..., *parts) if dots == "before" else (*parts, ...)


@st.composite
def takes(draw: Any, x: Any) -> Callable[[Any], Any]:
    """A function of NumPy's that gives a view, or perhaps a copy."""
    kind = draw(st.sampled_from(["key", "key", "order", "shape", "ravel", "flip", "lift", "more"]))
    if kind == "key":
        key = draw(keys(x.shape))
        return lambda y: y[(*key, ...)] if ... not in key else y[key]
    if kind == "order":
        axes = tuple(draw(st.permutations(range(x.ndim))))
        return lambda y: y.transpose(axes)
    if kind == "shape":
        shape, rest = [], x.size
        while rest > 1 and draw(st.booleans()):
            n = draw(st.sampled_from([d for d in range(1, rest + 1) if rest % d == 0]))
            shape.append(n)
            rest //= n
        wanted = (*shape, rest)
        order = draw(st.sampled_from("CF"))
        return lambda y: y.reshape(wanted, order=order)
    if kind == "ravel":
        return lambda y: y.ravel()
    if kind == "flip":
        return np.flip
    if kind == "lift":
        at = draw(st.integers(0, x.ndim))
        return lambda y: np.expand_dims(y, at)
    return draw(
        st.sampled_from(
            [
                np.squeeze,
                lambda y: y.T,
                lambda y: y.real,
                lambda y: y.copy(),
                lambda y: y.view(),
                np.atleast_2d,
                lambda y: np.split(y, 1)[0] if y.ndim else y[...],
                lambda y: np.einsum("ii->i", y) if y.ndim == 2 and len(set(y.shape)) == 1 else y.T,
                lambda y: np.diagonal(y) if y.ndim > 1 else y.T,
                lambda y: np.broadcast_to(y, (2, *y.shape)),
            ]
        )
    )


def _reversed_copy(y: Any) -> Any:
    return y.ravel()[::-1].reshape(y.shape).copy()


@st.composite
def writes(draw: Any, x: Any, pool: list[Any]) -> Callable[[Any, list[Any]], None]:
    """Something that changes an array of more than no axes in place."""
    number = draw(st.integers(0, 9))
    kind = draw(st.sampled_from(["key", "key", "add", "fill", "other", "out", "put", "reverse"]))
    if kind == "key":
        key = draw(keys(x.shape))
        return lambda y, _: y.__setitem__(key, number)
    if kind == "other":  # another array, or a view of the same, is written over it
        like = [i for i, y in enumerate(pool) if y.shape == x.shape and y.dtype == x.dtype]
        at = draw(st.sampled_from(like))
        return lambda y, all_: y.__iadd__(all_[at]) if number % 2 else np.copyto(y, all_[at])
    if kind == "put" and x.size:
        at = draw(st.integers(0, x.size - 1))
        return lambda y, _: np.put(y, [at], number)
    if kind == "out":
        return lambda y, _: np.multiply(y, 2, out=y)
    if kind == "reverse":
        return lambda y, _: y.__setitem__(..., _reversed_copy(y))
    if kind == "fill":
        return lambda y, _: y.fill(number)
    return lambda y, _: y.__iadd__(number)


@given(st.data())
@settings(deadline=None, max_examples=250)
def test_views_and_writes(data: st.DataObject) -> None:
    extents = st.sampled_from([4, 3, 2, 6, 1, 0])
    shape = tuple(data.draw(st.lists(extents, min_size=2, max_size=3)))
    dtype = data.draw(st.sampled_from(DTYPES))
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    actions: list[Action] = []
    expected: list[Any] = [np.ones(shape, dtype), x.copy()]
    for _ in range(data.draw(st.integers(6, 16))):
        at = len(expected) - 1 - data.draw(st.integers(0, len(expected) - 1))
        y = expected[at]
        if data.draw(st.booleans()) and (y.ndim or y.base is not None) and y.flags.writeable:
            action = _written(at, data.draw(writes(y, expected)))
        else:
            action = _taken(at, data.draw(takes(y)))
        action(expected)
        actions.append(action)

    def f(x: Any) -> Any:
        pool = [np.ones(shape, dtype), x.copy()]
        for action in actions:
            action(pool)
        return tuple(pool)

    lazy = f(tn.asarray(x))
    for found in (tn.jit(f, compile="never")(x), lazy):
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(got), wanted)
            assert got.dtype == wanted.dtype
