"""Recall: calls on lazy arrays of types met before make the nodes that the surface would make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import OverflowProblem, ShapeError, Unsupported
from tenfold.trace.lazy import lazy as values
from tenfold.trace.lazy import quick, recall


@pytest.fixture(params=[-1, 1 << 14], ids=["deferred", "direct"], autouse=True)
def direct(request: Any, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether small operations are run when they are called; each test is run with both."""
    monkeypatch.setattr(tn.config, "direct", request.param)
    return bool(request.param > 0)


@pytest.fixture(autouse=True)
def recordings(monkeypatch: pytest.MonkeyPatch) -> dict[Any, Any]:
    """Those of a test, which begins with none."""
    made: dict[Any, Any] = {}
    monkeypatch.setattr(recall, "_recordings", made)
    quick.known.clear()
    for kind in values._kinds.values():
        kind.known.clear()
    return made


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "with itself": lambda x, y: x * x,
    "other side": lambda x, y: 2.0 - x,
    "in place": lambda x, y: x.__iadd__(y),
    "negative": lambda x, y: -x,
    "divmod": lambda x, y: np.divmod(x, y + 20)[1],
    "square": lambda x, y: x**2,
    "ufunc": lambda x, y: np.hypot(x, y),
    "sum": lambda x, y: x.sum(axis=1, keepdims=True),
    "mean": lambda x, y: np.mean(x, axis=0),
    "slice": lambda x, y: x[1:, ::2],
    "new axis": lambda x, y: x[:, None] - y[None],
    "last": lambda x, y: x[..., -1],
    "turned": lambda x, y: x.T @ y,
    "reshape": lambda x, y: x.reshape(-1, 2),
    "joined": lambda x, y: np.concatenate([x, y], axis=1),
    "same": lambda x, y: x.astype(x.dtype, copy=False),
    "dtype": lambda x, y: x.astype(np.float32),
    "where": lambda x, y: np.where(x > y, x, 0.5),
    "clip": lambda x, y: np.clip(x, -0.5, 0.5),
    "mask": lambda x, y: x[x > 0],
    "found": lambda x, y: np.nonzero(x > 0)[0],
    "of a view": lambda x, y: x[1:] + x[:-1],
    "sum of a view": lambda x, y: x[1:].T.sum(axis=0),
    "reshape of views": lambda x, y: x.T.reshape(-1) + x[:].reshape(-1),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_like_earlier_ones_give_what_numpy_gives(name: str) -> None:
    call = CALLS[name]
    random = np.random.default_rng(0)
    for _ in range(3):
        x, y = random.normal(size=(2, 3, 4))
        found = call(tn.asarray(x), tn.asarray(y))
        expected = call(x, y)
        assert isinstance(found, tn.Array)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


def test_the_surface_is_asked_once(recordings: dict[Any, Any]) -> None:
    asked: list[Any] = []

    @recall.recalled
    def double(x: Any) -> Any:
        asked.append(x.shape)
        return x + x

    for value in (1.0, 2.0, 3.0):
        assert double(tn.asarray(np.full(3, value))).tolist() == [2 * value] * 3
    double(tn.ones(4))
    assert asked == [(3,), (4,)]


def test_numpys_arrays_are_operands_as_they_are_then(recordings: dict[Any, Any]) -> None:
    x = tn.asarray([1.0, 2.0])
    given = np.array([1, 2])
    sums = []
    for _ in range(3):
        sums.append(given + x)
        given += 10  # which no sum sees that was there
    assert [one.tolist() for one in sums] == [[2.0, 4.0], [12.0, 14.0], [22.0, 24.0]]
    assert len(recordings) == 1
    with pytest.raises(Unsupported):
        x + np.array(["a"])


def test_what_looks_at_values_is_asked_each_time() -> None:
    asked: list[Any] = []

    @recall.recalled
    def signed(x: Any) -> Any:
        asked.append(x.shape)
        return x if float(x.sum()) > 0 else -x

    for value in (1.0, -2.0, 3.0):
        assert signed(tn.asarray([value])).tolist() == [abs(value)]
    assert len(asked) == 3


def test_what_changes_arrays_is_asked_each_time() -> None:
    @recall.recalled
    def doubled(x: Any, out: Any) -> Any:
        return np.add(x, x, out=out)

    for value in (1.0, 2.0, 3.0):
        out = tn.zeros(1)
        assert doubled(tn.asarray([value]), out) is out
        assert out.tolist() == [2 * value]


def test_views_are_views_of_their_own_arrays() -> None:
    for _ in range(3):
        x = tn.asarray(np.zeros((2, 3)))
        part, turned = x[1], x.T
        part += 1
        turned[0] = 5
        assert x.tolist() == [[5, 0, 0], [5, 1, 1]]
        assert part.tolist() == [5, 1, 1]


def test_two_arrays_that_are_one_are_another_call() -> None:
    for _ in range(2):
        x, y = tn.asarray([1.0]), tn.asarray([10.0])
        assert (x + x).tolist() == [2.0]
        assert (x + y).tolist() == [11.0]
        assert (y + y).tolist() == [20.0]


def test_numbers_that_differ_are_one_call(recordings: dict[Any, Any]) -> None:
    x = tn.asarray([1.0, -2.0])
    (x * 7.5).tolist()
    known = len(recordings)
    for number in (0.5, -0.0, 0.0, np.inf):
        got, wanted = x * number, np.array([1.0, -2.0]) * number
        assert np.asarray(got).tobytes() == wanted.tobytes()
    assert len(recordings) == known
    small = tn.asarray(np.array([1, 2], "int8"))
    for number in (1, 100, 3):
        assert (small + number).dtype == np.int8
    with pytest.raises(OverflowProblem, match="does not fit int8"):
        small + 300
    assert (small < 300).tolist() == [True, True]
    assert (small < 1).tolist() == [False, False]
    for power in (3.0, 2.0, 0.5):
        assert (tn.asarray([4.0]) ** power).tolist() == [4.0**power]
    counts = tn.asarray([1, 2])
    for number in (0.5, 1.5):  # which goes with a cast
        assert (counts + number).tolist() == [1 + number, 2 + number]


def test_errors_come_each_time_and_name_the_line() -> None:
    for _ in range(3):
        x = tn.ones(3)
        (x + x).tolist()
        with pytest.raises(ShapeError, match="do not broadcast"):
            x + tn.ones(4)
    for i in (0, 1):
        assert float(tn.asarray([1.0, 2.0])[tn.asarray(i)]) == i + 1
    for _ in range(2):
        with pytest.raises(IndexError, match="test_recall"):
            tn.asarray([1.0, 2.0])[tn.asarray(9)].item()


def test_recordings_are_bounded(
    recordings: dict[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "_KEPT", 10)
    for i in range(1, 40):
        (tn.asarray(np.ones(i)) + 1).tolist()
        assert len(recordings) <= 10
