"""What views cost: nodes for those that are read or written, and as many however far a view is
from its array."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import tenfold as tn
from tenfold.trace.function import Leaf, trace_function
from tenfold.trace.scope import current
from tenfold.trace.surface.steps import Reshape
from tenfold.types import TensorType


def _ops(f: Callable[[Any], Any], *shape: int) -> Counter[str]:
    graph = tn.trace(lambda x: f(x + 1), np.zeros(shape))
    return Counter(node.op for node in graph.nodes)


def _made(f: Callable[[Any], Any], *shape: int) -> int:
    """How many nodes are made on the way, those that nobody needs in the end among them."""
    counts: list[int] = []

    def call(arrays: list[Any]) -> Any:
        result = f(*arrays)
        counts.append(_values())
        return result

    trace_function(f, [Leaf(TensorType(np.dtype(float), shape))], call)
    return counts[0]


def _values() -> int:
    scope = current()
    assert scope is not None
    return len(scope.builder.types)


def rows(x: Any) -> Any:
    x = x.copy()
    for row in x:
        row[:] = row * 2
    return x


def rows_added_to(x: Any) -> Any:
    x = x.copy()
    for row in x:
        row += 1
    return x


def chained(x: Any) -> Any:
    x = x.copy()
    for i in range(x.shape[0]):
        x[1:-1][::-1][: i + 1, 2:][0, ::-1] = i
    return x


def walk(x: Any) -> Any:
    rest = x = x.copy()
    for i in range(x.shape[0]):
        rest[0] = i
        rest = rest[1:]
    return x


def turned(x: Any) -> Any:
    y = x = x.copy()
    for i in range(x.shape[0]):
        y = y.T
        y[0, 0] = i
    return x


def shaped(x: Any) -> Any:
    y = x = x.copy()
    for i in range(x.shape[0]):
        y = y.ravel() if i % 2 else y.reshape(x.shape[::-1])
        y += 1
    return x


def lifted(x: Any) -> Any:
    x = x.copy()
    rest = x[:, 0]
    for i in range(x.shape[0]):
        rest.reshape(-1, 1)[0] = i
        rest = rest.reshape(1, -1)[:, 1:].reshape(-1)
    return x


def cut_windows(x: Any) -> Any:
    x = x.copy()
    rest = sliding_window_view(x, 3, axis=1, writeable=True)
    for i in range(x.shape[0]):
        rest[0, 0] = i
        rest = rest[1:]
    return x


@pytest.mark.parametrize(
    "f", [rows, rows_added_to, chained, walk, turned, shaped, lifted, cut_windows]
)
def test_nodes_grow_with_the_writes(f: Callable[[Any], Any]) -> None:
    few, some, many = (_made(f, n, 8) for n in (10, 20, 40))
    assert many - some == 2 * (some - few)
    few, some, many = (sum(_ops(f, n, 8).values()) for n in (10, 20, 40))
    assert many - some == 2 * (some - few)


def test_a_row_is_taken_and_put_back() -> None:
    found = _ops(rows, 30, 8)
    assert found["slice"] == found["dynamic_update"] == found["mul"] == 30
    assert found["reshape"] == 60


def test_a_part_is_written_once() -> None:
    def f(x: Any) -> Any:
        x[1:] += 1
        x[1:, 2:] *= 2
        x.T[0] -= 1
        return x

    found = _ops(f, 3, 8)
    assert found["dynamic_update"] == 3
    assert found["slice"] == 3


def test_what_is_written_is_not_read_first() -> None:
    def f(x: Any) -> Any:
        x[1:][0][2:] = 5
        return x

    found = _ops(f, 3, 8)
    assert found["dynamic_update"] == 1
    assert not found["slice"]


def test_views_are_derived_when_they_are_read() -> None:
    def f(x: Any) -> Any:
        x = x.copy()
        views = [x[i] for i in range(1000)]
        x += 1
        before = _values()
        total = views[3] + views[500]
        assert _values() == before + 5
        return total + views[3]

    tn.trace(f, np.zeros((1000, 2)))


def test_a_view_is_not_derived_twice() -> None:
    def f(x: Any) -> Any:
        x = x.copy()
        y = x[1:]
        x += 1
        return y + y * y

    found = _ops(f, 4)
    assert found["slice"] == 1


def test_a_view_of_what_nobody_else_sees_costs_nothing() -> None:
    def f(x: Any) -> Any:
        y = (x + 1).reshape(2, 2)
        y += 1
        y[0, 0] = 7
        return y

    found = _ops(f, 4)
    assert found["reshape"] == 2  # of x, and of the number
    assert found["dynamic_update"] == 1


def test_axes_that_are_but_parted_lie_well_however_they_lie() -> None:
    """So that a reshape of a view need not ask how it lies, which NumPy has to say."""
    shapes = [s for n in range(4) for s in itertools.product((1, 2, 3, 4, 6), repeat=n)]
    spaced = {s: np.zeros([2 * n for n in s])[(slice(None, None, 2),) * len(s)] for s in shapes}
    parted = 0
    for before, after in itertools.product(shapes, repeat=2):
        if math.prod(before) == math.prod(after) and Reshape(before, after).parts:
            assert spaced[before].reshape(after, copy=False).shape == after
            parted += 1
    assert parted > 500
    assert not Reshape((2, 3), (6,)).parts
    assert not Reshape((0, 2), (2, 0)).parts


def test_a_range_at_a_traced_place_costs_what_lies_there():
    def write(x, i):
        x[i, 1:-1] = 2.0
        x[2, i, 1:] = 3.0  # a known place beside a traced one
        return x

    x, i = np.zeros((50, 7, 8)), np.int64(4)
    graph = tn.trace(write, x, i)
    large = [node.op for node in graph.nodes if node.types[0].size > 7 * 8]
    assert large == ["scatter", "scatter"]
    expected = write(x.copy(), i)
    np.testing.assert_array_equal(tn.jit(write)(x, i), expected)


def test_a_traced_place_that_is_not_there_is_an_error_where_a_range_is_empty():
    def write(x, i):
        x[i, 3:3] = 1.0
        return x

    with pytest.raises(IndexError):
        tn.jit(write)(np.zeros((5, 7)), np.int64(5))
