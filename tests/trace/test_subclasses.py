"""Subclasses of NumPy's arrays: those that compute in their own way are refused everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import TypeMismatch


class Named(np.ndarray):
    """An array with a field; it computes as any other."""

    def __new__(cls, given: Any, name: str = "") -> Named:
        made = np.asarray(given).view(cls)
        made.name = name
        return made

    def __array_finalize__(self, obj: Any) -> None:
        self.name = getattr(obj, "name", "")


class Modular(np.ndarray):
    """An array that computes in its own way."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [np.asarray(x) for x in inputs]
        return (getattr(ufunc, method)(*plain, **kwargs) % 7).view(Modular)


class Deeper(Modular):
    """A subclass of that."""


MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
ODD: list[Any] = [
    MASKED,
    np.ma.array(np.ones((0, 3))),
    np.ma.array(2.0),
    np.arange(4.0).reshape(2, 2).view(np.matrix),
    np.arange(3.0).view(Modular),
    np.arange(3.0).view(Deeper),
    np.arange(6.0).view(Modular)[::-2],
]


@pytest.mark.parametrize("odd", ODD, ids=lambda a: f"{type(a).__name__}{a.shape}")
def test_it_is_refused_wherever_it_is_met(odd: Any) -> None:
    plain = np.asarray(odd)
    double = tn.jit(lambda x: x * 2)
    with pytest.raises(TypeMismatch, match="is no plain array"):
        double(odd)
    for _ in range(3):  # a plain one of the same type is answered by native code in the end
        np.testing.assert_array_equal(double(plain), plain * 2)
    with pytest.raises(TypeMismatch, match="is no plain array"):
        double(odd)
    for f in (
        lambda x: x + odd,
        lambda x: np.maximum(x, odd),
        lambda x: np.stack([x, odd]),
        lambda x: tn.asarray(odd) + x,
        lambda x: tn.asarray([odd, odd]) + x,
        lambda x: np.where(x > 0, odd, x),
        lambda x: tn.call_host(lambda v: odd, tn.spec(odd.shape), x),
    ):
        with pytest.raises(TypeMismatch, match="is no plain array"):
            tn.jit(f)(plain)
        with pytest.raises(TypeMismatch, match="is no plain array"):
            np.asarray(f(tn.asarray(plain)))
    with pytest.raises(TypeMismatch, match="is no plain array"):
        tn.jit(lambda p: p["w"][0] + 1)({"w": [odd]})
    with pytest.raises(TypeMismatch, match="is no plain array"):
        tn.vmap(lambda x: x + 1)(odd)


def test_a_captured_array_that_becomes_one_is_refused() -> None:
    held = {"w": np.ones(3)}
    f = tn.jit(lambda x: x + held["w"])
    assert f(np.zeros(3)).tolist() == [1, 1, 1]
    held["w"] = MASKED
    with pytest.raises(TypeMismatch, match="filled"):
        f(np.zeros(3))


def test_a_loaded_plan_refuses_it(tmp_path: Path) -> None:
    path = tmp_path / "sum.plan"
    tn.jit(lambda x: x.sum()).plan(np.ones(3)).save(path)
    loaded = tn.load(path)
    assert loaded(np.ones(3)) == 3
    with pytest.raises(TypeMismatch, match="filled"):
        loaded(MASKED)


def test_an_index_is_refused() -> None:
    index = np.ma.array([0, 1], mask=[0, 1])
    with pytest.raises(TypeMismatch, match="filled"):
        tn.jit(lambda x: x[index])(np.ones(3))


def test_the_remedy_is_named() -> None:
    with pytest.raises(TypeMismatch, match=r"(?s)argument 'x': a MaskedArray .*x\.filled"):
        tn.jit(lambda x: x.sum())(MASKED)
    with pytest.raises(TypeMismatch, match="x @ y"):
        tn.jit(lambda x: x * x)(np.ones((1, 1)).view(np.matrix))


def test_what_means_the_same_is_taken(tmp_path: Path) -> None:
    stored = np.memmap(tmp_path / "x", np.float64, "w+", shape=(4,))
    stored[:] = [1, 2, 3, 4]
    for given in (stored, stored[::-1], Named([1.0, 2, 3, 4], "four")):
        found = tn.jit(lambda x: x * 2)(given)
        np.testing.assert_array_equal(found, np.asarray(given) * 2)
        assert type(found) is np.ndarray
        captured = tn.jit(lambda x, given=given: x + given)(np.zeros(4))
        np.testing.assert_array_equal(captured, given)
