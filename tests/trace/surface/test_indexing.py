"""Indexing beside NumPy's: reading and writing by any key."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tenfold as tn
from tenfold.errors import (
    ConcreteError,
    IndexProblem,
    ShapeError,
    TenfoldError,
    TypeMismatch,
    ValueProblem,
)
from tenfold.trace.surface.indexing.indexing import dynamic_slice, dynamic_update
from tenfold.trace.surface.indexing.key import ScalarIndex, read_key
from tenfold.trace.surface.steps import BasicIndex
from tenfold.types import F64, TensorType

QUICK = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@st.composite
def cases(draw: Any) -> tuple[np.ndarray[Any, Any], tuple[Any, ...]]:
    """An array and a key that NumPy takes."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    key: list[Any] = []
    axis, dots = 0, False
    advanced = draw(st.booleans())
    lead = tuple(draw(st.lists(st.integers(1, 2), max_size=2)))  # what index arrays broadcast to
    while axis < len(shape) and draw(st.integers(0, 5)):
        extent = shape[axis]
        kind = draw(st.integers(0, 6))
        if kind == 0:
            key.append(None)
            continue
        if kind == 1 and not dots:
            dots = True
            key.append(Ellipsis)
            axis += draw(st.integers(0, len(shape) - axis))
            continue
        if kind == 2:
            key.append(draw(st.integers(-extent, extent - 1)))
        elif kind in (3, 4) and advanced:
            size = lead[draw(st.integers(0, len(lead))) :]
            size = tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in size)
            flat = [draw(st.integers(-extent, extent - 1)) for _ in range(int(np.prod(size)))]
            key.append(np.array(flat, dtype=np.int64).reshape(size))
        elif kind == 5 and advanced and not lead:
            key.append(np.array(draw(st.lists(st.booleans(), min_size=extent, max_size=extent))))
        else:
            bound = st.one_of(st.none(), st.integers(-extent - 1, extent + 1))
            step = draw(st.sampled_from([None, 1, 2, 3, -1, -2]))
            key.append(slice(draw(bound), draw(bound), step))
        axis += 1
    return x, tuple(key)


def _takes(x: Any, key: Any) -> bool:
    try:
        x[key]
    except IndexError:
        return False
    return True


@QUICK
@given(case=cases())
def test_reading(case: Any, compare: Any) -> None:
    x, key = case
    if _takes(x, key):
        compare(lambda x: x[key], x, exact=True)


@QUICK
@given(case=cases(), whole=st.booleans(), first=st.booleans())
def test_writing(case: Any, whole: bool, first: bool, compare: Any) -> None:
    x, key = case
    if not _takes(x, key):
        return
    shape = x[key].shape
    value = -np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
    if not whole:
        value = value[..., :1] if shape and shape[-1] else np.float32(-7)
    places = np.zeros(x.shape, int)
    np.add.at(places, key, 1)
    if places.size and places.max() > 1:
        value = np.float32(-7)  # which of several values stays is not NumPy's to say

    def f(x: Any, value: Any) -> Any:
        y = x.copy()
        y[key] = value
        if first:
            y[key] += 1
        return y, x

    compare(f, x, value, exact=True)


@QUICK
@given(case=cases())
def test_traced_indices(case: Any, compare: Any) -> None:
    """The same with the integers and index arrays of the key traced."""
    x, key = case
    if not _takes(x, key):
        return
    spots = [
        i
        for i, k in enumerate(key)
        if isinstance(k, int) or (isinstance(k, np.ndarray) and k.dtype != bool)
    ]
    values = [np.asarray(key[i]) for i in spots]

    def f(x: Any, *indices: Any) -> Any:
        full = list(key)
        for i, index in zip(spots, indices, strict=True):
            full[i] = index
        return x[tuple(full)]

    compare(f, x, *values, exact=True)


X = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "key",
    [
        0,
        -1,
        (1, 2),
        (1, 2, 3),
        np.int64(1),
        slice(None, None, -1),
        (slice(None), slice(2, 0, -1)),
        (..., 0),
        (0, ..., None),
        (0, 1, 2, ...),
        None,
        [1, 0, 1],
        [[0], [1]],
        ([0, 1], [2, 0]),
        (slice(None), [0, 2], slice(None)),
        (slice(None), 1, [0, 2]),
        (0, slice(None), [0, 2]),
        ([0, 1], slice(None), [0, 3]),
        ([0, 1], None, [0, 2]),
        (np.array([], int),),
        [],
        True,
        False,
        (np.True_, 0),
        np.array([True, False]),
        X > 5,
        (0, X[0] > 13),
        (slice(None), np.array([True, False, True])),
        np.array([[True, False, True], [False, False, True]]),
        np.uint8(1),
        np.array([1, 0], np.uint8),
        (),
        ...,
        range(2),
    ],
    ids=repr,
)
def test_chosen_keys(key: Any, compare: Any) -> None:
    compare(lambda x: x[key], X, exact=True)

    def f(x: Any) -> Any:
        x = x.copy()
        x[key] = 7
        return x

    compare(f, X, exact=True)


def test_traced_scalars_index(compare: Any) -> None:
    compare(lambda x, i: (x[i], x[i, 1], x[0, i], x[i, i], x[..., i], x[i, i, i]), X, np.int32(1))
    compare(lambda x, i: (x[i], x[:, i], x[i, 1:]), X, np.int64(-1))
    compare(lambda x, i: x[i], X, 1)

    def f(x: Any, i: Any) -> Any:
        x = x.copy()
        x[i] = 1.0
        x[0, i] += 5
        x[0, 0, i] *= 2
        return x

    compare(f, X, np.int64(1), exact=True)


def test_traced_masks_write(compare: Any) -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        y[x > 12] = -1
        z = x.copy()
        z[x[:, 0, 0] > 3] = np.arange(4.0)
        w = x.copy()
        w[:, x[0, :, 0] > 3] = np.array([[5.0, 6.0, 7.0, 8.0]])
        return y, z, w

    compare(f, X)


def test_a_captured_mask_that_is_rebound_traces_anew() -> None:
    import tenfold as tn

    mask = np.array([True, False, True])
    f = tn.jit(lambda x: (x[mask], np.where(mask, x, 0.0)))
    x = np.array([1.0, 2.0, 3.0])
    assert [r.tolist() for r in f(x)] == [[1.0, 3.0], [1.0, 0.0, 3.0]]
    mask = np.array([False, True, True])
    assert [r.tolist() for r in f(x)] == [[2.0, 3.0], [0.0, 2.0, 3.0]]
    mask = np.array([False, False, True])
    assert [r.tolist() for r in f(x)] == [[3.0], [0.0, 0.0, 3.0]]


def test_lists_of_traced_indices(compare: Any) -> None:
    compare(lambda x, i: (x[[i, 0]], x[:, [i, i]]), X, np.int64(1))


def test_functions(compare: Any) -> None:
    i = np.array([2, 0, 1])
    compare(lambda x, i: (np.take(x, i), np.take(x, i, axis=1), x.take(i, 2)), X, i)
    compare(lambda x, i: np.take_along_axis(x, i[None, :, None], 1), X, i)
    compare(lambda x: np.take_along_axis(x, np.argsort(-x, axis=1), axis=1), X)

    def f(x: Any, i: Any) -> Any:
        y = x.copy()
        np.put_along_axis(y, i[None, :, None], 9.0, axis=1)
        z = x.copy()
        np.put(z, i, [1.0, 2.0, 3.0])
        z.put([5], 8)
        np.putmask(z, x > 20, -1)
        np.copyto(y, x, where=x > 3)
        m = x[0].copy()
        np.fill_diagonal(m, 4)
        m.fill(3)
        return y, z, m

    compare(f, X, i)


def test_values_are_cast_to_the_array(compare: Any) -> None:
    def f(x: Any, v: Any) -> Any:
        y = x.astype(np.int32)
        y[0] = v[0]
        y[1, 0] = 2.75
        y[1, 1] = v[0, 0].astype(np.float32)
        return y

    compare(f, X, X + 0.5)


def test_dynamic_slices(run: Any) -> None:
    def f(x: Any, i: Any) -> Any:
        part = dynamic_slice(x, (0, i, 0), (1, 2, 3))
        return (
            part,
            dynamic_update(x, part * 10, [1, i, 1]),
            dynamic_slice(x, [0, 9, -5], (1, 2, 2)),
        )

    part, whole, clamped = run(f, X, np.int32(1))
    np.testing.assert_array_equal(part, X[:1, 1:3, :3])
    expected = X.copy()
    expected[1:2, 1:3, 1:4] = X[:1, 1:3, :3] * 10
    np.testing.assert_array_equal(whole, expected)
    np.testing.assert_array_equal(clamped, X[:1, 1:3, :2])
    (part,) = run(lambda x, i: dynamic_slice(x, i, (1, 1, 1)), X, np.array([1, 2, 3]))
    assert part.item() == 23


@pytest.mark.parametrize(
    ("f", "kind", "words"),
    [
        (lambda x: x[2], IndexProblem, "index 2 is out of range for axis 0"),
        (lambda x: x[0, -4], IndexProblem, "index -4 is out of range for axis 1"),
        (lambda x: x[[0, 5]], IndexProblem, "index 5"),
        (lambda x: x[0, 0, 0, 0], IndexProblem, "4 indices"),
        (lambda x: x[..., ...], IndexProblem, "more than one ellipsis"),
        (lambda x: x[1.5], IndexProblem, "index of type float"),
        (lambda x: x[np.array([0.5])], IndexProblem, "dtype float64"),
        (lambda x: x["a"], IndexProblem, "index of type str"),
        (lambda x: x[x], IndexProblem, "traced index of dtype float64"),
        (lambda x: x[np.array([True])], IndexProblem, "a mask of shape"),
        (lambda x: x[:: x.shape[0] - 2], ShapeError, "step 0"),
        (lambda x: np.sort(x[x > 1]), ConcreteError, "np.where"),
        (lambda x: x[: x.argmax()], ConcreteError, "tn.dynamic_slice"),
        (lambda x: np.stack(np.nonzero(x)), ConcreteError, r"tn\.nonzero\(x, size=n\)"),
        (lambda x: np.take(x, 99), IndexProblem, "index 99"),
        (lambda x: np.take(x, 1.5), TypeMismatch, "indices of dtype"),
        (lambda x: np.take_along_axis(x, np.array([1]), 0), ShapeError, "as many axes"),
        (lambda x: dynamic_slice(x, (0,), (1, 1, 1)), ShapeError, "1 starts"),
        (lambda x: dynamic_slice(x, (0, 0, 1.5), (1, 1, 1)), TypeMismatch, "a start of type"),
        (lambda x: dynamic_slice(x, (0, 0, 0), (1, 1, x.sum())), ConcreteError, "a size"),
    ],
)
def test_wrong_keys(f: Any, kind: Any, words: str, trace: Any) -> None:
    with pytest.raises(kind, match=words) as caught:
        trace(f, X)
    assert isinstance(caught.value, TenfoldError)
    assert "test_indexing.py" in (caught.value.where or "")


def test_wrong_values(trace: Any, run: Any) -> None:
    def assign(key: Any, value: Any) -> Any:
        def f(x: Any) -> Any:
            x = x.copy()
            x[key if key is not None else x > 3] = value
            return x

        return f

    with pytest.raises(ShapeError, match="does not broadcast"):
        trace(assign(0, np.ones(5)), X)
    with pytest.raises(ValueProblem, match="5 values are assigned"):  # of how many, the run knows
        run(assign(None, np.ones(5)), X)


def test_an_index_that_only_a_second_reduction_reads_is_looked_at() -> None:
    def f(x: Any, y: Any, i: Any) -> Any:
        return np.exp(x[:, i] - np.max(y, axis=-1, keepdims=True)).sum(axis=-1)

    x, y = np.arange(42.0).reshape(6, 7), np.arange(30.0).reshape(6, 5)
    compiled, within = tn.jit(f, verify="off"), np.arange(5)
    np.testing.assert_allclose(compiled(x, y, within), f(x, y, within))
    assert len(compiled.program_for(x, y, within)[2].plan.steps) == 1
    with pytest.raises(IndexProblem, match="index 99 is out of range"):
        compiled(x, y, np.array([0, 1, 99, 3, 4]))


def test_an_index_is_looked_at_where_what_it_reads_does_not_matter() -> None:
    def f(t: Any, i: Any) -> Any:
        return np.argmin(np.logical_or(t[i], True), axis=0)

    compiled, t = tn.jit(f, verify="off"), np.array([True, False, True])
    within = np.array([[0, 1], [2, 0]])
    np.testing.assert_array_equal(compiled(t, within), f(t, within))
    assert len(compiled.program_for(t, within)[2].plan.steps) == 1
    with pytest.raises(IndexProblem, match="index 3 is out of range"):
        compiled(t, within + 1)


def test_indices_out_of_range_at_run_time(run: Any) -> None:
    with pytest.raises(IndexProblem, match="out of range"):
        run(lambda x, i: x[i], X, np.int64(2))


@pytest.mark.parametrize(
    ("shape", "key"),
    [((3, 0), ("i",)), ((0, 3), (slice(None), "i")), ((4, 3), (slice(0, 0), "i")),
     ((4, 3), ("i", slice(0, 0, 2))), ((3, 0), (slice(0, 3, 2), slice(None), "i"))],
)  # fmt: skip
@pytest.mark.parametrize("single", [False, True])
def test_an_index_into_nothing_is_checked_too(
    shape: tuple[int, ...], key: Any, single: bool
) -> None:
    """As in NumPy, where nothing is written in the end."""
    if len(key) > len(shape):
        shape = (*shape, 3)

    def write(x: Any, i: Any) -> Any:
        x = x + 0
        x[tuple((i[0] if single else i) if k == "i" else k for k in key)] = 1.0
        return x

    x = np.zeros(shape)
    with pytest.raises(IndexError):
        write(x, np.array([7]))
    for mode in ("now", "never"):
        compiled = tn.jit(write, compile=mode)
        np.testing.assert_array_equal(compiled(x, np.array([1])), write(x, np.array([1])))
        with pytest.raises(IndexProblem, match="index 7 is out of range"):
            compiled(x, np.array([7]))


_ITEMS = (0, 1, -1, 2, -4, 9, None, slice(None), slice(1, None), slice(None, None, -2),
          slice(3, 1), slice(5, 0, -1), slice(None, None, 0), slice(-2, None), ..., True,
          np.int64(1), np.array([0, 1]), [1])  # fmt: skip


def test_plain_keys_are_read_as_all_are() -> None:
    """The short way for plain keys gives what the long way gives, or nothing."""
    short = 0
    for shape in ((4,), (3, 4), (2, 0), ()):
        for key in (*_ITEMS, *itertools.product(_ITEMS, repeat=2)):
            step = BasicIndex.plain(shape, key)
            if step is not None:
                assert step == BasicIndex.of(read_key(TensorType(F64, shape), key).entries)
                assert step.lay(np.zeros(shape)).shape == np.zeros(shape)[key].shape
                short += 1
    assert short > 200


def test_an_element_is_looked_up_once():
    """Programs that go element by element read and write each several times."""
    first = BasicIndex.plain((9, 7), (3, -1))
    assert first is BasicIndex.plain((9, 7), (3, -1))
    assert first.entries == (ScalarIndex(3), ScalarIndex(6))
    assert BasicIndex.plain((9, 7), (3, 7)) is None
    assert BasicIndex.plain((9, 7), (True, 1)) is None
